import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { until } from '../../../../support/until.ts';
import { guardedRegistries, image, registryAddress } from '../../engines.ts';
import { archiveOf } from '../../support.ts';
import { GuardedRegistries, login, reachRegistries } from '../../support/guarded-registries.ts';
import { describeOnEngines } from '../../support/on-engines.ts';
import type { ContainerRig } from '../../support/rig.ts';

export const lab = Lab.script();

const tar = { headers: { 'content-type': 'application/x-tar' } };

/** Text of what comes from a terminal until a pattern is in it. */
async function shown(socket: AsyncIterable<string | Uint8Array>, until: RegExp): Promise<string> {
    let text = '';
    for await (const message of socket) {
        text += typeof message === 'string' ? message : Buffer.from(message).toString();
        if (until.test(text)) {
            break;
        }
    }
    return text;
}

/** Asks the registry that the engine sees. */
const askRegistry = ({ engine }: ContainerRig, path: string, more: readonly string[] = []): string =>
    execFileSync(
        'nsenter',
        [`--net=/proc/${engine.pid}/ns/net`, 'curl', '-sSf', ...more, `http://${registryAddress}/v2/${path}`],
        { encoding: 'utf8' }
    );
const manifestType = 'application/vnd.docker.distribution.manifest.v2+json';
const listType = 'application/vnd.docker.distribution.manifest.list.v2+json';

/** Pushes an image for each platform, and a list that names them under one tag. */
async function pushForPlatforms(rig: ContainerRig, architectures: readonly string[]): Promise<void> {
    const manifests = [];
    for (const architecture of architectures) {
        const name = `${registryAddress}/multi/app:${architecture}`;
        await rig.engine.importImage(name, architecture, { LABEL: `for=${architecture}` });
        await rig.make('/images/push', { image: name });
        await rig.ask('DELETE', `/images/${encodeURIComponent(name)}?force=true`);
        const accept = `accept: ${manifestType}, application/vnd.oci.image.manifest.v1+json`;
        const manifest = askRegistry(rig, `multi/app/manifests/${architecture}`, ['-H', accept]);
        manifests.push({
            mediaType: (JSON.parse(manifest) as { mediaType?: string }).mediaType ?? manifestType,
            size: Buffer.byteLength(manifest),
            digest: `sha256:${createHash('sha256').update(manifest).digest('hex')}`,
            platform: { os: 'linux', architecture }
        });
    }
    const list = JSON.stringify({ schemaVersion: 2, mediaType: listType, manifests });
    askRegistry(rig, 'multi/app/manifests/all', ['-X', 'PUT', '-H', `content-type: ${listType}`, '-d', list]);
}

