/** A certificate as it is read. */
import type { Draft } from '../../engine/change.ts';
import type { CertificateRow } from './entities.ts';
import type { CertificateView } from './schema.ts';
import type { DatabaseCertificateStore } from './store.ts';

/** The view of a certificate. */
export function viewOf(
    row: CertificateRow,
    usedBy: readonly number[],
    store: Pick<DatabaseCertificateStore, 'openEab'>
): CertificateView {
    const issued = row.fingerprint !== '';
    const eab = store.openEab(row);
    return {
        id: row.id,
        name: row.name,
        source: row.source as CertificateView['source'],
        domains: JSON.parse(row.domains) as string[],
        issuer: issued ? row.issuer : null,
        serial: issued ? row.serial : null,
        notBefore: issued ? row.notBefore : null,
        notAfter: issued ? row.notAfter : null,
        fingerprint256: issued ? row.fingerprint : null,
        dnsProviderId: row.dnsProviderId,
        acme:
            row.directory === null
                ? null
                : {
                      directory: row.directory,
                      email: row.email,
                      eab: eab === null ? null : { keyId: eab.keyId }
                  },
        autoRenew: row.autoRenew,
        usedBy,
        lastError:
            row.lastError === null ? null : (JSON.parse(row.lastError) as CertificateView['lastError']),
        nextAttemptAt: row.nextAttemptAt === null ? null : new Date(row.nextAttemptAt).toISOString(),
        owner: row.owner,
        version: row.version,
        createdAt: row.createdAt,
        updatedAt: row.updatedAt
    };
}

/** Every certificate that hosts name, with those hosts. */
export function usersOfAll(draft: Draft): ReadonlyMap<number, readonly number[]> {
    const users = new Map<number, number[]>();
    for (const [id, { site }] of draft.hosts) {
        if (site.certificateId !== null) {
            users.set(site.certificateId, [...(users.get(site.certificateId) ?? []), id]);
        }
    }
    return users;
}

/** The hosts that name it. */
export function usersOf(draft: Draft, id: number): readonly number[] {
    return usersOfAll(draft).get(id) ?? [];
}
