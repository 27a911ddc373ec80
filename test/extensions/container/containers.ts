import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import type { EngineEvent } from '../../../extensions/container/src/streams/events.ts';
import { until } from '../../support/until.ts';
import { image } from './engines.ts';
import { describeOnEngines } from './support/on-engines.ts';

export const lab = Lab.script();

describeOnEngines(lab, 'Containers of a real engine', (real) => {
    real('are made, shown, changed and removed', async (rig) => {
        const made = await rig.make('/containers', {
            name: 'one',
            image,
            command: ['sh', '-c', 'echo out; echo err >&2; echo last; sleep 1000'],
            env: { SECRET: 'hidden-value' },
            ports: [{ containerPort: 80 }],
            mounts: [{ type: 'volume', source: 'one-data', target: '/data' }],
            limits: { memoryBytes: 67_108_864, pids: 50 },
            stopSeconds: 0
        });
        expect([made.name, made.state, made.image]).to.equal(['one', 'running', image]);
        const { data, text } = await rig.get('/containers/one');
        expect(data.env).to.equal({ SECRET: { set: true } });
        expect(text).to.not.contain('hidden-value');
        expect(data.ports[0].hostIp).to.equal('127.0.0.1');
        expect(data.limits.memoryBytes).to.equal(67_108_864);
        expect(data.findings).to.equal([]);
        const { data: rows } = await rig.get('/containers?q=one&state=running');
        expect(rows.map(({ name }: { name: string }) => name)).to.equal(['one']);
        const changed = await rig.put('/containers/one', { name: 'two', limits: { pids: 60 } });
        if (rig.engine.kind === 'docker') {
            expect(changed.data.limits.pids).to.equal(60);
        } else {
            expect(changed.code).to.equal(50150);
            expect((await rig.put('/containers/one', { name: 'two' })).data.name).to.equal('two');
        }
        expect((await rig.ask('DELETE', '/containers/two')).code).to.equal(40901);
        const lines = await until(async () => {
            const events = [];
            for await (const event of rig.host.as('operator').events('/containers/two/logs?follow=false')) {
                events.push(event);
            }
            return events.length === 4 && events;
        }, 'what the container prints');
        const texts = lines.map(
            ({ event, data: line }) =>
                `${event} ${(line as { stream?: string }).stream} ${(line as { text?: string }).text}`
        );
        expect(texts.sort()).to.equal([
            'end undefined undefined',
            'line stderr err',
            'line stdout last',
            'line stdout out'
        ]);
        expect((await rig.ask('GET', '/containers/two/logs', undefined, 'viewer')).status).to.equal(403);
        const first = lines.find(({ data: line }) => (line as { text?: string }).text === 'out');
        const resumed = [];
        for await (const { data: line } of rig.host
            .as('operator')
            .events('/containers/two/logs?follow=false', { lastEventId: first?.id ?? '' })) {
            resumed.push((line as { text?: string }).text);
        }
        expect(resumed).to.not.include('out');
        expect(resumed).to.include('last');
        for await (const { data: stats } of rig.host.as('viewer').events('/containers/two/stats')) {
            expect((stats as { memoryBytes: number }).memoryBytes).to.be.above(0);
            expect((stats as { pids: number }).pids).to.be.above(0);
            break;
        }
        expect((await rig.post('/containers/two/stop', { timeoutSeconds: 0 })).data.state).to.equal('exited');
        expect((await rig.post('/containers/two/stop')).data.state).to.equal('exited');
        // Fewer digits of an id than the engines show could be the name of another container.
        const { id: fullId } = (await rig.get('/containers/two')).data;
        expect((await rig.get(`/containers/${fullId.slice(0, 8)}`)).code).to.equal(40400);
        expect((await rig.get(`/containers/${fullId.slice(0, 12)}`)).data.name).to.equal('two');
        expect((await rig.ask('DELETE', '/containers/two')).status).to.equal(200);
        expect((await rig.get('/containers/two')).code).to.equal(40400);
        expect((await rig.get('/containers/..%2F..%2Fimages')).code).to.equal(40400);
    });

    real('are not made when the policy refuses them, by any way in, and nothing is left', async (rig) => {
        const before = await rig.engine.names();
        const refused = async (more: object, rules: string[]) => {
            const { code, data } = await rig.post('/containers', { name: 'bad', image, ...more });
            expect([code, data.findings.map(({ rule }: { rule: string }) => rule)]).to.equal([42253, rules]);
        };
        await refused({ privileged: true, pidMode: 'host' }, ['pid-host', 'privileged']);
        await refused({ mounts: [{ type: 'bind', source: '/', target: '/host' }] }, [
            'engine-socket',
            'bind-outside'
        ]);
        await rig.engine.ask('POST', '/volumes/create', {
            Name: 'trap',
            DriverOpts: { type: 'none', o: 'bind', device: '/etc' }
        });
        await refused({ mounts: [{ type: 'volume', source: 'trap', target: '/x' }] }, ['volume-device']);
        await refused({ networks: [{ name: 'host' }] }, ['network-host']);
        expect(
            (
                await rig.post('/containers', {
                    name: 'bad',
                    image,
                    labels: { 'com.docker.compose.project': 'x' }
                })
            ).code
        ).to.equal(40001);
        expect(await rig.engine.names()).to.equal(before);
        await rig.make('/containers', { name: 'good', image, command: ['sleep', '1000'], stopSeconds: 0 });
        expect((await rig.post('/containers/good/recreate', { privileged: true })).code).to.equal(42253);
        const exception = { allow: [{ rule: 'privileged', detail: 'true' }], reason: 'a test' };
        expect((await rig.put('/exceptions/container:bad', exception)).status).to.equal(200);
        expect(
            (await rig.ask('PUT', '/exceptions/container:x', exception, { role: 'admin', fresh: false })).code
        ).to.equal(40301);
        expect((await rig.post('/containers/good/recreate', { privileged: true })).code).to.equal(42253);
        expect(
            (
                await rig.make('/containers', {
                    name: 'bad',
                    image,
                    command: ['true'],
                    privileged: true,
                    start: false
                })
            ).findings[0].excepted
        ).to.be.true();
        expect((await rig.ask('DELETE', '/containers/bad')).status).to.equal(200);
        expect((await rig.ask('DELETE', '/exceptions/container:bad')).status).to.equal(200);
    });

    real(
        'want consent for what they expose anew, and keep their values when they are made again',
        async (rig) => {
            const spec = {
                name: 'web',
                image,
                command: ['sleep', '1000'],
                stopSeconds: 0,
                env: { A: 'kept', B: '2' },
                ports: [{ containerPort: 80, hostIp: '0.0.0.0', hostPort: 8080 }]
            };
            const asked = await rig.post('/containers', spec);
            expect([asked.code, asked.data.plan.exposure.added[0].rule]).to.equal([40951, 'public-port']);
            expect(
                (
                    await rig.post('/containers', {
                        ...spec,
                        command: ['sleep', '1'],
                        consent: asked.data.plan.consent
                    })
                ).code
            ).to.equal(40951);
            const made = await rig.make('/containers', { ...spec, consent: asked.data.plan.consent });
            const again = await rig.make('/containers/web/recreate', {
                env: { A: { set: true }, C: '3' },
                mounts: [{ type: 'volume', source: 'web-data', target: '/data' }]
            });
            expect(again.id).to.not.equal(made.id);
            const { data } = await rig.engine.ask('GET', '/containers/web/json');
            expect(data.Config.Env.filter((entry: string) => /^[ABC]=/.test(entry)).sort()).to.equal([
                'A=kept',
                'C=3'
            ]);
            expect(data.HostConfig.PortBindings).to.equal({
                '80/tcp': [{ HostIp: '0.0.0.0', HostPort: '8080' }]
            });
            const failed = await rig.run('/containers/web/recreate', { command: ['false'] });
            expect([failed.state, failed.error?.code]).to.equal(['failed', 42252]);
            const back = (await rig.get('/containers/web')).data;
            expect([back.id, back.state]).to.equal([again.id, 'running']);
            expect((await rig.engine.names()).filter((name) => name.startsWith('web'))).to.equal(['web']);
            expect((await rig.ask('DELETE', '/containers/web?force=true')).status).to.equal(200);
        }
    );

    real('run commands, and have networks and volumes that the policy knows', async (rig) => {
        await rig.make('/containers', { name: 'box', image, command: ['sleep', '1000'], stopSeconds: 0 });
        const ran = await rig.post('/containers/box/exec', {
            command: ['sh', '-c', 'echo "$X"; echo err >&2; exit 4'],
            env: { X: 'a b' }
        });
        expect(ran.data).to.equal({ exitCode: 4, stdout: 'a b\n', stderr: 'err\n', truncated: false });
        const late = await rig.post('/containers/box/exec', {
            command: ['sh', '-c', 'echo begun; sleep 1000'],
            timeoutSeconds: 1
        });
        expect([late.data.exitCode, late.data.stdout, late.data.truncated]).to.equal([null, 'begun\n', true]);
        const tired = { role: 'admin', fresh: false } as const;
        expect((await rig.ask('POST', '/containers/box/exec', { command: ['true'] }, tired)).code).to.equal(
            40301
        );
        expect(
            (await rig.ask('POST', '/containers/box/exec', { command: ['true'] }, 'operator')).status
        ).to.equal(403);

        expect((await rig.post('/networks', { name: 'inner', internal: true })).data.internal).to.be.true();
        expect((await rig.post('/networks', { name: 'inner' })).code).to.equal(40900);
        expect((await rig.ask('DELETE', '/networks/inner')).status).to.equal(200);
        expect((await rig.post('/volumes', { name: 'plain' })).status).to.equal(201);
        const options = { type: 'none', o: 'bind', device: '/etc' };
        expect((await rig.post('/volumes', { name: 'trap2', options })).code).to.equal(42253);
        const labels = { 'com.docker.compose.project': 'other' };
        expect((await rig.post('/volumes', { name: 'trap2', labels })).code).to.equal(40001);
        await rig.make('/containers/box/recreate', {
            mounts: [{ type: 'volume', source: 'plain', target: '/data' }]
        });
        expect((await rig.get('/volumes/plain')).data.usedBy).to.equal(['box']);
        expect((await rig.ask('DELETE', '/volumes/plain')).code).to.equal(40901);
        expect((await rig.ask('DELETE', '/containers/box?force=true')).status).to.equal(200);
        expect((await rig.ask('DELETE', '/volumes/plain')).status).to.equal(200);
    });

    real('say of each refusal what is wrong, and what to do', async (rig) => {
        const sleeper = { image, command: ['sleep', '1000'], stopSeconds: 0 };
        await rig.make('/containers', {
            ...sleeper,
            name: 'told',
            ports: [{ containerPort: 80, hostPort: 18_123 }]
        });
        const said = async (
            method: string,
            path: string,
            body?: object
        ): Promise<readonly [number | null, string]> => {
            const { code, text } = await rig.ask(method, path, body);
            return [code, JSON.parse(text).message];
        };
        expect(await said('DELETE', '/containers/told')).to.equal([
            40901,
            'The container runs: stop it first, or send force=true'
        ]);
        const [, inUse] = await said('DELETE', `/images/${encodeURIComponent(image)}`);
        expect(inUse).to.contain('Containers are made of this image').and.to.contain('told');
        const bad = async (more: object): Promise<readonly [number | null, string]> =>
            said('POST', '/containers', { ...sleeper, name: 'bad', ...more });
        expect((await bad({ image: 'No Image' }))[1]).to.contain(
            'expected: the name of an image, such as nginx:1.27'
        );
        expect((await bad({ name: '-' }))[1]).to.contain('expected: letters, digits, _ . and -');
        expect(await bad({ image: 'no/such:1', pull: 'never' })).to.equal([
            40400,
            'There is no image no/such:1 here, and it is not to be pulled'
        ]);
        expect((await bad({ networks: [{ name: 'absent' }] }))[1]).to.contain('There is no network absent');
        expect((await bad({ privileged: true }))[1]).to.contain('The policy refuses privileged true.');
        const open = await bad({ ports: [{ containerPort: 80, hostIp: '0.0.0.0', hostPort: 81 }] });
        expect(open[1]).to.contain('This exposes more than before (public-port 0.0.0.0:81:80/tcp)');
        const failed = async (more: object): Promise<string | undefined> =>
            (await rig.run('/containers', { ...sleeper, name: 'bad', ...more })).error?.message;
        expect(await failed({ ports: [{ containerPort: 80, hostPort: 18_123 }] })).to.contain(
            'The port 127.0.0.1:18123 of this machine is taken'
        );
        expect(await failed({ command: ['absent'] })).to.contain('The image has no program absent');
        expect((await rig.get('/containers/bad')).code).to.equal(40400);

        await rig.post('/networks', { name: 'told' });
        await rig.post('/networks/told/connect', { container: 'told' });
        expect(await said('DELETE', '/networks/told')).to.equal([
            40901,
            'Containers are in this network: told. Disconnect or remove them first'
        ]);
        await rig.post('/networks/told/disconnect', { container: 'told' });
        expect((await said('POST', '/networks', { name: 'xx', subnet: 'no' }))[1]).to.contain(
            'such as 10.20.0.0/24'
        );
        expect((await said('POST', '/networks', { name: 'xx', gateway: '10.9.0.1' }))[0]).to.equal(40001);
        expect((await said('DELETE', '/networks/told'))[0]).to.equal(0);
        await rig.post('/containers/told/stop', { timeoutSeconds: 0 });
        const stopped = [40901, 'The container does not run: start it first'] as const;
        expect(await said('POST', '/containers/told/exec', { command: ['true'] })).to.equal(stopped);
        expect(await said('POST', '/containers/told/pause', {})).to.equal(stopped);
        const [code, yaml] = await said('POST', '/stacks', {
            name: 'x',
            compose: 'services: { a: { image: 3 x } }'
        });
        expect([code, yaml]).to.equal([
            42250,
            'The compose file is not valid: services.a.image, line 1: 3 x is no name of an image'
        ]);
        await rig.ask('DELETE', '/containers/told');
    });

    real('tell what happens, figures of all of them, and what a command would be as a file', async (rig) => {
        const since = new Date().toISOString();
        for (const name of ['busy', 'idle']) {
            await rig.make('/containers', { name, image, command: ['sleep', '1000'], stopSeconds: 0 });
        }
        const viewer = rig.host.as('viewer');
        const seen = new Set<string>();
        for await (const { event, data } of viewer.events('/stats')) {
            const { name, memoryBytes, memoryLimitBytes } = data as Record<string, number>;
            expect([event, Number(memoryBytes) > 0 && Number(memoryLimitBytes) > 0]).to.equal([
                'stats',
                true
            ]);
            // One that starts while the stream is read is followed, too.
            if (seen.size === 0) {
                await rig.make('/containers', { name: 'late', image, command: ['sleep', '1000'] });
            }
            seen.add(String(name));
            if (['busy', 'idle', 'late'].every((each) => seen.has(each))) {
                break;
            }
        }
        await rig.post('/networks', { name: 'told-by-events' });
        await rig.post('/containers/busy/exec', { command: ['echo', 'a secret word'] });
        await rig.ask('DELETE', '/containers/busy?force=true');
        const read = async (
            query: string,
            isLast: (event: EngineEvent) => boolean,
            from = ''
        ): Promise<EngineEvent[]> => {
            const events: EngineEvent[] = [];
            const options = from === '' ? {} : { lastEventId: from };
            for await (const { event, data } of viewer.events(`/events?${query}`, options)) {
                expect(event).to.equal('engine');
                events.push(data as EngineEvent);
                if (isLast(data as EngineEvent)) {
                    break;
                }
            }
            return events;
        };
        const isGone = ({ action, name }: EngineEvent): boolean =>
            ['destroy', 'remove'].includes(action) && name === 'busy';
        const events = await read(`since=${since}`, isGone);
        const started = events.find(({ action, name }) => action === 'start' && name === 'idle');
        expect(started?.type).to.equal('container');
        expect(Date.parse(started?.at ?? '')).to.be.at.least(Date.parse(since) - 1_000);
        expect(started?.id).to.equal((await rig.get('/containers/idle')).data.id);
        expect(JSON.stringify(events)).to.not.contain('secret word');
        // Podman tells of containers, images and volumes alone.
        expect(events.some(({ type }) => type === 'network')).to.equal(rig.engine.kind === 'docker');
        const some = await read(`since=${since}&types=container`, isGone);
        expect(new Set(some.map(({ type }) => type))).to.equal(new Set(['container']));
        // The time of an event is its id, which a reader that comes back begins from.
        const { at } = events.at(-1) as EngineEvent;
        const resumed = await read('types=container', isGone, at);
        expect(resumed.some(({ action, name }) => action === 'start' && name === 'idle')).to.be.false();
        expect((await rig.get('/events?types=x;y')).code).to.equal(40001);

        const line = `docker run -d --name web -p 127.0.0.1:8080:80 -e A=b --shm-sizes 3 ${image} sleep 5`;
        const { data: written } = await rig.post('/compose/from-run', {
            command: line.replace('--shm-sizes 3 ', '')
        });
        expect(written.warnings).to.equal([]);
        const { data: plan } = await rig.post('/compose/plan', { name: 'written', compose: written.compose });
        expect([plan.valid, plan.services]).to.equal([true, ['web']]);
        const { code, data } = await rig.post('/compose/from-run', { command: line });
        expect([code, data.warnings]).to.equal([0, ['--shm-sizes is not carried out']]);
        expect((await rig.ask('POST', '/compose/from-run', { command: line }, 'operator')).status).to.equal(
            403
        );
        expect(await rig.engine.names()).to.not.include('web');
        await rig.ask('DELETE', '/networks/told-by-events');
        for (const name of ['idle', 'late']) {
            await rig.ask('DELETE', `/containers/${name}?force=true`);
        }
    });

    real('say when the engine is silent, and when there is none', async (rig) => {
        const { socket } = rig.engine;
        // One that hangs when it is asked for the first time is there all the same.
        rig.engine.pause();
        await rig.host.setSettings({ socket: `${socket}-other` });
        rig.host.network.lead(`${socket}-other`, { path: socket });
        const hung = await rig.get('/containers');
        rig.engine.resume();
        expect(hung.code).to.equal(50350);
        expect((await rig.get('/containers')).status).to.equal(200);
        await rig.host.setSettings({ socket: `${socket}-none` });
        rig.host.network.lead(`${socket}-none`, { path: `${socket}-none` });
        const none = await rig.get('/containers');
        expect([none.code, JSON.parse(none.text).message]).to.equal([
            50302,
            `There is no container engine at ${socket}-none: see the setting \`socket\``
        ]);
        expect((await rig.host.health())[0]?.state).to.equal('degraded');
        await rig.host.setSettings({ socket });
        // A check that takes too long on a busy machine counts as failed.
        await until(async () => (await rig.host.health())[0]?.state === 'ok', 'good health');
    });
});