describeOnEngines(
    lab,
    'Builds, archives of images and terminals on a real engine',
    (real) => {
        real('GET /engine says what is there, and what it lacks is refused as that', async (rig) => {
            const isPodman = rig.engine.kind === 'podman';
            const { Version: version, ApiVersion: apiVersion } = (await rig.engine.ask('GET', '/version'))
                .data;
            const { data } = await rig.get('/engine');
            expect(data).to.include({ kind: rig.engine.kind, version, apiVersion, rootless: false });
            expect(data.supports.includes('updateInPlace')).to.equal(!isPodman);
            const settings = [await rig.get('/daemon'), await rig.put('/daemon', { liveRestore: true })];
            expect(settings.map(({ status, code }) => (status < 300 ? 0 : code))).to.equal(
                isPodman ? [50150, 50150] : [0, 0]
            );
            if (!isPodman) {
                await rig.host.tasks.wait(settings[1]?.data.id as number);
            }
        });

        real('POST /containers/{id}/kill sends the signal that is named', async (rig) => {
            const script = 'trap "echo heard" USR1; echo begun; while :; do sleep 0.1; done';
            await rig.make('/containers', { name: 'hears', image, command: ['sh', '-c', script] });
            const log = async () => (await rig.get('/containers/hears/logs?follow=false')).text;
            await until(async () => (await log()).includes('begun'), 'the start', 60_000);
            const { data } = await rig.post('/containers/hears/kill', { signal: 'SIGUSR1' });
            expect(data.state).to.equal('running');
            await until(async () => (await log()).includes('heard'), 'the signal', 60_000);
            expect((await rig.post('/containers/hears/kill', { signal: 'NONE' })).code).to.equal(42254);
            // The defaults of Podman fail where a machine forbids to raise them, so it is told lower ones.
            const { data: limits } = await rig.post('/containers/hears/exec', {
                command: ['sh', '-c', 'ulimit -Hn; ulimit -u']
            });
            if (rig.engine.kind === 'podman') {
                expect(limits.stdout).to.equal('4096\n4096\n');
            }
            expect((await rig.post('/containers/hears/kill')).data.state).to.equal('exited');
            expect((await rig.ask('DELETE', '/containers/hears')).status).to.equal(200);
        });

        real('POST /builds takes the context, builds, and keeps nothing of it', async (rig) => {
            const begin = (more: object = {}) =>
                rig.post('/builds', { tag: 'made:1', args: { TOKEN: 'very-secret' }, ...more });
            const send = async (dockerfile: string, more: object = {}) => {
                const { data } = await begin(more);
                const context = archiveOf(
                    { Dockerfile: dockerfile, 'sub/Other': dockerfile, hello: 'hi' },
                    true
                );
                const { data: task } = await rig.host
                    .as('admin')
                    .put<{ id: number }>(`/builds/${data.id}/context`, context, tar);
                return rig.host.tasks.wait(task.id);
            };
            const file = `FROM ${image} AS one\nARG TOKEN\nADD hello /hello\nRUN echo "has $TOKEN"\nFROM one AS two\nRUN exit 9`;
            const done = await send(file, { target: 'one', dockerfile: 'sub/Other' });
            expect(done).to.include({ state: 'succeeded' });
            const { data: built } = await rig.get('/images/made:1');
            expect(built.id).to.contain((done.result as { id: string }).id.replace('sha256:', ''));
            const failed = await send(file);
            expect([failed.state, (failed.error as { code: number }).code]).to.equal(['failed', 42254]);
            expect(JSON.stringify([rig.host.audit, rig.host.log])).to.not.contain('very-secret');
            const { data: late } = await begin();
            expect(
                (await rig.host.as('operator').put(`/builds/${late.id}/context`, 'x', tar)).status
            ).to.equal(403);
            expect((await rig.host.as('admin').put('/builds/absent/context', 'x', tar)).code).to.equal(40400);
            expect(readdirSync(join(rig.folder, 'stacks', '.builds'))).to.equal([]);
        });

        real('GET /images/{id}/save gives what POST /images/load takes', async (rig) => {
            await rig.engine.importImage('saved/app:1', 'saved');
            const { data: before } = await rig.get('/images/saved%2Fapp:1');
            const admin = rig.host.as('admin');
            const saved = await admin.fetch('GET', '/images/saved%2Fapp:1/save');
            const archive = new Uint8Array(await saved.arrayBuffer());
            expect([saved.status, archive.length > 100_000]).to.equal([200, true]);
            await rig.ask('DELETE', '/images/saved%2Fapp:1');
            const { data: task } = await admin.post<{ id: number }>('/images/load', archive, tar);
            const { result } = await rig.host.tasks.wait(task.id);
            expect(result).to.equal({ images: ['saved/app:1'] });
            expect((await rig.get('/images/saved%2Fapp:1')).data.id).to.equal(before.id);
            const { data: broken } = await admin.post<{ id: number }>('/images/load', 'no archive', tar);
            expect((await rig.host.tasks.wait(broken.id)).state).to.equal('failed');
            expect(readdirSync(join(rig.folder, 'stacks', '.uploads'))).to.equal([]);
            expect((await admin.get('/images/absent/save')).code).to.equal(40400);
            expect((await admin.get('/images/search?q=nginx')).code).to.equal(50250);
        });

        real(
            'POST /images/pull takes the image of a platform, and GET /images tells those without a name',
            async (rig) => {
                await pushForPlatforms(rig, ['amd64', 'arm64']);
                const all = `${registryAddress}/multi/app:all`;
                const pulledFor = async (platform?: string): Promise<string> => {
                    const { id } = await rig.make('/images/pull', {
                        image: all,
                        ...(platform === undefined ? {} : { platform })
                    });
                    const { data } = await rig.engine.ask(
                        'GET',
                        `/images/${encodeURIComponent(id as string)}/json`
                    );
                    return (data.Config.Labels as Record<string, string>)['for'] ?? '';
                };
                const own = process.arch === 'arm64' ? 'arm64' : 'amd64';
                const other = own === 'arm64' ? 'amd64' : 'arm64';
                expect(await pulledFor(`linux/${other}`)).to.equal(other);
                expect(await pulledFor()).to.equal(own);
                const none = await rig.run('/images/pull', { image: all, platform: 'linux/s390x' });
                expect([none.state, none.error?.code]).to.equal(['failed', 50250]);
                expect(
                    (await rig.post('/images/pull', { image: all, platform: 'linux/../x' })).code
                ).to.equal(40001);

                const { data: named } = await rig.get(`/images/${encodeURIComponent(all)}`);
                await rig.engine.importImage('nameless/app:1', 'old');
                const { data: old } = await rig.get(`/images/${encodeURIComponent('nameless/app:1')}`);
                await rig.engine.importImage('nameless/app:1', 'new');
                const ids = async (query: string): Promise<string[]> =>
                    (await rig.get(`/images?limit=200${query}`)).data.map(({ id }: { id: string }) => id);
                const [nameless, others, both] = [
                    await ids('&dangling=true'),
                    await ids('&dangling=false'),
                    await ids('')
                ];
                expect(nameless).to.include(old.id).and.to.not.include(named.id);
                expect(others).to.include(named.id).and.to.not.include(old.id);
                expect([...nameless, ...others].sort()).to.equal([...both].sort());
            }
        );

        real(
            'POST /registries/{id}/test logs in, and pulls and pushes do with the password of their registry alone',
            async (rig) => {
                await using _registries = await GuardedRegistries.start(rig.engine);
                reachRegistries(rig);
                await rig.engine.importImage(`${registryAddress}/guarded/app:1`, 'guarded');
                await rig.make('/images/push', { image: `${registryAddress}/guarded/app:1` });
                const failed = async (path: string, body: object) => {
                    const { state, error } = await rig.run(path, body);
                    return [state, error?.code];
                };
                const [byPassword, byToken] = guardedRegistries;
                for (const [server, other] of [
                    [byPassword, byToken],
                    [byToken, byPassword]
                ] as const) {
                    const name = `${server}/guarded/app:1`;
                    expect(await failed('/images/pull', { image: name })).to.equal(['failed', 50250]);
                    const { data: kept } = await rig.post('/registries', { server, ...login });
                    expect(kept).to.equal({
                        id: kept.id,
                        server,
                        username: login.username,
                        passwordSet: true
                    });
                    expect((await rig.post('/registries', { server, ...login })).code).to.equal(40900);
                    const at = `/registries/${kept.id}`;
                    // The other one has the same users, and is sent nothing of this one.
                    const elsewhere = { image: `${other}/guarded/app:1` };
                    expect(await failed('/images/pull', elsewhere)).to.equal(['failed', 50250]);
                    const { id } = await rig.make('/images/pull', { image: name });
                    expect(
                        (await rig.post('/images/tag', { id, tag: `${server}/guarded/new:1` })).status
                    ).to.equal(200);
                    await rig.make('/images/push', { image: `${server}/guarded/new:1` });
                    const { images: checked } = await rig.make('/images/check', { images: [name] });
                    expect(checked[0].state).to.equal('current');

                    expect((await rig.put(at, { password: 'wrong-pass' })).data).to.equal(kept);
                    expect((await rig.post(`${at}/test`)).code).to.equal(50250);
                    expect(await failed('/images/push', { image: name })).to.equal(['failed', 50250]);
                    expect((await rig.make('/images/check', { images: [name] })).images[0].state).to.equal(
                        'unknown'
                    );
                    const { status, text } = await rig.put(at, { password: login.password });
                    expect([status, text.includes(login.password)]).to.equal([200, false]);
                    expect((await rig.post(`${at}/test`)).data).to.equal({ ok: true });
                    for (const who of ['viewer', 'operator'] as const) {
                        expect((await rig.ask('DELETE', at, undefined, who)).status).to.equal(403);
                    }
                    expect((await rig.ask('DELETE', at)).status).to.equal(200);
                    expect((await rig.get(at)).code).to.equal(40400);
                    expect(await failed('/images/push', { image: name })).to.equal(['failed', 50250]);
                }
                const told = JSON.stringify([
                    rig.host.audit,
                    rig.host.log,
                    (await rig.get('/registries')).data
                ]);
                expect(told)
                    .to.contain('registry')
                    .and.to.not.contain(login.password)
                    .and.to.not.contain('wrong-pass');
            }
        );

        real(
            'POST /containers/{id}/sessions opens terminals that are sized, limited, and end',
            async (rig) => {
                await rig.make('/containers', {
                    name: 'term',
                    image,
                    command: ['sleep', '1000'],
                    stopSeconds: 0
                });
                const open = async (body: object = {}) => {
                    const { data } = await rig.post('/containers/term/sessions', body);
                    return rig.host.as('anonymous').socket(data.path);
                };
                const ask = (who: Parameters<typeof rig.ask>[3]) =>
                    rig.ask('POST', '/containers/term/sessions', {}, who);
                expect((await ask({ role: 'admin', fresh: false })).code).to.equal(40301);
                expect((await ask({ role: 'operator' })).status).to.equal(403);
                const socket = await open({ columns: 101, rows: 31 });
                socket.send(Buffer.from('stty size; echo $TERM\n'));
                expect(await shown(socket, /256color\r?\n/)).to.contain('31 101');
                socket.send(JSON.stringify({ columns: 90, rows: 20 }));
                socket.send(Buffer.from('sleep 0.2; stty size; echo re""sized\n'));
                expect(await shown(socket, /resized/)).to.contain('20 90');
                const second = await open({ command: ['sh', '-c', 'read line; exit 4'] });
                while ((await rig.post('/containers/term/sessions')).code !== 42950);
                second.send(Buffer.from('\n'));
                expect(await shown(second, /exitCode/)).to.contain('{"exitCode":4}');
                expect((await second.closed).code).to.equal(1000);

                // A lost connection ends what ran in the foreground, and the shell.
                socket.send(Buffer.from('sleep 987\n'));
                const runs = async (): Promise<boolean> =>
                    JSON.stringify((await rig.get('/containers/term/top')).data).includes('sleep 987');
                while (!(await runs()));
                socket.terminate();
                while (await runs());
                const third = await open({ command: ['sh'] });
                third.send('no size');
                expect((await third.closed).code).to.equal(1011);
                await rig.post('/containers/term/pause');
                expect((await rig.post('/containers/term/sessions')).code).to.equal(40901);
                await rig.post('/containers/term/unpause');
                await rig.engine.run('tty', { Cmd: ['sh'], Tty: true, OpenStdin: true });
                const { data: attached } = await rig.post('/containers/tty/sessions', { attach: true });
                const own = await rig.host.as('anonymous').socket(attached.path);
                own.send(Buffer.from('echo at""tached; exit 6\n'));
                expect(await shown(own, /exitCode/)).to.match(/attached[^]*"exitCode":6/);
            }
        );
    },
    { settings: { sessions: 2 } }
);
