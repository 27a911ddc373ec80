/**
 * One machine as an admin has it: an app of a signed catalogue, behind its domain. It is updated with the difference shown, a bad update goes back by itself, and
 * panel, proxy engine and container engine are killed in between. Everything is found again, and the containers never stop.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itUnless } from '../../support/skip.ts';
import { until } from '../../support/until.ts';
import { noMinisign, type Part, Publisher } from '../appstore/publisher.ts';
import { repository, startScript, webApp, webCompose } from '../appstore/support.ts';
import { noEngine } from '../container/engines.ts';
import { PanelBesideEngine } from '../container/panel.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const test = itUnless(noMinisign ?? noEngine, it);
const patient = { timeout: 240_000 };

const domain = 'wiki.test';
const cataloguePort = 8_099;
const sick = 'healthcheck: { test: [CMD, "false"], interval: 200ms, retries: 1, start_period: 0s }';

let machine: PanelBesideEngine;
let publisher: Publisher;
let server: ChildProcess;
const digests: Record<string, string> = {};

const app = (version: string, more: Part = {}): Part =>
    webApp(digests, version, {
        changelog: [{ version, text: { en: `What is new in ${version}` } }],
        ...more
    });
const publish = async (...documents: readonly Part[]): Promise<void> => {
    publisher.publish(documents);
    await machine.finish('POST', '/appstore/sources/main/sync');
};
const wiki = () => machine.ask('GET', '/appstore/installed/wiki');
const page = async (): Promise<string | undefined> => (await machine.visit(domain)).text?.trim();
/** The id of the container, and when it was started. */
const container = async (name = 'app-wiki-web-1'): Promise<readonly string[]> => {
    const { data } = await machine.engine.ask('GET', `/containers/${name}/json`);
    return [data.Id, data.State.StartedAt, data.State.Status];
};
const volumes = async (): Promise<readonly string[]> =>
    (await machine.ask('GET', '/container/volumes')).map(({ name }: { name: string }) => name);
/** The next start has finished or undone what was cut. */
const recovered = () =>
    until(
        async () => {
            const all = (await machine.ask('GET', '/appstore/installed')) as { state: string }[];
            return all.every(({ state }) => !['installing', 'updating', 'failed'].includes(state));
        },
        'the recovery',
        60_000
    );

async function pushImage(tag: string): Promise<void> {
    const image = `${repository}:${tag}`;
    await machine.engine.importImage(image, tag);
    await machine.finish('POST', '/container/images/push', { image });
    const { digests: all } = await machine.ask('GET', `/container/images/${encodeURIComponent(image)}`);
    const [digest = ''] = (all as string[]).filter((each) => each.startsWith(repository));
    digests[tag] = digest.split('@')[1] ?? '';
}

