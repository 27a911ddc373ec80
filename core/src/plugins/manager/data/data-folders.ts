/**
 * Where plugins' data lies: `<dataDir>/plugin-data/<name>/<n>`, one folder that counts for each plugin. To switch is to let another folder count;
 * nothing is ever copied back. A folder that a swap makes is pending until the lock names its code, so that after a kill code and data are of one
 * age.
 */
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

import type { Found, PluginPackage } from '@portico/registry';
import Sqlite from 'better-sqlite3';

import type { Clock } from '../../../platform/clock.ts';
import type { Database, Transaction } from '../../../platform/database/database.ts';
import { PluginDataEntity, type PluginDataRow, PluginEntity } from '../records/entities.ts';
import type { DataFolders, PluginRecord } from '../records/plugin.ts';
import { copyData } from './copy.ts';

/** A folder that is being made for a swap. */
export interface NextData {
    readonly n: number;
    readonly path: string;
    /** What is told before the first change that a generation on it accepts. */
    accepted(): Promise<void>;
    /** Writes its row, pending, before the lock names the code. */
    prepare(decision: Decision | null): Promise<void>;
    /** The lock names the code: it counts from now on. All but the one that counted before are forgotten; their folders are deleted. */
    commit(also?: (tx: Transaction) => Promise<void>): Promise<void>;
    /** Deletes it. */
    discard(): Promise<void>;
}

/** What of a record changes with a swap. */
export type Decision = Pick<PluginRecord, 'enabled' | 'grants' | 'decided' | 'settings'>;

export interface PluginDataOptions {
    /** The panel's data folder. */
    readonly dataDir: string;
    readonly db: Database;
    readonly clock: Clock;
    /** Bytes that are free; default: what the file system says. */
    readonly free?: () => Promise<number>;
}

type Owner = { readonly name: string; readonly package: string };

export class PluginData implements DataFolders {
    readonly #options: PluginDataOptions;
    readonly #root: string;
    #rows: readonly PluginDataRow[];

    /** Deletes what killed swaps left. @param codes - folders that the lock names, of each plugin the one that counts */
    static async open(options: PluginDataOptions, codes: readonly string[]): Promise<PluginData> {
        const rows = await options.db.read((em) => em.find(PluginDataEntity, {}));
        const data = new PluginData(options, rows.map(plainRow));
        await data.#reconcile(new Set(codes));
        return data;
    }

    private constructor(options: PluginDataOptions, rows: readonly PluginDataRow[]) {
        this.#options = options;
        this.#root = join(options.dataDir, 'plugin-data');
        this.#rows = rows;
    }

