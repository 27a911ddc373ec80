import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { tarOf } from '../../../extensions/container/src/spec/tar.ts';
import { until } from '../../support/until.ts';
import { image } from './engines.ts';
import { archiveOf, fileIn } from './support.ts';
import { describeOnEngines } from './support/on-engines.ts';
import type { ContainerRig } from './support/rig.ts';

export const lab = Lab.script();

const tar = { headers: { 'content-type': 'application/x-tar' } };
const sleeper = (name: string, more: object = {}): object => ({
    name,
    image,
    command: ['sleep', '1000'],
    stopSeconds: 0,
    ...more
});
const sh = (rig: ContainerRig, name: string, script: string) =>
    rig.post(`/containers/${name}/exec`, { command: ['sh', '-c', script] });
const bytesOf = async (rig: ContainerRig, path: string): Promise<Uint8Array> => {
    const response = await rig.host.as('admin').fetch('GET', path);
    return new Uint8Array(await response.arrayBuffer());
};

/** What the plugin's tap gave. */
function resultOf(outcome: object | undefined): unknown {
    expect(outcome).to.include({ ok: true });
    return (outcome as { result: unknown }).result;
}

describeOnEngines(lab, 'Data of a real engine', (real) => {
    real(
        'gives files and archives of volumes and containers, and takes archives in while unused',
        async (rig) => {
            const mounts = [{ type: 'volume', source: 'files', target: '/data' }];
            await rig.make('/containers', sleeper('one', { mounts }));
            await sh(
                rig,
                'one',
                'mkdir /data/sub; echo hello >/data/sub/a; chmod 640 /data/sub/a; ln -s /etc/passwd /data/trap'
            );
            const { data: files } = await rig.get('/volumes/files/files?path=/sub');
            expect(files).to.equal([
                { name: 'a', type: 'file', size: 6, mode: '0640', modifiedAt: files[0].modifiedAt }
            ]);
            expect(Buffer.from(await bytesOf(rig, '/volumes/files/content?path=sub/a')).toString()).to.equal(
                'hello\n'
            );
            const part = await rig.host
                .as('admin')
                .fetch('GET', '/volumes/files/content?path=sub/a', undefined, {
                    headers: { range: 'bytes=1-3' }
                });
            expect([part.status, part.headers.get('content-range'), await part.text()]).to.equal([
                206,
                'bytes 1-3/6',
                'ell'
            ]);
            for (const path of ['trap', 'sub', '../../etc/passwd', 'sub/../../x', 'absent']) {
                const query = encodeURIComponent(path);
                expect((await rig.get(`/volumes/files/content?path=${query}`)).code).to.equal(40400);
            }
            expect((await rig.ask('GET', '/volumes/files/files', undefined, 'operator')).status).to.equal(
                403
            );
            const archive = await bytesOf(rig, '/volumes/files/archive');
            expect(fileIn(archive, 'sub/a')).to.equal('hello\n');
            expect(fileIn(await bytesOf(rig, '/containers/one/archive?path=/data/sub/a'), 'a')).to.equal(
                'hello\n'
            );
            const admin = rig.host.as('admin');
            expect((await admin.put('/volumes/files/archive', archive, tar)).code).to.equal(40901);
            await rig.ask('DELETE', '/containers/one?force=true');
            const other = archiveOf({ 'b/c': 'other\n' });
            expect((await admin.put('/volumes/files/archive', other, tar)).status).to.equal(200);
            expect(
                (await rig.get('/volumes/files/files')).data.map(({ name }: { name: string }) => name)
            ).to.equal(['b']);
            // What is no archive, or only a part of one, changes nothing.
            const half = archiveOf({ 'a/big': 'x'.repeat(100_000) }).subarray(0, 50_000);
            for (const bytes of [Buffer.from('no archive at all'), half]) {
                expect((await admin.put('/volumes/files/archive', bytes, tar)).code).to.equal(42254);
                expect(await bytesOf(rig, '/volumes/files/content?path=b/c')).to.equal(
                    new Uint8Array(Buffer.from('other\n'))
                );
            }
            const climbs = tarOf([{ path: '../escape', content: 'x', mode: 0o644, uid: 0, gid: 0 }]);
            // Podman leaves the climbing out, Docker refuses it.
            const [code, volumes] = rig.engine.kind === 'docker' ? [42254, 'data'] : [0, 'root'];
            expect((await admin.put('/volumes/files/archive', climbs, tar)).code).to.equal(code);
            expect(readdirSync(join(rig.engine.root, volumes, 'volumes', 'files'))).to.equal(['_data']);
            await rig.engine.ask('POST', '/volumes/create', {
                Name: 'outside',
                DriverOpts: { type: 'none', o: 'bind', device: '/etc' }
            });
            expect((await rig.get('/volumes/outside/files')).code).to.equal(50150);
            expect((await rig.get('/volumes/outside/archive')).code).to.equal(50150);
            expect(await rig.engine.names()).to.equal([]);

            // A panel that was killed between the two renames of such a change: the volume has what it had.
            const content = join(rig.engine.root, volumes, 'volumes', 'files', '_data');
            const { data: draft } = await rig.engine.ask('POST', '/volumes/create', {
                Name: 'portico-volume-cut',
                Labels: { 'io.portico.helper': 'files' }
            });
            const had = readdirSync(content);
            renameSync(content, join(draft.Mountpoint, '..', 'before'));
            await rig.host.restart();
            await until(() => existsSync(content), 'the content');
            expect(readdirSync(content)).to.equal(had);
            await until(async () => {
                const { data } = await rig.engine.ask('GET', '/volumes');
                return !JSON.stringify(data).includes('portico-volume');
            }, 'the end of the draft');
        }
    );

    real('connects single containers to networks under the policy', async (rig) => {
        await rig.make('/containers', sleeper('net'));
        await rig.post('/networks', { name: 'between' });
        expect(
            (await rig.post('/networks/between/connect', { container: 'net', aliases: ['db'] })).status
        ).to.equal(200);
        const ownNetwork = rig.engine.kind === 'docker' ? 'bridge' : 'podman';
        const names = async () =>
            (await rig.get('/containers/net')).data.networks.map(({ name }: { name: string }) => name).sort();
        expect(await names()).to.equal(['between', ownNetwork]);
        expect((await rig.post('/networks/between/disconnect', { container: 'net' })).status).to.equal(200);
        expect(await names()).to.equal([ownNetwork]);
        const refused = await rig.post('/networks/host/connect', { container: 'net' });
        if (rig.engine.kind === 'docker') {
            expect([refused.code, refused.data.findings[0].rule]).to.equal([42253, 'network-host']);
        } else {
            // Podman has no such network.
            expect(refused.code).to.equal(40400);
        }
        await rig.make('/stacks', {
            name: 'apart',
            compose: `services: { web: { image: ${image}, command: [sleep, "1000"], stop_grace_period: 0s } }`
        });
        expect((await rig.post('/networks/between/connect', { container: 'apart-web-1' })).code).to.equal(
            40901
        );
        await rig.ask('DELETE', '/containers/net?force=true');
    });

    real(
        'removes what is used for nothing, as the dry run said, and nothing of stacks and plugins',
        async (rig) => {
            await rig.make('/containers', { ...sleeper('ended'), command: ['true'], restart: 'no' });
            await rig.make('/stacks/apart/stop');
            await rig.engine.importImage('unused/app:1', 'unused');
            await rig.post('/volumes', { name: 'spare' });
            await rig.engine.ask('POST', '/volumes/create', {
                Name: 'of-stack',
                Labels: { 'com.docker.compose.project': 'apart' }
            });
            const what = ['containers', 'images', 'networks', 'volumes'];
            const dry = await rig.post('/prune', { what, all: true, dryRun: true });
            const names = (items: { name: string }[]) => items.map(({ name }) => name).sort();
            expect(dry.status).to.equal(200);
            expect(names(dry.data.items)).to.include(['ended', 'unused/app:1', 'spare', 'between', 'files']);
            expect(names(dry.data.items)).to.not.include(['apart-web-1', 'of-stack', 'apart_default', image]);
            expect((await rig.post('/prune', { what: ['volumes'], dryRun: true })).data.items).to.equal([]);
            const young = await rig.post('/prune', { what, all: true, olderThanHours: 1, dryRun: true });
            expect(names(young.data.items)).to.not.include('spare');
            const { data: usage } = await rig.get('/usage');
            expect(usage.images.reclaimableBytes > 0).to.be.true();
            // What goes is what was shown, or nothing.
            const { list } = dry.data;
            expect((await rig.post('/prune', { what: ['volumes'], all: true, list })).code).to.equal(41200);
            await rig.post('/volumes', { name: 'later' });
            const changed = await rig.post('/prune', { what, all: true, list });
            const { data: now } = await rig.post('/prune', { what, all: true, dryRun: true });
            expect([changed.code, changed.data.version]).to.equal([41200, now.list]);
            expect((await rig.get('/volumes/spare')).status).to.equal(200);
            expect((await rig.ask('DELETE', '/volumes/later')).status).to.equal(200);
            const done = await rig.make('/prune', { what, all: true, list });
            expect(names(done.items)).to.equal(names(dry.data.items));
            expect((await rig.make('/stacks/apart/start')).state).to.equal('running');
            expect((await rig.post('/prune', { what, all: true, dryRun: true })).data.items).to.equal([]);
        }
    );

    real('takes no word of an image for what belongs to whom', async (rig) => {
        await rig.engine.importImage('liar/app:1', 'liar', {
            LABEL: 'io.portico.owner=shop com.docker.compose.project=apart io.portico.helper=1 mine=kept'
        });
        await rig.make('/containers', { ...sleeper('liar'), image: 'liar/app:1' });
        const { data } = await rig.get('/containers/liar');
        expect([data.owner, data.stack]).to.equal([null, null]);
        const { data: rows } = await rig.get('/containers?stack=apart');
        expect(rows.map(({ name }: { name: string }) => name)).to.equal(['apart-web-1']);
        await rig.make('/stacks/apart/down');
        expect((await rig.get('/containers/liar')).data.state).to.equal('running');
        expect((await rig.ask('DELETE', '/containers/liar?force=true')).status).to.equal(200);
    });

    real('gives volumes to backups and takes them back, and stacks to exports', async (rig) => {
        const compose = `services: { db: { image: ${image}, command: [sleep, "1000"], stop_grace_period: 0s, volumes: ["data:/data"] } }\nvolumes: { data: {} }`;
        await rig.make('/stacks', { name: 'kept', compose, env: 'SECRET=sealed' });
        await sh(rig, 'kept-db-1', 'echo before >/data/a');
        const folder = mkdtempSync(join(tmpdir(), 'pcbk-'));
        mkdirSync(join(folder, 'lent'));
        const lent = join(folder, 'lent');
        const [list] = await rig.host.hooks.run('backup.list', {});
        expect(JSON.stringify(list)).to.contain('volume:kept_data');
        const [collected] = await rig.host.hooks.run('backup.collect', {
            folder: lent,
            only: ['volume:kept_data']
        });
        const items = resultOf(collected) as readonly { name: string; path: string; title: string }[];
        expect(items.map(({ name }) => name)).to.equal(['volume:kept_data']);
        await sh(rig, 'kept-db-1', 'echo after >/data/a; touch /data/b');
        const restore = async () => {
            const [outcome] = await rig.host.hooks.run('backup.restore', {
                folder: lent,
                version: '1.0.0',
                items
            });
            return resultOf(outcome);
        };
        expect(await restore()).to.equal([{ item: 'volume:kept_data', ok: true }]);
        expect((await sh(rig, 'kept-db-1', 'cat /data/a; ls /data')).data.stdout).to.equal('before\na\n');
        await rig.make('/stacks/kept?volumes=true', {}, 'DELETE');
        expect(await restore()).to.equal([{ item: 'volume:kept_data', ok: true }]);
        await rig.make('/stacks', { name: 'kept', compose, env: 'SECRET=sealed' });
        expect((await sh(rig, 'kept-db-1', 'cat /data/a')).data.stdout).to.equal('before\n');
        rmSync(folder, { recursive: true });

        await rig.post('/registries', { server: 'registry.example', username: 'u', password: 'p4ss' });
        const [exported] = await rig.host.hooks.run('export.collect', { maxBytes: 1_000_000 });
        const parts = resultOf(exported) as readonly { name: string; data: unknown }[];
        await rig.make('/stacks/kept', {}, 'DELETE');
        const load = async () => {
            const [outcome] = await rig.host.hooks.run('import.restore', {
                version: '1.0.0',
                mode: 'merge',
                items: parts
            });
            return resultOf(outcome);
        };
        expect(await load()).to.equal([{ item: 'containers', ok: true }]);
        expect(await load()).to.equal([{ item: 'containers', ok: true }]);
        expect((await rig.get('/stacks/kept')).data).to.include({ state: 'absent', managed: true });
        expect((await rig.make('/stacks/kept/up')).state).to.equal('running');
        expect((await rig.get('/stacks/kept/source')).data.env).to.equal('SECRET=sealed');
    });

    real('adopts a stack that was made elsewhere, and restarts nothing', async (rig) => {
        const file = join(rig.folder, 'roots', 'made.yml');
        writeFileSync(
            file,
            `services: { web: { image: ${image}, command: [sleep, "1000"], stop_grace_period: 0s, volumes: ["./www:/www"] } }`
        );
        const id = await rig.engine.run('made-web-1', {
            Labels: {
                'com.docker.compose.project': 'made',
                'com.docker.compose.service': 'web',
                'com.docker.compose.project.config_files': file
            }
        });
        expect((await rig.get('/stacks/made')).data.managed).to.be.false();
        expect((await rig.post('/stacks/absent/adopt')).code).to.equal(40400);
        // Its record is written at once: cut anywhere, there is nothing of it, or all.
        const cutBefore = (step: string): Promise<unknown> =>
            rig.host.db.write((em) =>
                em.execute(`create trigger cut before ${step} begin select raise(abort, 'cut'); end`)
            );
        const uncut = (): Promise<unknown> => rig.host.db.write((em) => em.execute('drop trigger cut'));
        for (const step of ['insert on stacks', 'insert on revisions']) {
            await cutBefore(step);
            expect((await rig.post('/stacks/made/adopt')).status).to.equal(500);
            await uncut();
            expect((await rig.get('/stacks/made')).data).to.include({ managed: false, revision: null });
        }
        await cutBefore('update on stacks');
        const adopted = await rig.post('/stacks/made/adopt');
        await uncut();
        expect(adopted.data).to.include({ managed: true, state: 'running', revision: 1 });
        expect((await rig.get('/containers/made-web-1')).data.id).to.equal(id);
        const { data: source } = await rig.get('/stacks/made/source');
        expect(source.compose).to.contain(`${join(rig.folder, 'roots', 'www')}:/www`);
        expect((await rig.post('/stacks/made/adopt')).code).to.equal(40900);
        await rig.engine.ask('POST', '/containers/create?name=other-web-1', {
            Image: image,
            Cmd: ['true'],
            Labels: { 'com.docker.compose.project': 'other', 'com.docker.compose.service': 'web' }
        });
        // Without a file the text is written from the containers.
        expect((await rig.post('/stacks/other/adopt')).data).to.include({ managed: true, state: 'stopped' });
        expect((await rig.get('/stacks/other/source')).data.compose).to.contain('command:');
    });

    real(
        'adopts single containers and stacks without a file, and makes them again as they were',
        async (rig) => {
            const id = await rig.engine.run('lone', {
                Env: ['SECRET=of $HOME', 'LINES=a\nb: c'],
                Labels: { mine: 'kept' },
                ExposedPorts: { '80/tcp': {} },
                HostConfig: {
                    Binds: ['lone-data:/data'],
                    PortBindings: { '80/tcp': [{ HostIp: '127.0.0.1', HostPort: '18099' }] },
                    Memory: 67_108_864,
                    CapDrop: ['NET_RAW'],
                    RestartPolicy: { Name: 'unless-stopped' }
                }
            });
            await sh(rig, 'lone', 'echo kept >/data/a');
            const asked = await rig.ask('POST', '/stacks/lone/adopt', {}, 'operator');
            expect(asked.status).to.equal(403);
            const { data: adopted } = await rig.post('/stacks/lone/adopt');
            expect([adopted.state, adopted.services[0].containers]).to.equal(['running', ['lone']]);
            const { data: container } = await rig.get('/containers/lone');
            expect([container.id, container.stack, container.service]).to.equal([id, 'lone', 'lone']);
            expect((await rig.post('/containers/lone/recreate', { user: '0' })).code).to.equal(40901);
            const { data: source } = await rig.get('/stacks/lone/source');
            expect(source.compose).to.contain('of $$HOME').and.to.contain('container_name: lone');
            const before = (await rig.engine.ask('GET', '/containers/lone/json')).data;

            // What does not come up leaves the very container; what does takes its place with all that it had.
            const broken = source.compose.replace('sleep', 'absent');
            expect((await rig.run('/stacks/lone', { compose: broken }, 'PUT')).state).to.equal('failed');
            expect((await rig.get('/containers/lone')).data).to.include({
                id,
                state: 'running',
                stack: 'lone'
            });
            const again = await rig.make('/stacks/lone', { compose: `# mine\n${source.compose}` }, 'PUT');
            expect([again.state, again.revision]).to.equal(['running', 2]);
            const after = (await rig.engine.ask('GET', '/containers/lone/json')).data;
            expect(after.Id).to.not.equal(id);
            const told = ({ Config: config, HostConfig: host }: typeof after) => ({
                env: config.Env.filter((entry: string) => /^(SECRET|LINES)=/.test(entry)).sort(),
                label: config.Labels.mine,
                ports: host.PortBindings,
                memory: host.Memory,
                restart: host.RestartPolicy.Name,
                network: host.NetworkMode.replace('default', 'bridge')
            });
            expect(told(after)).to.equal(told(before));
            expect((await sh(rig, 'lone', 'cat /data/a')).data.stdout).to.equal('kept\n');
            expect(await rig.host.db.read((em) => em.execute('select * from adopted'))).to.equal([]);

            // Of a stack, with a sibling whose namespace is joined.
            const labels = (service: string) => ({
                'com.docker.compose.project': 'old',
                'com.docker.compose.service': service,
                'com.docker.compose.project.config_files': '/gone/compose.yml'
            });
            const main = await rig.engine.run('old-main-1', { Labels: labels('main') });
            await rig.engine.run('old_side_1', {
                Labels: labels('side'),
                HostConfig: { NetworkMode: `container:${main}` }
            });
            expect((await rig.post('/stacks/old/adopt')).data).to.include({
                managed: true,
                state: 'running'
            });
            expect((await rig.get('/stacks/old/source')).data.compose).to.contain(
                'network_mode: service:main'
            );
            expect((await rig.make('/stacks/old/redeploy')).state).to.equal('running');
            expect((await rig.engine.names()).filter((name) => name.startsWith('old'))).to.equal([
                'old-main-1',
                'old-side-1'
            ]);
            await rig.make('/stacks/lone', {}, 'DELETE');
            expect((await rig.get('/stacks/lone')).code).to.equal(40400);
            expect((await rig.engine.names()).includes('lone')).to.be.false();
        }
    );
});
