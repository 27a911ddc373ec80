/** Two kills of a whole panel cut all kinds of its long work, of which four run at once; then each is looked at, and done again. */
import { once } from 'node:events';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itUnless } from '../../../support/skip.ts';
import { until } from '../../../support/until.ts';
import { faultyRegistry, image, noEngine, registryAddress } from '../engines.ts';
import { PanelBesideEngine } from '../panel.ts';
import { archiveOf } from '../support.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const real = itUnless(noEngine, it);
const patient = { timeout: 240_000 };

let machine: PanelBesideEngine;
/** The tasks that were cut, by what they did. */
const cut = new Map<string, number>();
let single: string;
let found: string;
let build: string;

const good = `${registryAddress}/fault/app:1`;
const pushed = `${registryAddress}/fault/pushed:1`;
const stalled = `${faultyRegistry}/stall/app:1`;
const built = 'portico-test/built:1';
const loaded = 'portico-test/loaded:1';

const api = (path: string): string => `/container${path}`;
const imagePath = (name: string): string => api(`/images/${encodeURIComponent(name)}`);
const isThere = async (name: string): Promise<boolean> =>
    (await machine.call('GET', `/api/plugins${imagePath(name)}`)).code === 0;
const left = (folder: string): readonly string[] => {
    const path = join(machine.folder, 'stacks', folder);
    return existsSync(path) ? readdirSync(path) : [];
};
const archive = (name: string): string => join(machine.folder, `${name}.tar`);
const writeContext = (seconds: number): void =>
    writeFileSync(archive('context'), archiveOf({ Dockerfile: `FROM ${image}\nRUN sleep ${seconds}\n` }));
const inspect = async (name: string) => (await machine.engine.ask('GET', `/containers/${name}/json`)).data;
const stack = (seconds: number): string => `
services:
  one: { image: "${image}", command: [sh, -c, "sleep ${seconds}; touch /tmp/up; exec sleep 1000"], stop_grace_period: 0s,
    healthcheck: { test: [CMD, test, -f, /tmp/up], interval: 200ms, retries: 1000 } }
  two: { image: "${image}", command: [sleep, "1000"], stop_grace_period: 0s, depends_on: { one: { condition: service_healthy } } }
`;

/** Waits until a task of a kind is under way, and keeps its number. */
const underWay = async (
    kind: string,
    isFar = (_task: { progress: unknown }): boolean => true
): Promise<void> => {
    const { id } = await until(async () => {
        const { data } = await machine.call('GET', '/api/tasks?limit=100');
        const tasks = data as { id: number; kind: string; state: string; progress: unknown }[];
        return tasks.find((task) => task.kind.endsWith(kind) && task.state === 'running' && isFar(task));
    }, kind);
    cut.set(kind, id);
};

/** What is there before the work begins. */
async function prepare(): Promise<void> {
    await machine.engine.importImage(good, 'killed');
    await machine.finish('POST', api('/images/push'), { image: good });
    await machine.ask('DELETE', `${imagePath(good)}?force=true`);
    await machine.engine.importImage(pushed, 'pushed');
    await machine.engine.importImage(loaded, 'loaded');
    const saved = machine.read(`${imagePath(loaded)}/save`);
    const chunks: Buffer[] = [];
    saved.stdout?.on('data', (chunk: Buffer) => chunks.push(chunk));
    await once(saved, 'close');
    writeFileSync(archive('loaded'), Buffer.concat(chunks));
    await machine.ask('DELETE', imagePath(loaded));
    // Its command does not hear of the end, so the engine waits as long as it was told.
    const spec = { name: 'single', image, command: ['sleep', '1000'], stopSeconds: 15 };
    await machine.finish('POST', api('/containers'), spec);
    single = (await inspect('single')).Id as string;
    found = await machine.engine.run('found');
    await machine.finish('POST', api('/stacks'), { name: 'cut', compose: stack(0) });
}

/** Begins what the engine goes on with, and waits until each is in the middle of its work. */
async function beginFirst(): Promise<void> {
    await machine.ask('POST', api('/images/pull'), { image: stalled });
    await underWay('pull', ({ progress }) => progress !== null);
    writeContext(600);
    build = (await machine.ask('POST', api('/builds'), { tag: built })).id as string;
    expect(
        (await once(machine.send('PUT', api(`/builds/${build}/context`), archive('context')), 'exit'))[0]
    ).to.equal(0);
    await underWay('build');
    await until(async () => {
        const { data } = await machine.engine.ask('GET', '/containers/json');
        return JSON.stringify(data).includes('sleep 600');
    }, 'the build');
    await machine.ask('PUT', api('/stacks/cut'), { compose: stack(600), waitSeconds: 900 });
    await until(async () => {
        const { State: state, Config: config } = await inspect('cut-one-1');
        return state.Running === true && JSON.stringify(config.Cmd).includes('sleep 600');
    }, 'the new container of the stack');
    await underWay('deploy');
    await machine.ask('POST', api('/containers/single/recreate'), { user: '0' });
    await until(
        async () => (await machine.engine.names()).some((name) => name.startsWith('single-before-')),
        'the new container'
    );
    await underWay('recreate');
}

/** Begins what is cut while registry and engine answer nothing. */
async function beginSecond(): Promise<void> {
    process.kill(machine.engine.registry, 'SIGSTOP');
    await machine.ask('POST', api('/images/push'), { image: pushed });
    await underWay('push');
    machine.engine.pause();
    machine.send('POST', api('/images/load'), archive('loaded'));
    await underWay('load');
    void machine.call('POST', '/api/plugins/container/stacks/found/adopt', {}).catch(() => undefined);
}

