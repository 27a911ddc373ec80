/**
 * Certificates: uploaded with every check, sealed at rest, never readable but by a download that asks for it. A change goes through the
 * engine's queue, so that what is stored is what is served by the time that the answer is there.
 */
import { isDeepStrictEqual } from 'node:util';
import { type Download, reply, type Reply } from '@portico/sdk';
import type { Call } from '../call.ts';
import type { Clock } from '../clock.ts';
import type { Database, Transaction } from '../db/database.ts';
import type { Author, CertificatePem, Draft, Engine } from '../engine/change.ts';
import type { SiteCertificate } from '../engine/site.ts';
import { fail, invalid } from '../errors.ts';
import type { CertificateRow } from './entities.ts';
import { type ParsedCertificate, parseUpload } from './pem.ts';
import type { CertificateCreate, CertificateUpdate, CertificateView } from './schema.ts';
import { siteCertificate, type Store } from './store.ts';

export interface CertificatesOptions {
    readonly engine: Engine;
    readonly store: Store;
    readonly db: Database;
    readonly clock: Clock;
    /** Whether names of a certificate hold for a name of a host. */
    covers(names: readonly string[], name: string): boolean;
}

export interface Certificates {
    list(): readonly CertificateView[];
    /** @throws NOT_FOUND */
    get(id: number): CertificateView;
    /** @throws VALIDATION_FAILED with every reason, ENGINE_REJECTED, ENGINE_UNAVAILABLE */
    upload(body: CertificateCreate, call: Call): Promise<Reply<CertificateView>>;
    /** @throws as `upload`, and NOT_FOUND, VERSION_STALE */
    update(id: number, body: CertificateUpdate, call: Call): Promise<Reply<CertificateView>>;
    /** @throws NOT_FOUND, VERSION_STALE, IN_USE with the hosts' ids in `data.by` */
    remove(id: number, call: Call): Promise<Reply<null>>;
    /** The chain as PEM, and the key behind it for whoever may have it. @throws NOT_FOUND, FORBIDDEN, STEP_UP_REQUIRED */
    download(id: number, withKey: boolean | undefined, call: Call): Promise<Download>;
}

const resource = 'certificates';

/** The certificate that a change was made of is not the present one any more. */
class Moved extends Error {}

