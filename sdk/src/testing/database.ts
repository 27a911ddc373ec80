/** The plugin's own database in a test: a real SQLite file with the plugin's migrations, and the panel's rules of use. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { join } from 'node:path';

import { type EntityManager, MikroORM } from '@mikro-orm/sqlite';

import type { Db } from '../context.ts';
import type { PluginDefinition } from '../definition.ts';

interface Native {
    pragma(text: string): unknown;
}

export interface TestDatabase extends Db {
    /** Waits for what runs; the second call does nothing more. */
    close(): Promise<void>;
}

/** Opens `data.db` in the folder and migrates it. @throws what a migration throws; nothing of that step stays */
export async function openTestDatabase(
    dataDir: string,
    definition: Pick<PluginDefinition, 'entities' | 'migrations'>
): Promise<TestDatabase> {
    const connect = async (): Promise<{ readonly orm: MikroORM; readonly native: Native }> => {
        const orm = await MikroORM.init({
            dbName: join(dataDir, 'data.db'),
            entities: [...definition.entities],
            discovery: { warnWhenNoEntities: false }
        });
        const native = (await orm.driver.getConnection('write').getNativeClient()) as unknown as Native;
        native.pragma('busy_timeout = 5000');
        return { orm, native };
    };
    const writer = await connect();
    try {
        writer.native.pragma('journal_mode = WAL');
        // A test's file need not outlive the power.
        writer.native.pragma('synchronous = OFF');
        await migrate(writer.orm, definition.migrations);
        writer.native.pragma('foreign_keys = ON');
        const reader = await connect();
        reader.native.pragma('query_only = ON');
        return new Database(writer.orm, reader.orm);
    } catch (error) {
        await writer.orm.close(true);
        throw error;
    }
}

async function migrate(orm: MikroORM, migrations: PluginDefinition['migrations']): Promise<void> {
    await orm.em
        .fork()
        .execute(
            'create table if not exists migrations (id integer primary key autoincrement, name text, executed_at datetime default current_timestamp)'
        );
    const done = new Set(
        (await orm.em.fork().execute<{ name: string }[]>('select name from migrations')).map(
            ({ name }) => name
        )
    );
    const strange = [...done].filter((name) => !migrations.some((migration) => migration.name === name));
    if (strange.length > 0) {
        throw new Error(`The database was written by a newer version (${strange.join(', ')})`);
    }
    for (const { name, up } of migrations.filter((migration) => !done.has(migration.name))) {
        await orm.em.fork().transactional(async (em) => {
            if (typeof up === 'function') {
                await up(em);
            } else {
                for (const sql of up) {
                    await em.execute(sql);
                }
            }
            await em.execute('insert into migrations (name) values (?)', [name]);
        });
    }
}

class Database implements TestDatabase {
    readonly #writer: MikroORM;
    readonly #reader: MikroORM;
    readonly #inside = new AsyncLocalStorage<true>();
    #tail: Promise<unknown> = Promise.resolve();
    #closing: Promise<void> | null = null;

    constructor(writer: MikroORM, reader: MikroORM) {
        this.#writer = writer;
        this.#reader = reader;
    }

    async read<T>(work: (em: EntityManager) => Promise<T>): Promise<T> {
        return work(this.#reader.em.fork());
    }

    write<T>(work: (em: EntityManager) => Promise<T>): Promise<T> {
        if (this.#inside.getStore() === true) {
            throw new TypeError('A write inside a write would wait for itself');
        }
        const run = this.#tail.then(() =>
            this.#inside.run(true, () => this.#writer.em.fork().transactional(work as never) as Promise<T>)
        );
        this.#tail = run.catch(() => undefined);
        return run;
    }

    close(): Promise<void> {
        return (this.#closing ??= (async () => {
            await this.#tail;
            await this.#reader.close(true);
            await this.#writer.close(true);
        })());
    }
}
