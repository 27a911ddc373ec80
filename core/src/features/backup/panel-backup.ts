/**
 * The panel's own part in backups. What it gives has the form of a data folder: `portico data restore` and a rehearsal take it as it is.
 * Everything is copied while the panel runs.
 */
import { copyFile, lstat, mkdir, readdir, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';

import type { BackupEntry, BackupItem } from '@portico/sdk';
import Sqlite from 'better-sqlite3';

import type { Clock } from '../../platform/clock.ts';
import { backupNoteName, databaseName, engineStorageName } from '../../platform/data-dir/data-dir.ts';

/** Copies, as the panel makes them everywhere. A copy is durable when the promise resolves; the target must not exist. */
export interface CopyPort {
    folder(from: string, to: string, what: string, signal: AbortSignal): Promise<void>;
    /** A folder with a database in it that is being written. */
    pluginData(from: string, to: string, what: string, signal: AbortSignal): Promise<void>;
    /** A database that is being written, as one file. */
    database(from: string, to: string, what: string, signal: AbortSignal): Promise<void>;
    /** Bytes of all files below a folder. */
    size(folder: string): Promise<number>;
}

/** What reads rows: the panel's database, or the file of a panel that may not run. */
export interface RowReader {
    prepare(sql: string): { all(): unknown[] };
}

/** What the panel's part in backups needs. */
export interface PanelBackupOptions {
    readonly dataDir: string;
    readonly db: RowReader;
    readonly clock: Clock;
    readonly copy: CopyPort;
    /** Version of the core. */
    readonly version: string;
    /** The folder of the certificates that the engine obtained; null without an account for the engine. */
    engineStorage(): string | null;
    /** Reads the end of the audit log; the function that it returns writes that file for the copy of the database. */
    copyHead(file: string): (database: string) => void;
}

/** One thing that can be given. */
interface Part {
    readonly name: string;
    readonly title: string;
    /** Path in the copy. */
    readonly to: string;
    /** Absolute. */
    readonly from: string;
    readonly kind: 'file' | 'folder' | 'database' | 'plugin-data';
}

interface DataRow {
    readonly name: string;
    readonly n: number;
}

const databasePart = 'database';
const headPart = 'audit-head';
const dataPrefix = 'data-';
const currentData = 'select name, n from plugin_data where current = 1 order by name';
const whole: readonly (readonly [name: string, title: string, path: string, kind: Part['kind']])[] = [
    ['keys', 'Keys that open what is sealed', 'keys', 'folder'],
    ['plugin-lock', 'Which plugins are installed', 'plugins.lock.json', 'file'],
    ['plugins', 'Installed plugins', 'plugins', 'folder'],
    ['extensions', 'Plugins that were put into the data folder', 'extensions', 'folder']
];

/** Answers `backup.list` and `backup.collect` for the panel itself. */
export class PanelBackup {
    readonly #options: PanelBackupOptions;

    constructor(options: PanelBackupOptions) {
        this.#options = options;
    }

    /** What it could give now. */
    async list(): Promise<readonly BackupEntry[]> {
        const parts = await this.#parts(readRows(this.#options.db));
        return Promise.all(
            parts.map(async ({ name, title, from, kind }) => ({
                name,
                title,
                bytes: ['folder', 'plugin-data'].includes(kind)
                    ? await this.#options.copy.size(from)
                    : (await lstat(from)).size
            }))
        );
    }

    /** Copies it, or the named parts, into an empty folder. @throws Error for a name that is not there; STORAGE_FULL 50700 */
    async collect(
        folder: string,
        only: readonly string[] | undefined,
        signal: AbortSignal
    ): Promise<readonly BackupItem[]> {
        const { db, version, clock, copyHead } = this.#options;
        const live = await this.#parts(readRows(db));
        const unknown = only?.find((name) => !live.some((part) => part.name === name));
        if (unknown !== undefined) {
            throw new Error(`The panel has no item ${unknown}`);
        }
        const wanted = live.filter(({ name }) => only?.includes(name) ?? true);
        const database = wanted.find(({ kind }) => kind === 'database');
        const items: BackupItem[] = [];
        if (database !== undefined) {
            const writeHead = copyHead(join(folder, 'audit.head'));
            items.push(await this.#copy(database, folder, signal));
            const copied = join(folder, databaseName);
            writeHead(copied);
            // The data of plugins are those that the copied database names.
            const parts = await this.#parts(rowsOf(copied));
            wanted.splice(
                0,
                Infinity,
                ...parts.filter((part) => wanted.some(({ name }) => name === part.name))
            );
        }
        for (const part of wanted.filter(({ kind }) => kind !== 'database')) {
            const isWritten = part.name === headPart && database !== undefined;
            items.push(isWritten ? itemOf(part) : await this.#copy(part, folder, signal));
        }
        const note = {
            format: 1,
            version,
            at: new Date(clock.now()).toISOString(),
            hostname: hostname(),
            dataDir: this.#options.dataDir,
            items: items.map(({ name }) => name)
        };
        await writeFile(join(folder, backupNoteName), `${JSON.stringify(note, null, 4)}\n`, {
            flag: 'wx',
            mode: 0o600
        });
        return items;
    }

    async #copy(part: Part, folder: string, signal: AbortSignal): Promise<BackupItem> {
        const { copy } = this.#options;
        const { from, title, kind } = part;
        const to = join(folder, part.to);
        await mkdir(dirname(to), { recursive: true, mode: 0o700 });
        if (kind === 'database') {
            await copy.database(from, to, title, signal);
        } else if (kind === 'plugin-data') {
            await copy.pluginData(from, to, title, signal);
        } else if (kind === 'folder') {
            await copy.folder(from, to, title, signal);
        } else {
            await copyFile(from, to);
        }
        return itemOf(part);
    }

    /** Everything that is there. @param rows - the folders of plugins' data that count */
    async #parts(rows: readonly DataRow[]): Promise<Part[]> {
        const { dataDir } = this.#options;
        const storage = this.#options.engineStorage();
        const parts: Part[] = [
            part(databasePart, 'Hosts, users, settings and history', databaseName, 'database'),
            part(headPart, 'End of the audit log', 'audit.head', 'file'),
            ...whole.map(([name, title, path, kind]) => part(name, title, path, kind)),
            ...rows.map(({ name, n }) =>
                part(
                    `${dataPrefix}${name}`,
                    `Data of the plugin ${name}`,
                    join('plugin-data', name, String(n)),
                    'plugin-data'
                )
            ),
            ...(storage === null
                ? []
                : [
                      {
                          name: 'engine',
                          title: 'Certificates that the engine obtained',
                          to: engineStorageName,
                          from: storage,
                          kind: 'folder' as const
                      }
                  ])
        ];
        const there = await Promise.all(parts.map(({ from }) => isThere(from)));
        return parts.filter(({ kind }, index) => there[index] === true || kind === 'plugin-data');

        function part(name: string, title: string, path: string, kind: Part['kind']): Part {
            return { name, title, to: path, from: join(dataDir, path), kind };
        }
    }
}

function itemOf({ name, title, to }: Part): BackupItem {
    return { name, title, path: to };
}

function rowsOf(file: string): readonly DataRow[] {
    const db = new Sqlite(file, { readonly: true, fileMustExist: true });
    try {
        return readRows(db);
    } finally {
        db.close();
    }
}

/** An empty folder counts as nothing. */
async function isThere(path: string): Promise<boolean> {
    const stat = await lstat(path).catch(() => null);
    return stat?.isDirectory() === true ? (await readdir(path)).length > 0 : stat !== null;
}

function readRows(db: RowReader): DataRow[] {
    // The columns of the statement are those of the type.
    return db.prepare(currentData).all() as DataRow[];
}
