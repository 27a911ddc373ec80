/** A plugin's own SQLite file. It is opened at its first use, or at once when it exists or there are migrations. */
import { closeSync, existsSync, openSync } from 'node:fs';
import { join } from 'node:path';

import type { EntitySchema, MigrationObject } from '@mikro-orm/core';
import { Migration as OrmMigration } from '@mikro-orm/migrations';
import type { Db, Migration } from '@portico/sdk';

import { type Database, openDatabase } from '../../platform/database/database.ts';

/** Name of the database file in the plugin's folder. */
export const pluginDatabase = 'data.db';

/** Page cache of each of the two connections; small, since there may be dozens of plugins. */
const cacheKiB = 512;

/** A plugin's database, which its owner closes. */
export interface PluginDatabase extends Db {
    /** Waits for the work that runs, then closes the file. Later use fails. */
    close(): Promise<void>;
}

/** Where the file lies, and what it holds. */
export interface PluginDatabaseOptions {
    readonly dataDir: string;
    readonly entities: readonly EntitySchema[];
    readonly migrations: readonly Migration[];
}

/** Opens the database and runs its migrations. @throws Error when a migration fails (that step is rolled back), or when a newer version wrote the file */
export async function openPluginDatabase(options: PluginDatabaseOptions): Promise<PluginDatabase> {
    const file = join(options.dataDir, pluginDatabase);
    let opening: Promise<Database> | null = null;
    const open = (): Promise<Database> =>
        (opening ??= (async () => {
            if (!existsSync(file)) {
                closeSync(openSync(file, 'w', 0o600));
            }
            return openDatabase({
                file,
                entities: options.entities,
                migrations: options.migrations.map(ormMigration),
                cacheKiB,
                strictReads: true
            });
        })());
    if (options.migrations.length > 0 || existsSync(file)) {
        await open();
    }
    return {
        read: async (work) => (await open()).read(work),
        write: async (work) => (await open()).write(({ em }) => work(em)),
        async close() {
            const db = opening;
            opening = Promise.reject(new Error('The database is closed'));
            opening.catch(() => undefined);
            await (await db)?.close();
        }
    };
}

function ormMigration({ name, up }: Migration): MigrationObject {
    return {
        name,
        class: class extends OrmMigration {
            override async up(): Promise<void> {
                if (typeof up === 'function') {
                    // The SDK describes the entity manager in types of its own.
                    await up(this.getEntityManager() as never);
                    return;
                }
                up.forEach((sql) => this.addSql(sql));
            }
        }
    };
}
