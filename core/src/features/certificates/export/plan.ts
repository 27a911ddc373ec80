/** What becomes of each certificate of a document, against the rows as they are. */
import { isDeepStrictEqual } from 'node:util';

import type { Entry, Ground } from '../../../engine/section.ts';
import { fail } from '../../../platform/errors.ts';
import type { AccountNames } from '../acme/accounts.ts';
import { renewalTime } from '../acme/pace.ts';
import type { CertificateRow } from '../entities.ts';
import { stored } from '../placement/placement.ts';
import type { DatabaseCertificateStore, Notes } from '../store.ts';
import type { Read, Written } from './reading.ts';

/** Where a certificate of a document comes to. */
export interface Surroundings {
    readonly store: DatabaseCertificateStore;
    /** The accounts at CAs that there will be. Null: the document has secrets, and so whatever its panel had. */
    readonly accounts: readonly AccountNames[] | null;
    readonly now: number;
    /** DNS providers as they are. */
    readonly providers: readonly { readonly id: number; readonly name: string }[];
}

/** One row, from what it is to what it will be. */
export interface Change {
    /** Null: it is new. */
    readonly before: CertificateRow | null;
    /** Null: it goes. */
    readonly after: CertificateRow | null;
    /** PEM, where another certificate comes. */
    readonly key: string | null;
    /** What begins anew of one that is here. */
    readonly anew: Notes | null;
}

/** Numbers beyond are not kept: each one up to it is used up. */
const mostKeptNumbers = 100_000;

/** Nothing was attempted here yet. */
const untried = { lastError: null, failures: 0, warnedDays: null } as const;
const notIssued = {
    issuer: '',
    serial: '',
    notBefore: '',
    notAfter: '',
    fingerprint: '',
    chain: '',
    sealedKey: ''
} as const;

const isIssued = ({ written }: Read): boolean => written.fingerprint256 !== null;
/** Whether it can come, also where it is not here yet. */
const canCome = (one: Read): boolean => one.parsed !== null || !isIssued(one);

/**
 * The rows that the document's certificates are: by fingerprint, else by number and name, else by what is ordered. An order never takes
 * the place of what was issued for other names.
 */
export function recognise(
    read: readonly Read[],
    rows: readonly CertificateRow[]
): ReadonlyMap<Read, CertificateRow> {
    const found = new Map<Read, CertificateRow>();
    const taken = new Set<number>();
    const take = (one: Read, row: CertificateRow | undefined): void => {
        if (row !== undefined && !found.has(one) && !taken.has(row.id)) {
            found.set(one, row);
            taken.add(row.id);
        }
    };
    const byFingerprint = new Map(rows.map((row) => [row.fingerprint, row]));
    read.filter(isIssued).forEach((one) => take(one, byFingerprint.get(one.written.fingerprint256 ?? '')));
    const coming = read.filter(canCome);
    const byNumber = new Map(rows.map((row) => [row.id, row]));
    for (const one of coming) {
        const row = byNumber.get(one.written.id);
        take(
            one,
            row !== undefined &&
                row.name === one.written.name &&
                (isIssued(one) || mayBeOrder(row, one.written))
                ? row
                : undefined
        );
    }
    const byOrder = new Map(
        rows
            .filter((row) => row.source === 'acme' && !taken.has(row.id))
            .map((row) => [orderOf(row.name, row.domains, row.directory), row])
    );
    for (const one of coming) {
        const row = byOrder.get(
            orderOf(
                one.written.name,
                JSON.stringify(one.written.domains),
                one.written.acme?.directory ?? null
            )
        );
        take(one, isIssued(one) && row?.fingerprint !== '' ? undefined : row);
    }
    return found;
}

function mayBeOrder(row: CertificateRow, { domains }: Written): boolean {
    return row.source === 'acme' && (row.fingerprint === '' || row.domains === JSON.stringify(domains));
}

const orderOf = (...parts: readonly (string | null)[]): string => JSON.stringify(parts);

