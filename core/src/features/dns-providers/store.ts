/** DNS providers in the database, as of the last commit. */
import type { Database, Statement, Transaction } from '../../platform/database/database.ts';
import { fail } from '../../platform/errors.ts';
import type { Keyring } from '../../platform/keys/keyring.ts';
import { DnsChallengeEntity, DnsProviderEntity, type DnsProviderRow } from './entities.ts';

const label = 'dns-providers';

/** Credentials of a provider, by field name. */
export type Credentials = Readonly<Record<string, string>>;

const columns =
    'id, name, type, sealed_credentials as sealedCredentials, is_default as isDefault, version, created_at as createdAt, updated_at as updatedAt';

type Raw = Omit<DnsProviderRow, 'isDefault'> & { readonly isDefault: number };

/** The tables of providers and of records that are not known to be gone. */
export class DnsProviderStore {
    readonly #db: Database;
    readonly #keyring: Pick<Keyring, 'seal' | 'open'>;
    readonly #all: Statement<[], Raw>;
    readonly #one: Statement<[number], Raw>;
    readonly #marked: Statement<[], Raw>;
    readonly #left: Statement<[number], { id: number; sealed: string; createdAt: string }>;

    constructor(db: Database, keyring: Pick<Keyring, 'seal' | 'open'>) {
        this.#db = db;
        this.#keyring = keyring;
        this.#all = db.prepare<[], Raw>(`select ${columns} from dns_provider order by id`);
        this.#one = db.prepare<[number], Raw>(`select ${columns} from dns_provider where id = ?`);
        this.#marked = db.prepare<[], Raw>(`select ${columns} from dns_provider where is_default = 1`);
        this.#left = db.prepare<[number], { id: number; sealed: string; createdAt: string }>(
            'select id, sealed_record as sealed, created_at as createdAt from dns_challenge where provider_id = ? order by id'
        );
    }

    list(): readonly DnsProviderRow[] {
        return this.#all.all().map(rowOf);
    }

    /** @throws NOT_FOUND 40400 */
    get(id: number): DnsProviderRow {
        const raw = this.#one.get(id);
        if (raw === undefined) {
            throw fail.NOT_FOUND(null, { message: `There is no DNS provider ${id}` });
        }
        return rowOf(raw);
    }

    default(): DnsProviderRow | null {
        const raw = this.#marked.get();
        return raw === undefined ? null : rowOf(raw);
    }

    /** The version as the transaction sees it; null when there is none. */
    async versionIn(tx: Transaction, id: number): Promise<number | null> {
        const [row] = await tx.em.execute<{ version: number }[]>(
            'select version from dns_provider where id = ?',
            [id]
        );
        return row?.version ?? null;
    }

    /** Another provider has this name. */
    async nameTakenIn(tx: Transaction, name: string, id: number | null): Promise<boolean> {
        const rows = await tx.em.execute<unknown[]>('select 1 from dns_provider where name = ? and id <> ?', [
            name,
            id ?? 0
        ]);
        return rows.length > 0;
    }

    async insert(tx: Transaction, row: Omit<DnsProviderRow, 'id'>): Promise<number> {
        return Number(await tx.em.insert(DnsProviderEntity, row as never)); // the database gives the id
    }

    async update(tx: Transaction, { id, ...row }: DnsProviderRow): Promise<void> {
        await tx.em.nativeUpdate(DnsProviderEntity, { id }, row);
    }

    /** Takes the mark away from whichever provider has it, but for this one. */
    async clearDefault(tx: Transaction, id: number | null, now: string): Promise<void> {
        await tx.em.execute(
            'update dns_provider set is_default = 0, version = version + 1, updated_at = ? where is_default = 1 and id <> ?',
            [now, id ?? 0],
            'run'
        );
    }

    async remove(tx: Transaction, id: number): Promise<void> {
        await tx.em.nativeDelete(DnsProviderEntity, { id });
    }

    seal(credentials: Credentials): string {
        return this.#keyring.seal(label, JSON.stringify(credentials));
    }

    open({ sealedCredentials }: Pick<DnsProviderRow, 'sealedCredentials'>): Credentials {
        return JSON.parse(this.#keyring.open(label, sealedCredentials)) as Credentials;
    }

    /** Records that are not known to be gone. */
    records(
        providerId: number
    ): readonly { readonly id: number; readonly record: unknown; readonly createdAt: string }[] {
        return this.#left.all(providerId).map(({ id, sealed, createdAt }) => ({
            id,
            createdAt,
            record: JSON.parse(this.#keyring.open(label, sealed)) as unknown
        }));
    }

    addRecord(providerId: number, record: unknown, now: string): Promise<number> {
        return this.#db.write(async (tx) =>
            Number(
                await tx.em.insert(DnsChallengeEntity, {
                    providerId,
                    sealedRecord: this.#keyring.seal(label, JSON.stringify(record)),
                    createdAt: now
                } as never) // the database gives the id
            )
        );
    }

    removeRecord(id: number): Promise<void> {
        return this.#db.write(async (tx) => {
            await tx.em.nativeDelete(DnsChallengeEntity, { id });
        });
    }
}

function rowOf(raw: Raw): DnsProviderRow {
    return { ...raw, isDefault: raw.isDefault === 1 };
}