export function createCertificates(options: CertificatesOptions): Certificates {
    const { engine, store, db, clock } = options;

    const view = (row: CertificateRow, usedBy: readonly number[] = usersOf(engine.draft(), row.id)): CertificateView => ({
        id: row.id, name: row.name, source: 'upload', domains: JSON.parse(row.domains) as string[], issuer: row.issuer, serial: row.serial, notBefore: row.notBefore, notAfter: row.notAfter,
        fingerprint256: row.fingerprint, autoRenew: false, usedBy, lastError: null, nextAttemptAt: null, version: row.version, createdAt: row.createdAt, updatedAt: row.updatedAt
    });

    function parse(body: { readonly certificate: string; readonly key: string }): ParsedCertificate {
        const result = parseUpload(body.certificate, body.key, clock.now());
        if ('faults' in result) {
            throw invalid(...result.faults);
        }
        return result.parsed;
    }

    /** The hosts that name it keep a certificate that covers them. */
    function checkUsers(draft: Draft, id: number, names: readonly string[]): void {
        const faults = usersOf(draft, id).flatMap((user) => {
            const site = draft.hosts.get(user)?.site;
            const missing = site === undefined ? [] : [site.domain, ...site.aliases].filter((name) => !options.covers(names, name));
            return missing.length === 0 ? [] : [{ path: 'certificate', message: `certificate is not valid for ${missing.join(', ')} of host ${user}, which uses it` }];
        });
        if (faults.length > 0) {
            throw invalid(...faults);
        }
    }

    /** Puts a row in place: the engine's copy and the database's, or neither. */
    async function put(row: CertificateRow, before: CertificateRow | null, pem: CertificatePem, call: Call, answer: (after: CertificateView, headers: Readonly<Record<string, string>>) => Reply<CertificateView>): Promise<Reply<CertificateView>> {
        const certificate = siteCertificate(row);
        const { value } = await engine.change({
            by: authorOf(call),
            plan(draft) {
                if (before !== null && !isPresent(draft.certificates.get(before.id), before)) {
                    throw new Moved();
                }
                checkUsers(draft, row.id, certificate.names);
                return { certificates: [{ id: row.id, certificate, pem }] };
            },
            async commit(tx, { reloaded }) {
                await mustBe(tx, before);
                await store.write(tx, row);
                const after = view(row);
                return call.complete(tx, {
                    action: before === null ? 'create' : 'update', resource, resourceId: row.id, before: before === null ? null : view(before), after,
                    reply: answer(after, { 'x-engine-reload': String(reloaded) })
                });
            }
        });
        return value;
    }

    /** Nothing that the engine knows of changes: it is not asked. */
    function rename(row: CertificateRow, before: CertificateRow, call: Call): Promise<Reply<CertificateView>> {
        return db.write(async (tx) => {
            await mustBe(tx, before);
            await store.write(tx, row);
            const after = view(row);
            return call.complete(tx, { action: 'update', resource, resourceId: row.id, before: view(before), after, reply: reply.with(after, { headers: { 'x-engine-reload': 'false' } }) });
        });
    }

    /** The queue knows fingerprints only: versions are compared in the transaction. */
    async function mustBe(tx: Transaction, before: CertificateRow | null): Promise<void> {
        if (before !== null && await store.versionIn(tx, before.id) !== before.version) {
            throw new Moved();
        }
    }

    return {
        list() {
            const users = usersOfAll(engine.draft());
            return store.list().map((row) => view(row, users.get(row.id) ?? []));
        },
        get: (id) => view(store.get(id)),
        async upload(body, call) {
            checkName(body.name);
            const parsed = parse(body);
            const now = new Date(clock.now()).toISOString();
            const row: CertificateRow = { id: store.nextId(), name: body.name ?? parsed.names[0] ?? '', source: 'upload', ...stored(parsed, store), version: 1, createdAt: now, updatedAt: now };
            return put(row, null, { certificate: parsed.chain, key: parsed.key }, call, (after, headers) => reply.created(`/api/certificates/${row.id}`, after, { headers }));
        },
        async update(id, body, call) {
            const before = store.get(id);
            checkVersion(before, call.ifMatch, body.version);
            checkName(body.name);
            const { certificate, key } = body;
            if ((certificate === undefined) !== (key === undefined)) {
                const path = certificate === undefined ? 'certificate' : 'key';
                throw invalid({ path, message: `${path} is required: a certificate and its key are replaced together` });
            }
            const parsed = certificate === undefined || key === undefined ? null : parse({ certificate, key });
            const changed: CertificateRow = { ...before, name: body.name ?? before.name, ...(parsed === null ? {} : stored(parsed, store)) };
            if (parsed === null && isDeepStrictEqual(changed, before)) {
                return reply.with(view(before), { headers: { 'x-engine-reload': 'false' } });
            }
            const row: CertificateRow = { ...changed, version: before.version + 1, updatedAt: new Date(clock.now()).toISOString() };
            return staleWhenMoved(() => parsed === null ? rename(row, before, call) : put(row, before, { certificate: parsed.chain, key: parsed.key }, call, (after, headers) => reply.with(after, { headers })), id);
        },
        async remove(id, call) {
            const before = store.get(id);
            checkVersion(before, call.ifMatch, undefined);
            return staleWhenMoved(async () => {
                const { value } = await engine.change({
                    by: authorOf(call),
                    plan(draft) {
                        if (!isPresent(draft.certificates.get(id), before)) {
                            throw new Moved();
                        }
                        const by = usersOf(draft, id);
                        if (by.length > 0) {
                            throw fail.IN_USE({ by }, { message: `Certificate ${id} is used by host ${by.join(', ')}` });
                        }
                        return { certificates: [{ id, certificate: null }] };
                    },
                    async commit(tx, { reloaded }) {
                        await store.remove(tx, id);
                        return call.complete(tx, { action: 'delete', resource, resourceId: id, before: view(before), after: null, reply: reply.with(null, { headers: { 'x-engine-reload': String(reloaded) } }) });
                    }
                });
                return value;
            }, id);
        },
        async download(id, withKey, call) {
            const row = store.get(id);
            const may = call.actor.can('certificates:secrets');
            if (withKey === true && !may) {
                throw fail.FORBIDDEN({ permission: 'certificates:secrets' });
            }
            if (withKey === true && !call.actor.fresh) {
                throw fail.STEP_UP_REQUIRED();
            }
            if (withKey === false || !may || !call.actor.fresh) {
                return pemDownload(row, row.chain);
            }
            // A key that leaves is on record before it does.
            await db.write((tx) => call.complete(tx, { action: 'export', resource, resourceId: id, reply: null }));
            return pemDownload(row, row.chain + store.open(row));
        }
    };

    /** @throws VERSION_STALE, or NOT_FOUND when it was removed, in place of `Moved` */
    async function staleWhenMoved<T>(work: () => Promise<T>, id: number): Promise<T> {
        try {
            return await work();
        }
        catch (error) {
            throw error instanceof Moved ? fail.VERSION_STALE({ version: store.get(id).version }) : error;
        }
    }
}

