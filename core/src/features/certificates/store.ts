/** Certificates in the database, as of the last commit. */
import type { CertificateStore } from '../../engine/change.ts';
import type { SiteCertificate } from '../../engine/site.ts';
import type { Database, Statement, Transaction } from '../../platform/database/database.ts';
import { readRow } from '../../platform/database/rows.ts';
import { fail } from '../../platform/errors.ts';
import type { Keyring } from '../../platform/keys/keyring.ts';
import type { ExternalAccount } from './acme/jws.ts';
import { CertificateEntity, type CertificateRow } from './entities.ts';

/** Label under which keys are sealed. */
const label = 'certificates';

/** What an attempt leaves on a row, beside what it is. */
export type Notes = Partial<Pick<CertificateRow, 'lastError' | 'nextAttemptAt' | 'failures' | 'warnedDays'>>;

const columns = `id, name, source, domains, issuer, serial, not_before as notBefore, not_after as notAfter, fingerprint, chain, sealed_key as sealedKey, dns_provider_id as dnsProviderId, directory, email, sealed_eab as sealedEab, auto_renew as autoRenew, last_error as lastError, next_attempt_at as nextAttemptAt, failures, warned_days as warnedDays, owner, version, created_at as createdAt, updated_at as updatedAt`;

type Raw = Omit<CertificateRow, 'autoRenew'> & { readonly autoRenew: number };

/** The table of certificates. Keys and account bindings are sealed in it. */
export class DatabaseCertificateStore implements CertificateStore {
    readonly #keyring: Pick<Keyring, 'seal' | 'open'>;
    readonly #all: Statement<[], Raw>;
    readonly #issued: Statement<[], Raw>;
    readonly #one: Statement<[number], Raw>;
    readonly #users: Statement<[number], { id: number }>;
    readonly #highest: Statement<[], { seq: number }>;
    #given = 0;

    constructor(db: Database, keyring: Pick<Keyring, 'seal' | 'open'>) {
        this.#keyring = keyring;
        this.#all = db.prepare<[], Raw>(`select ${columns} from certificate order by id`);
        this.#issued = db.prepare<[], Raw>(
            `select ${columns} from certificate where fingerprint <> '' order by id`
        );
        this.#one = db.prepare<[number], Raw>(`select ${columns} from certificate where id = ?`);
        this.#users = db.prepare<[number], { id: number }>(
            'select id from certificate where dns_provider_id = ? order by id'
        );
        this.#highest = db.prepare<[], { seq: number }>(
            `select seq from sqlite_sequence where name = 'certificate'`
        );
    }

    /** Those that there are; not what is only ordered. */
    list(): readonly CertificateRow[] {
        return this.#issued.all().map(rowOf);
    }

    /** Those that are only ordered too. */
    all(): readonly CertificateRow[] {
        return this.#all.all().map(rowOf);
    }

    /** Ids of those that a provider of DNS records works for. */
    usersOf(dnsProviderId: number): readonly number[] {
        return this.#users.all(dnsProviderId).map(({ id }) => id);
    }

    async usersIn(tx: Transaction, dnsProviderId: number): Promise<readonly number[]> {
        return (
            await tx.em.execute<{ id: number }[]>(
                'select id from certificate where dns_provider_id = ? order by id',
                [dnsProviderId]
            )
        ).map(({ id }) => id);
    }

    /** A number that no certificate has or had; each call another one. */
    nextId(): number {
        this.#given = Math.max(this.#given, this.#highest.get()?.seq ?? 0) + 1;
        return this.#given;
    }

    /** The version as the transaction sees it; null when there is none. */
    async versionIn(tx: Transaction, id: number): Promise<number | null> {
        const [row] = await tx.em.execute<{ version: number }[]>(
            'select version from certificate where id = ?',
            [id]
        );
        return row?.version ?? null;
    }

    /** Writes a row; of one that is there, everything but what `note` writes. */
    async write(tx: Transaction, row: CertificateRow): Promise<void> {
        await tx.em.upsert(CertificateEntity, row, {
            onConflictFields: ['id'],
            onConflictExcludeFields: ['lastError', 'nextAttemptAt', 'failures', 'warnedDays'],
            disableIdentityMap: true
        });
    }

    async note(tx: Transaction, id: number, notes: Notes): Promise<void> {
        await tx.em.nativeUpdate(CertificateEntity, { id }, notes);
    }

    async remove(tx: Transaction, id: number): Promise<void> {
        await tx.em.nativeDelete(CertificateEntity, { id });
    }

    seal(key: string): string {
        return this.#keyring.seal(label, key);
    }

    sealEab(eab: ExternalAccount | null): string | null {
        return eab === null ? null : this.#keyring.seal(label, JSON.stringify(eab));
    }

    openEab({ sealedEab }: Pick<CertificateRow, 'sealedEab'>): ExternalAccount | null {
        return sealedEab === null
            ? null
            : (JSON.parse(this.#keyring.open(label, sealedEab)) as ExternalAccount);
    }

    async load(): Promise<SiteCertificate[]> {
        return this.#issued.all().map((raw) => siteCertificate(rowOf(raw)));
    }

    async pem(id: number): Promise<{ certificate: string; key: string }> {
        const row = this.get(id);
        return { certificate: row.chain, key: this.open(row) };
    }

    /** @throws NOT_FOUND 40400 */
    get(id: number): CertificateRow {
        const row = this.#one.get(id);
        if (row === undefined) {
            throw fail.NOT_FOUND(null, { message: `There is no certificate ${id}` });
        }
        return rowOf(row);
    }

    open(row: CertificateRow): string {
        return this.#keyring.open(label, row.sealedKey);
    }
}

function rowOf(raw: Raw): CertificateRow {
    return { ...raw, autoRenew: raw.autoRenew === 1 };
}

/** A certificate as the engine knows it. */
export function siteCertificate(row: CertificateRow): SiteCertificate {
    const names = readRow('certificate', row.id, () => JSON.parse(row.domains) as string[]);
    return { id: row.id, fingerprint: row.fingerprint, names };
}