describe('An app of a catalogue on one machine', patient, () => {
    before(patient, async () => {
        if ((noMinisign ?? noEngine) !== undefined) {
            return;
        }
        machine = await PanelBesideEngine.start(['container', 'appstore']);
        publisher = await Publisher.start();
        const files = join(publisher.folder, 'www');
        server = machine.spawn('busybox', ['httpd', '-f', '-p', `127.0.0.1:${cataloguePort}`, '-h', files]);
        // The daemon leaves containers alone when it ends.
        const settings = join(machine.engine.root, 'daemon.json');
        const given = JSON.parse(readFileSync(settings, 'utf8')) as object;
        writeFileSync(settings, JSON.stringify({ ...given, 'live-restore': true }));
        machine.engine.reload();
        for (const tag of ['1', '2']) {
            await pushImage(tag);
        }
        const { capabilities } = await machine.ask('GET', '/appstore');
        await machine.ask('PUT', '/appstore', {
            settings: { healthSeconds: 20 },
            grants: { ...capabilities.granted, network: ['*', '127.0.0.1'] }
        });
        await machine.ask('POST', '/appstore/sources', {
            name: 'main',
            kind: 'portico',
            url: `http://127.0.0.1:${cataloguePort}`,
            publicKey: publisher.key()
        });
    });

    after(patient, async () => {
        if ((noMinisign ?? noEngine) !== undefined) {
            return;
        }
        await machine?.close(); // with the server of the catalogue
        if (server !== undefined && server.exitCode === null && server.signalCode === null) {
            await once(server, 'exit');
        }
        await publisher?.close();
    });

    test('is installed with its domain, and answers there through the proxy engine', async () => {
        await publish(app('1.0.0'));
        const body = { source: 'main', app: 'wiki', domain };
        const plan = await machine.ask('POST', '/appstore/plan', body);
        expect(plan.images[0].digest).to.equal(digests['1']);
        await machine.finish('POST', '/appstore/installed', { ...body, consent: plan.consent });
        expect(await machine.visit(domain)).to.include({ status: 200, text: 'first\n' });
        expect(await wiki()).to.include({ name: 'wiki', state: 'running', domain, version: '1.0.0' });
    });

    test('is found again after kill -9 of panel, proxy engine and container engine, and never stops', async () => {
        const before = await container();
        await machine.killPanel();
        expect(await page()).to.equal('first');
        await machine.startPanel();
        await machine.killProxy();
        await machine.engine.crash();
        await until(async () => (await page()) === 'first', 'the page');
        expect(await container()).to.equal(before);
        await Promise.all([machine.killPanel(), machine.killProxy()]);
        await machine.engine.crash();
        await machine.startPanel();
        await until(async () => (await page()) === 'first', 'the page');
        expect(await container()).to.equal(before);
        expect(await wiki()).to.include({ state: 'running', version: '1.0.0', revision: 1, lastError: null });
    });

    test('is updated with the difference shown before, and with consent to exactly that', async () => {
        const more = 'tmpfs: ["/cache"]';
        await publish(
            app('1.1.0', { compose: webCompose('2', `${startScript}; echo more >> /data/index.html`, more) })
        );
        const [update] = await machine.ask('GET', '/appstore/updates');
        expect(update).to.include({ name: 'wiki', from: '1.0.0', to: '1.1.0', needsConsent: true });
        expect(JSON.stringify(update.changelog)).to.contain('What is new in 1.1.0');
        expect(update.diff.mounts).to.equal({ added: ['web: tmpfs at /cache'], removed: [] });
        const asked = await machine.call('POST', '/api/plugins/appstore/installed/wiki/update', {});
        expect(asked.code).to.equal(40951);
        const { consent } = asked.data.plan;
        await machine.finish('POST', '/appstore/installed/wiki/update', { consent });
        expect(await page()).to.equal('first\nmore');
        expect((await wiki()).digests.web).to.equal(digests['2']);
    });

    test('goes back by itself from an update that is not healthy, with its data', async () => {
        await publish(
            app('1.2.0', { compose: webCompose('1', `${startScript}; echo broken > /data/index.html`, sick) })
        );
        const { id } = await machine.ask('POST', '/appstore/installed/wiki/update', {});
        const { state, error } = await machine.ended(id as number);
        expect([state, error?.code]).to.equal(['failed', 42255]);
        expect(await page()).to.equal('first\nmore\nmore');
        const back = await wiki();
        expect(back).to.include({ version: '1.1.0', state: 'running', revision: 2 });
        expect(back.digests.web).to.equal(digests['2']);
    });

    test('is whole after kill -9 in the middle of an update, whose task says so, and can be repeated', async () => {
        await publish(
            app('1.3.0', { compose: webCompose('1', `${startScript}; sleep 3; echo new > /data/index.html`) })
        );
        const { id } = await machine.ask('POST', '/appstore/installed/wiki/update', {});
        // The new container runs, and the page is not there yet.
        await until(async () => {
            const { data } = await machine.engine.ask('GET', '/containers/app-wiki-web-1/json');
            return (
                (data.Image ?? '') !== '' &&
                JSON.stringify(data.Config.Cmd).includes('sleep 3') &&
                data.State.Running
            );
        }, 'the new container');
        await machine.killPanel();
        await machine.startPanel();
        const cut = await machine.ended(id as number);
        expect([cut.state, cut.error?.reason]).to.equal(['failed', 'INTERRUPTED']);
        await recovered();
        await until(async () => (await page())?.startsWith('first') === true, 'the page of before');
        expect(await wiki()).to.include({ version: '1.1.0', state: 'running', revision: 2 });
        expect((await wiki()).lastError).to.contain('taken back');
        await machine.finish('POST', '/appstore/installed/wiki/update');
        expect([await page(), (await wiki()).version]).to.equal(['new', '1.3.0']);
    });

    test('leaves nothing of an install that kill -9 cut, which can be repeated', async () => {
        const kept = await volumes();
        const body = { source: 'main', app: 'wiki', name: 'second', domain: 'second.test' };
        const { consent } = await machine.ask('POST', '/appstore/plan', body);
        const { id } = await machine.ask('POST', '/appstore/installed', { ...body, consent });
        await until(async () => (await container('app-second-web-1'))[2] === 'running', 'the container');
        await machine.killPanel();
        await machine.startPanel();
        expect((await machine.ended(id as number)).error?.reason).to.equal('INTERRUPTED');
        await until(
            async () => (await machine.call('GET', '/api/plugins/appstore/installed/second')).code === 40400,
            'the way back'
        );
        expect(await volumes()).to.equal(kept);
        expect((await machine.engine.names()).join()).to.equal('app-wiki-web-1');
        expect((await machine.visit('second.test')).status).to.not.equal(200);
        const again = await machine.ask('POST', '/appstore/plan', body);
        await machine.finish('POST', '/appstore/installed', { ...body, consent: again.consent });
        expect((await machine.visit('second.test')).text).to.equal('new\n');
        expect(await page()).to.equal('new');
    });
});