function stored(parsed: ParsedCertificate, store: Store) {
    return {
        domains: JSON.stringify(parsed.names), issuer: parsed.issuer, serial: parsed.serial, notBefore: parsed.notBefore.toISOString(), notAfter: parsed.notAfter.toISOString(),
        fingerprint: parsed.fingerprint, chain: parsed.chain, sealedKey: store.seal(parsed.key)
    };
}

function isPresent(known: SiteCertificate | undefined, row: CertificateRow): boolean {
    return known?.fingerprint === row.fingerprint;
}

function usersOfAll(draft: Draft): ReadonlyMap<number, readonly number[]> {
    const users = new Map<number, number[]>();
    for (const [id, { site }] of draft.hosts) {
        if (site.certificateId !== null) {
            users.set(site.certificateId, [...users.get(site.certificateId) ?? [], id]);
        }
    }
    return users;
}

function usersOf(draft: Draft, id: number): readonly number[] {
    return usersOfAll(draft).get(id) ?? [];
}

/** @throws VALIDATION_FAILED for a name that does not fit on one line */
function checkName(name: string | undefined): void {
    if (name !== undefined && /[\p{Cc}\p{Cs}\u2028\u2029]/u.test(name)) {
        throw invalid({ path: 'name', message: 'name must not have line breaks or other control characters' });
    }
}

/** @throws VERSION_STALE when the caller means another version */
function checkVersion(row: CertificateRow, ifMatch: string | null, sent: number | undefined): void {
    if ((ifMatch !== null && ifMatch !== '*' && ifMatch !== String(row.version)) || (sent !== undefined && sent !== row.version)) {
        throw fail.VERSION_STALE({ version: row.version });
    }
}

function pemDownload(row: CertificateRow, text: string): Download {
    const bytes = new TextEncoder().encode(text);
    return {
        size: bytes.length, type: 'application/x-pem-file', name: `certificate-${row.id}.pem`,
        async *open({ start, end }) {
            yield bytes.subarray(start, end ?? bytes.length);
        }
    };
}

function authorOf(call: Call): Author {
    return { id: call.actor.id, username: call.actor.username, tokenId: call.actor.tokenId, plugin: call.actor.plugin, requestId: call.id };
}
