import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itUnless } from '../../support/skip.ts';
import { until } from '../../support/until.ts';
import { faultyRegistry, noEngine, registryAddress, type TestEngine } from '../container/engines.ts';
import { FaultyRegistry } from '../container/support/faulty-registry.ts';
import { noMinisign, type Part, Publisher } from './publisher.ts';
import { AppstoreRig, type Data } from './rig.ts';
import { pushImages, repository, startScript, webApp, webCompose } from './support.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const real = itUnless(noMinisign ?? noEngine, it);
const limitMs = 240_000;

let rig: AppstoreRig;
let digests: Record<string, string> = {};

const app = (version: string, more: Part = {}): Part => webApp(digests, version, more);
const publish = async (...documents: readonly Part[]): Promise<void> => {
    rig.publisher.publish(documents);
    await rig.sync();
};
const get = async (name: string): Promise<Data> => (await rig.get(`/installed/${name}`)).data;
const page = async (name: string): Promise<string | undefined> =>
    rig.answer((await get(name)).address)?.body.trim();
const volumes = async (): Promise<string[]> =>
    ((await rig.container?.get('/volumes'))?.data as { name: string }[]).map(({ name }) => name).sort();
const waiting = async (name: string): Promise<Data> =>
    (await rig.get('/updates')).data.find((each: Part) => each['name'] === name);
const install = async (name: string, more: Part = {}): Promise<void> => {
    const done = await rig.install({ source: 'main', app: 'wiki', name, ...more });
    expect([done.state, done.error]).to.equal(['succeeded', null]);
};

/** Ends the plugin behind a method of `container`, as a killed panel would, and starts it again. */
const cutAfter = async (method: string, begin: () => Promise<unknown>): Promise<void> => {
    const reached = rig.cut.after(method);
    await begin();
    await reached;
    await rig.host.stop();
    await rig.host.start();
    await until(async () => {
        const { data } = await rig.get('/installed');
        return data.every(({ state }: Part) => !['installing', 'updating', 'failed'].includes(String(state)));
    }, 'the recovery');
};

