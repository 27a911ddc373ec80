/**
 * The core's database: one SQLite file, one process, two connections. The writer is touched only by the write queue, which runs short
 * transactions one after the other; everything else reads on the reader, which sees the last commit.
 */
import { AsyncLocalStorage } from 'node:async_hooks';

import { EntitySchema, type MigrationObject } from '@mikro-orm/core';
import { Migrator } from '@mikro-orm/migrations';
import { type EntityManager, MikroORM } from '@mikro-orm/sqlite';
import { Mutex } from '@portico/sdk';

import { fail } from '../errors.ts';
import { diskFailureOf, translateDiskFailure } from './disk-failure.ts';
import { DiskReserve, type DiskReserveOptions } from './disk-reserve.ts';
import { type Readable, strangeMigrations } from './migrations.ts';
import { SkippedRows } from './rows.ts';
import { guardTransactions, type QueryConnection, type TransactionState } from './transaction-guard.ts';

/** A short transaction. Nothing inside it may wait for a network, a hook, a child process or a timer. */
export interface Transaction {
    readonly em: EntityManager;
    /** Runs once the transaction is durable, before the write is acknowledged; must not throw. */
    afterCommit(work: () => void): void;
    /** Runs when the transaction did not happen. */
    afterRollback(work: () => void): void;
}

/** A statement of a hot path, prepared once on the reader. */
export interface Statement<P extends readonly unknown[], R> {
    all(...parameters: P): R[];
    get(...parameters: P): R | undefined;
}

/** The core's database: many readers, one writer. */
export interface Database {
    /** Reads with a fresh identity map, on the last committed state. */
    read<T>(work: (em: EntityManager) => Promise<T>): Promise<T>;
    /**
     * Runs a transaction when those before it are done. A write within a write throws: it would wait for itself.
     * @throws STORAGE_FULL 50700, nothing half-written
     */
    write<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
    /**
     * A write that must work on a full disk, too, as a login must: it may use up the reserve. The work may run more than once.
     * @throws STORAGE_FULL 50700 when nothing of the reserve is left
     */
    writeEssential<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
    prepare<P extends readonly unknown[], R>(sql: string): Statement<P, R>;
    /** The rows that cannot be read and that the panel does without. */
    readonly skipped: SkippedRows;
    /** What is wrong with the database or its disk: a sentence for each. */
    problems(): readonly string[];
    /** Waits for the queue, then closes both connections. */
    close(): Promise<void>;
}

/** How a database is opened. */
export interface DatabaseOptions {
    /** Path of the file. */
    readonly file: string;
    readonly entities: readonly EntitySchema[];
    readonly migrations: readonly MigrationObject[];
    /** Pages kept in memory by each of the two connections; default 8,000 KiB. */
    readonly cacheKiB?: number;
    /** Reads cannot write, whatever they call: for work that is not ours. They then have a mapper of their own. */
    readonly strictReads?: boolean;
    /** Called before anything is written. What it throws refuses the database. */
    readonly inspect?: (db: Readable) => void;
    /** Space that is kept for essential writes; left out: none. */
    readonly reserve?: DiskReserveOptions;
}

interface Native extends TransactionState {
    pragma(text: string): unknown;
    prepare(sql: string): {
        all(...parameters: unknown[]): unknown[];
        get(...parameters: unknown[]): unknown;
        run(...parameters: unknown[]): unknown;
    };
}

const migrationTable = 'migrations';
const pragmas = ['busy_timeout = 5000', 'foreign_keys = ON', 'temp_store = MEMORY'];

/** Opens the database and brings it to the newest version. @throws Error when a newer version wrote it: what that made would be lost */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
    const reserve = options.reserve === undefined ? null : new DiskReserve(options.reserve);
    let writer: Native | undefined;
    const orm = await MikroORM.init({
        dbName: options.file,
        entities: [...options.entities],
        extensions: [Migrator],
        migrations: {
            migrationsList: [...options.migrations],
            tableName: migrationTable,
            snapshot: false,
            silent: true
        },
        ...(options.strictReads === true ? {} : { preferReadReplicas: true, replicas: [{ name: 'reader' }] }),
        discovery: { warnWhenNoEntities: false },
        onCreateConnection: async (connection) =>
            guardTransactions(connection as QueryConnection, () => writer as Native)
    });
    escapeNul(orm);
    // MikroORM's type of the client does not say that it is better-sqlite3.
    writer = (await orm.driver.getConnection('write').getNativeClient()) as unknown as Native;
    try {
        options.inspect?.(writer);
        refuseNewer(options, writer);
    } catch (error) {
        await orm.close(true);
        throw error;
    }
    writer.pragma('journal_mode = WAL');
    writer.pragma('synchronous = FULL');
    setPragmas(writer, options.cacheKiB);
    await orm.migrator.up();
    forgetMigrator();
    const readers =
        options.strictReads === true
            ? await MikroORM.init({
                  dbName: options.file,
                  entities: [...options.entities],
                  discovery: { warnWhenNoEntities: false }
              })
            : orm;
    escapeNul(readers);
    // As above.
    const reader = (await readers.driver
        .getConnection(options.strictReads === true ? 'write' : 'read')
        .getNativeClient()) as unknown as Native;
    setPragmas(reader, options.cacheKiB);
    reader.pragma('query_only = ON');
    return new Sqlite(orm, readers, reader, reserve);
}

