/** A document's part about certificates, read and held against itself. */
import { X509Certificate } from 'node:crypto';

import { joi, type Value } from '@portico/sdk';

import type { Reading } from '../../../engine/section.ts';
import type { Invalid } from '../../../platform/errors.ts';
import { faultsOf } from '../../../platform/validation.ts';
import type { ExternalAccount } from '../acme/jws.ts';
import type { CertificateRow } from '../entities.ts';
import { readDomains } from '../input/domains.ts';
import { type ParsedCertificate, parseUpload, uploadBounds } from '../input/pem.ts';

const shape = joi.object({
    id: joi.number().integer().min(1).max(Number.MAX_SAFE_INTEGER).required(),
    name: joi
        .string()
        .max(255)
        .pattern(/^[^\p{Cc}\p{Cs}\u2028\u2029]+$/u)
        .required(),
    source: joi.string().valid('upload', 'acme').required(),
    domains: joi.array().items(joi.string().max(255)).required(),
    fingerprint256: joi.string().hex().length(64).allow(null).required(),
    certificate: joi.string().max(uploadBounds.certificate).allow(null).required(),
    autoRenew: joi.boolean().required(),
    acme: joi
        .object({
            dnsProviderId: joi.number().integer().min(1).allow(null).required(),
            dnsProvider: joi.string().max(255).allow(null).required(),
            directory: joi
                .string()
                .uri({ scheme: ['https', 'http'] })
                .max(2048)
                .required(),
            email: joi
                .string()
                .email({ tlds: { allow: false } })
                .max(254)
                .allow(null)
                .required(),
            eab: joi
                .object({ keyId: joi.string().max(512).required() })
                .allow(null)
                .required()
        })
        .allow(null)
        .required(),
    owner: joi.string().max(100).allow(null),
    createdAt: joi.string().isoDate().required(),
    updatedAt: joi.string().isoDate().required()
});

/** A certificate, or an order of one, as a document has it. Without `fingerprint256` and `certificate` it is not issued yet. */
export type Written = Value<typeof shape>;

const eabShape = joi.object({
    keyId: joi.string().max(512).required(),
    macKey: joi.string().max(512).required()
});

/** What a document says of one certificate. */
export interface Read {
    /** Its place in the document. */
    readonly at: number;
    readonly written: Written;
    /** Null: it is not issued, or its key is not in the document. */
    readonly parsed: ParsedCertificate | null;
    /** Null: none, or not in the document. */
    readonly eab: ExternalAccount | null;
    readonly notes: readonly string[];
}

/** A row as a document has it. `provider` is the name of its DNS provider. */
export function writtenOf(
    row: CertificateRow,
    provider: string | null,
    eab: ExternalAccount | null
): Written {
    const issued = row.fingerprint !== '';
    const isAcme = row.source === 'acme';
    return {
        id: row.id,
        name: row.name,
        source: isAcme ? 'acme' : 'upload',
        autoRenew: row.autoRenew,
        acme: isAcme
            ? {
                  dnsProviderId: row.dnsProviderId,
                  dnsProvider: provider,
                  directory: row.directory ?? '',
                  email: row.email,
                  eab: eab === null ? null : { keyId: eab.keyId }
              }
            : null,
        domains: JSON.parse(row.domains) as string[],
        fingerprint256: issued ? row.fingerprint : null,
        certificate: issued ? row.chain : null,
        owner: row.owner,
        createdAt: row.createdAt,
        updatedAt: row.updatedAt
    };
}

/** Reads them all; what is wrong goes to the faults. */
export async function readCertificates(
    part: unknown,
    reading: Reading,
    now: number
): Promise<readonly Read[]> {
    const list = Array.isArray(part) ? part : [];
    if (!Array.isArray(part)) {
        reading.faults.add(reading.path, `${reading.path} must be an array of certificates`);
    }
    const read: Read[] = [];
    for (const [at, value] of list.entries()) {
        const one = readOne(value, at, reading, now);
        if (one !== null) {
            read.push(one);
        }
        if (at % 50 === 49) {
            await new Promise(setImmediate);
        }
    }
    checkTwice(read, reading);
    return read;
}

