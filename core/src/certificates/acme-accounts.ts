/** The panel's accounts at CAs: one key for each directory, address and binding, sealed. */
import { newAccountKey } from '../acme-key.ts';
import type { Clock } from '../clock.ts';
import type { Database } from '../db/database.ts';
import type { Keyring } from '../keyring.ts';
import { AcmeAccountEntity } from './entities.ts';

const label = 'acme-accounts';

export interface AcmeAccount {
    readonly id: number;
    /** PEM. */
    readonly key: string;
    /** Null: the CA has not said yet. */
    readonly url: string | null;
}

export interface AcmeAccounts {
    /** The account, with a key of its own from the first time on. */
    get(directory: string, email: string | null, eabKeyId: string | null): Promise<AcmeAccount>;
    /** Keeps what the CA calls it. */
    registered(id: number, url: string): Promise<void>;
}

export function createAcmeAccounts(db: Database, keyring: Pick<Keyring, 'seal' | 'open'>, clock: Clock): AcmeAccounts {
    const find = db.prepare<[string, string, string], { id: number; sealedKey: string; url: string }>(
        'select id, sealed_key as sealedKey, url from acme_account where directory = ? and email = ? and eab_key_id = ?');
    return {
        async get(directory, email, eabKeyId) {
            const names = [directory, email ?? '', eabKeyId ?? ''] as const;
            if (find.get(...names) === undefined) {
                const sealedKey = keyring.seal(label, newAccountKey());
                const createdAt = new Date(clock.now()).toISOString();
                // Two orders may be the first at the same time: the key that came first is the account's.
                await db.write((tx) => tx.em.execute('insert into acme_account (directory, email, eab_key_id, sealed_key, url, created_at) values (?, ?, ?, ?, ?, ?) on conflict do nothing', [...names, sealedKey, '', createdAt], 'run'));
            }
            const row = find.get(...names);
            if (row === undefined) {
                throw new Error('An ACME account that was written cannot be read');
            }
            return { id: row.id, key: keyring.open(label, row.sealedKey), url: row.url === '' ? null : row.url };
        },
        registered: (id, url) => db.write(async (tx) => {
            await tx.em.nativeUpdate(AcmeAccountEntity, { id }, { url });
        })
    };
}
