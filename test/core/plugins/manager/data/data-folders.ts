import {
    existsSync,
    mkdirSync,
    mkdtempSync,
    readdirSync,
    readFileSync,
    rmSync,
    statSync,
    symlinkSync,
    writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import type { Found } from '@portico/registry';
import Sqlite from 'better-sqlite3';

import { type Database, openDatabase } from '../../../../../core/src/platform/database/database.ts';
import { copyData } from '../../../../../core/src/plugins/manager/data/copy.ts';
import { PluginData } from '../../../../../core/src/plugins/manager/data/data-folders.ts';
import { pluginEntities, pluginMigrations } from '../../../../../core/src/plugins/manager/records/entities.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

let root: string;
beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'portico-data-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

describe('copyData', { timeout: 60_000 }, () => {
    it('gives one state of a database that is written to all the time, checkpoints included', async () => {
        const from = join(root, 'from');
        mkdirSync(from);
        const db = new Sqlite(join(from, 'data.db'));
        db.pragma('journal_mode = WAL');
        db.exec('create table pair (id integer primary key, one integer, two integer, filler text)');
        let running = true;
        let written = 0;
        const insert = db.prepare('insert into pair (one, two, filler) values (?, ?, ?)');
        const both = db.transaction((n: number) => {
            insert.run(n, 0, 'x'.repeat(2_000));
            db.prepare('update pair set two = one').run();
        });
        const writing = (async () => {
            while (running) {
                both((written += 1));
                if (written % 20 === 0) {
                    db.pragma('wal_checkpoint(TRUNCATE)');
                }
                if (written > 150) {
                    db.exec('delete from pair');
                    written = 0;
                }
                await new Promise((resolve) => setTimeout(resolve, 1));
            }
        })();
        for (let round = 0; round < 12; round += 1) {
            const to = join(root, `copy-${round}`);
            await copyData({ from, to, isOpen: true });
            const copy = new Sqlite(join(to, 'data.db'));
            expect(copy.pragma('integrity_check')).to.equal([{ integrity_check: 'ok' }]);
            expect(copy.prepare('select count(*) as n from pair where one is not two').get()).to.equal({
                n: 0
            });
            const { n, most } = copy
                .prepare('select count(*) as n, coalesce(max(one), 0) as most from pair')
                .get() as { n: number; most: number };
            expect(n).to.equal(most);
            copy.close();
        }
        running = false;
        await writing;
        // The panel's own locks are still there: another process that leaves takes no log away.
        expect(db.prepare('select count(*) as n from pair').get()).to.include('n');
        db.close();
    });

    it('copies folders, links and modes, and leaves what holds nothing', async () => {
        const from = join(root, 'from');
        mkdirSync(join(from, 'deep/er'), { recursive: true });
        writeFileSync(join(from, 'deep/er/file'), 'x', { mode: 0o640 });
        writeFileSync(join(from, 'run.sh'), '#!', { mode: 0o755 });
        symlinkSync('/etc/passwd', join(from, 'link'));
        await copyData({ from, to: join(root, 'to'), isOpen: false });
        expect(readdirSync(join(root, 'to'), { recursive: true }).toSorted()).to.equal(
            readdirSync(from, { recursive: true }).toSorted()
        );
        expect([
            readFileSync(join(root, 'to/deep/er/file'), 'utf8'),
            statSync(join(root, 'to/run.sh')).mode & 0o777,
            statSync(join(root, 'to/deep/er/file')).mode & 0o777
        ]).to.equal(['x', 0o755, 0o640]);
    });

    it('refuses before it begins when there is no room, and leaves nothing of one that is called off', async () => {
        const from = join(root, 'from');
        mkdirSync(from);
        writeFileSync(join(from, 'big'), Buffer.alloc(5 * 1024 * 1024));
        const full = await copyData({
            from,
            to: join(root, 'to'),
            isOpen: false,
            free: async () => 60 * 1024 * 1024
        }).catch((error: unknown) => error);
        expect(full).to.include({ code: 50700, reason: 'STORAGE_FULL' });
        expect(readdirSync(root)).to.equal(['from']);
        const stop = new AbortController();
        const copying = copyData({ from, to: join(root, 'to'), isOpen: false, signal: stop.signal });
        setTimeout(() => stop.abort(new Error('called off')), 30);
        await expect(copying).to.reject('called off');
        expect(existsSync(join(root, 'to'))).to.be.false();
        await expect(
            copyData({ from: join(root, 'nowhere'), to: join(root, 'to'), isOpen: false })
        ).to.reject(/could not be made/);
        expect(readdirSync(root)).to.equal(['from']);
    });
});

describe('PluginData', { timeout: 60_000 }, () => {
    let db: Database;
    const owner = { name: 'hello', package: '@acme/hello' };
    const found = (folder: string): Found =>
        ({
            origin: 'lock',
            folder: `/x/${folder}`,
            lock: {
                ...owner,
                version: '1.0.0',
                folder,
                integrity: '',
                tree: '',
                signature: 'unsigned',
                installedAt: ''
            },
            result: {
                plugin: {
                    package: owner.package,
                    version: '1.0.0',
                    title: '',
                    node: null,
                    manifest: { name: owner.name, sdk: '1' }
                }
            }
        });
    const open = (codes: readonly string[]): Promise<PluginData> =>
        PluginData.open({ dataDir: root, db, clock: { now: () => 1 } }, codes);
    const shown = (): readonly string[] => readdirSync(join(root, 'plugin-data/hello')).toSorted();

    beforeEach(async () => {
        db = await openDatabase({
            file: join(root, 'core.db'),
            entities: [...pluginEntities],
            migrations: pluginMigrations
        });
    });
    afterEach(() => db.close());

    it('begins with a folder, and lets another one count once it is committed', async () => {
        const data = await open([]);
        const first = await data.current(found('hello/one'));
        writeFileSync(join(first, 'note'), 'old');
        const row = data.rowOf(owner);
        const next = await data.next(owner, row, { folder: 'hello/two', version: '2.0.0' });
        expect(readFileSync(join(next.path, 'note'), 'utf8')).to.equal('old');
        writeFileSync(join(next.path, 'note'), 'new');
        await next.accepted();
        await next.prepare(null);
        expect(data.rowOf(owner)?.n).to.equal(1);
        await next.commit();
        expect([
            data.rowOf(owner)?.n,
            data.rowOf(owner)?.accepted,
            data.earlierOf(owner, 'hello/one')?.n
        ]).to.equal([2, true, 1]);
        expect(readFileSync(join(first, 'note'), 'utf8')).to.equal('old');
        const third = await data.next(owner, data.rowOf(owner), { folder: 'hello/three', version: '3.0.0' });
        await third.prepare(null);
        await third.commit();
        expect(shown()).to.equal(['2', '3']);
        await data.revert(owner);
        expect([data.rowOf(owner)?.n, shown()]).to.equal([2, ['2']]);
        await data.purge(owner);
        expect([data.rowOf(owner), shown()]).to.equal([null, []]);
    });

    it('undoes at the next start what was not committed, and finishes what was', async () => {
        for (const [code, counts] of [
            ['hello/one', 1],
            ['hello/two', 2]
        ] as const) {
            const data = await open([]);
            await data.current(found('hello/one'));
            const next = await data.next(owner, data.rowOf(owner), { folder: 'hello/two', version: '2.0.0' });
            mkdirSync(join(root, 'plugin-data/hello/probe-7'));
            await next.prepare({ enabled: true, grants: {}, decided: {}, settings: {} });
            const again = await open([code]);
            expect([code, again.rowOf(owner)?.n, again.rowOf(owner)?.decision]).to.equal([
                code,
                counts,
                null
            ]);
            expect([code, shown()]).to.equal([code, counts === 1 ? ['1'] : ['1', '2']]);
        }
    });

    it('keeps settings with the data of what was uninstalled', async () => {
        const data = await open([]);
        await data.current(found('hello/one'));
        await data.keep(owner, { enabled: false, grants: {}, decided: {}, settings: { a: 1 } });
        const manifest = { name: owner.name, sdk: '1' };
        const plugin = { package: owner.package, version: '1.0.0', title: '', node: null, manifest };
        expect((await open([])).keptSettings(plugin)).to.equal({ a: 1 });
        expect(data.keptSettings({ ...plugin, package: '@other/hello' })).to.be.null();
    });
});