describe('Updates of apps on a real engine', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        if ((noMinisign ?? noEngine) === undefined) {
            rig = await AppstoreRig.start({ engine: true });
            digests = await pushImages(rig, ['1', '2']);
            await rig.addSource();
            await publish(app('1.0.0'));
            await install('wiki');
        }
    });

    after({ timeout: limitMs }, () => rig?.close());

    real('that were cut anywhere are taken back at the next start, with their data', async () => {
        const changed = webCompose('2', `${startScript}; echo changed > /data/index.html`);
        await publish(app('1.1.0', { compose: changed }));
        for (const method of ['pull', 'control', 'snapshot', 'apply']) {
            await cutAfter(method, () => rig.post('/installed/wiki/update', {}));
            const wiki = await get('wiki');
            expect([method, wiki.version, wiki.state, wiki.digests.web]).to.equal([
                method,
                '1.0.0',
                'running',
                digests['1']
            ]);
            await until(async () => (await page('wiki')) === 'first', 'the page of before');
            expect(wiki.lastError).to.be.a.string();
        }
        expect(
            rig.host.tasks.list().some(({ kind, state }) => kind.endsWith('recover') && state === 'succeeded')
        ).to.equal(true);
        // An update that was taken back is not tried by itself, and can be made by hand.
        await rig.put('/installed/wiki', { autoUpdate: 'all' });
        expect((await waiting('wiki')).why).to.equal('It was tried, and taken back');
        await rig.make('/installed/wiki/update');
        expect([await page('wiki'), (await get('wiki')).version]).to.equal(['changed', '1.1.0']);
    });

    real('leave nothing of an install that was cut, and finish a removal', async () => {
        const before = await volumes();
        const body = { source: 'main', app: 'wiki', name: 'cut', domain: 'cut.example' };
        const { data: plan } = await rig.post('/plan', body);
        for (const method of ['pull', 'apply']) {
            await cutAfter(method, () => rig.post('/installed', { ...body, consent: plan.consent }));
            expect((await rig.get('/installed/cut')).code).to.equal(40400);
            expect(await volumes()).to.equal(before);
            expect(rig.host.hosts.hosts).to.equal([]);
        }
        await install('cut', { domain: 'cut.example' });
        await cutAfter('control', () => rig.ask('DELETE', '/installed/cut?keepData=true'));
        expect((await rig.get('/installed/cut')).code).to.equal(40400);
        expect((await rig.get('/leftovers')).data.map(({ name }: Part) => name)).to.equal(['cut']);
        expect(rig.host.hosts.hosts).to.equal([]);
        await rig.ask('DELETE', '/leftovers/cut');
        expect(await volumes()).to.equal(before);
    });

    real('allow one change of an app at a time', async () => {
        const reached = rig.cut.after('snapshot');
        await rig.post('/installed/wiki/backups');
        await reached;
        for (const [method, path] of [
            ['POST', '/installed/wiki/update'],
            ['POST', '/installed/wiki/stop'],
            ['POST', '/installed/wiki/backups'],
            ['DELETE', '/installed/wiki']
        ] as const) {
            expect((await rig.ask(method, path, method === 'POST' ? {} : undefined)).code).to.equal(40901);
        }
        expect((await rig.put('/installed/wiki', { domain: 'x.example' })).code).to.equal(40901);
        // A cancelled one is taken back: the app runs.
        await rig.host.tasks.cancel(rig.host.tasks.list().at(-1)?.id);
        await until(async () => (await get('wiki')).state === 'running', 'the way back');
    });

    real('that expose more wait for consent to exactly that', async () => {
        const open = (port: number): string =>
            webCompose('1').replace('"${APP_PORT}:80"', `"\${APP_PORT}:80", "0.0.0.0:${port}:80"`);
        await publish(app('1.2.0', { compose: open(18_200) }));
        const update = await waiting('wiki');
        expect(update).to.include({ needsConsent: true, auto: false, why: 'It exposes more than before' });
        expect(update.diff.ports.added).to.equal(['web: 80/tcp on 0.0.0.0:18200']);
        expect((await rig.ask('POST', '/installed/wiki/update', {}, 'operator')).code).to.equal(40300);
        const asked = await rig.post('/installed/wiki/update', {});
        expect(asked.code).to.equal(40951);
        const { consent } = asked.data.plan;
        await publish(app('1.2.1', { compose: open(18_201) }));
        expect((await rig.post('/installed/wiki/update', { consent })).code).to.equal(40951);
        expect((await rig.post('/installed/wiki/update', { version: '1.2.0', consent })).code).to.equal(
            40001
        );
        await publish(app('1.2.2', { compose: open(18_200) }));
        await rig.make('/installed/wiki/update', { consent });
        expect(rig.answer('127.0.0.1:18200')?.status).to.equal(200);

        // What the policy refuses stays refused, whatever is consented to.
        await publish(app('1.3.0', { compose: webCompose('1', startScript, 'privileged: true') }));
        const refused = await rig.post('/installed/wiki/update', { consent });
        expect([refused.code, refused.data.findings[0].rule]).to.equal([42253, 'privileged']);

        // An update by itself that narrows, and fails, goes back to the wider one without a person.
        await rig.put('/installed/wiki', { autoUpdate: 'all' });
        const sick = 'healthcheck: { test: [CMD, "false"], interval: 200ms, retries: 1, start_period: 0s }';
        await publish(app('1.4.0', { compose: webCompose('1', startScript, sick) }));
        await rig.host.schedules.run('sync');
        const back = await get('wiki');
        expect([back.version, back.state]).to.equal(['1.2.2', 'running']);
        expect(back.lastError).to.contain('unhealthy');
        expect(rig.answer('127.0.0.1:18200')?.status).to.equal(200);
    });

    real('are made by themselves in the window, as far as the app says', async () => {
        await publish(app('1.4.0'));
        await install('auto', { autoUpdate: 'patch' });
        rig.machine.minute = 600;
        await publish(app('1.4.1', { changelog: [] }), app('1.0.0', { id: 'other' }));
        await rig.host.schedules.run('sync');
        expect((await get('auto')).version).to.equal('1.4.0');
        rig.machine.minute = 181;
        await rig.host.schedules.run('window');
        expect((await get('auto')).version).to.equal('1.4.1');
        const events = rig.host.notifications.map(({ event }) => event.replace(/^appstore\./, ''));
        expect(events).to.include(['update-available', 'updated', 'update-undone']);
        await publish(app('1.5.0'));
        expect((await waiting('auto')).why).to.equal('Only steps of patch are made by themselves');
        await publish(app('1.4.9', { from: '>=2.0.0' }));
        const no = await waiting('auto');
        expect([no.auto, no.why]).to.equal([false, '1.4.9 updates only from >=2.0.0']);
        expect((await rig.post('/installed/auto/update')).code).to.equal(40001);
        await publish(app('1.4.9', { architectures: ['pdp11'] }));
        const other = await waiting('auto');
        const why = `This app does not run on ${rig.machine.architecture}`;
        expect([other.auto, other.why]).to.equal([false, why]);
        expect((await rig.post('/installed/auto/update')).code).to.equal(40953);
        expect((await rig.post('/plan', { source: 'main', app: 'wiki', name: 'new' })).code).to.equal(40953);
        await publish(app('1.4.9', { form: [{ name: 'NEW', type: 'text', required: true }] }));
        expect((await waiting('auto')).why).to.equal('values.NEW: A value is required');
    });

    real('keep the newest ten revisions, and older ones as long as they have a backup', async () => {
        await publish(app('1.4.0'));
        await install('many');
        await rig.make('/installed/many', { limits: { web: { cpus: 1 } } }, 'PUT');
        const { id } = await rig.make('/installed/many/backups');
        await rig.make('/installed/many', { limits: { web: { cpus: 1.5 } } }, 'PUT');
        for (let count = 4; count <= 13; count += 1) {
            // A revision that makes no container anew.
            await rig.make('/installed/many', { domain: `many-${count}.example` }, 'PUT');
        }
        const revisions = async (): Promise<number[]> =>
            (await rig.get('/installed/many/history')).data.map(({ revision }: Part) => revision);
        expect(await revisions()).to.equal([13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 2]);
        expect((await rig.post('/installed/many/rollback', { revision: 1, data: false })).code).to.equal(
            40400
        );
        await rig.make('/installed/many/rollback', { revision: 2 });
        expect((await get('many')).limits.web.cpus).to.equal(1);
        await rig.ask('DELETE', `/installed/many/backups/${id}`);
        await rig.make('/installed/many', { limits: { web: { cpus: 2 } } }, 'PUT');
        expect(await revisions()).to.equal([15, 14, 13, 12, 11, 10, 9, 8, 7, 6]);
        await rig.make('/installed/many?keepData=false', undefined, 'DELETE');
        await publish(app('1.4.9'));
    });

    real('come back with an import, stopped, and run with consent and the data of a backup', async () => {
        await publish(app('1.4.0', { form: [{ name: 'KEY', type: 'random', min: 20 }] }));
        await install('moved', { domain: 'moved.example', autoUpdate: 'patch' });
        const { address } = await get('moved');
        const { data: secrets } = await rig.get('/installed/moved/secrets');
        const [given] = await rig.host.hooks.run('export.collect', { maxBytes: 10_000_000 });
        const items = (given?.ok === true ? given.result : []) as { name: string; data: Part[] }[];
        const load = async (change: Part = {}): Promise<Data> => {
            const apps = (items.find(({ name }) => name === 'apps')?.data ?? [])
                .filter(({ name }) => name === 'moved')
                .map((each) => ({ ...each, ...change }));
            const [outcome] = await rig.host.hooks.run('import.restore', {
                version: '1.0.0',
                mode: 'merge',
                items: [{ name: 'apps', data: apps }]
            });
            return outcome?.ok === true ? (outcome.result as Data)[0] : outcome;
        };
        expect(await load()).to.equal({ item: 'apps', ok: true });
        await rig.make('/installed/moved?keepData=false', undefined, 'DELETE');
        expect((await load({ keyId: 'other' })).message).to.contain('another key');
        expect((await load({ document: '{}' })).ok).to.equal(false);
        expect((await rig.get('/installed/moved')).code).to.equal(40400);
        expect(await load()).to.equal({ item: 'apps', ok: true });
        expect(await load()).to.equal({ item: 'apps', ok: true });
        expect(await get('moved')).to.include({ state: 'stopped', version: '1.4.0', address, hostId: null });
        expect((await get('moved')).lastError).to.contain('imported');
        expect(rig.answer(address)).to.equal(null);
        const asked = await rig.put('/installed/moved', { values: {} });
        expect(asked.code).to.equal(40951);
        const { consent } = asked.data.plan;
        await rig.make('/installed/moved', { values: {}, consent }, 'PUT');
        expect(await get('moved')).to.include({ state: 'running', address, lastError: null });
        expect((await get('moved')).autoUpdate).to.equal('patch');
        expect((await rig.get('/installed/moved/secrets')).data).to.equal(secrets);
        expect(rig.host.hosts.hosts.map(({ domain }) => domain)).to.equal(['moved.example']);
        expect(await page('moved')).to.equal('first');
        await rig.make('/installed/moved?keepData=false', undefined, 'DELETE');
        await publish(app('1.4.9'));
    });

    real('come from the app’s own source and key alone, whatever another one offers', async () => {
        await using other = await Publisher.start();
        rig.serve('other.example', other);
        other.publish([app('9.0.0', { images: {} })]);
        await rig.addSource('other', { url: 'https://other.example', publicKey: other.key() });
        await rig.sync('other');
        expect((await rig.get('/apps?q=wiki')).data.map(({ key }: Part) => key)).to.include([
            'main/wiki',
            'other/wiki'
        ]);
        expect((await waiting('auto')).to).to.equal('1.4.9');
        expect((await rig.post('/installed/auto/update', { version: '9.0.0' })).code).to.equal(40001);
        expect((await rig.ask('DELETE', '/sources/main')).code).to.equal(40901);
        expect((await rig.ask('DELETE', '/sources/other')).status).to.equal(200);
    });

    real('take no image without its digest, nor one that the registry does not have under it', async () => {
        const wrong = `sha256:${'b'.repeat(64)}`;
        const plan = (change: Part): Promise<Data> =>
            publish(app('2.0.0', change)).then(() =>
                rig.post('/plan', { source: 'main', app: 'wiki', name: 'digest' })
            );
        expect((await plan({ images: {} })).code).to.equal(42252);
        expect((await plan({ images: { [`${repository}:2`]: digests['2'] } })).code).to.equal(42252);
        expect(
            (
                await plan({
                    compose: webCompose('${TAG}'),
                    form: [{ name: 'TAG', type: 'text', default: '3' }]
                })
            ).code
        ).to.equal(42252);
        const { data } = await plan({ images: { [`${repository}:1`]: wrong } });
        const done = await rig.run('/installed', {
            source: 'main',
            app: 'wiki',
            name: 'digest',
            consent: data.consent
        });
        expect([done.state, done.error?.code]).to.equal(['failed', 50250]);
        expect((await rig.get('/installed/digest')).code).to.equal(40400);
        // The tag may say something else: the digest counts.
        await plan({ images: { [`${repository}:1`]: digests['2'] } });
        await install('digest');
        expect((await get('digest')).digests.web).to.equal(digests['2']);
        await rig.make('/installed/digest?keepData=false', undefined, 'DELETE');
    });

    /** An app of its own for what follows, as its last update left it. */
    const far = (version: string, script: string, more: Part = {}): Part =>
        app(version, { id: 'far', compose: webCompose('1', `${startScript}; ${script}`), ...more });
    const serves = async (version: string, text: string): Promise<void> => {
        expect(await get('far')).to.include({ version, state: 'running' });
        expect(await page('far')).to.equal(text);
    };

    real('whose way back was cut go on with it at the next start', async () => {
        await publish(far('1.0.0', 'true'));
        await install('far', { app: 'far', limits: { web: { cpus: 0.5 } } });
        // It runs, and answers something else than it should: both data and stack have to come back.
        await publish(far('1.1.0', 'mv /data/index.html /data/gone'));
        for (const method of ['restore', 'rollback']) {
            await cutAfter(method, () => rig.post('/installed/far/update'));
            expect((await get('far')).lastError).to.contain('404');
            await until(async () => (await page('far')) === 'first', `the page after ${method}`);
            await serves('1.0.0', 'first');
        }
    });

    real(
        'are taken back when the engine goes away, once it is there again, and can be repeated',
        async () => {
            const engine = rig.container?.engine as TestEngine;
            await publish(far('1.2.0', 'echo second > /data/index.html'));
            for (const method of ['pull', 'apply']) {
                rig.cut.behind(method, () => engine.kill());
                const { state, error } = await rig.run('/installed/far/update');
                expect([method, state, error?.code]).to.equal([method, 'failed', 50350]);
                expect((await get('far')).lastError).to.contain('could not be taken back yet');
                await engine.revive();
                expect((await rig.post('/installed/far/update')).code).to.equal(40901);
                await rig.host.schedules.run('recovery');
                await until(async () => (await get('far')).state === 'running', 'the recovery');
                expect((await get('far')).lastError).to.equal(error?.message);
                await until(async () => (await page('far')) === 'first', `the page after ${method}`);
            }
            await rig.make('/installed/far/update');
            await serves('1.2.0', 'second');
        }
    );

    real('go on serving while a registry is gone or slow, say why, and can be repeated', async () => {
        const engine = rig.container?.engine as TestEngine;
        const digest = await rig.pushImage(`${registryAddress}/fault/app:1`, 'far');
        const image = `${faultyRegistry}/whole/app:1`;
        const elsewhere = webCompose('1', 'echo third > /data/index.html').replace(`${repository}:1`, image);
        const limits = { web: { memoryBytes: 48 * 1_048_576, cpus: 1 } };
        await publish(far('1.3.0', '', { compose: elsewhere, images: { [image]: digest }, limits }));
        const { data: asked } = await rig.post('/installed/far/update');
        expect(asked.plan.difference.images.added.length).to.equal(1);
        const { consent } = asked.plan;
        const gone = await rig.run('/installed/far/update', { consent });
        expect([gone.state, gone.error?.code]).to.equal(['failed', 50250]);
        expect(gone.error?.message).to.contain(faultyRegistry);
        expect((await get('far')).lastError).to.equal(gone.error?.message);
        await serves('1.2.0', 'second');
        await using registry = await FaultyRegistry.start(engine);
        registry.pause();
        const { data: task } = await rig.post('/installed/far/update', { consent });
        await until(() =>
            rig.host.tasks
                .list()
                .at(-1)
                ?.log.some((line) => line.includes(image.replace(/:1$/, '')))
        );
        expect([(await get('far')).state, await page('far')]).to.equal(['updating', 'second']);
        registry.resume();
        expect((await rig.host.tasks.wait(task.id)).error).to.equal(null);
        await serves('1.3.0', 'third');
        // Limits that an admin set win over those of the version, which hold for the rest.
        const { data } = (await rig.container?.get('/containers/app-far-web-1/inspect')) ?? {};
        expect([data.HostConfig.Memory, data.HostConfig.NanoCpus]).to.equal([48 * 1_048_576, 500_000_000]);
    });

    real('leave alone what the app does not want stopped, or a person not backed up', async () => {
        const wishes = (version: string, more: Part = {}): Part =>
            app(version, {
                id: 'calm',
                compose: webCompose('1', 'echo no page > /data/kept'),
                backup: { stop: false },
                main: { service: 'web', port: 80, expectStatus: 404 },
                ...more
            });
        const started = async (): Promise<string> =>
            (await rig.container?.get('/containers/app-calm-web-1'))?.data.startedAt;
        const backups = async (): Promise<Part[]> => (await rig.get('/installed/calm/backups')).data;
        await publish(wishes('1.0.0'));
        await install('calm', { app: 'calm' });
        expect(rig.answer((await get('calm')).address)?.status).to.equal(404);
        const before = await started();
        await rig.make('/installed/calm/backups');
        expect([await started(), (await backups()).length]).to.equal([before, 1]);
        await publish(wishes('1.1.0'));
        await rig.make('/installed/calm/update', { backup: false });
        expect(await get('calm')).to.include({ version: '1.1.0', state: 'running' });
        expect((await backups()).length).to.equal(1);
        // What the engine refuses is told in its words, and taken back.
        const absent = webCompose('1').replace('[sh, -c,', '[absent, -c,');
        await publish(wishes('1.2.0', { compose: absent }));
        const refused = await rig.run('/installed/calm/update');
        expect([refused.state, refused.error?.code]).to.equal(['failed', 42254]);
        expect(refused.error?.message).to.contain('absent');
        expect(await get('calm')).to.include({ version: '1.1.0', state: 'running' });
        await rig.make('/installed/calm?keepData=false', undefined, 'DELETE');
    });
});
