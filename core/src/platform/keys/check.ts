/** The check that the keys of the data folder are those that its database was written with. */
import type { MigrationObject } from '@mikro-orm/core';
import { Migration } from '@mikro-orm/migrations';

import type { Database } from '../database/database.ts';
import type { Keyring } from './keyring.ts';

const label = 'key check';
const known = 'portico';

class CreateKeyCheck extends Migration {
    override up(): void {
        this.addSql('create table key_check (value text not null)');
    }
}

/** The migration of the table with the one value that is sealed to be opened at each start. */
export const keyCheckMigrations: readonly MigrationObject[] = [
    { name: '0001-key-check', class: CreateKeyCheck }
];

/** Why these keys do not open what is sealed in a database; null when they do, or when nothing was sealed yet. */
export function faultOfKeys(
    db: { prepare(sql: string): { get(): unknown } },
    keyring: Pick<Keyring, 'open'>
): unknown {
    const row = db.prepare('select value from key_check').get() as { readonly value: string } | undefined;
    try {
        if (row !== undefined) {
            keyring.open(label, row.value);
        }
        return null;
    } catch (error) {
        return error;
    }
}

/** Opens the check value of the database, and seals it at the first start. @throws Error when it was sealed with other keys */
export async function checkKeys(db: Database, keyring: Keyring, keysFolder: string): Promise<void> {
    const row = db.prepare<[], { value: string }>('select value from key_check').get();
    if (row === undefined) {
        await db.writeEssential(({ em }) =>
            em.execute('insert into key_check (value) values (?)', [keyring.seal(label, known)])
        );
        return;
    }
    const fault = faultOfKeys(db, keyring);
    if (fault !== null) {
        throw new Error(
            `${keysFolder} does not hold the keys that the database was written with: nothing that is sealed in it can be opened. Put back the folder of the same backup as the database`,
            { cause: fault }
        );
    }
}
