/** The certificates of a document of the whole panel. Without a passphrase their keys are missing, and so nothing but a name can come of them. */
import { X509Certificate } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { joi, type Value } from '@portico/sdk';
import type Joi from 'joi';
import type { Clock } from '../clock.ts';
import type { Transaction } from '../db/database.ts';
import type { Plan } from '../engine/change.ts';
import type { Entry, Ground, Incoming, Reading, Section } from '../engine/section.ts';
import type { SiteCertificate } from '../engine/site.ts';
import { fail, invalid, type Invalid } from '../errors.ts';
import type { ExternalAccount } from './acme-jws.ts';
import type { CertificateRow } from './entities.ts';
import { parseUpload, uploadBounds, type ParsedCertificate } from './pem.ts';
import { siteCertificate, type Store } from './store.ts';

export interface CertificateSectionOptions {
    readonly store: Store;
    readonly clock: Clock;
    /** Whether names of a certificate hold for a name of a host. */
    covers(names: readonly string[], name: string): boolean;
}

const shape = joi.object({
    id: joi.number().integer().min(1).max(Number.MAX_SAFE_INTEGER).required(),
    name: joi.string().max(255).pattern(/^[^\p{Cc}\p{Cs}\u2028\u2029]+$/u).required(),
    source: joi.string().valid('upload', 'acme').required(),
    domains: joi.array().items(joi.string().max(253)).required(),
    fingerprint256: joi.string().hex().length(64).required(),
    certificate: joi.string().max(uploadBounds.certificate).required(),
    autoRenew: joi.boolean().required(),
    acme: joi.object({
        dnsProviderId: joi.number().integer().min(1).allow(null).required(),
        directory: joi.string().uri({ scheme: ['https', 'http'] }).max(2048).allow(null).required(),
        email: joi.string().email({ tlds: { allow: false } }).max(254).allow(null).required()
    }).allow(null).required(),
    createdAt: joi.string().isoDate().required(),
    updatedAt: joi.string().isoDate().required()
});
type Written = Value<typeof shape>;

const eabShape = joi.object({ keyId: joi.string().max(512).required(), macKey: joi.string().max(512).required() });

/** Numbers beyond are not kept: each one up to it is used up. */
const mostKeptNumbers = 100_000;

interface Read {
    readonly at: number;
    readonly written: Written;
    /** Null: the key is not in the document. */
    readonly parsed: ParsedCertificate | null;
    readonly eab: ExternalAccount | null;
    readonly notes: readonly string[];
}

interface Change {
    readonly before: CertificateRow | null;
    readonly after: CertificateRow | null;
    readonly key: string | null;
}

export function createCertificateSection(options: CertificateSectionOptions): Section {
    const { store, clock } = options;
    return {
        name: 'certificates',
        permissions: { read: 'certificates:read', write: 'certificates:write', secrets: 'certificates:secrets' },
        collect(sink) {
            return store.list().map((row): Written => {
                sink?.put(`${row.id}/key`, store.open(row));
                const eab = store.openEab(row);
                if (eab !== null) {
                    sink?.put(`${row.id}/eab`, JSON.stringify(eab));
                }
                return {
                    id: row.id, name: row.name, source: row.source === 'acme' ? 'acme' : 'upload', autoRenew: row.autoRenew,
                    acme: row.source === 'acme' ? { dnsProviderId: row.dnsProviderId, directory: row.directory, email: row.email } : null, domains: JSON.parse(row.domains) as string[], fingerprint256: row.fingerprint, certificate: row.chain,
                    createdAt: row.createdAt, updatedAt: row.updatedAt
                };
            });
        },
        async read(part, reading) {
            const list = Array.isArray(part) ? part : [];
            if (!Array.isArray(part)) {
                reading.faults.add(reading.path, `${reading.path} must be an array of certificates`);
            }
            const read: Read[] = [];
            for (const [at, value] of list.entries()) {
                const one = readOne(value, at, reading, clock.now());
                if (one !== null) {
                    read.push(one);
                }
                if (at % 50 === 49) {
                    await new Promise(setImmediate);
                }
            }
            checkTwice(read, reading);
            return createIncoming(read, reading, options);
        }
    };
}

function readOne(value: unknown, at: number, { path, faults, secrets }: Reading, now: number): Read | null {
    const own = `${path}.${at}`;
    const { error } = (shape as unknown as Joi.Schema).required().validate(value, { abortEarly: false, convert: false, errors: { wrap: { label: false } } });
    if (error !== undefined) {
        error.details.forEach((detail) => faults.add([own, ...detail.path].join('.'), detail.message));
        return null;
    }
    const written = value as Written;
    const key = secrets?.get(`${written.id}/key`);
    if (key === undefined) {
        return { at, written, parsed: null, eab: null, notes: [] };
    }
    // One that has expired meanwhile still is part of the panel: it is said, not refused.
    const { parsed, faults: found } = parse(written.certificate, key, now);
    found.forEach((fault) => faults.add(`${own}.${fault.path}`, fault.message));
    if (parsed === null) {
        return null;
    }
    if (parsed.fingerprint !== written.fingerprint256) {
        faults.add(`${own}.fingerprint256`, 'fingerprint256 is that of another certificate');
    }
    const eab = eabOf(secrets?.json(`${written.id}/eab`), `${own}.acme`, faults);
    return { at, written, parsed, eab, notes: parsed.notAfter.getTime() <= now ? [`it expired on ${parsed.notAfter.toISOString()}`] : [] };
}

