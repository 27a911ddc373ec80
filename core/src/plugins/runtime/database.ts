/** A plugin's own SQLite file. It is opened at its first use, or at once when it exists or there are migrations. */
import { createHash } from 'node:crypto';
import { closeSync, existsSync, openSync } from 'node:fs';
import { join } from 'node:path';

import type { EntitySchema, MigrationObject } from '@mikro-orm/core';
import { Migration as OrmMigration } from '@mikro-orm/migrations';
import type { Db, Migration } from '@portico/sdk';

import { type Database, openDatabase } from '../../platform/database/database.ts';
import type { Readable } from '../../platform/database/migrations.ts';

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

/** Opens the database and runs its migrations. @throws Error when a migration fails (that step is rolled back), when one was changed after it ran, or when a newer version wrote the file */
export async function openPluginDatabase(options: PluginDatabaseOptions): Promise<PluginDatabase> {
    const file = join(options.dataDir, pluginDatabase);
    let opening: Promise<Database> | null = null;
    const open = (): Promise<Database> =>
        (opening ??= (async () => {
            if (!existsSync(file)) {
                closeSync(openSync(file, 'w', 0o600));
            }
            const checksums = checksumsOf(options.migrations);
            let ran: ReadonlyMap<string, string> = new Map();
            const db = await openDatabase({
                file,
                entities: options.entities,
                migrations: options.migrations.map(ormMigration),
                cacheKiB,
                strictReads: true,
                inspect(connection) {
                    ran = readChecksums(connection);
                    refuseChanged(checksums, ran);
                }
            });
            await keepChecksums(db, checksums, ran);
            return db;
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

/** Beside the mapper's own table of migrations: what each of them said when it ran. */
const checksumTable = 'portico_migration_checksums';

/** By name. Functions have none: a build may change their text and not what they do. */
function checksumsOf(migrations: readonly Migration[]): ReadonlyMap<string, string> {
    return new Map(
        migrations.flatMap(({ name, up }) =>
            typeof up === 'function'
                ? []
                : [[name, createHash('sha256').update(JSON.stringify(up)).digest('base64url')] as const]
        )
    );
}

function readChecksums(db: Readable): ReadonlyMap<string, string> {
    const table = db
        .prepare(`select 1 from sqlite_master where type = 'table' and name = '${checksumTable}'`)
        .get();
    const rows = table === undefined ? [] : db.prepare(`select name, checksum from ${checksumTable}`).all();
    return new Map(
        (rows as { name: string; checksum: string }[]).map(({ name, checksum }) => [name, checksum])
    );
}

function refuseChanged(now: ReadonlyMap<string, string>, ran: ReadonlyMap<string, string>): void {
    for (const [name, checksum] of ran) {
        if (now.has(name) && now.get(name) !== checksum) {
            throw new Error(
                `The migration ${name} was changed after it ran on these data, and it does not run again: leave it as it was, and add another one`
            );
        }
    }
}

/** Those that ran before there were checksums are taken as they are now. */
async function keepChecksums(
    db: Database,
    checksums: ReadonlyMap<string, string>,
    ran: ReadonlyMap<string, string>
): Promise<void> {
    const added = [...checksums].filter(([name]) => !ran.has(name));
    if (added.length > 0) {
        await db.write(async ({ em }) => {
            await em.execute(
                `create table if not exists ${checksumTable} (name text primary key, checksum text not null)`
            );
            for (const [name, checksum] of added) {
                await em.execute(`insert into ${checksumTable} (name, checksum) values (?, ?)`, [
                    name,
                    checksum
                ]);
            }
        });
    }
}
