/**
 * Where the data of plugins lie: `<dataDir>/plugin-data/<name>/<n>`. Of each plugin one folder counts; a rollback makes another folder count, and
 * nothing is ever copied back. The folder that a swap makes is pending until the lock names its code, so that after a kill the code and the data
 * belong together.
 */
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

import type { Found, PluginPackage } from '@portico/registry';
import Sqlite from 'better-sqlite3';

import type { Clock } from '../../../platform/clock.ts';
import type { Database, Transaction } from '../../../platform/database/database.ts';
import { type PluginDataRow, PluginEntity } from '../records/entities.ts';
import type { DataFolders, Decision, PluginRecord } from '../records/plugin.ts';
import { copyData } from './copy.ts';
import { type DataOwner, DataRows } from './data-rows.ts';
import { NextData, wholeFolder } from './next-data.ts';

/** What data folders need. */
export interface PluginDataOptions {
    /** The panel's data folder. */
    readonly dataDir: string;
    readonly db: Database;
    readonly clock: Clock;
    /** Free bytes on the disk; default: asks the file system. */
    readonly free?: () => Promise<number>;
}

/** The data folders of all plugins. */
export class PluginData implements DataFolders {
    readonly #options: PluginDataOptions;
    readonly #root: string;
    readonly #rows: DataRows;

    /** Finishes or undoes swaps that were killed. @param codes - the code folders that the lock names as current */
    static async open(options: PluginDataOptions, codes: readonly string[]): Promise<PluginData> {
        const data = new PluginData(options, await DataRows.open(options.db));
        await data.#recover(new Set(codes));
        return data;
    }

    private constructor(options: PluginDataOptions, rows: DataRows) {
        this.#options = options;
        this.#root = join(options.dataDir, 'plugin-data');
        this.#rows = rows;
    }

