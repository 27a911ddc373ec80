import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { faultyRegistry, image, registryAddress } from '../engines.ts';
import { FaultyRegistry } from '../support/faulty-registry.ts';
import { describeOnEngines } from '../support/on-engines.ts';

export const lab = Lab.script();
const sleeper = (name: string): object => ({ name, image, command: ['sleep', '1000'], stopSeconds: 0 });

describeOnEngines(lab, 'Faults of a real engine', (real) => {
    real('a stream of a log ends when the engine goes away, and is resumed without a gap', async (rig) => {
        await rig.make('/containers', {
            ...sleeper('talker'),
            command: ['sh', '-c', 'n=0; while true; do n=$((n+1)); echo $n; sleep 0.1; done']
        });
        const seen: number[] = [];
        let last = '';
        const read = async (until: number): Promise<void> => {
            const options = last === '' ? {} : { lastEventId: last };
            for await (const { data, id, event } of rig.host
                .as('operator')
                .events('/containers/talker/logs?tail=1000', options)) {
                const { text } = data as { text?: string };
                if (event === 'end' || text === undefined) {
                    break;
                }
                seen.push(Number(text));
                last = id ?? last;
                if (seen.length >= until) {
                    break;
                }
            }
        };
        await read(5);
        // One that hangs delays the answers of its own alone, and the panel tells so.
        rig.engine.pause();
        expect((await rig.get('/containers')).code).to.equal(50350);
        expect((await rig.get('/registries')).status).to.equal(200);
        rig.engine.resume();
        await read(10);
        const cut = read(100_000).catch(() => undefined);
        while (seen.length < 15) {
            await wait(50);
        }
        await rig.engine.restart();
        await cut;
        expect((await rig.get('/containers/talker')).status).to.equal(200);
        await rig.post('/containers/talker/start');
        const before = seen.length;
        await read(before + 1);
        expect(seen.length).to.be.above(before);
        expect(new Set(seen.slice(0, before)).size).to.equal(before);
        await rig.ask('DELETE', '/containers/talker?force=true');
    });

    real('a registry that is gone or has no such image is told, and what runs stays', async (rig) => {
        const name = `${registryAddress}/fault/app:1`;
        await rig.engine.importImage(name, 'first');
        await rig.make('/images/push', { image: name });
        const compose = `services: { one: { image: "${name}", command: [sleep, "1000"], stop_grace_period: 0s } }`;
        await rig.make('/stacks', { name: 'fault', compose });
        const { data: before } = await rig.get('/containers/fault-one-1');
        const absent = await rig.run(
            '/stacks/fault',
            { compose: compose.replace('app:1', 'absent:1') },
            'PUT'
        );
        expect(absent.error?.code).to.equal(50250);
        process.kill(rig.engine.registry, 'SIGSTOP');
        try {
            const { data: task } = await rig.post('/images/pull', {
                image: `${registryAddress}/fault/slow:1`
            });
            await rig.host.tasks.cancel(task.id as number);
            expect((await rig.host.tasks.wait(task.id as number)).state).to.equal('cancelled');
        } finally {
            process.kill(rig.engine.registry, 'SIGCONT');
        }
        const { data: after } = await rig.get('/containers/fault-one-1');
        expect([after.id, after.state]).to.equal([before.id, 'running']);
        expect((await rig.get('/stacks/fault')).data).to.include({ state: 'running', revision: 1 });
        await rig.make('/stacks/fault', {}, 'DELETE');
    });

    real(
        'a registry that answers wrong brings nothing, is told, and the pull can be repeated',
        async (rig) => {
            const good = `${registryAddress}/fault/app:1`;
            await rig.engine.importImage(good, 'kept');
            await rig.make('/images/push', { image: good });
            const { data: known } = await rig.get(`/images/${encodeURIComponent(good)}`);
            const [digest = ''] = (known.digests as string[]).map((each) => each.split('@')[1] ?? '');
            expect(
                (await rig.ask('DELETE', `/images/${encodeURIComponent(good)}?force=true`)).status
            ).to.equal(200);
            const images = async (): Promise<readonly string[]> =>
                ((await rig.get('/images')).data as { id: string }[]).map(({ id }) => id).sort();
            const before = await images();
            {
                await using _faulty = await FaultyRegistry.start(rig.engine);
                // A manifest by its tag has no digest that it could fail to have.
                const faults = [
                    'html/app:1',
                    `manifest/app@${digest}`,
                    'layer/app:1',
                    'cut/app:1',
                    'fail/app:1'
                ];
                await Promise.all(
                    faults.map(async (fault) => {
                        const { state, error } = await rig.run('/images/pull', {
                            image: `${faultyRegistry}/${fault}`
                        });
                        expect([fault, state, error?.code]).to.equal([fault, 'failed', 50250]);
                    })
                );
                expect(await images()).to.equal(before);
                // One that stops in the middle of a layer holds its own pull alone, which can be cancelled.
                const { data: task } = await rig.post('/images/pull', {
                    image: `${faultyRegistry}/stall/app:1`
                });
                expect((await rig.get('/containers')).status).to.equal(200);
                await rig.host.tasks.cancel(task.id as number);
                expect((await rig.host.tasks.wait(task.id as number)).state).to.equal('cancelled');
                // A stack keeps what runs.
                const compose = (image: string): string =>
                    `services: { one: { image: "${image}", command: [sleep, "1000"], stop_grace_period: 0s } }`;
                const there = `${faultyRegistry}/whole/app:1`;
                await rig.make('/images/pull', { image: there });
                await rig.make('/stacks', { name: 'wrong', compose: compose(there) });
                const { data: running } = await rig.get('/containers/wrong-one-1');
                const failed = await rig.run(
                    '/stacks/wrong',
                    { compose: compose(`${faultyRegistry}/html/app:1`) },
                    'PUT'
                );
                expect(failed.error?.code).to.equal(50250);
                const { data: still } = await rig.get('/containers/wrong-one-1');
                expect([still.id, still.state]).to.equal([running.id, 'running']);
                expect((await rig.get('/stacks/wrong')).data).to.include({ state: 'running', revision: 1 });
                await rig.make('/stacks/wrong', {}, 'DELETE');
            }
            // One that is gone.
            const gone = await rig.run('/images/pull', { image: `${faultyRegistry}/html/app:1` });
            expect([gone.state, gone.error?.code]).to.equal(['failed', 50250]);
            await rig.make('/images/pull', { image: good });
        }
    );

    real('settings of the daemon come back when it does not with the new ones', async (rig) => {
        if (rig.engine.kind === 'podman') {
            expect((await rig.get('/daemon')).code).to.equal(50150);
            return;
        }
        const file = (): object =>
            JSON.parse(readFileSync(join(rig.engine.root, 'daemon.json'), 'utf8')) as object;
        const first = file();
        expect((await rig.get('/daemon')).data).to.equal({
            registryMirrors: [],
            insecureRegistries: [],
            logDriver: '',
            logOptions: {},
            liveRestore: false
        });
        const tired = { role: 'admin', fresh: false } as const;
        expect((await rig.ask('PUT', '/daemon', { liveRestore: true }, tired)).code).to.equal(40301);
        const reloaded = await rig.make(
            '/daemon',
            { registryMirrors: ['http://127.0.0.1:5000'], liveRestore: true },
            'PUT'
        );
        expect(reloaded).to.include({ applied: 'reload', liveRestore: true });
        expect(file()).to.include({ ...first, 'live-restore': true });
        const restarted = await rig.make(
            '/daemon',
            { logDriver: 'local', logOptions: { 'max-size': '1m' } },
            'PUT'
        );
        expect(restarted.applied).to.equal('restart');
        const kept = file();
        const failed = await rig.run('/daemon', { logOptions: { nonsense: '1' } }, 'PUT');
        expect([failed.state, failed.error?.code]).to.equal(['failed', 42254]);
        expect(file()).to.equal(kept);
        expect((await rig.get('/containers')).status).to.equal(200);
    });
});
