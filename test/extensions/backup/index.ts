import {
    existsSync,
    mkdirSync,
    mkdtempSync,
    readdirSync,
    readFileSync,
    renameSync,
    rmSync,
    writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { createTestHost, type TestAnswer, type TestHost } from '@portico/testing';

import backup from '../../../extensions/backup/src/index.ts';
import { until } from '../../support/until.ts';
import { withCommands } from './rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const all = ['read', 'browse', 'run', 'content', 'write', 'restore', 'hooks', 'secrets'];
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into answers of every shape
type Answer = TestAnswer<any>;

describe('@portico/plugin-backup', { timeout: 120_000 }, () => {
    let root: string;
    let host: TestHost;

    const open = () =>
        createTestHost(backup, {
            package: join(import.meta.dirname, '../../../extensions/backup'),
            machine: 'real',
            timing: { patienceMs: 60_000 }
        });

    before(async () => {
        root = mkdtempSync(join(tmpdir(), 'backup-'));
        mkdirSync(join(root, 'site'));
        writeFileSync(join(root, 'site', 'a.txt'), 'the first text');
        mkdirSync(join(root, 'site', 'sub'));
        writeFileSync(join(root, 'site', 'sub', 'b.tmp'), 'left out');
        host = await open();
        host.hooks.tap('backup.list', () => [{ name: 'shop', title: 'The shop', bytes: 4 }], 'store');
        host.hooks.tap(
            'backup.collect',
            ({ folder }) => {
                writeFileSync(join(folder, 'shop.sql'), 'dump');
                return [{ name: 'shop', title: 'The shop', path: join(folder, 'shop.sql') }];
            },
            'store'
        );
        host.hooks.tap(
            'backup.collect',
            ({ folder }) => {
                mkdirSync(join(folder, 'keys'));
                writeFileSync(join(folder, 'keys', 'master'), 'key');
                return [{ name: 'keys', title: 'Keys', path: join(folder, 'keys') }];
            },
            'panel'
        );
    });

    after(async () => {
        await host.close();
        rmSync(root, { recursive: true, force: true });
    });

    const ask = (method: string, path: string, body?: object): Promise<Answer> =>
        host.as({ permissions: all }).ask(method, path, body);
    const made = async (method: string, path: string, body?: object) => {
        const answer = await ask(method, path, body);
        expect(answer.status, answer.text).to.be.within(200, 202);
        return answer.data;
    };
    const ended = async (method: string, path: string, body?: object) => {
        const { id } = await made(method, path, body);
        return host.tasks.wait(id as number);
    };
    const runOf = async (planId: number, body: object = {}) => {
        const { id } = await made('POST', `/plans/${planId}/run`, body);
        await until(
            async () => (await made('GET', `/runs/${id}`)).finishedAt !== null,
            'the run ends',
            60_000
        );
        return made('GET', `/runs/${id}`);
    };
    let repository: number;
    let plan: number;

    it('makes a repository, and never tells its password', async () => {
        const path = join(root, 'repository');
        const task = await ended('POST', '/repositories', {
            name: 'main',
            type: 'local',
            path,
            password: 'correct horse'
        });
        expect(task.state, JSON.stringify(task.error)).to.equal('succeeded');
        repository = (task.result as { repositoryId: number }).repositoryId;
        expect(existsSync(join(path, 'config'))).to.be.true();
        const answer = await ask('GET', '/repositories');
        expect(answer.data[0]).to.include({ id: repository, path, type: 'local', appendOnly: false });
        expect(answer.text).to.not.contain('correct horse');
        const stored = await host.db.read((em) => em.execute('select password from repositories'));
        expect(JSON.stringify(stored)).to.not.contain('correct horse');

        const open = { name: 'again', type: 'local', mode: 'open', path };
        expect((await ended('POST', '/repositories', { ...open, password: 'another horse' })).state).to.equal(
            'failed'
        );
        expect(
            (await ended('POST', '/repositories', { ...open, password: 'correct horse' })).error
        ).to.include({
            code: 40900
        });
        const inUse = { name: 'x', type: 'local', path: join(root, 'site') };
        expect((await ended('POST', '/repositories', inUse)).error).to.include({ code: 40001 });
        expect(readdirSync(join(root, 'site')).sort()).to.equal(['a.txt', 'sub']);
        expect(await ask('GET', '/repositories')).to.include({ status: 200 });
    });

    it('backs up a folder, the panel and what a plugin gives into one snapshot', async () => {
        plan = (
            await made('POST', '/plans', {
                name: 'nightly',
                repositoryId: repository,
                sources: [
                    { type: 'folder', path: join(root, 'site') },
                    { type: 'panel' },
                    { type: 'plugin', plugin: 'store' }
                ],
                excludes: ['*.tmp'],
                tags: ['nightly'],
                keep: { last: 2 },
                schedule: { cron: '0 3 * * *', timezone: 'UTC' }
            })
        ).id;
        expect((await made('GET', `/plans/${plan}`)).nextRunAt).to.match(/T03:00:00/);
        expect((await made('GET', '/sources')).map(({ plugin }: { plugin: string }) => plugin)).to.equal([
            'store'
        ]);
        const tried = await runOf(plan, { dryRun: true });
        expect([tried.state, tried.snapshotId]).to.equal(['succeeded', null]);
        const run = await runOf(plan);
        expect(run, JSON.stringify(run)).to.include({ state: 'succeeded', trigger: 'manual', message: null });
        expect(
            run.sources.map(({ files, bytes }: { files: number; bytes: number }) => [files, bytes])
        ).to.equal([
            [1, 14],
            [1, 3],
            [1, 4]
        ]);
        expect(readdirSync(join(host.dataDir, 'scratch'))).to.equal(['CACHEDIR.TAG']);
        const [snapshot] = await made('GET', `/repositories/${repository}/snapshots?planId=${plan}`);
        expect(snapshot).to.include({ planId: plan, tags: ['nightly'], pinned: false });
        expect(snapshot.id).to.equal(run.snapshotId);
    });

    it('shows, finds and gives the files of a snapshot, to those who may', async () => {
        const [{ id }] = await made('GET', `/repositories/${repository}/snapshots`);
        const at = `/repositories/${repository}/snapshots/${id}`;
        const site = encodeURIComponent(join(root, 'site'));
        expect(
            (await made('GET', `${at}/files?path=${site}`)).map(({ name }: { name: string }) => name)
        ).to.equal(['a.txt', 'sub']);
        expect((await made('GET', `${at}/search?q=a.*`)).map(({ path }: { path: string }) => path)).to.equal([
            join(root, 'site', 'a.txt')
        ]);
        // What was seen before needs no call of restic: it is told while the repository cannot be reached.
        const repositoryFolder = join(root, 'repository');
        renameSync(repositoryFolder, `${repositoryFolder}.away`);
        try {
            expect((await made('GET', `/repositories/${repository}/snapshots`))[0].id).to.equal(id);
            expect((await made('GET', `${at}/files?path=${site}`)).length).to.equal(2);
        } finally {
            renameSync(`${repositoryFolder}.away`, repositoryFolder);
        }
        const content = `${at}/content?path=${site}%2Fa.txt`;
        const whole = await host.as({ permissions: all }).fetch('GET', content);
        expect(await whole.text()).to.equal('the first text');
        const part = await host
            .as({ permissions: all })
            .fetch('GET', content, undefined, { headers: { range: 'bytes=4-8' } });
        expect([part.status, await part.text()]).to.equal([206, 'first']);
        expect((await host.as({ permissions: ['read'] }).get(`${at}/files`)).status).to.equal(403);
        expect((await host.as({ permissions: ['read', 'browse'] }).get(content)).status).to.equal(403);
        expect((await ask('GET', `${at}/content?path=%2Fnone`)).status).to.equal(404);
    });

    it('restores to a new or empty folder, and to no other', async () => {
        const [{ id }] = await made('GET', `/repositories/${repository}/snapshots`);
        const restore = `/repositories/${repository}/snapshots/${id}/restore`;
        const folder = join(root, 'back');
        const items = [
            { path: join(root, 'site', 'a.txt') },
            { plugin: 'store', item: 'shop' },
            { panel: true }
        ];
        const [task, commands] = await withCommands(host, () => ended('POST', restore, { items, folder }));
        expect(task.state, JSON.stringify(task.error)).to.equal('succeeded');
        expect(commands).to.equal(['dump', 'restore', 'restore', 'restore']);
        const { items: restored } = task.result as { items: { ok: boolean; path: string; files: number }[] };
        expect(restored.map(({ ok, files }) => [ok, files])).to.equal([
            [true, 1],
            [true, 1],
            [true, 1]
        ]);
        expect(readFileSync(join(folder, root, 'site', 'a.txt'), 'utf8')).to.equal('the first text');
        expect(readFileSync(restored[1]?.path ?? '', 'utf8')).to.equal('dump');
        expect(readFileSync(join(restored[2]?.path ?? '', 'keys', 'master'), 'utf8')).to.equal('key');
        for (const bad of [
            folder,
            join(root, 'repository'),
            '/proc/1',
            join(root, 'none', 'deep'),
            `${root}/x/../y`
        ]) {
            expect((await ask('POST', restore, { items, folder: bad })).code, bad).to.equal(40001);
        }
        for (const path of ['/none/of/these', `${root}/x/../site`, '/']) {
            const absent = await ended('POST', restore, { items: [{ path }], folder: join(root, 'none') });
            expect(absent.error, path).to.include({ code: 50354 });
            expect((absent.error as { message: string }).message).to.contain('not in this snapshot');
            expect(readdirSync(join(root, 'none'))).to.equal([]);
        }
        const tired = host.as({ permissions: all, fresh: false });
        expect((await tired.post(restore, { items, folder: join(root, 'other') })).code).to.equal(40301);
    });

    it('lets another panel restore from the repository alone', async () => {
        const other = await open();
        try {
            const person = other.as({ permissions: all });
            const finish = async (path: string, body: object) => {
                const { data } = await person.ask<{ id: number }>('POST', path, body);
                return other.tasks.wait(data.id);
            };
            const opened = await finish('/repositories', {
                ...{ name: 'found', type: 'local', mode: 'open' },
                ...{ path: join(root, 'repository'), password: 'correct horse' }
            });
            const at = `/repositories/${(opened.result as { repositoryId: number }).repositoryId}/snapshots`;
            const { data } = await person.get<readonly { id: string }[]>(at);
            const folder = join(root, 'elsewhere');
            const items = [{ plugin: 'store', item: 'shop' }, { panel: true }, { path: join(root, 'site') }];
            const task = await finish(`${at}/${data[0]?.id}/restore`, { items, folder });
            expect(task.state, JSON.stringify(task.error)).to.equal('succeeded');
            const [shop, panel, site] = (task.result as { items: { path: string }[] }).items.map(
                ({ path }) => path
            );
            expect(readFileSync(shop ?? '', 'utf8')).to.equal('dump');
            expect(readFileSync(join(panel ?? '', 'keys', 'master'), 'utf8')).to.equal('key');
            expect(readFileSync(join(site ?? '', 'a.txt'), 'utf8')).to.equal('the first text');
            // The plugin that gave an item takes it back, also in a panel that never saw its plan.
            const taken: string[] = [];
            other.hooks.tap(
                'backup.restore',
                ({ folder: given, items: [item] }) => {
                    taken.push(readFileSync(join(given, item?.path ?? ''), 'utf8'));
                    return [{ item: item?.name ?? '', ok: true }];
                },
                'store'
            );
            const back = await finish(`${at}/${data[0]?.id}/restore`, {
                items: [items[0] ?? {}],
                inPlace: true
            });
            expect([back.state, taken]).to.equal(['succeeded', ['dump']]);
        } finally {
            await other.close();
        }
    });

    it('proves in a drill that the snapshot comes back, and says when it does not', async () => {
        const [task, commands] = await withCommands(host, () => ended('POST', `/plans/${plan}/drill`));
        expect(task.state, JSON.stringify(task.error)).to.equal('succeeded');
        expect(commands).to.equal(['restore', 'ls']);
        expect(task.result).to.include({ planId: plan, ok: true });
        expect(host.panel.rehearsed.length).to.equal(1);
        host.panel.rehearsal = { ...host.panel.rehearsal, booted: false, message: 'no key' };
        const failed = await ended('POST', `/plans/${plan}/drill`);
        expect([failed.state, (failed.error as { message: string }).message]).to.equal([
            'failed',
            'The snapshot does not come back: no key'
        ]);
        const proofs = await made('GET', '/drills');
        expect(proofs.map(({ ok }: { ok: boolean }) => ok)).to.equal([false, true]);
        expect(host.notifications.map(({ event }) => event)).to.include('backup.drill-failed');
        expect(readdirSync(join(host.dataDir, 'scratch'))).to.equal(['CACHEDIR.TAG']);
    });

    it('calls a run incomplete when a source is missing, keeps the last success, and applies the keep rules', async () => {
        const { lastSuccessAt } = await made('GET', `/plans/${plan}`);
        rmSync(join(root, 'site'), { recursive: true });
        const run = await runOf(plan);
        expect(run.state).to.equal('incomplete');
        expect(run.message).to.contain(join(root, 'site'));
        expect((await made('GET', `/plans/${plan}`)).lastSuccessAt).to.equal(lastSuccessAt);
        expect(host.notifications.map(({ event }) => event)).to.include('backup.run-incomplete');
        mkdirSync(join(root, 'site'));
        await runOf(plan);
        expect((await made('GET', `/repositories/${repository}/snapshots`)).length).to.equal(2);
    });

    it('checks and cleans up, and leaves an append-only repository as it is', async () => {
        expect((await ended('POST', `/repositories/${repository}/check`, {})).state).to.equal('succeeded');
        expect((await ended('POST', `/repositories/${repository}/prune`, {})).state).to.equal('succeeded');
        await made('PUT', `/repositories/${repository}`, { appendOnly: true });
        expect((await ask('POST', `/repositories/${repository}/prune`, {})).code).to.equal(40950);
        const [{ id }] = await made('GET', `/repositories/${repository}/snapshots`);
        expect((await ask('DELETE', `/repositories/${repository}/snapshots/${id}`)).code).to.equal(40950);
        expect((await ask('DELETE', `/repositories/${repository}`)).code).to.equal(40901);
    });

    it('refuses plans that cannot run, and says when restic is missing', async () => {
        const good = { name: 'p', repositoryId: repository, sources: [{ type: 'panel' }] };
        for (const bad of [
            { schedule: { cron: 'now' } },
            { schedule: { cron: '0 0 * * *', timezone: 'Nowhere/Land' } },
            { sources: [{ type: 'folder' }] },
            { sources: [{ type: 'folder', path: '/proc' }] },
            { sources: [{ type: 'panel', path: '/srv' }] }
        ]) {
            expect((await ask('POST', '/plans', { ...good, ...bad })).code, JSON.stringify(bad)).to.equal(
                40001
            );
        }
        expect((await ask('POST', '/plans', { ...good, repositoryId: 99 })).code).to.equal(40400);
        host.programs.missing('restic');
        expect((await host.health()).find(({ name }) => name === 'restic')).to.include({ state: 'failed' });
        expect((await runOf(plan)).state).to.equal('failed');
        expect((await host.as('admin').get('/plans')).status).to.equal(200);
    });
});