function eabOf(sealed: unknown, path: string, faults: Reading['faults']): ExternalAccount | null {
    if (sealed === undefined) {
        return null;
    }
    const { error, value } = (eabShape as unknown as Joi.Schema).required().validate(sealed, { convert: false, errors: { wrap: { label: false } } }) as { error?: Error; value: ExternalAccount };
    if (error !== undefined) {
        faults.add(path, `its external account is damaged: ${error.message}`);
    }
    return error === undefined ? value : null;
}

function parse(certificate: string, key: string, now: number): { readonly parsed: ParsedCertificate | null; readonly faults: readonly Invalid[] } {
    const result = parseUpload(certificate, key, timeWithin(certificate, now));
    return 'faults' in result ? { parsed: null, faults: result.faults } : { parsed: result.parsed, faults: [] };
}

/** A moment at which the certificate is valid, the present one if it is. */
function timeWithin(certificate: string, now: number): number {
    try {
        const leaf = new X509Certificate(certificate);
        return Math.max(Math.min(now, leaf.validToDate.getTime() - 1000), leaf.validFromDate.getTime());
    }
    catch {
        return now;
    }
}

function checkTwice(read: readonly Read[], { path, faults }: Reading): void {
    for (const field of ['id', 'fingerprint256'] as const) {
        const seen = new Set<string | number>();
        for (const { at, written } of read) {
            if (seen.has(written[field])) {
                faults.add(`${path}.${at}.${field}`, `${field} is there twice`);
            }
            seen.add(written[field]);
        }
    }
}

function createIncoming(read: readonly Read[], { path, dryRun }: Reading, options: CertificateSectionOptions): Incoming {
    const { store } = options;
    const ids = numbersFor(read, store, dryRun);
    return {
        plan(ground) {
            const { entries, changes, numbers } = planAll(read, ids, ground, store, options.clock.now());
            if (ground.mode === 'replace') {
                const stays = new Set(numbers.values());
                for (const before of store.list().filter((row) => !stays.has(row.id))) {
                    entries.push({ effect: 'delete', name: before.name });
                    changes.push({ before, after: null, key: null });
                }
            }
            ground.certificateIds = numbers;
            ground.certificates = certificatesAfter(ground, changes);
            checkPresent(ground, changes);
            checkUsers(ground, changes, path, options);
            return {
                entries,
                engine: { certificates: changes.filter(({ before, after }) => after?.fingerprint !== before?.fingerprint).map(plannedOf) },
                commit: (tx) => write(tx, changes, store)
            };
        }
    };
}

function plannedOf({ before, after, key }: Change): NonNullable<Plan['certificates']>[number] {
    const id = (after ?? before)?.id ?? 0;
    return after === null ? { id, certificate: null } : { id, certificate: siteCertificate(after), ...(key === null ? {} : { pem: { certificate: after.chain, key } }) };
}

function planAll(read: readonly Read[], ids: ReadonlyMap<Read, number>, ground: Ground, store: Store, now: number): { readonly entries: Entry[]; readonly changes: Change[]; readonly numbers: Map<number, number> } {
    const present = store.list();
    const byFingerprint = new Map(present.map((row) => [row.fingerprint, row]));
    const byNumber = new Map(present.map((row) => [row.id, row]));
    const written256 = new Set(read.map(({ written }) => written.fingerprint256));
    const entries: Entry[] = [];
    const changes: Change[] = [];
    const numbers = new Map<number, number>();
    const time = new Date(now).toISOString();
    for (const one of read) {
        const { written, parsed } = one;
        const namesake = byNumber.get(written.id);
        const before = byFingerprint.get(written.fingerprint256) ?? (namesake?.name === written.name && !written256.has(namesake.fingerprint) ? namesake : null);
        if (parsed === null && before?.fingerprint !== written.fingerprint256) {
            entries.push({ effect: 'unchanged', name: written.name, notes: ['left out: its key is not in the document'] });
            continue;
        }
        const id = before?.id ?? ids.get(one) ?? 0;
        numbers.set(written.id, id);
        const same = before?.fingerprint === written.fingerprint256;
        const notes = [...one.notes];
        const renewal = renewalOf(one, before, ground, notes, store);
        const content = parsed === null || same ? {} : storedOf(parsed, store);
        const base = before ?? { ...untried, id, version: 0, createdAt: written.createdAt, updatedAt: written.updatedAt };
        const after = { ...base, ...content, ...renewal, name: written.name } as CertificateRow;
        const unchanged = before !== null && isDeepStrictEqual(after, before);
        entries.push({ effect: before === null ? 'create' : unchanged ? 'unchanged' : 'update', name: written.name, ...(notes.length === 0 ? {} : { notes }) });
        if (!unchanged) {
            changes.push({ before, after: { ...after, version: base.version + 1, updatedAt: before === null ? written.updatedAt : time }, key: same ? null : parsed?.key ?? null });
        }
    }
    return { entries, changes, numbers };
}

