/** The panel's accounts at CAs: one key for each directory, address and binding, sealed. */
import type { Clock } from '../../../platform/clock.ts';
import type { Database, Statement, Transaction } from '../../../platform/database/database.ts';
import { newAccountKey } from '../../../platform/keys/acme.ts';
import type { Keyring } from '../../../platform/keys/keyring.ts';
import { AcmeAccountEntity } from '../entities.ts';

const label = 'acme-accounts';

/** An account of the panel at a CA. */
export interface AcmeAccount {
    readonly id: number;
    /** PEM. */
    readonly key: string;
    /** The account's URL at the CA; null until it is registered. */
    readonly url: string | null;
}

/** What tells accounts apart. */
export interface AccountNames {
    readonly directory: string;
    readonly email: string | null;
    /** Key id of the CA's own account that this one is bound to. */
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

/** As the database has them: an empty text stands for null. */
interface Names {
    readonly directory: string;
    readonly email: string;
    readonly eabKeyId: string;
}

interface Row {
    readonly id: number;
    readonly sealedKey: string;
    readonly url: string;
    readonly createdAt: string;
}

/** The table of the panel's accounts at CAs. */
export class AcmeAccounts {
    readonly #db: Database;
    readonly #keyring: Pick<Keyring, 'seal' | 'open'>;
    readonly #clock: Clock;
    readonly #all: Statement<[], Names>;
    readonly #find: Statement<[string, string, string], Row>;

    constructor(db: Database, keyring: Pick<Keyring, 'seal' | 'open'>, clock: Clock) {
        this.#db = db;
        this.#keyring = keyring;
        this.#clock = clock;
        this.#all = db.prepare<[], Names>(
            'select directory, email, eab_key_id as eabKeyId from acme_account order by id'
        );
        this.#find = db.prepare<[string, string, string], Row>(
            'select id, sealed_key as sealedKey, url, created_at as createdAt from acme_account where directory = ? and email = ? and eab_key_id = ?'
        );
    }

    /** All of them, without keys. */
    list(): readonly AccountNames[] {
        return this.#all.all().map(({ directory, email, eabKeyId }) => ({
            directory,
            email: email === '' ? null : email,
            eabKeyId: eabKeyId === '' ? null : eabKeyId
        }));
    }

    /** One of the list, with its key. */
    open(account: AccountNames): MovedAccount {
        const { id: _id, ...moved } = this.#open(account);
        return moved;
    }

    /** Stores accounts of another panel. Accounts that exist here keep their keys. */
    async adopt(tx: Transaction, accounts: readonly MovedAccount[]): Promise<void> {
        for (const account of accounts) {
            await this.#insert(tx, account);
        }
    }

    /** Finds an account, and creates it with a new key at the first time. */
    async get(directory: string, email: string | null, eabKeyId: string | null): Promise<AcmeAccount> {
        const names = { directory, email, eabKeyId };
        if (this.#rowOf(names) === undefined) {
            const account = {
                ...names,
                key: newAccountKey(),
                url: null,
                createdAt: new Date(this.#clock.now()).toISOString()
            };
            await this.#db.write((tx) => this.#insert(tx, account));
        }
        const { id, key, url } = this.#open(names);
        return { id, key, url };
    }

    /** Stores the URL that the CA gave the account. */
    registered(id: number, url: string): Promise<void> {
        return this.#db.write(async (tx) => {
            await tx.em.nativeUpdate(AcmeAccountEntity, { id }, { url });
        });
    }

    #rowOf({ directory, email, eabKeyId }: AccountNames): Row | undefined {
        return this.#find.get(directory, email ?? '', eabKeyId ?? '');
    }

    /** Stores an account unless it exists: of two orders that create it at the same time, the first key wins. */
    async #insert(
        tx: Transaction,
        { directory, email, eabKeyId, key, url, createdAt }: MovedAccount
    ): Promise<void> {
        await tx.em.execute(
            'insert into acme_account (directory, email, eab_key_id, sealed_key, url, created_at) values (?, ?, ?, ?, ?, ?) on conflict do nothing',
            [directory, email ?? '', eabKeyId ?? '', this.#keyring.seal(label, key), url ?? '', createdAt],
            'run'
        );
    }

    #open(names: AccountNames): MovedAccount & AcmeAccount {
        const row = this.#rowOf(names);
        if (row === undefined) {
            throw new Error('An ACME account that was written cannot be read');
        }
        return {
            id: row.id,
            ...names,
            key: this.#keyring.open(label, row.sealedKey),
            url: row.url === '' ? null : row.url,
            createdAt: row.createdAt
        };
    }
}