/** Cuts all of it, and starts the panel again. */
async function cutAll(): Promise<void> {
    const script = fileURLToPath(new URL('../support/faulty-registry.mjs', import.meta.url));
    const ports = [registryAddress, faultyRegistry].map((address) => address.split(':')[1] ?? '');
    const faulty = machine.spawn(process.execPath, [script, ...ports]);
    try {
        await until(async () => (await machine.reach(faultyRegistry)) > 0, 'the registry');
        await prepare();
        await beginFirst();
        expect(left('.builds').length).to.equal(1);
        await machine.killPanel();
    } finally {
        faulty.kill('SIGKILL');
        await once(faulty, 'exit');
    }
    await machine.startPanel();
    try {
        await beginSecond();
        await machine.killPanel();
    } finally {
        process.kill(machine.engine.registry, 'SIGCONT');
        machine.engine.resume();
    }
    await machine.startPanel();
}

describe('kill -9 of a whole panel', patient, () => {
    before(patient, async () => {
        if (noEngine !== undefined) {
            return;
        }
        machine = await PanelBesideEngine.start(['container']);
        await cutAll().catch(async (error: unknown) => {
            await machine.close();
            throw error;
        });
    });

    after(patient, () => machine?.close());

    real('has each task that was cut say so', async () => {
        expect([...cut.keys()].sort()).to.equal(['build', 'deploy', 'load', 'pull', 'push', 'recreate']);
        for (const [kind, id] of cut) {
            const { state, error } = await machine.ended(id);
            expect([kind, state, error?.reason]).to.equal([kind, 'failed', 'INTERRUPTED']);
        }
    });

    real('in a pull leaves no image, and the pull can be repeated', async () => {
        expect(await isThere(stalled)).to.equal(false);
        await machine.finish('POST', api('/images/pull'), { image: good });
        expect(await isThere(good)).to.equal(true);
    });

    real('in a push leaves the image here, and the push can be repeated', async () => {
        expect(await isThere(pushed)).to.equal(true);
        await machine.finish('POST', api('/images/push'), { image: pushed });
        await machine.ask('DELETE', `${imagePath(pushed)}?force=true`);
        await machine.finish('POST', api('/images/pull'), { image: pushed });
    });

    real('in a load leaves no archive, and the load can be repeated', async () => {
        expect(left('.uploads')).to.equal([]);
        await machine.call('DELETE', `/api/plugins${imagePath(loaded)}`);
        expect(
            (await once(machine.send('POST', api('/images/load'), archive('loaded')), 'exit'))[0]
        ).to.equal(0);
        await until(() => isThere(loaded), 'the image');
        await until(() => left('.uploads').length === 0, 'the end of the archive');
    });

    real('in a build leaves neither image nor context, and the build can be repeated', async () => {
        expect(left('.builds')).to.equal([]);
        expect(await isThere(built)).to.equal(false);
        // The engine ends what was cut by itself.
        await until(async () => {
            const { data } = await machine.engine.ask('GET', '/containers/json');
            return !(data as { Image: string; Names: string[] }[]).some(
                ({ Names: names }) => !/^\/(cut|single|found)/.test(names[0] ?? '')
            );
        }, 'the end of the cut build');
        const late = await machine.call('PUT', `/api/plugins${api(`/builds/${build}/context`)}`);
        expect(late.code).to.not.equal(0);
        writeContext(0);
        const again = await machine.ask('POST', api('/builds'), { tag: built });
        await once(machine.send('PUT', api(`/builds/${again.id}/context`), archive('context')), 'exit');
        await until(() => isThere(built), 'the image');
    });

    real(
        'in a recreation leaves the container of before, with its name, and it can be repeated',
        async () => {
            await until(async () => {
                const { Id: id, State: state } = await inspect('single');
                return id === single && state.Running === true;
            }, 'the old container');
            const names = async (): Promise<readonly string[]> =>
                (await machine.engine.names()).filter((name) => name.startsWith('single'));
            expect(await names()).to.equal(['single']);
            await machine.finish('POST', api('/containers/single/recreate'), { user: '0', stopSeconds: 0 });
            const again = await inspect('single');
            expect([again.Id === single, again.Config.User, again.State.Running]).to.equal([
                false,
                '0',
                true
            ]);
            expect(await names()).to.equal(['single']);
            await machine.ask('DELETE', api('/containers/single?force=true'));
        }
    );

    real('in a change of a stack tells it as it is, and a redeploy heals it', async () => {
        const state = await machine.ask('GET', api('/stacks/cut'));
        expect(state).to.include({ revision: 1 });
        expect(state.state).to.not.equal('running');
        await machine.finish('POST', api('/stacks/cut/redeploy'));
        const healed = await machine.ask('GET', api('/stacks/cut'));
        expect([healed.state, healed.revision]).to.equal(['running', 1]);
        expect(JSON.stringify((await inspect('cut-one-1')).Config.Cmd)).to.contain('sleep 0');
        expect((await machine.engine.names()).filter((name) => name.startsWith('cut'))).to.equal([
            'cut-one-1',
            'cut-two-1'
        ]);
    });

    real('in an adoption restarts nothing, and it can be repeated', async () => {
        expect((await inspect('found')).Id).to.equal(found);
        expect((await machine.call('GET', '/api/plugins/container/stacks/found')).code).to.equal(40400);
        expect(await machine.ask('POST', api('/stacks/found/adopt'))).to.include({
            managed: true,
            state: 'running'
        });
        expect((await inspect('found')).Id).to.equal(found);
    });
});
