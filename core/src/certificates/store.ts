/** Certificates in the database, as of the last commit. */
import type { Database, Transaction } from '../db/database.ts';
import type { CertificateStore } from '../engine/change.ts';
import type { SiteCertificate } from '../engine/site.ts';
import { fail } from '../errors.ts';
import type { Keyring } from '../keyring.ts';
import { CertificateEntity, type CertificateRow } from './entities.ts';

/** Label under which keys are sealed. */
const label = 'certificates';

export interface Store extends CertificateStore {
    list(): readonly CertificateRow[];
    /** @throws NOT_FOUND 40400 */
    get(id: number): CertificateRow;
    /** A number that no certificate has or had; each call another one. */
    nextId(): number;
    /** The version as the transaction sees it; null when there is none. */
    versionIn(tx: Transaction, id: number): Promise<number | null>;
    write(tx: Transaction, row: CertificateRow): Promise<void>;
    remove(tx: Transaction, id: number): Promise<void>;
    seal(key: string): string;
    open(row: CertificateRow): string;
}

const columns = `id, name, source, domains, issuer, serial, not_before as notBefore, not_after as notAfter, fingerprint, chain, sealed_key as sealedKey, version, created_at as createdAt, updated_at as updatedAt`;

export function createCertificateStore(db: Database, keyring: Pick<Keyring, 'seal' | 'open'>): Store {
    const all = db.prepare<[], CertificateRow>(`select ${columns} from certificate order by id`);
    const one = db.prepare<[number], CertificateRow>(`select ${columns} from certificate where id = ?`);
    const highest = db.prepare<[], { seq: number }>(`select seq from sqlite_sequence where name = 'certificate'`);
    let given = 0;
    const get = (id: number): CertificateRow => {
        const row = one.get(id);
        if (row === undefined) {
            throw fail.NOT_FOUND(null, { message: `There is no certificate ${id}` });
        }
        return row;
    };
    const open = (row: CertificateRow): string => keyring.open(label, row.sealedKey);
    return {
        list: () => all.all(),
        get,
        nextId() {
            given = Math.max(given, highest.get()?.seq ?? 0) + 1;
            return given;
        },
        async versionIn(tx, id) {
            const [row] = await tx.em.execute<{ version: number }[]>('select version from certificate where id = ?', [id]);
            return row?.version ?? null;
        },
        async write(tx, row) {
            await tx.em.upsert(CertificateEntity, row, { onConflictFields: ['id'], disableIdentityMap: true });
        },
        async remove(tx, id) {
            await tx.em.nativeDelete(CertificateEntity, { id });
        },
        seal: (key) => keyring.seal(label, key),
        open,
        load: async () => all.all().map(siteCertificate),
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
