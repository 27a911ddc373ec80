/** What admins do with backups beyond making them: restore in place, compare, rotate, cancel; and what happens when restic goes wrong. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
    existsSync,
    mkdirSync,
    readdirSync,
    readFileSync,
    renameSync,
    rmdirSync,
    rmSync,
    writeFileSync
} from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { until } from '../../support/until.ts';
import { type BackupRig, createBackupRig, permissions, withCommands } from './rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

describe('work with backups', { timeout: 240_000 }, () => {
    let rig: BackupRig;
    let repository: number;
    let plan: number;
    let site: string;
    const restored: { readonly folder: string; readonly items: readonly { readonly name: string }[] }[] = [];

    before(async () => {
        rig = await createBackupRig({ quiet: true });
        site = join(rig.root, 'site');
        mkdirSync(site);
        writeFileSync(join(site, 'a.txt'), 'first');
        writeFileSync(join(site, 'b.txt'), 'second');
        rig.host.hooks.tap('backup.list', () => [{ name: 'shop', title: 'The shop', bytes: 4 }], 'store');
        rig.host.hooks.tap(
            'backup.collect',
            ({ folder }) => {
                writeFileSync(join(folder, 'shop.sql'), 'dump');
                return [{ name: 'shop', title: 'The shop', path: join(folder, 'shop.sql') }];
            },
            'store'
        );
        rig.host.hooks.tap(
            'backup.restore',
            ({ folder, items }) => {
                restored.push({ folder: readFileSync(join(folder, items[0]?.path ?? ''), 'utf8'), items });
                return items.map(({ name }) => ({ item: name, ok: true }));
            },
            'store'
        );
        repository = await rig.repository({ type: 'local', path: join(rig.root, 'repository') });
        const made = await rig.made('POST', '/plans', {
            name: 'site',
            repositoryId: repository,
            sources: [
                { type: 'folder', path: site },
                { type: 'plugin', plugin: 'store', items: ['shop'] }
            ],
            retries: 1,
            backoffSeconds: 1
        });
        plan = made.id as number;
    });

    after(() => rig.close());

    const snapshots = () => rig.made('GET', `/repositories/${repository}/snapshots`);
    const lastRun = async () => (await rig.made('GET', `/runs?planId=${plan}&limit=1`))[0];

    it('runs commands around a run, keeps its log, and shows none of them', async () => {
        const mark = join(rig.root, 'mark');
        const shown = await rig.made('PUT', `/plans/${plan}/hooks`, {
            before: { command: ['touch', mark] },
            after: { command: ['sh', '-c', 'echo "state $BACKUP_STATE"'] }
        });
        expect([shown.hasHooks, JSON.stringify(shown).includes(mark)]).to.equal([true, false]);
        const run = await rig.run(plan);
        expect([run.state, run.message, existsSync(mark)]).to.equal(['succeeded', null, true]);
        expect(run.sources.map(({ addedBytes }: { addedBytes: number }) => addedBytes > 0)).to.equal([
            true,
            true
        ]);
        const events = [];
        for await (const event of rig.host.as({ permissions }).events(`/runs/${run.id}/log`)) {
            events.push(event);
        }
        expect(events.map(({ data }) => (data as { text?: string }).text)).to.include(
            'after: state succeeded'
        );
        expect(events.at(-1)).to.include({ event: 'end' });
        const failsOnce = ['sh', '-c', 'test -e "$0" || { touch "$0"; false; }', join(rig.root, 'tried')];
        await rig.made('PUT', `/plans/${plan}/hooks`, { before: { command: failsOnce } });
        const failed = await rig.run(plan);
        expect([failed.state, failed.snapshotId]).to.equal(['failed', null]);
        // The failed run is tried again once, and people hear that it works again.
        await until(async () => (await lastRun()).state === 'succeeded', 'another try', 60_000);
        expect(await lastRun()).to.include({ trigger: 'retry', attempt: 2 });
        await until(
            async () => rig.host.notifications.some(({ event }) => event === 'backup.recovered'),
            'the notice'
        );
        await rig.made('PUT', `/plans/${plan}/hooks`, {});
    });

    it('compares snapshots, filters them by time, and measures the repository', async () => {
        writeFileSync(join(site, 'a.txt'), 'changed');
        rmSync(join(site, 'b.txt'));
        writeFileSync(join(site, 'c.txt'), 'third');
        expect((await rig.run(plan)).state).to.equal('succeeded');
        const [to, from] = await snapshots();
        const found = await rig.made('GET', `/repositories/${repository}/diff?from=${from.id}&to=${to.id}`);
        expect(found.filter(({ path }: { path: string }) => path.startsWith(`${site}/`))).to.equal([
            { path: join(site, 'a.txt'), change: 'changed' },
            { path: join(site, 'b.txt'), change: 'removed' },
            { path: join(site, 'c.txt'), change: 'added' }
        ]);
        const later = await rig.made('GET', `/repositories/${repository}/snapshots?from=${to.time}`);
        expect(later.map(({ id }: { id: string }) => id)).to.equal([to.id]);
        expect(to.sources.length).to.equal(2);
        const stats = await rig.made('GET', `/repositories/${repository}/stats`);
        expect(stats).to.include({ snapshots: 3, locks: [] });
        expect(stats.storedBytes > 0).to.be.true();
        const [page, next] = [
            await rig.ask('GET', '/runs?limit=1'),
            await rig.ask('GET', '/runs?from=2100-01-01')
        ];
        expect([page.data.length, next.data]).to.equal([1, []]);
    });

    it('leaves the folders of panel and engine out of the folders around them', async () => {
        const machine = join(rig.root, 'machine');
        const closed = join(machine, 'lib', 'the panel [1]');
        mkdirSync(join(closed, 'keys'), { recursive: true });
        writeFileSync(join(closed, 'keys', 'master'), 'secret');
        writeFileSync(join(machine, 'lib', 'beside'), 'seen');
        rig.host.panel.folders.push(closed);
        const { id } = await rig.made('POST', '/plans', {
            name: 'machine',
            repositoryId: repository,
            sources: [{ type: 'folder', path: machine }]
        });
        // A start of restic costs more than many files: it is not asked what it has said already.
        const [{ state }, commands] = await withCommands(rig.host, () => rig.run(id));
        expect([state, commands]).to.equal(['succeeded', ['backup']]);
        const [{ id: snapshot }] = await rig.made(
            'GET',
            `/repositories/${repository}/snapshots?planId=${id}`
        );
        const files = await rig.made(
            'GET',
            `/repositories/${repository}/snapshots/${snapshot}/files?path=${join(machine, 'lib')}`
        );
        expect(files.map(({ name }: { name: string }) => name)).to.equal(['beside']);
        await rig.made('DELETE', `/plans/${id}`);
        await rig.ended('DELETE', `/repositories/${repository}/snapshots/${snapshot}`);
    });

    it('restores in place beside what is there, by the plugin, and not over the panel', async () => {
        const [{ id }] = await snapshots();
        const restore = (body: object) =>
            rig.ended('POST', `/repositories/${repository}/snapshots/${id}/restore`, {
                inPlace: true,
                ...body
            });
        writeFileSync(join(site, 'a.txt'), 'broken');
        writeFileSync(join(site, 'own.txt'), 'stays');
        const items = [{ path: site }];
        const refused = await restore({ items });
        expect([refused.state, readFileSync(join(site, 'a.txt'), 'utf8')]).to.equal(['failed', 'broken']);
        rmSync(join(site, 'c.txt'));
        const tried = await restore({ items, conflict: 'overwrite', dryRun: true });
        expect(tried.result, JSON.stringify(tried.error)).to.equal({
            items: [{ item: { path: site }, ok: true, files: 2, path: site, message: null }]
        });
        const folder = join(rig.root, 'never');
        await restore({ items, inPlace: false, folder, dryRun: true });
        expect([existsSync(folder), existsSync(join(site, 'c.txt'))]).to.equal([false, false]);
        expect(readFileSync(join(site, 'a.txt'), 'utf8')).to.equal('broken');
        expect((await restore({ items, conflict: 'skip' })).state).to.equal('succeeded');
        expect([
            readFileSync(join(site, 'a.txt'), 'utf8'),
            readFileSync(join(site, 'c.txt'), 'utf8')
        ]).to.equal(['broken', 'third']);
        const task = await restore({
            items: [...items, { plugin: 'store', item: 'shop' }],
            conflict: 'overwrite'
        });
        expect(task.state, JSON.stringify(task.error)).to.equal('succeeded');
        expect(readFileSync(join(site, 'a.txt'), 'utf8')).to.equal('changed');
        expect(readdirSync(site).sort()).to.equal(['a.txt', 'c.txt', 'own.txt']);
        expect(restored).to.have.length(1);
        expect(restored[0]?.folder).to.equal('dump');
        const over = `/repositories/${repository}/snapshots/${id}/restore`;
        expect((await rig.ask('POST', over, { inPlace: true, items: [{ panel: true }] })).code).to.equal(
            40001
        );
        expect(readdirSync(join(rig.host.dataDir, 'scratch'))).to.equal(['CACHEDIR.TAG']);
    });

    it('gives a folder of a snapshot as an archive of either kind', async () => {
        const [{ id }] = await snapshots();
        for (const [archive, list] of [
            ['tar', ['tar', '-tf']],
            ['zip', ['python3', '-m', 'zipfile', '-l']]
        ] as const) {
            const answer = await rig.host
                .as({ permissions })
                .fetch(
                    'GET',
                    `/repositories/${repository}/snapshots/${id}/content?path=${site}&archive=${archive}`
                );
            const file = join(rig.root, `site.${archive}`);
            writeFileSync(file, Buffer.from(await answer.arrayBuffer()));
            const [program, ...args] = list;
            const listed = execFileSync(program, [...args, file], { encoding: 'utf8' });
            expect([answer.status, listed.match(/[ac]\.txt/g)?.sort()], listed).to.equal([
                200,
                ['a.txt', 'c.txt']
            ]);
        }
    });

    it('refuses what has no room before it begins, and leaves nothing', async () => {
        rig.host.hooks.tap('backup.list', () => [{ name: 'all', title: 'All', bytes: 2 ** 52 }], 'huge');
        const { id } = await rig.made('POST', '/plans', {
            name: 'huge',
            repositoryId: repository,
            sources: [{ type: 'plugin', plugin: 'huge' }],
            retries: 0
        });
        const [full, commands] = await withCommands(rig.host, () => rig.run(id));
        expect([full.state, full.message, commands]).to.equal([
            'failed',
            'There is no space left; nothing was changed',
            []
        ]);
        await rig.made('DELETE', `/plans/${id}`);
        // A snapshot that is larger than the disk: what it takes is known of its run.
        const [{ id: snapshot }] = await snapshots();
        const bytes = (was: unknown) =>
            rig.host.db.write((em) =>
                em.execute('update runs set sources = ? where snapshot_id = ?', [was, snapshot])
            );
        const [{ sources }] = (await rig.host.db.read((em) =>
            em.execute('select sources from runs where snapshot_id = ?', [snapshot])
        )) as [{ sources: string }];
        await bytes(sources.replaceAll(/"bytes":\d+/g, `"bytes":${2 ** 52}`));
        const drill = await rig.ended('POST', `/plans/${plan}/drill`);
        expect(drill.error).to.include({ code: 50700 });
        await bytes(sources);
        expect(readdirSync(join(rig.host.dataDir, 'scratch'))).to.equal(['CACHEDIR.TAG']);
    });

    it('says what is covered and what is not', async () => {
        rig.host.hosts.addHost({ domain: 'a.test', root: site });
        rig.host.hosts.addHost({ domain: 'b.test', root: '/srv/forgotten' });
        const never = await rig.made('POST', '/plans', {
            name: 'never',
            repositoryId: repository,
            sources: [{ type: 'plugin', plugin: 'store', items: ['gone'] }]
        });
        const report = await rig.made('GET', '/coverage');
        expect(report.covered.map(({ kind, name }: Record<string, unknown>) => [kind, name])).to.equal([
            ['item', 'store: shop'],
            ['folder', site]
        ]);
        expect(report.uncovered).to.include([
            { kind: 'folder', name: '/srv/forgotten', reason: 'no-plan' },
            { kind: 'item', name: 'huge: all', reason: 'no-plan' },
            { kind: 'item', name: 'store: gone', reason: 'not-offered' },
            { kind: 'plan', name: 'never', reason: 'never-run' }
        ]);
        await rig.made('DELETE', `/plans/${never.id}`);
        rig.host.hosts.hosts.splice(0);
        const { covered, uncovered, worstAgeSeconds } = await rig.made('GET', '/coverage');
        expect(covered).to.have.length(1);
        expect(covered[0]).to.include({ kind: 'item', name: 'store: shop', planId: plan });
        expect(worstAgeSeconds >= 0 && worstAgeSeconds < 600).to.be.true();
        expect(uncovered).to.include([
            { kind: 'panel', name: 'panel', reason: 'no-plan' },
            { kind: 'plan', name: 'site', reason: 'no-drill' },
            { kind: 'repository', name: 'target', reason: 'same-machine' }
        ]);
    });

    it('runs at its times, also where they were missed, and never removes what is pinned', async () => {
        const newest = async () => (await snapshots())[0];
        const [first] = [await newest()];
        const pinned = await rig.made('PUT', `/repositories/${repository}/snapshots/${first.id}`, {
            pinned: true,
            tags: ['kept']
        });
        expect([pinned.pinned, pinned.tags]).to.equal([true, ['kept']]);
        await rig.made('PUT', `/plans/${plan}`, {
            schedule: { cron: '0 3 * * *', timezone: 'UTC' },
            keep: { last: 1 }
        });
        const { schedule, keep } = await rig.made('GET', `/plans/${plan}`);
        expect([schedule.missed, keep.daily]).to.equal(['run-once', 0]);
        const ranBy = (trigger: string) =>
            until(
                async () => {
                    const run = await lastRun();
                    return run.trigger === trigger && run.finishedAt !== null && run;
                },
                `a run by ${trigger}`,
                60_000
            );
        await rig.host.clock.set(new Date((await rig.made('GET', `/plans/${plan}`)).nextRunAt as string));
        expect(await ranBy('schedule')).to.include({ state: 'succeeded' });
        await rig.host.restart({ days: 2 });
        await rig.host.clock.advance({ seconds: 1 });
        expect(await ranBy('missed')).to.include({ state: 'succeeded' });
        await rig.made('PUT', `/plans/${plan}`, { schedule: null, keep: {} });
        const left = await snapshots();
        expect(left.map(({ id }: { id: string }) => id)).to.include(pinned.id);
        expect(left.filter((each: { pinned: boolean }) => !each.pinned)).to.have.length(1);
    });

    it('tells of plans without a success for too long, and of checks that fail', async () => {
        const told = (event: string) => rig.host.notifications.filter((each) => each.event === event).length;
        const longAgo = Date.now() - 49 * 60 * 60_000;
        await rig.host.db.write((em) =>
            em.execute('update plans set last_success_at = ? where id = ?', [longAgo, plan])
        );
        await rig.host.schedules.run('overdue');
        await rig.host.schedules.run('overdue');
        expect(told('backup.overdue')).to.equal(1);
        expect((await rig.made('GET', '/coverage')).uncovered).to.include([
            { kind: 'item', name: 'store: shop', reason: 'stale' },
            { kind: 'plan', name: 'site', reason: 'stale' }
        ]);
        await rig.made('PUT', `/plans/${plan}`, {
            check: { cron: '0 4 * * *', readPercent: 100 },
            drill: { cron: '0 5 * * *' }
        });
        for (const [name, hour] of [
            [`check-${plan}`, '04'],
            [`drill-${plan}`, '05']
        ] as const) {
            expect((await rig.host.schedules.next(name))?.toISOString()).to.contain(`T${hour}:00`);
        }
        const index = join(rig.root, 'repository', 'index');
        renameSync(index, `${index}.away`);
        mkdirSync(index);
        await rig.host.schedules.run(`check-${plan}`);
        await until(() => told('backup.check-failed') === 1, 'the notice');
        expect((await rig.made('GET', `/repositories/${repository}`)).state).to.equal('damaged');
        rmdirSync(index);
        renameSync(`${index}.away`, index);
        await rig.host.schedules.run(`drill-${plan}`);
        const [proof] = await until(async () => {
            const proofs = await rig.made('GET', '/drills');
            return proofs.length > 0 && proofs;
        }, 'the drill');
        expect(proof, JSON.stringify(proof)).to.include({ planId: plan, ok: true });
        await rig.made('PUT', `/plans/${plan}`, { check: null, drill: null });
        const recovered = told('backup.recovered');
        const [run, ...others] = (await rig.ask('POST', '/plans/run-all', {})).data;
        expect([run.planId, others]).to.equal([plan, []]);
        await until(async () => (await rig.made('GET', `/runs/${run.id}`)).state === 'succeeded', 'the run');
        await until(() => told('backup.recovered') === recovered + 1, 'the notice');
    });

    it('leaves locks of programs that run to them, and removes those of programs that have ended', async () => {
        const [where, at] = [join(rig.root, 'repository'), `/repositories/${repository}`];
        const other = spawn('restic', ['--repo', where, 'backup', '--stdin', '--stdin-filename', 'other'], {
            env: { PATH: process.env['PATH'], HOME: rig.root, RESTIC_PASSWORD: 'correct horse' },
            stdio: ['pipe', 'ignore', 'ignore']
        });
        const exited = once(other, 'exit');
        await until(() => readdirSync(join(where, 'locks')).length > 0, 'the lock');
        expect((await rig.ended('POST', `${at}/prune`, {})).error).to.include({ code: 40951 });
        await rig.made('POST', `${at}/unlock`, {});
        expect((await rig.made('GET', `${at}/stats`)).locks).to.have.length(1);
        other.kill('SIGSTOP'); // it would write another lock
        await rig.made('POST', `${at}/unlock`, { force: true });
        expect(readdirSync(join(where, 'locks'))).to.equal([]);
        other.kill('SIGKILL');
        await exited;
        const operator = rig.host.as({ permissions: ['read', 'run'] });
        expect((await operator.post(`${at}/unlock`, { force: true })).code).to.equal(40300);
    });

    it('keeps a repository marked whose locks of a killed panel could not be removed, for the next start', async () => {
        const where = join(rig.root, 'repository');
        const locks = () => readdirSync(join(where, 'locks')).filter((name) => !name.includes('-tmp-'));
        const killed = spawn('restic', ['--repo', where, 'backup', '--stdin', '--stdin-filename', 'other'], {
            env: { PATH: process.env['PATH'], HOME: rig.root, RESTIC_PASSWORD: 'correct horse' },
            stdio: ['pipe', 'ignore', 'ignore']
        });
        const exited = once(killed, 'exit');
        await until(() => locks().length > 0, 'the lock');
        killed.kill('SIGKILL');
        await exited;
        await rig.host.db.write((em) =>
            em.execute("update repositories set status = json_set(status, '$.isUsed', json('true'))")
        );
        const refusals = () => rig.host.log.filter(({ message }) => /stale lock/.test(message)).length;
        const before = refusals();
        renameSync(join(where, 'config'), join(where, 'config.away'));
        await rig.host.restart();
        await until(() => refusals() > before, 'a start that cannot remove it');
        renameSync(join(where, 'config.away'), join(where, 'config'));
        expect(locks()).to.have.length(1);
        await rig.host.restart();
        await until(() => locks().length === 0, 'the end of the lock');
    });

    it('marks each repository that restic locks, also when marks could not be stored before', async () => {
        const at = `/repositories/${repository}`;
        const run = (sql: string) => rig.host.db.write((em) => em.execute(sql));
        const [now, then] = ['new', 'old'].map((row) => `json_extract(${row}.status, '$.isUsed')`);
        const trigger = (name: string, isUsed: 0 | 1, action: string) =>
            run(
                `create trigger ${name} before update on repositories when ${now} is not ${then} and ${now} = ${isUsed} begin ${action}; end`
            );
        const work = () => rig.ended('POST', `${at}/prune`, { dryRun: true });
        const other = await rig.repository({ type: 'local', path: join(rig.root, 'other') });
        await run('create table marked (id integer)');
        await trigger('no_beginning', 1, "select raise(abort, 'no room')");
        expect((await work()).state).to.equal('failed');
        await run('drop trigger no_beginning');
        await trigger('seen', 1, 'insert into marked values (new.id)');
        await trigger('no_end', 0, "select raise(abort, 'no room')");
        // What was done counts, although its end could not be stored.
        expect(await work()).to.include({ state: 'succeeded', error: null });
        expect(await run('select id from marked')).to.equal([{ id: repository }]);
        await run('drop trigger no_end');
        await work();
        await run('delete from marked');
        expect((await rig.ended('POST', `${at}/copy`, { to: other })).state).to.equal('succeeded');
        expect(await run('select id from marked order by id')).to.equal([{ id: repository }, { id: other }]);
        await run('drop trigger seen');
        await run('drop table marked');
        await rig.made('DELETE', `/repositories/${other}`);
    });

    it('gives a repository a new password, after which the old one opens nothing', async () => {
        const task = await rig.ended('POST', `/repositories/${repository}/rotate-key`);
        expect([task.state, task.result]).to.equal(['succeeded', { removed: 1 }]);
        await rig.ended('POST', `/repositories/${repository}/refresh`);
        expect(await rig.made('GET', `/repositories/${repository}`)).to.include({
            state: 'ready',
            snapshots: 3
        });
        const old = await rig.ended('POST', '/repositories/test', {
            name: 'old',
            type: 'local',
            path: join(rig.root, 'repository'),
            password: 'correct horse'
        });
        expect(old.result).to.include({ reachable: true, opens: false });
    });

    it('ends restic and its lock when a run is cancelled', async () => {
        // The command before the run does not end by itself.
        await rig.made('PUT', `/plans/${plan}/hooks`, { before: { command: ['sleep', '600'] } });
        const { id } = await rig.made('POST', `/plans/${plan}/run`, {});
        await until(async () => (await rig.made('GET', `/runs/${id}`)).state === 'running', 'the run starts');
        expect((await rig.ask('POST', `/plans/${plan}/run`, {})).code).to.equal(40901);
        expect((await rig.made('DELETE', `/runs/${id}`)).state).to.equal('cancelled');
        expect(readdirSync(join(rig.root, 'repository', 'locks'))).to.equal([]);
        await rig.made('PUT', `/plans/${plan}/hooks`, {});
    });

    it('calls a run failed whose restic answers nonsense, or says that the disk is full', async () => {
        await rig.made('PUT', `/plans/${plan}`, { retries: 0 });
        rig.host.programs.answer('restic', { stdout: 'all is well\n{"message_type": "summ' });
        expect(await rig.run(plan)).to.include({ state: 'failed', snapshotId: null });
        rig.host.programs.answer('restic', { code: 1, stderr: 'Fatal: write: no space left on device\n' });
        const full = await rig.run(plan);
        expect([full.state, full.message]).to.equal([
            'failed',
            'There is no space left; nothing was changed'
        ]);
        const { uncovered } = await rig.made('GET', '/coverage');
        expect(uncovered).to.include([{ kind: 'plan', name: 'site', reason: 'failed' }]);
    });

    it('comes back from an export, twice as once', async () => {
        const [outcome] = await rig.host.hooks.run('export.collect', { maxBytes: 1_000_000 });
        const items = outcome?.ok === true ? (outcome.result ?? []) : [];
        expect(items).to.have.length(1);
        const before = await rig.made('GET', '/plans');
        for (const mode of ['merge', 'replace'] as const) {
            const payload = {
                version: '1.0.0',
                mode,
                items: JSON.parse(JSON.stringify(items)) as typeof items
            };
            const [restoredOutcome] = await rig.host.hooks.run('import.restore', payload);
            expect(restoredOutcome).to.include({ ok: true, result: [{ item: 'plans', ok: true }] });
        }
        const now = await rig.made('GET', '/plans');
        expect(
            now.map(({ id, sources, repositoryId }: Record<string, unknown>) => [id, sources, repositoryId])
        ).to.equal(
            before.map(({ id, sources, repositoryId }: Record<string, unknown>) => [
                id,
                sources,
                repositoryId
            ])
        );
    });
});