    async current(found: Found): Promise<string> {
        const owner = ownerOf(found);
        const row = this.rowOf(owner) ?? (await this.#first(owner, found));
        return this.pathOf(row);
    }

    /** What is told before the first change that a generation on these data accepts. Durable when it settles. */
    acceptedOf(found: Found): () => Promise<void> {
        const row = this.rowOf(ownerOf(found));
        return row === null ? () => Promise.resolve() : () => this.#accept(row);
    }

    /** The row that counts; null when the plugin has no data yet. */
    rowOf({ name, package: packageName }: Owner): PluginDataRow | null {
        return (
            this.#rows.find((row) => row.name === name && row.package === packageName && row.current) ?? null
        );
    }

    /** The newest data that were made for this code and do not count any more; null when there are none. */
    earlierOf({ name, package: packageName }: Owner, code: string): PluginDataRow | null {
        return (
            this.#rows
                .filter(
                    (row) =>
                        row.name === name &&
                        row.package === packageName &&
                        !row.current &&
                        !row.pending &&
                        row.folder === code
                )
                .sort((one, two) => two.n - one.n)[0] ?? null
        );
    }

    pathOf({ name, n }: Pick<PluginDataRow, 'name' | 'n'>): string {
        return join(this.#root, name, String(n));
    }

    /** Names of the migrations that a folder's database has seen. Nobody else may be writing the first of them. */
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

    /** A copy to try something on, while the plugin goes on writing; empty when there are no data. Deleted by `discard`. */
    async probe(
        name: string,
        source: PluginDataRow | null,
        signal?: AbortSignal
    ): Promise<{ readonly path: string; discard(): Promise<void> }> {
        const path = join(this.#root, name, `probe-${this.#options.clock.now()}`);
        await mkdir(join(this.#root, name), { recursive: true, mode: 0o700 });
        await this.#copy(source, path, true, signal);
        return { path, discard: () => rm(path, { recursive: true, force: true, maxRetries: 3 }) };
    }

    /** Makes the folder of other code, a copy of `source`. Nothing of the plugin may have it open. */
    async next(
        { name, package: packageName }: Owner,
        source: PluginDataRow | null,
        code: { readonly folder: string; readonly version: string }
    ): Promise<NextData> {
        const n = await this.#free(name);
        let row: PluginDataRow = {
            name,
            package: packageName,
            n,
            folder: code.folder,
            version: code.version,
            createdAt: this.#options.clock.now(),
            current: false,
            pending: true,
            accepted: false,
            decision: null
        };
        const path = this.pathOf(row);
        const isKnown = (): boolean => this.#rows.some((each) => each.name === name && each.n === n);
        await mkdir(join(this.#root, name), { recursive: true, mode: 0o700 });
        await this.#copy(source, path, false);
        return {
            n,
            path,
            accepted: async () => {
                if (isKnown()) {
                    await this.#accept(row);
                }
                row = { ...row, accepted: true };
            },
            prepare: (decision) => {
                row = { ...row, decision: decision === null ? null : JSON.stringify(decision) };
                return this.#options.db.write((tx) => this.#insert(tx, row));
            },
            commit: (also) => this.#commit(row, also),
            discard: async () => {
                if (isKnown()) {
                    await this.#delete([row]);
                }
                await rm(path, { recursive: true, force: true, maxRetries: 3 });
            }
        };
    }

    /** Settings that stay with the data of a package that was uninstalled; null when there are none. */
    keptSettings({
        manifest: { name },
        package: packageName
    }: PluginPackage): PluginRecord['settings'] | null {
        const decision = this.rowOf({ name, package: packageName })?.decision ?? null;
        return decision === null ? null : (JSON.parse(decision) as Decision).settings;
    }

    /** The package is uninstalled: the data that count stay, with its settings. */
    async keep({ name, package: packageName }: Owner, decision: Decision): Promise<void> {
        const row = this.rowOf({ name, package: packageName });
        const gone = this.#rows.filter(
            (each) => each.name === name && each.package === packageName && each !== row
        );
        await this.#options.db.write(async (tx) => {
            await this.#deleteIn(tx, gone);
            if (row !== null) {
                await tx.em.nativeUpdate(
                    PluginDataEntity,
                    { name, n: row.n },
                    { decision: JSON.stringify(decision) }
                );
                tx.afterCommit(() => this.#replace({ ...row, decision: JSON.stringify(decision) }));
            }
        });
        await this.#removeFolders(gone);
    }

    /** What counts is deleted, and what counted before counts again. */
    async revert(owner: Owner): Promise<void> {
        const row = this.rowOf(owner);
        if (row === null) {
            return;
        }
        const before = this.#rows
            .filter(
                (each) =>
                    each.name === row.name && each.package === row.package && each !== row && !each.pending
            )
            .sort((one, two) => two.n - one.n)[0];
        await this.#options.db.write(async (tx) => {
            await this.#deleteIn(tx, [row]);
            if (before !== undefined) {
                await tx.em.nativeUpdate(
                    PluginDataEntity,
                    { name: before.name, n: before.n },
                    { current: true }
                );
                tx.afterCommit(() => this.#replace({ ...before, current: true }));
            }
        });
        await this.#removeFolders([row]);
    }

    /** Reads the rows again: somebody moved them from one package to another. */
    async reload(): Promise<void> {
        this.#rows = (await this.#options.db.read((em) => em.find(PluginDataEntity, {}))).map(plainRow);
    }

    /** Deletes everything that a package left. */
    async purge({ name, package: packageName }: Owner): Promise<void> {
        const rows = this.#rows.filter((row) => row.name === name && row.package === packageName);
        await this.#delete(rows);
        await this.#removeFolders(rows);
    }

    async #first({ name, package: packageName }: Owner, found: Found): Promise<PluginDataRow> {
        const version = 'plugin' in found.result ? found.result.plugin.version : (found.lock?.version ?? '');
        const row: PluginDataRow = {
            name,
            package: packageName,
            n: await this.#free(name),
            folder: found.lock?.folder ?? '',
            version,
            createdAt: this.#options.clock.now(),
            current: true,
            pending: false,
            accepted: false,
            decision: null
        };
        await mkdir(this.pathOf(row), { recursive: true, mode: 0o700 });
        await this.#options.db.write((tx) => this.#insert(tx, row));
        return row;
    }

    /** A number that no folder of this name has, known or not. */
    async #free(name: string): Promise<number> {
        const there = (await readdir(join(this.#root, name)).catch(() => []))
            .map(Number)
            .filter(Number.isInteger);
        return Math.max(0, ...there, ...this.#rows.filter((row) => row.name === name).map(({ n }) => n)) + 1;
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

    async #insert(tx: Transaction, row: PluginDataRow): Promise<void> {
        await tx.em.insert(PluginDataEntity, row);
        tx.afterCommit(() => {
            this.#rows = [...this.#rows, row];
        });
    }

    async #accept({ name, n }: PluginDataRow): Promise<void> {
        const row = this.#rows.find((each) => each.name === name && each.n === n);
        if (row !== undefined && !row.accepted) {
            await this.#options.db.write((tx) =>
                tx.em.nativeUpdate(PluginDataEntity, { name, n }, { accepted: true })
            );
            this.#rows = this.#rows.map((each) =>
                each.name === name && each.n === n ? { ...each, accepted: true } : each
            );
        }
    }

    async #commit(
        row: PluginDataRow,
        also: (tx: Transaction) => Promise<void> = () => Promise.resolve()
    ): Promise<void> {
        const present = this.#rows.find((each) => each.name === row.name && each.n === row.n) ?? row;
        const mine = this.#rows.filter(
            (each) => each.name === row.name && each.package === row.package && each.n !== row.n
        );
        const before = mine.find(({ current }) => current);
        const gone = mine.filter((each) => each !== before);
        const next = [
            ...(before === undefined ? [] : [{ ...before, current: false }]),
            { ...present, current: true, pending: false, decision: null }
        ];
        // The lock has decided: where this cannot be written, the next start writes it.
        next.forEach((each) => this.#replace(each));
        await this.#options.db.write(async (tx) => {
            for (const each of next) {
                await tx.em.nativeUpdate(
                    PluginDataEntity,
                    { name: each.name, package: each.package, n: each.n },
                    { current: each.current, pending: each.pending, decision: null }
                );
            }
            await this.#deleteIn(tx, gone);
            await also(tx);
        });
        await this.#removeFolders(gone);
    }