    /** The folder that counts, absolute; it is created for a plugin that has none. */
    async current(found: Found): Promise<string> {
        const owner = ownerOf(found);
        return this.pathOf(this.rowOf(owner) ?? (await this.#create(owner, found)));
    }

    /** The function that a plugin calls before it accepts the first change to its data. Durable when it resolves. */
    acceptedOf(found: Found): () => Promise<void> {
        const row = this.rowOf(ownerOf(found));
        return row === null ? () => Promise.resolve() : () => this.#rows.accept(row);
    }

    /** The row that counts; null when the plugin has no data yet. */
    rowOf(owner: DataOwner): PluginDataRow | null {
        return this.#rows.current(owner);
    }

    /** The newest data that were made for this code folder and do not count any more; null when there are none. */
    earlierOf(owner: DataOwner, code: string): PluginDataRow | null {
        return this.#rows.earlier(owner, code);
    }

    /** Absolute path of a row's folder. */
    pathOf({ name, n }: Pick<PluginDataRow, 'name' | 'n'>): string {
        return join(this.#root, name, String(n));
    }

    /** Names of the migrations that ran on a folder's database. No other code may be migrating it for the first time meanwhile. */
    migrationsOf(row: PluginDataRow): readonly string[] {
        let file: Sqlite.Database;
        try {
            file = new Sqlite(join(this.pathOf(row), 'data.db'), { fileMustExist: true });
        } catch {
            return [];
        }
        try {
            return file
                .prepare<[], { name: string }>('select name from migrations order by name')
                .all()
                .map(({ name }) => name);
        } catch {
            return []; // it has no such table
        } finally {
            file.close();
        }
    }

    /** Makes a copy for a trial while the plugin goes on writing; an empty folder when there are no data. */
    async probe(
        name: string,
        source: PluginDataRow | null,
        signal?: AbortSignal
    ): Promise<{ readonly path: string; discard(): Promise<void> }> {
        const path = join(this.#root, name, `probe-${this.#options.clock.now()}`);
        await mkdir(join(this.#root, name), { recursive: true, mode: 0o700 });
        await this.#copy(source, path, true, signal);
        return { path, discard: () => rm(path, wholeFolder) };
    }

    /** Makes the folder for other code, as a copy of `source`. The plugin must not run. */
    async next(
        owner: DataOwner,
        source: PluginDataRow | null,
        code: { readonly folder: string; readonly version: string }
    ): Promise<NextData> {
        const row: PluginDataRow = {
            name: owner.name,
            package: owner.package,
            n: await this.#freeNumber(owner.name),
            folder: code.folder,
            version: code.version,
            createdAt: this.#options.clock.now(),
            current: false,
            pending: true,
            accepted: false,
            decision: null
        };
        const path = this.pathOf(row);
        await mkdir(join(this.#root, owner.name), { recursive: true, mode: 0o700 });
        await this.#copy(source, path, false);
        return new NextData(row, {
            path,
            db: this.#options.db,
            rows: this.#rows,
            commit: (each, also) => this.#commit(each, also)
        });
    }

    /** Whether data of a plugin of this name are there, of any package. */
    holds(name: string): boolean {
        return this.#rows.largest(name) > 0;
    }

    /** Settings that were kept with the data of an uninstalled package; null when there are none. */
    keptSettings({ manifest, package: packageName }: PluginPackage): PluginRecord['settings'] | null {
        const decision = this.rowOf({ name: manifest.name, package: packageName })?.decision ?? null;
        return decision === null ? null : (JSON.parse(decision) as Decision).settings;
    }

    /** Keeps the data that count, with the settings, when the package is uninstalled; deletes the others. */
    async keep(owner: DataOwner, decision: Decision): Promise<void> {
        const row = this.rowOf(owner);
        const others = this.#rows.of(owner).filter((each) => each !== row);
        await this.#options.db.write(async (tx) => {
            await this.#rows.delete(tx, others);
            if (row !== null) {
                await this.#rows.update(tx, row, { decision: JSON.stringify(decision) });
            }
        });
        await this.#removeFolders(others);
    }

    /** Deletes the data that count; those that counted before count again. */
    async revert(owner: DataOwner): Promise<void> {
        const row = this.rowOf(owner);
        if (row === null) {
            return;
        }
        const before = this.#rows.earlier(owner);
        await this.#options.db.write(async (tx) => {
            await this.#rows.delete(tx, [row]);
            if (before !== null) {
                await this.#rows.update(tx, before, { current: true });
            }
        });
        await this.#removeFolders([row]);
    }

    /** Reads the rows again, after they were assigned to another package. */
    reload(): Promise<void> {
        return this.#rows.reload();
    }

    /** Deletes all data of a package. */
    async purge(owner: DataOwner): Promise<void> {
        const rows = this.#rows.of(owner);
        await this.#options.db.write((tx) => this.#rows.delete(tx, rows));
        await this.#removeFolders(rows);
    }

    async #create({ name, package: packageName }: DataOwner, found: Found): Promise<PluginDataRow> {
        const version = 'plugin' in found.result ? found.result.plugin.version : (found.lock?.version ?? '');
        const row: PluginDataRow = {
            name,
            package: packageName,
            n: await this.#freeNumber(name),
            folder: found.lock?.folder ?? '',
            version,
            createdAt: this.#options.clock.now(),
            current: true,
            pending: false,
            accepted: false,
            decision: null
        };
        await mkdir(this.pathOf(row), { recursive: true, mode: 0o700 });
        await this.#options.db.write((tx) => this.#rows.insert(tx, row));
        return row;
    }

    /** A number that no folder of this name has, whether a row knows it or not. */
    async #freeNumber(name: string): Promise<number> {
        const folders = (await readdir(join(this.#root, name)).catch(() => []))
            .map(Number)
            .filter(Number.isInteger);
        return Math.max(this.#rows.largest(name), ...folders) + 1;
    }

    async #copy(
        source: PluginDataRow | null,
        to: string,
        isOpen: boolean,
        signal?: AbortSignal
    ): Promise<void> {
        if (source === null) {
            await mkdir(to, { mode: 0o700 });
            return;
        }
        await mkdir(this.pathOf(source), { recursive: true, mode: 0o700 });
        await copyData({
            from: this.pathOf(source),
            to,
            isOpen,
            ...(signal === undefined ? {} : { signal }),
            ...(this.#options.free === undefined ? {} : { free: this.#options.free })
        });
    }

    async #commit(
        row: PluginDataRow,
        also: (tx: Transaction) => Promise<void> = () => Promise.resolve()
    ): Promise<void> {
        const others = this.#rows.of(row).filter((each) => each.n !== row.n);
        const before = others.find(({ current }) => current);
        const old = others.filter((each) => each !== before);
        const next = [
            ...(before === undefined ? [] : [{ ...before, current: false }]),
            { ...(this.#rows.get(row) ?? row), current: true, pending: false, decision: null }
        ];
        // The lock has decided. When the database cannot be written, the next start writes it.
        next.forEach((each) => this.#rows.replace(each));
        await this.#options.db.write(async (tx) => {
            await this.#rows.writeSwitch(tx, next);
            await this.#rows.delete(tx, old);
            await also(tx);
        });
        await this.#removeFolders(old);
    }

    async #removeFolders(rows: readonly PluginDataRow[]): Promise<void> {
        await Promise.all(rows.map((row) => rm(this.pathOf(row), wholeFolder)));
    }

    /** Finishes each swap that was killed after the lock named its code, and undoes those that were killed before. Deletes folders without a row. */
    async #recover(codes: ReadonlySet<string>): Promise<void> {
        const pending = this.#rows.pending();
        for (const row of pending.filter(({ folder }) => codes.has(folder))) {
            await this.#commit(row, (tx) => writeDecision(tx, row));
        }
        const undone = pending.filter(({ folder }) => !codes.has(folder));
        await this.#options.db.writeEssential((tx) => this.#rows.delete(tx, undone));
        for (const name of await readdir(this.#root).catch(() => [])) {
            for (const folder of await readdir(join(this.#root, name)).catch(() => [])) {
                if (String(this.#rows.get({ name, n: Number(folder) })?.n) !== folder) {
                    await rm(join(this.#root, name, folder), wholeFolder);
                }
            }
        }
    }
}

/** Copies what was decided with a swap to the plugin's record. */
async function writeDecision(
    tx: Transaction,
    { name, package: packageName, decision = null }: PluginDataRow
): Promise<void> {
    if (decision !== null) {
        const { enabled, grants, decided, settings } = JSON.parse(decision) as Decision;
        await tx.em.nativeUpdate(
            PluginEntity,
            { name, package: packageName },
            {
                enabled,
                grants: JSON.stringify(grants),
                decided: JSON.stringify(decided),
                settings: JSON.stringify(settings)
            }
        );
    }
}

function ownerOf({ lock, result }: Found): DataOwner {
    if ('plugin' in result) {
        return { name: result.plugin.manifest.name, package: result.plugin.package };
    }
    return { name: lock?.name ?? '', package: lock?.package ?? '' };
}
