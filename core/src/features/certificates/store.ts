/** Certificates in the database, as of the last commit. */
import type { CertificateStore } from '../../engine/change.ts';
import type { SiteCertificate } from '../../engine/site.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { fail } from '../../platform/errors.ts';
import type { Keyring } from '../../platform/keyring.ts';
import type { ExternalAccount } from './acme/jws.ts';
import { CertificateEntity, type CertificateRow } from './entities.ts';

/** Label under which keys are sealed. */
const label = 'certificates';

/** What an attempt leaves on a row, beside what it is. */
export type Notes = Partial<Pick<CertificateRow, 'lastError' | 'nextAttemptAt' | 'failures' | 'warnedDays'>>;

export interface Store extends CertificateStore {
    /** Those that there are; not what is only ordered. */
    list(): readonly CertificateRow[];
    /** Those that are only ordered too. */
    all(): readonly CertificateRow[];
    /** Ids of those that a provider of DNS records works for. */
    usersOf(dnsProviderId: number): readonly number[];
    usersIn(tx: Transaction, dnsProviderId: number): Promise<readonly number[]>;
    /** @throws NOT_FOUND 40400 */
    get(id: number): CertificateRow;
    /** A number that no certificate has or had; each call another one. */
    nextId(): number;
    /** The version as the transaction sees it; null when there is none. */
    versionIn(tx: Transaction, id: number): Promise<number | null>;
    /** Writes a row; of one that is there, everything but what `note` writes. */
    write(tx: Transaction, row: CertificateRow): Promise<void>;
    note(tx: Transaction, id: number, notes: Notes): Promise<void>;
    remove(tx: Transaction, id: number): Promise<void>;
    seal(key: string): string;
    open(row: CertificateRow): string;
    sealEab(eab: ExternalAccount | null): string | null;
    openEab(row: Pick<CertificateRow, 'sealedEab'>): ExternalAccount | null;
}

const columns = `id, name, source, domains, issuer, serial, not_before as notBefore, not_after as notAfter, fingerprint, chain, sealed_key as sealedKey, dns_provider_id as dnsProviderId, directory, email, sealed_eab as sealedEab, auto_renew as autoRenew, last_error as lastError, next_attempt_at as nextAttemptAt, failures, warned_days as warnedDays, owner, version, created_at as createdAt, updated_at as updatedAt`;

export function createCertificateStore(db: Database, keyring: Pick<Keyring, 'seal' | 'open'>): Store {
    type Raw = Omit<CertificateRow, 'autoRenew'> & { readonly autoRenew: number };
    const all = db.prepare<[], Raw>(`select ${columns} from certificate order by id`);
    const issued = db.prepare<[], Raw>(
        `select ${columns} from certificate where fingerprint <> '' order by id`
    );
    const one = db.prepare<[number], Raw>(`select ${columns} from certificate where id = ?`);
    const users = db.prepare<[number], { id: number }>(
        'select id from certificate where dns_provider_id = ? order by id'
    );
    const rowOf = (raw: Raw): CertificateRow => ({ ...raw, autoRenew: raw.autoRenew === 1 });
    const highest = db.prepare<[], { seq: number }>(
        `select seq from sqlite_sequence where name = 'certificate'`
    );
    let given = 0;
    const get = (id: number): CertificateRow => {
        const row = one.get(id);
        if (row === undefined) {
            throw fail.NOT_FOUND(null, { message: `There is no certificate ${id}` });
        }
        return rowOf(row);
    };
    const open = (row: CertificateRow): string => keyring.open(label, row.sealedKey);
    return {
        list: () => issued.all().map(rowOf),
        all: () => all.all().map(rowOf),
        get,
        usersOf: (dnsProviderId) => users.all(dnsProviderId).map(({ id }) => id),
        async usersIn(tx, dnsProviderId) {
            return (
                await tx.em.execute<{ id: number }[]>(
                    'select id from certificate where dns_provider_id = ? order by id',
                    [dnsProviderId]
                )
            ).map(({ id }) => id);
        },
        nextId() {
            given = Math.max(given, highest.get()?.seq ?? 0) + 1;
            return given;
        },
        async versionIn(tx, id) {
            const [row] = await tx.em.execute<{ version: number }[]>(
                'select version from certificate where id = ?',
                [id]
            );
            return row?.version ?? null;
        },
        async write(tx, row) {
            await tx.em.upsert(CertificateEntity, row, {
                onConflictFields: ['id'],
                onConflictExcludeFields: ['lastError', 'nextAttemptAt', 'failures', 'warnedDays'],
                disableIdentityMap: true
            });
        },
        async note(tx, id, notes) {
            await tx.em.nativeUpdate(CertificateEntity, { id }, notes);
        },
        async remove(tx, id) {
            await tx.em.nativeDelete(CertificateEntity, { id });
        },
        seal: (key) => keyring.seal(label, key),
        open,
        sealEab: (eab) => (eab === null ? null : keyring.seal(label, JSON.stringify(eab))),
        openEab: ({ sealedEab }) =>
            sealedEab === null ? null : (JSON.parse(keyring.open(label, sealedEab)) as ExternalAccount),
        load: async () => issued.all().map((raw) => siteCertificate(rowOf(raw))),
        async pem(id) {
            const row = get(id);
            return { certificate: row.chain, key: open(row) };
        }
    };
}

/** A certificate as the engine knows it. */
export function siteCertificate(row: CertificateRow): SiteCertificate {
    return { id: row.id, fingerprint: row.fingerprint, names: JSON.parse(row.domains) as string[] };
}