    async #delete(rows: readonly PluginDataRow[]): Promise<void> {
        await this.#options.db.write((tx) => this.#deleteIn(tx, rows));
    }

    async #deleteIn(tx: Transaction, rows: readonly PluginDataRow[]): Promise<void> {
        for (const row of rows) {
            await tx.em.nativeDelete(PluginDataEntity, { name: row.name, package: row.package, n: row.n });
        }
        tx.afterCommit(() => {
            this.#rows = this.#rows.filter(
                (each) => !rows.some((row) => row.name === each.name && row.n === each.n)
            );
        });
    }

    #replace(row: PluginDataRow): void {
        this.#rows = this.#rows.map((each) => (each.name === row.name && each.n === row.n ? row : each));
    }

    async #removeFolders(rows: readonly PluginDataRow[]): Promise<void> {
        await Promise.all(
            rows.map((row) => rm(this.pathOf(row), { recursive: true, force: true, maxRetries: 3 }))
        );
    }

    /** A swap that was killed after the lock had named its code is finished, one that was killed before is undone. */
    async #reconcile(codes: ReadonlySet<string>): Promise<void> {
        const pending = this.#rows.filter((row) => row.pending);
        for (const row of pending.filter(({ folder }) => codes.has(folder))) {
            await this.#commit(row, async (tx) => {
                if (row.decision != null) {
                    const { enabled, grants, decided, settings } = JSON.parse(row.decision) as Decision;
                    await tx.em.nativeUpdate(
                        PluginEntity,
                        { name: row.name, package: row.package },
                        {
                            enabled,
                            grants: JSON.stringify(grants),
                            decided: JSON.stringify(decided),
                            settings: JSON.stringify(settings)
                        }
                    );
                }
            });
        }
        await this.#delete(pending.filter(({ folder }) => !codes.has(folder)));
        for (const name of await readdir(this.#root).catch(() => [])) {
            for (const folder of await readdir(join(this.#root, name)).catch(() => [])) {
                if (!this.#rows.some((row) => row.name === name && String(row.n) === folder)) {
                    await rm(join(this.#root, name, folder), { recursive: true, force: true, maxRetries: 3 });
                }
            }
        }
    }
}

function ownerOf({ lock, result }: Found): Owner {
    if ('plugin' in result) {
        return { name: result.plugin.manifest.name, package: result.plugin.package };
    }
    return { name: lock?.name ?? '', package: lock?.package ?? '' };
}

function plainRow(row: PluginDataRow): PluginDataRow {
    const {
        name,
        package: packageName,
        n,
        folder,
        version,
        createdAt,
        current,
        pending,
        accepted,
        decision = null
    } = row;
    return {
        name,
        package: packageName,
        n,
        folder,
        version,
        createdAt,
        current: Boolean(current),
        pending: Boolean(pending),
        accepted: Boolean(accepted),
        decision
    };
}