/** The mapper keeps the entity of each migrator's table for as long as the process runs, and opens it for one migrator only: each start of a plugin would leave one behind. */
function forgetMigrator(): void {
    for (const [target, { meta }] of EntitySchema.REGISTRY) {
        if (meta.tableName === migrationTable) {
            EntitySchema.REGISTRY.delete(target);
        }
    }
}

function refuseNewer({ file, migrations }: DatabaseOptions, db: Readable): void {
    const strange = strangeMigrations(db, migrations);
    if (strange.length > 0) {
        throw new Error(
            `${file} was written by a newer version of the panel (${strange.join(', ')}): start that one`
        );
    }
}

/** Writes a text with a NUL as bytes. The mapper puts values into the text of a statement, which ends at a NUL for SQLite. */
function escapeNul(orm: MikroORM): void {
    const platform = orm.driver.getPlatform();
    const escape = Object.getPrototypeOf(platform).escape as (value: unknown) => string;
    platform.escape = (value: unknown) =>
        typeof value === 'string' && value.includes('\0')
            ? `cast(X'${Buffer.from(value).toString('hex')}' as text)`
            : escape.call(platform, value);
}

function setPragmas(connection: Native, cacheKiB = 8_000): void {
    for (const text of [...pragmas, `cache_size = -${cacheKiB}`]) {
        connection.pragma(text);
    }
}

class Sqlite implements Database {
    readonly skipped = new SkippedRows();
    readonly #orm: MikroORM;
    readonly #readers: MikroORM;
    readonly #reader: Native;
    readonly #reserve: DiskReserve | null;
    readonly #inside = new AsyncLocalStorage<true>();
    readonly #writes = new Mutex();

    constructor(orm: MikroORM, readers: MikroORM, reader: Native, reserve: DiskReserve | null) {
        this.#orm = orm;
        this.#readers = readers;
        this.#reader = reader;
        this.#reserve = reserve;
    }

    async read<T>(work: (em: EntityManager) => Promise<T>): Promise<T> {
        return work(this.#readers.em.fork());
    }

    write<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
        return this.#queue(async () => {
            if (this.#reserve?.admitsOrdinary() === false) {
                throw fail.STORAGE_FULL();
            }
            return this.#transact(work);
        });
    }

    writeEssential<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
        return this.#queue(async () => {
            for (;;) {
                try {
                    return await this.#transact(work);
                } catch (error) {
                    if (diskFailureOf(error) === null || this.#reserve?.release() !== true) {
                        throw error;
                    }
                }
            }
        });
    }

    prepare<P extends readonly unknown[], R>(sql: string): Statement<P, R> {
        // The caller states what the statement takes and answers.
        return this.#reader.prepare(sql) as unknown as Statement<P, R>;
    }

    problems(): readonly string[] {
        return [
            ...this.skipped.list(),
            ...(this.#reserve?.isNeeded === true
                ? ['Less than 1 MiB of the disk of the data folder is free: changes may be refused']
                : [])
        ];
    }

    async close(): Promise<void> {
        await this.#writes.idle();
        if (this.#readers !== this.#orm) {
            await this.#readers.close(true);
        }
        await this.#orm.close(true);
    }

    #queue<T>(work: () => Promise<T>): Promise<T> {
        if (this.#inside.getStore() === true) {
            throw new TypeError('A write inside a write would wait for itself');
        }
        return this.#writes.run(() => this.#inside.run(true, work));
    }

    async #transact<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
        const committed: (() => void)[] = [];
        const undone: (() => void)[] = [];
        try {
            const result = await this.#orm.em.fork().transactional((em) =>
                work({
                    em,
                    afterCommit: (then) => committed.push(then),
                    afterRollback: (then) => undone.push(then)
                })
            );
            for (const then of committed) {
                then();
            }
            return result;
        } catch (error) {
            for (const then of undone) {
                then();
            }
            throw translateDiskFailure(error);
        }
    }
}