/** Nothing was attempted here yet. */
const untried = { lastError: null, nextAttemptAt: null, failures: 0, warnedDays: null };

/** How it is renewed; by hand where the provider of its records is not there. */
function renewalOf({ written: { source, acme, autoRenew }, eab, parsed }: Read, before: CertificateRow | null, { dnsProviderIds }: Ground, notes: string[], store: Store): Partial<CertificateRow> {
    if (acme === null) {
        return { source, dnsProviderId: null, directory: null, email: null, sealedEab: null, autoRenew: false };
    }
    const dnsProviderId = acme.dnsProviderId === null ? null : (dnsProviderIds === null ? acme.dnsProviderId : dnsProviderIds.get(acme.dnsProviderId) ?? null);
    const lost = acme.dnsProviderId !== null && dnsProviderId === null;
    if (lost) {
        notes.push('is not renewed by itself any more: its DNS provider is not in the document, or without its credentials');
    }
    const known = before === null ? null : store.openEab(before);
    const sealedEab = parsed === null || isDeepStrictEqual(known, eab) ? before?.sealedEab ?? null : store.sealEab(eab);
    return { source, dnsProviderId, directory: acme.directory, email: acme.email, sealedEab, autoRenew: autoRenew && !lost };
}

function storedOf(parsed: ParsedCertificate, store: Store): Partial<CertificateRow> {
    return {
        domains: JSON.stringify(parsed.names), issuer: parsed.issuer, serial: parsed.serial, notBefore: parsed.notBefore.toISOString(), notAfter: parsed.notAfter.toISOString(),
        fingerprint: parsed.fingerprint, chain: parsed.chain, sealedKey: store.seal(parsed.key)
    };
}

/** The numbers of the document where nobody has or had them, else new ones. */
function numbersFor(read: readonly Read[], store: Store, dryRun: boolean): ReadonlyMap<Read, number> {
    const known = new Set(store.list().map(({ fingerprint }) => fingerprint));
    const wanting = read.filter(({ parsed, written }) => parsed !== null && !known.has(written.fingerprint256));
    const numbers = new Map<Read, number>();
    if (wanting.length === 0) {
        return numbers;
    }
    let last = dryRun ? Math.max(0, ...store.list().map(({ id }) => id)) : 0;
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

function certificatesAfter({ draft }: Ground, changes: readonly Change[]): ReadonlyMap<number, SiteCertificate> {
    const certificates = new Map(draft.certificates);
    for (const { before, after } of changes) {
        if (after === null) {
            certificates.delete(before?.id ?? 0);
        }
        else {
            certificates.set(after.id, siteCertificate(after));
        }
    }
    return certificates;
}

/** What is changed is what the queue knows too: a change ahead of this one would be lost. @throws VERSION_STALE */
function checkPresent({ draft }: Ground, changes: readonly Change[]): void {
    for (const { before } of changes) {
        if (before !== null && draft.certificates.get(before.id)?.fingerprint !== before.fingerprint) {
            throw fail.VERSION_STALE({ version: before.version });
        }
    }
}

/** Hosts that stay as they are keep a certificate that covers them. Those of the document are looked at by their own section. @throws VALIDATION_FAILED, IN_USE */
function checkUsers({ draft, sections, mode }: Ground, changes: readonly Change[], path: string, { covers }: CertificateSectionOptions): void {
    if (sections.has('hosts') && mode === 'replace') {
        return;
    }
    const touched = new Map(changes.flatMap((change) => (change.before === null ? [] : [[change.before.id, change] as const])));
    const faults: Invalid[] = [];
    for (const [id, { site }] of draft.hosts) {
        const change = site.certificateId === null ? undefined : touched.get(site.certificateId);
        if (change?.after === null) {
            throw fail.IN_USE({ by: [id] }, { message: `The certificate ${change.before?.name ?? ''} is not in the document, and host ${id} uses it` });
        }
        const names = change === undefined ? null : JSON.parse(change.after.domains) as string[];
        const missing = names === null ? [] : [site.domain, ...site.aliases].filter((name) => !covers(names, name));
        if (missing.length > 0) {
            faults.push({ path, message: `The certificate ${change?.after?.name ?? ''} of the document is not valid for ${missing.join(', ')} of host ${id}, which uses it` });
        }
    }
    if (faults.length > 0) {
        throw invalid(...faults);
    }
}

async function write(tx: Transaction, changes: readonly Change[], store: Store): Promise<void> {
    for (const { before, after } of changes) {
        if (before !== null && await store.versionIn(tx, before.id) !== before.version) {
            throw fail.VERSION_STALE({ version: before.version });
        }
        if (after === null) {
            await store.remove(tx, before?.id ?? 0);
        }
        else {
            await store.write(tx, after);
        }
    }
}
