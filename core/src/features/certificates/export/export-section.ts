/** The certificates of a document of the whole panel, what is only ordered among them. Without a passphrase their keys are missing, and nothing but an order can come of them. */
import type { Plan } from '../../../engine/change.ts';
import type { Ground, Incoming, Reading, Section } from '../../../engine/section.ts';
import type { SiteCertificate } from '../../../engine/site.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Transaction } from '../../../platform/database/database.ts';
import { fail, type Invalid, invalid } from '../../../platform/errors.ts';
import type { AcmeAccounts, MovedAccount } from '../acme/accounts.ts';
import { type DatabaseCertificateStore, siteCertificate } from '../store.ts';
import { putAccounts, readAccounts } from './accounts.ts';
import { type Change, numbersFor, planCertificates } from './plan.ts';
import { type Read, readCertificates, writtenOf } from './reading.ts';

/** What {@link createCertificateSection} works with. */
export interface CertificateSectionOptions {
    readonly store: DatabaseCertificateStore;
    readonly accounts: Pick<AcmeAccounts, 'list' | 'open' | 'adopt'>;
    readonly clock: Clock;
    /** DNS providers as they are. */
    providers(): readonly { readonly id: number; readonly name: string }[];
    /** Whether names of a certificate hold for a name of a host. */
    covers(names: readonly string[], name: string): boolean;
    /** Called when rows have come: one of them may be due. */
    changed(): void;
}

/** Makes the section `certificates` of an export document. */
export function createCertificateSection(options: CertificateSectionOptions): Section {
    const { store, accounts, clock } = options;
    return {
        name: 'certificates',
        permissions: {
            read: 'certificates:read',
            write: 'certificates:write',
            secrets: 'certificates:secrets'
        },
        collect(sink) {
            putAccounts(sink, accounts);
            const names = new Map(options.providers().map(({ id, name }) => [id, name]));
            return store.all().map((row) => {
                const eab = store.openEab(row);
                if (sink !== null && row.fingerprint !== '') {
                    sink.put(`${row.id}/key`, store.open(row));
                }
                if (sink !== null && eab !== null) {
                    sink.put(`${row.id}/eab`, JSON.stringify(eab));
                }
                return writtenOf(row, names.get(row.dnsProviderId ?? 0) ?? null, eab);
            });
        },
        async read(part, reading) {
            return createIncoming(
                await readCertificates(part, reading, clock.now()),
                readAccounts(reading),
                reading,
                options
            );
        }
    };
}

function createIncoming(
    read: readonly Read[],
    moved: readonly MovedAccount[],
    { path, dryRun, secrets }: Reading,
    options: CertificateSectionOptions
): Incoming {
    const { store, accounts, clock } = options;
    const ids = numbersFor(read, store, dryRun);
    return {
        plan(ground) {
            const { entries, changes, numbers } = planCertificates(read, ids, ground, {
                store,
                accounts: secrets === null ? accounts.list() : null,
                now: clock.now(),
                providers: options.providers()
            });
            ground.certificateIds = numbers;
            ground.certificates = certificatesAfter(ground, changes);
            checkPresent(ground, changes);
            checkUsers(ground, changes, path, options);
            return {
                entries,
                engine: {
                    certificates: changes
                        .filter(
                            ({ before, after }) => (after?.fingerprint ?? '') !== (before?.fingerprint ?? '')
                        )
                        .map(plannedOf)
                },
                async commit(tx) {
                    await accounts.adopt(tx, moved);
                    await write(tx, changes, store);
                },
                done: () => options.changed()
            };
        }
    };
}

function plannedOf({ before, after, key }: Change): NonNullable<Plan['certificates']>[number] {
    const id = (after ?? before)?.id ?? 0;
    return after === null
        ? { id, certificate: null }
        : {
              id,
              certificate: siteCertificate(after),
              ...(key === null ? {} : { pem: { certificate: after.chain, key } })
          };
}

function certificatesAfter(
    { draft }: Ground,
    changes: readonly Change[]
): ReadonlyMap<number, SiteCertificate> {
    const certificates = new Map(draft.certificates);
    for (const { before, after } of changes) {
        if (after === null) {
            certificates.delete(before?.id ?? 0);
        } else if (after.fingerprint !== '') {
            certificates.set(after.id, siteCertificate(after));
        }
    }
    return certificates;
}

/** The certificates that the import changes must still be those of the draft: a change that was queued before this one would be lost. @throws VERSION_STALE */
function checkPresent({ draft }: Ground, changes: readonly Change[]): void {
    for (const { before } of changes) {
        if (
            before !== null &&
            (draft.certificates.get(before.id)?.fingerprint ?? '') !== before.fingerprint
        ) {
            throw fail.VERSION_STALE({ version: before.version });
        }
    }
}

/** Hosts that stay as they are keep a certificate that covers them. Those of the document are looked at by their own section. @throws VALIDATION_FAILED, IN_USE */
function checkUsers(
    { draft, sections, mode }: Ground,
    changes: readonly Change[],
    path: string,
    { covers }: CertificateSectionOptions
): void {
    if (sections.has('hosts') && mode === 'replace') {
        return;
    }
    const touched = new Map(
        changes.flatMap((change) => (change.before === null ? [] : [[change.before.id, change] as const]))
    );
    const faults: Invalid[] = [];
    for (const [id, { site }] of draft.hosts) {
        const change = site.certificateId === null ? undefined : touched.get(site.certificateId);
        if (change?.after === null) {
            throw fail.IN_USE(
                { by: [id] },
                {
                    message: `The certificate ${change.before?.name ?? ''} is not in the document, and host ${id} uses it`
                }
            );
        }
        const names = change === undefined ? null : (JSON.parse(change.after.domains) as string[]);
        const missing =
            names === null ? [] : [site.domain, ...site.aliases].filter((name) => !covers(names, name));
        if (missing.length > 0) {
            faults.push({
                path,
                message: `The certificate ${change?.after?.name ?? ''} of the document is not valid for ${missing.join(', ')} of host ${id}, which uses it`
            });
        }
    }
    if (faults.length > 0) {
        throw invalid(...faults);
    }
}

async function write(
    tx: Transaction,
    changes: readonly Change[],
    store: DatabaseCertificateStore
): Promise<void> {
    for (const { before, after, anew } of changes) {
        if (before !== null && (await store.versionIn(tx, before.id)) !== before.version) {
            throw fail.VERSION_STALE({ version: before.version });
        }
        if (after === null) {
            await store.remove(tx, before?.id ?? 0);
        } else {
            await store.write(tx, after);
            if (anew !== null) {
                await store.note(tx, after.id, anew);
            }
        }
    }
}
