/** DNS providers in the database, as of the last commit. */
import type { Database, Transaction } from '../../platform/database/database.ts';
import { fail } from '../../platform/errors.ts';
import type { Keyring } from '../../platform/keyring.ts';
import { DnsChallengeEntity, DnsProviderEntity, type DnsProviderRow } from './entities.ts';

const label = 'dns-providers';

export type Credentials = Readonly<Record<string, string>>;

export interface Store {
    list(): readonly DnsProviderRow[];
    /** @throws NOT_FOUND 40400 */
    get(id: number): DnsProviderRow;
    default(): DnsProviderRow | null;
    /** The version as the transaction sees it; null when there is none. */
    versionIn(tx: Transaction, id: number): Promise<number | null>;
    /** Another provider has this name. */
    nameTakenIn(tx: Transaction, name: string, id: number | null): Promise<boolean>;
    insert(tx: Transaction, row: Omit<DnsProviderRow, 'id'>): Promise<number>;
    update(tx: Transaction, row: DnsProviderRow): Promise<void>;
    /** Takes the mark away from whichever provider has it, but for this one. */
    clearDefault(tx: Transaction, id: number | null, now: string): Promise<void>;
    remove(tx: Transaction, id: number): Promise<void>;
    seal(credentials: Credentials): string;
    open(row: Pick<DnsProviderRow, 'sealedCredentials'>): Credentials;
    /** Records that are not known to be gone. */
    records(
        providerId: number
    ): readonly { readonly id: number; readonly record: unknown; readonly createdAt: string }[];
    addRecord(providerId: number, record: unknown, now: string): Promise<number>;
    removeRecord(id: number): Promise<void>;
}

const columns =
    'id, name, type, sealed_credentials as sealedCredentials, is_default as isDefault, version, created_at as createdAt, updated_at as updatedAt';

export function createDnsProviderStore(db: Database, keyring: Pick<Keyring, 'seal' | 'open'>): Store {
    type Raw = Omit<DnsProviderRow, 'isDefault'> & { readonly isDefault: number };
    const all = db.prepare<[], Raw>(`select ${columns} from dns_provider order by id`);
    const one = db.prepare<[number], Raw>(`select ${columns} from dns_provider where id = ?`);
    const marked = db.prepare<[], Raw>(`select ${columns} from dns_provider where is_default = 1`);
    const left = db.prepare<[number], { id: number; sealed: string; createdAt: string }>(
        'select id, sealed_record as sealed, created_at as createdAt from dns_challenge where provider_id = ? order by id'
    );
    const rowOf = (raw: Raw): DnsProviderRow => ({ ...raw, isDefault: raw.isDefault === 1 });
    return {
        list: () => all.all().map(rowOf),
        get(id) {
            const raw = one.get(id);
            if (raw === undefined) {
                throw fail.NOT_FOUND(null, { message: `There is no DNS provider ${id}` });
            }
            return rowOf(raw);
        },
        default() {
            const raw = marked.get();
            return raw === undefined ? null : rowOf(raw);
        },
        async versionIn(tx, id) {
            const [row] = await tx.em.execute<{ version: number }[]>(
                'select version from dns_provider where id = ?',
                [id]
            );
            return row?.version ?? null;
        },
        async nameTakenIn(tx, name, id) {
            const rows = await tx.em.execute<unknown[]>(
                'select 1 from dns_provider where name = ? and id <> ?',
                [name, id ?? 0]
            );
            return rows.length > 0;
        },
        async insert(tx, row) {
            return Number(await tx.em.insert(DnsProviderEntity, row as never));
        },
        async update(tx, { id, ...row }) {
            await tx.em.nativeUpdate(DnsProviderEntity, { id }, row);
        },
        async clearDefault(tx, id, now) {
            await tx.em.execute(
                'update dns_provider set is_default = 0, version = version + 1, updated_at = ? where is_default = 1 and id <> ?',
                [now, id ?? 0],
                'run'
            );
        },
        async remove(tx, id) {
            await tx.em.nativeDelete(DnsProviderEntity, { id });
        },
        seal: (credentials) => keyring.seal(label, JSON.stringify(credentials)),
        open: ({ sealedCredentials }) => JSON.parse(keyring.open(label, sealedCredentials)) as Credentials,
        records: (providerId) =>
            left.all(providerId).map(({ id, sealed, createdAt }) => ({
                id,
                createdAt,
                record: JSON.parse(keyring.open(label, sealed)) as unknown
            })),
        addRecord: (providerId, record, now) =>
            db.write(async (tx) =>
                Number(
                    await tx.em.insert(DnsChallengeEntity, {
                        providerId,
                        sealedRecord: keyring.seal(label, JSON.stringify(record)),
                        createdAt: now
                    } as never)
                )
            ),
        removeRecord: (id) =>
            db.write(async (tx) => {
                await tx.em.nativeDelete(DnsChallengeEntity, { id });
            })
    };
}