/** The ids of new certificates: the document's, where no certificate has or had it, else a new one. */
export function numbersFor(
    read: readonly Read[],
    store: DatabaseCertificateStore,
    dryRun: boolean
): ReadonlyMap<Read, number> {
    const rows = store.all();
    const known = recognise(read, rows);
    const wanting = read.filter((one) => canCome(one) && !known.has(one));
    const numbers = new Map<Read, number>();
    if (wanting.length === 0) {
        return numbers;
    }
    let last = dryRun ? Math.max(0, ...rows.map(({ id }) => id)) : 0;
    const next = (): number => {
        last = dryRun ? last + 1 : store.nextId();
        return last;
    };
    const first = next();
    const kept = wanting.filter(({ written }) => written.id >= first && written.id < first + mostKeptNumbers);
    const highest = Math.max(first, ...kept.map(({ written }) => written.id));
    const free = new Set([first]);
    while (last < highest) {
        free.add(next());
    }
    for (const one of kept) {
        numbers.set(one, one.written.id);
        free.delete(one.written.id);
    }
    const left = [...free].reverse();
    for (const one of wanting.filter((each) => !numbers.has(each))) {
        numbers.set(one, left.pop() ?? next());
    }
    return numbers;
}

/**
 * The whole section.
 * @param ids - of those that are new
 * @throws VERSION_STALE where one that was here is gone since the document was read
 */
export function planCertificates(
    read: readonly Read[],
    ids: ReadonlyMap<Read, number>,
    ground: Ground,
    around: Surroundings
): { readonly entries: Entry[]; readonly changes: Change[]; readonly numbers: ReadonlyMap<number, number> } {
    const { store, now } = around;
    const rows = store.all();
    const known = recognise(read, rows);
    const entries: Entry[] = [];
    const changes: Change[] = [];
    const numbers = new Map<number, number>();
    const stays = new Set<number>();
    for (const one of read) {
        const { written, parsed } = one;
        const before = known.get(one) ?? null;
        if (before === null && !canCome(one)) {
            entries.push({
                effect: 'unchanged',
                name: written.name,
                notes: ['left out: its key is not in the document']
            });
            continue;
        }
        const id = before?.id ?? ids.get(one);
        if (id === undefined) {
            throw fail.VERSION_STALE({ version: null });
        }
        stays.add(id);
        const notes = [...one.notes];
        const replaced = parsed !== null && before?.fingerprint !== written.fingerprint256;
        const base = before ?? blankRow(id, written);
        const row = {
            ...base,
            ...contentOf(one, before, replaced, store),
            ...renewalOf(one, before, ground, notes, around),
            name: written.name,
            owner: written.owner === undefined ? base.owner : written.owner
        };
        const after: CertificateRow = before === null ? { ...row, nextAttemptAt: dueTime(row, now) } : row;
        const unchanged = before !== null && isDeepStrictEqual(after, before);
        entries.push({
            effect: before === null ? 'create' : unchanged ? 'unchanged' : 'update',
            name: written.name,
            ...(notes.length === 0 ? {} : { notes })
        });
        // Hosts can name only what is issued.
        if (after.fingerprint !== '') {
            numbers.set(written.id, id);
        }
        if (!unchanged) {
            changes.push({
                before,
                after: {
                    ...after,
                    version: base.version + 1,
                    updatedAt: before === null ? written.updatedAt : new Date(now).toISOString()
                },
                key: replaced ? parsed.key : null,
                anew: before === null ? null : newTimes(before, after, replaced, now)
            });
        }
    }
    for (const before of ground.mode === 'replace' ? rows.filter(({ id }) => !stays.has(id)) : []) {
        entries.push({ effect: 'delete', name: before.name });
        changes.push({ before, after: null, key: null, anew: null });
    }
    return { entries, changes, numbers };
}

function blankRow(id: number, { createdAt, updatedAt }: Written) {
    return {
        ...notIssued,
        ...untried,
        id,
        owner: null,
        version: 0,
        nextAttemptAt: null,
        createdAt,
        updatedAt
    };
}

