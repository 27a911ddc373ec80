/** The panel's accounts at CAs: one key for each directory, address and binding, sealed. */
import { newAccountKey } from '../../../platform/acme-key.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Database, Transaction } from '../../../platform/database/database.ts';
import type { Keyring } from '../../../platform/keyring.ts';
import { AcmeAccountEntity } from '../entities.ts';

const label = 'acme-accounts';

export interface AcmeAccount {
    readonly id: number;
    /** PEM. */
    readonly key: string;
    /** Null: the CA has not said yet. */
    readonly url: string | null;
}

/** What an account is known by here. */
export interface AccountNames {
    readonly directory: string;
    readonly email: string | null;
    /** Of the CA's own account that it is bound to. */
    readonly eabKeyId: string | null;
}

/** An account with its key, on its way from one panel to another. */
export interface MovedAccount extends AccountNames {
    /** PEM. */
    readonly key: string;
    readonly url: string | null;
    /** RFC 3339. */
    readonly createdAt: string;
}

export interface AcmeAccounts {
    /** All of them, without keys. */
    list(): readonly AccountNames[];
    /** One of the list, with its key. */
    open(account: AccountNames): MovedAccount;
    /** Takes accounts of another panel. Those that are here already keep their keys. */
    adopt(tx: Transaction, accounts: readonly MovedAccount[]): Promise<void>;
    /** The account, with a key of its own from the first time on. */
    get(directory: string, email: string | null, eabKeyId: string | null): Promise<AcmeAccount>;
    /** Keeps what the CA calls it. */
    registered(id: number, url: string): Promise<void>;
}

export function createAcmeAccounts(
    db: Database,
    keyring: Pick<Keyring, 'seal' | 'open'>,
    clock: Clock
): AcmeAccounts {
    const all = db.prepare<[], { directory: string; email: string; eabKeyId: string }>(
        'select directory, email, eab_key_id as eabKeyId from acme_account order by id'
    );
    const find = db.prepare<
        [string, string, string],
        { id: number; sealedKey: string; url: string; createdAt: string }
    >(
        'select id, sealed_key as sealedKey, url, created_at as createdAt from acme_account where directory = ? and email = ? and eab_key_id = ?'
    );
    const rowOf = ({ directory, email, eabKeyId }: AccountNames) =>
        find.get(directory, email ?? '', eabKeyId ?? '');
    // Two orders may be the first at the same time: the key that came first is the account's.
    const insert = async (
        tx: Transaction,
        { directory, email, eabKeyId, key, url, createdAt }: MovedAccount
    ): Promise<void> => {
        await tx.em.execute(
            'insert into acme_account (directory, email, eab_key_id, sealed_key, url, created_at) values (?, ?, ?, ?, ?, ?) on conflict do nothing',
            [directory, email ?? '', eabKeyId ?? '', keyring.seal(label, key), url ?? '', createdAt],
            'run'
        );
    };
    const open = (names: AccountNames): MovedAccount & AcmeAccount => {
        const row = rowOf(names);
        if (row === undefined) {
            throw new Error('An ACME account that was written cannot be read');
        }
        return {
            id: row.id,
            ...names,
            key: keyring.open(label, row.sealedKey),
            url: row.url === '' ? null : row.url,
            createdAt: row.createdAt
        };
    };
    return {
        list: () =>
            all.all().map(({ directory, email, eabKeyId }) => ({
                directory,
                email: email === '' ? null : email,
                eabKeyId: eabKeyId === '' ? null : eabKeyId
            })),
        open(account) {
            const { id: _id, ...moved } = open(account);
            return moved;
        },
        async adopt(tx, accounts) {
            for (const account of accounts) {
                await insert(tx, account);
            }
        },
        async get(directory, email, eabKeyId) {
            const names = { directory, email, eabKeyId };
            if (rowOf(names) === undefined) {
                const account = {
                    ...names,
                    key: newAccountKey(),
                    url: null,
                    createdAt: new Date(clock.now()).toISOString()
                };
                await db.write((tx) => insert(tx, account));
            }
            const { id, key, url } = open(names);
            return { id, key, url };
        },
        registered: (id, url) =>
            db.write(async (tx) => {
                await tx.em.nativeUpdate(AcmeAccountEntity, { id }, { url });
            })
    };
}