function readOne(value: unknown, at: number, { path, faults, secrets }: Reading, now: number): Read | null {
    const own = `${path}.${at}`;
    const wrong = faultsOf(shape, value, own);
    if (wrong.length > 0) {
        wrong.forEach((fault) => faults.add(fault.path, fault.message));
        return null;
    }
    const written = value as Written;
    const contradictions = contradictionsOf(written);
    contradictions.forEach((fault) => faults.add(`${own}.${fault.path}`, fault.message));
    const eab = eabOf(secrets?.json(`${written.id}/eab`), written, `${own}.acme.eab`, faults);
    const key = secrets?.get(`${written.id}/key`);
    if (contradictions.length > 0 || written.certificate === null || key === undefined) {
        return { at, written, parsed: null, eab, notes: [] };
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
    const missing =
        written.source === 'acme' ? written.domains.filter((domain) => !parsed.names.includes(domain)) : [];
    if (missing.length > 0) {
        faults.add(
            `${own}.domains`,
            `domains has ${missing.join(', ')}, for which the certificate was not issued`
        );
    }
    return {
        at,
        written,
        parsed,
        eab,
        notes: parsed.notAfter.getTime() <= now ? [`it expired on ${parsed.notAfter.toISOString()}`] : []
    };
}

function contradictionsOf({
    source,
    acme,
    domains: sent,
    certificate,
    fingerprint256
}: Written): readonly Invalid[] {
    if ((source === 'acme') !== (acme !== null)) {
        return [{ path: 'acme', message: 'acme is there if source is acme, and only then' }];
    }
    if ((certificate === null) !== (fingerprint256 === null)) {
        const path = certificate === null ? 'certificate' : 'fingerprint256';
        return [{ path, message: `${path} is required: one of the two is there` }];
    }
    if (acme === null) {
        return certificate === null
            ? [{ path: 'certificate', message: 'certificate is required of an upload' }]
            : [];
    }
    const { domains, faults } = readDomains(sent);
    const other = domains.findIndex((domain, at) => domain !== sent[at]);
    if (sent.length === 0) {
        return [{ path: 'domains', message: 'domains is required' }];
    }
    return faults.length > 0 || other === -1
        ? faults
        : [{ path: `domains.${other}`, message: `domains.${other} is not in the spelling of a certificate` }];
}

function eabOf(
    sealed: unknown,
    { acme }: Written,
    path: string,
    faults: Reading['faults']
): ExternalAccount | null {
    if (sealed === undefined) {
        return null;
    }
    const [wrong] = faultsOf(eabShape, sealed);
    if (wrong !== undefined) {
        faults.add(path, `its external account is damaged: ${wrong.message}`);
        return null;
    }
    const account = sealed as ExternalAccount;
    if (account.keyId !== acme?.eab?.keyId) {
        faults.add(path, 'its external account is another one');
    }
    return account;
}

function parse(
    certificate: string,
    key: string,
    now: number
): { readonly parsed: ParsedCertificate | null; readonly faults: readonly Invalid[] } {
    const result = parseUpload(certificate, key, timeWithin(certificate, now));
    return 'faults' in result
        ? { parsed: null, faults: result.faults }
        : { parsed: result.parsed, faults: [] };
}

/** A moment at which the certificate is valid, the present one if it is. */
function timeWithin(certificate: string, now: number): number {
    try {
        const leaf = new X509Certificate(certificate);
        return Math.max(Math.min(now, leaf.validToDate.getTime() - 1000), leaf.validFromDate.getTime());
    } catch {
        return now;
    }
}

function checkTwice(read: readonly Read[], { path, faults }: Reading): void {
    for (const field of ['id', 'fingerprint256'] as const) {
        const seen = new Set<string | number>();
        for (const { at, written } of read) {
            const value = written[field];
            if (value !== null && seen.has(value)) {
                faults.add(`${path}.${at}.${field}`, `${field} is there twice`);
            }
            seen.add(value ?? '');
        }
    }
}