/** When a changed certificate is due next; null when that does not change. */
function newTimes(
    before: CertificateRow,
    after: CertificateRow,
    replaced: boolean,
    now: number
): Change['anew'] {
    if (!replaced && after.autoRenew === before.autoRenew) {
        return null;
    }
    return { ...(replaced ? untried : {}), nextAttemptAt: dueTime(after, now) };
}

/** What was issued stands for the names that were ordered, whatever else it is valid for. What is issued here is never taken back by its order. */
function contentOf(
    { written, parsed }: Read,
    before: CertificateRow | null,
    replaced: boolean,
    store: DatabaseCertificateStore
): Pick<CertificateRow, 'domains'> {
    const domains = JSON.stringify(written.source === 'acme' ? written.domains : (parsed?.names ?? []));
    if (replaced && parsed !== null) {
        return { ...stored(parsed, store), domains };
    }
    return { domains: before === null || before.fingerprint === '' ? domains : before.domains };
}

/** How it is renewed; by hand where something for it is not there. */
function renewalOf(
    one: Read,
    before: CertificateRow | null,
    ground: Ground,
    notes: string[],
    around: Surroundings
): Pick<CertificateRow, 'source' | 'dnsProviderId' | 'directory' | 'email' | 'sealedEab' | 'autoRenew'> {
    const { source, acme, autoRenew } = one.written;
    if (acme === null) {
        return {
            source,
            dnsProviderId: null,
            directory: null,
            email: null,
            sealedEab: null,
            autoRenew: false
        };
    }
    const { directory, email } = acme;
    const consequence = isIssued(one) ? 'is not renewed by itself any more' : 'is not ordered by itself';
    const dnsProviderId = providerOf(acme, before, ground, around);
    if (dnsProviderId === null && acme.dnsProviderId !== null) {
        notes.push(`${consequence}: its DNS provider is not in the document, or without its credentials`);
    }
    const sealedEab = sealedEabOf(one, before, around.store);
    if (sealedEab === null && acme.eab !== null) {
        notes.push(`${consequence}: the MAC key of its external account is not in the document`);
    }
    const eabKeyId = acme.eab?.keyId ?? null;
    if (
        before === null &&
        around.accounts?.some(
            (account) =>
                account.directory === directory && account.email === email && account.eabKeyId === eabKeyId
        ) === false
    ) {
        notes.push('the key of its account at the CA is not in the document: it will be another account');
    }
    const lost =
        (dnsProviderId === null && acme.dnsProviderId !== null) || (sealedEab === null && acme.eab !== null);
    return { source, dnsProviderId, directory, email, sealedEab, autoRenew: autoRenew && !lost };
}

/** By what the document's providers become; where it has none, by name, else as it is here. */
function providerOf(
    { dnsProviderId, dnsProvider }: NonNullable<Written['acme']>,
    before: CertificateRow | null,
    { dnsProviderIds }: Ground,
    { providers }: Surroundings
): number | null {
    if (dnsProviderId === null) {
        return null;
    }
    return dnsProviderIds === null
        ? (providers.find(({ name }) => name === dnsProvider)?.id ?? before?.dnsProviderId ?? null)
        : (dnsProviderIds.get(dnsProviderId) ?? null);
}

function sealedEabOf(
    { written, eab }: Read,
    before: CertificateRow | null,
    store: DatabaseCertificateStore
): string | null {
    const keyId = written.acme?.eab?.keyId;
    if (keyId === undefined) {
        return null;
    }
    const known = before === null ? null : store.openEab(before);
    if (eab === null) {
        return known?.keyId === keyId ? (before?.sealedEab ?? null) : null;
    }
    return isDeepStrictEqual(known, eab) ? (before?.sealedEab ?? null) : store.sealEab(eab);
}

/** When it is worked on by itself; what is only ordered at once. */
function dueTime(
    {
        autoRenew,
        fingerprint,
        notBefore,
        notAfter
    }: Pick<CertificateRow, 'autoRenew' | 'fingerprint' | 'notBefore' | 'notAfter'>,
    now: number
): number | null {
    return !autoRenew ? null : fingerprint === '' ? now : renewalTime(notBefore, notAfter, now);
}
