/**
 * Certificates: uploaded with every check, sealed at rest, never readable but by a download that asks for it. A change goes through the
 * engine's queue, so that what is stored is what is served by the time that the answer is there.
 */
import { isDeepStrictEqual } from 'node:util';

import { type Download, isFailure, type Reply, reply } from '@portico/sdk';

import type { Engine } from '../../engine/change.ts';
import type { Call } from '../../platform/call.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { fail, invalid } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import type { AcmeAccounts } from './acme/accounts.ts';
import { createIssuance } from './acme/issuance.ts';
import { renewalTime } from './acme/pace.ts';
import { createRenewals } from './acme/renewals.ts';
import { readDomains } from './domains.ts';
import { type EngineCertificate, type EngineCertificates, firstEngineId } from './engine-certificates.ts';
import type { CertificateRow } from './entities.ts';
import { type ParsedCertificate, parseUpload } from './pem.ts';
import { createPlacement, stored } from './placement.ts';
import type { OrderPorts, StartedTask } from './ports.ts';
import type { CertificateCreate, CertificateUpdate, CertificateView } from './schema.ts';
import type { Store } from './store.ts';
import { usersOfAll, viewOf } from './view.ts';

export interface CertificatesOptions {
    readonly engine: Engine;
    readonly store: Store;
    readonly db: Database;
    readonly clock: Clock;
    readonly log: Pick<Logger, 'error'>;
    readonly accounts: AcmeAccounts;
    readonly ports: OrderPorts;
    readonly own: EngineCertificates;
    /** Whether names of a certificate hold for a name of a host. */
    covers(names: readonly string[], name: string): boolean;
}

/** A certificate with its key, as somebody has them. */
export interface CertificateUpload {
    readonly name?: string | undefined;
    readonly certificate: string;
    readonly key: string;
}

export interface Certificates {
    /** The panel's, then those that the engine obtained by itself. */
    list(): Promise<readonly CertificateView[]>;
    /** @throws NOT_FOUND */
    get(id: number): Promise<CertificateView>;
    /** Uploads or orders one. @throws as `upload` or `order` */
    create(body: CertificateCreate, call: Call): Promise<Reply<CertificateView> | Reply<StartedTask>>;
    /** @throws VALIDATION_FAILED with every reason, ENGINE_REJECTED, ENGINE_UNAVAILABLE */
    upload(body: CertificateUpload, call: Call, owner?: string | null): Promise<Reply<CertificateView>>;
    /** Orders one of a CA. @throws VALIDATION_FAILED with every reason, TOOL_MISSING when the DNS provider needs a program that is not there */
    order(
        body: Omit<CertificateCreate, 'certificate' | 'key' | 'source'>,
        call: Call
    ): Promise<Reply<StartedTask>>;
    /** @throws NOT_FOUND, CONFLICT for one that no CA issues to the panel, IN_USE while an attempt is under way */
    renew(id: number, call: Call): Promise<Reply<StartedTask>>;
    /** @throws as `upload`, and NOT_FOUND, VERSION_STALE */
    update(id: number, body: CertificateUpdate, call: Call): Promise<Reply<CertificateView>>;
    /** @throws NOT_FOUND, VERSION_STALE, IN_USE with the hosts' ids in `data.by` */
    remove(id: number, call: Call): Promise<Reply<null>>;
    /** The chain as PEM, and the key behind it for whoever may have it. @throws NOT_FOUND, FORBIDDEN, STEP_UP_REQUIRED */
    download(id: number, withKey: boolean | undefined, call: Call): Promise<Download>;
    /** From now on certificates are renewed and spoken of in time. */
    start(): void;
    /** Looks again when the next one is due: rows have come by another way. */
    changed(): void;
    stop(): void;
}

const resource = 'certificates';
const defaultDirectory = 'https://acme-v02.api.letsencrypt.org/directory';

export function createCertificates(options: CertificatesOptions): Certificates {
    const { engine, store, db, clock, ports, own } = options;
    const placement = createPlacement({
        engine,
        store,
        db,
        clock,
        covers: (names, name) => options.covers(names, name)
    });
    const { view } = placement;
    const issuance = createIssuance({
        ...ports,
        store,
        db,
        clock,
        placement,
        accounts: options.accounts,
        over: () => renewals.arm()
    });
    const renewals = createRenewals({
        store,
        db,
        clock,
        log: options.log,
        events: ports.events,
        issuance,
        systemCall: ports.systemCall
    });

    function parse(body: { readonly certificate: string; readonly key: string }): ParsedCertificate {
        const result = parseUpload(body.certificate, body.key, clock.now());
        if ('faults' in result) {
            throw invalid(...result.faults);
        }
        return result.parsed;
    }

    /** @throws NOT_FOUND; CONFLICT for what the engine manages by itself */
    function ofPanel(id: number): CertificateRow {
        if (id >= firstEngineId) {
            throw fail.CONFLICT(
                { field: 'source' },
                { message: 'The proxy engine manages this certificate by itself: it can only be read' }
            );
        }
        return store.get(id);
    }

    async function ofEngine(id: number): Promise<EngineCertificate> {
        const found = (await own.list(engine.draft())).find((certificate) => certificate.id === id);
        if (found === undefined) {
            throw fail.NOT_FOUND(null, { message: `There is no certificate ${id}` });
        }
        return found;
    }

    /** The fields of an order that a change names, on top of what they are. */
    async function ordered(
        before: CertificateRow,
        body: CertificateUpdate
    ): Promise<Pick<CertificateRow, 'autoRenew' | 'dnsProviderId' | 'directory' | 'email' | 'sealedEab'>> {
        const { autoRenew, dnsProviderId, directory, email, sealedEab } = before;
        if (before.source !== 'acme') {
            const named =
                (body.autoRenew ?? false)
                    ? 'autoRenew'
                    : (body.dnsProviderId ?? null) !== null
                      ? 'dnsProviderId'
                      : (body.acme ?? null) !== null
                        ? 'acme'
                        : null;
            if (named !== null) {
                throw invalid({
                    path: named,
                    message: `${named} is only for certificates of the source acme`
                });
            }
            return { autoRenew, dnsProviderId, directory, email, sealedEab };
        }
        if (body.certificate !== undefined || body.key !== undefined) {
            throw invalid({
                path: 'certificate',
                message: 'certificate comes from the CA: it is renewed, not replaced'
            });
        }
        const eab = body.acme?.eab;
        const kept = store.openEab(before);
        if (eab != null && eab.macKey === undefined && eab.keyId !== kept?.keyId) {
            throw invalid({
                path: 'acme.eab.macKey',
                message: 'acme.eab.macKey is required with another keyId'
            });
        }
        const provider = body.dnsProviderId ?? dnsProviderId;
        if (provider !== dnsProviderId) {
            await checkProvider(provider);
        }
        return {
            autoRenew: body.autoRenew ?? autoRenew,
            dnsProviderId: provider,
            directory: body.acme?.directory ?? directory,
            email: body.acme?.email === undefined ? email : body.acme.email,
            sealedEab:
                eab === undefined || (eab?.macKey === undefined && eab !== null)
                    ? sealedEab
                    : store.sealEab(eab === null ? null : { keyId: eab.keyId, macKey: eab.macKey ?? '' })
        };
    }

    /** @throws VALIDATION_FAILED for one that is not there, TOOL_MISSING for one that cannot work here */
    async function checkProvider(id: number | null): Promise<void> {
        if (id === null) {
            throw invalid({
                path: 'dnsProviderId',
                message: 'dnsProviderId is required: no DNS provider is the default'
            });
        }
        await ports.dns.writer(id).catch((error: unknown) => {
            throw isFailure(error) && error.reason === 'NOT_FOUND'
                ? invalid({
                      path: 'dnsProviderId',
                      message: 'dnsProviderId must be the id of a DNS provider'
                  })
                : error;
        });
    }

    return {
        start: () => renewals.start(),
        changed: () => renewals.arm(),
        stop: () => renewals.stop(),
        async list() {
            const draft = engine.draft();
            const users = usersOfAll(draft);
            return [
                ...store.all().map((row) => viewOf(row, users.get(row.id) ?? [], store)),
                ...(await own.list(draft)).map(withoutChain)
            ];
        },
        get: async (id) => (id >= firstEngineId ? withoutChain(await ofEngine(id)) : view(store.get(id))),
        async create(body, call) {
            const { source, certificate, key, ...more } = body;
            if (source === 'acme') {
                if (certificate !== undefined || key !== undefined) {
                    throw invalid({
                        path: certificate === undefined ? 'key' : 'certificate',
                        message: 'certificate and key come from the CA'
                    });
                }
                return this.order(more, call);
            }
            const strange = (['domains', 'dnsProviderId', 'acme', 'autoRenew'] as const)
                .filter((field) => more[field] !== undefined)
                .map((field) => ({
                    path: field,
                    message: `${field} is only for certificates of the source acme`
                }));
            const missing = (['certificate', 'key'] as const)
                .filter((field) => body[field] === undefined)
                .map((field) => ({ path: field, message: `${field} is required` }));
            if (certificate === undefined || key === undefined || strange.length > 0) {
                throw invalid(...strange, ...missing);
            }
            return this.upload({ name: body.name, certificate, key }, call);
        },
        async order(body, call) {
            checkName(body.name);
            const { domains, faults } = readDomains(body.domains ?? []);
            if (faults.length > 0 || domains.length === 0) {
                throw invalid(
                    ...faults,
                    ...(domains.length === 0 ? [{ path: 'domains', message: 'domains is required' }] : [])
                );
            }
            const dnsProviderId = body.dnsProviderId ?? ports.dns.default();
            await checkProvider(dnsProviderId);
            const settings = ports.settings();
            const directory = body.acme?.directory ?? settings.directory ?? defaultDirectory;
            const eab = body.acme?.eab ?? (directory === settings.directory ? settings.eab : null);
            const autoRenew = body.autoRenew ?? true;
            const now = new Date(clock.now()).toISOString();
            const row: CertificateRow = {
                ...notOrdered,
                id: store.nextId(),
                name: body.name ?? domains[0] ?? '',
                source: 'acme',
                domains: JSON.stringify(domains),
                issuer: '',
                serial: '',
                notBefore: '',
                notAfter: '',
                fingerprint: '',
                chain: '',
                sealedKey: '',
                dnsProviderId,
                directory,
                email: body.acme?.email ?? settings.email,
                sealedEab: store.sealEab(eab),
                autoRenew,
                nextAttemptAt: autoRenew ? clock.now() : null,
                owner: call.actor.plugin,
                version: 1,
                createdAt: now,
                updatedAt: now
            };
            return reply.accepted(await issuance.start(row, call, true));
        },
        async renew(id, call) {
            const row = ofPanel(id);
            checkVersion(row, call.ifMatch, undefined);
            if (row.source !== 'acme') {
                throw fail.CONFLICT(
                    { field: 'source' },
                    { message: 'An uploaded certificate is replaced, not renewed' }
                );
            }
            await checkProvider(row.dnsProviderId);
            return reply.accepted(await issuance.start(row, call, false));
        },
        async upload(body, call, owner = call.actor.plugin) {
            checkName(body.name);
            const parsed = parse(body);
            const now = new Date(clock.now()).toISOString();
            const row: CertificateRow = {
                ...notOrdered,
                id: store.nextId(),
                name: body.name ?? parsed.names[0] ?? '',
                source: 'upload',
                ...stored(parsed, store),
                owner,
                version: 1,
                createdAt: now,
                updatedAt: now
            };
            return placement.put(
                row,
                null,
                { certificate: parsed.chain, key: parsed.key },
                call,
                (after, headers) => reply.created(`/api/certificates/${row.id}`, after, { headers })
            );
        },
        async update(id, body, call) {
            const before = ofPanel(id);
            checkVersion(before, call.ifMatch, body.version);
            checkName(body.name);
            const order = await ordered(before, body);
            const { certificate, key } = body;
            if ((certificate === undefined) !== (key === undefined)) {
                const path = certificate === undefined ? 'certificate' : 'key';
                throw invalid({
                    path,
                    message: `${path} is required: a certificate and its key are replaced together`
                });
            }
            const parsed =
                certificate === undefined || key === undefined ? null : parse({ certificate, key });
            const changed: CertificateRow = {
                ...before,
                ...order,
                name: body.name ?? before.name,
                ...(parsed === null ? {} : stored(parsed, store))
            };
            if (parsed === null && isDeepStrictEqual(changed, before)) {
                return reply.with(view(before), { headers: { 'x-engine-reload': 'false' } });
            }
            const nextAttemptAt =
                changed.autoRenew === before.autoRenew
                    ? before.nextAttemptAt
                    : !changed.autoRenew
                      ? null
                      : changed.fingerprint === ''
                        ? clock.now()
                        : renewalTime(changed.notBefore, changed.notAfter, clock.now());
            const row: CertificateRow = {
                ...changed,
                nextAttemptAt,
                version: before.version + 1,
                updatedAt: new Date(clock.now()).toISOString()
            };
            return placement.staleWhenMoved(
                () =>
                    parsed === null
                        ? placement.rewrite(row, before, call)
                        : placement.put(
                              row,
                              before,
                              { certificate: parsed.chain, key: parsed.key },
                              call,
                              (after, headers) => reply.with(after, { headers })
                          ),
                id
            );
        },
        async remove(id, call) {
            const before = ofPanel(id);
            checkVersion(before, call.ifMatch, undefined);
            return placement.staleWhenMoved(() => placement.remove(before, call), id);
        },
        async download(id, withKey, call) {
            if (id >= firstEngineId) {
                if (withKey === true) {
                    throw fail.CONFLICT(
                        { field: 'source' },
                        { message: "The key of this certificate is the proxy engine's own" }
                    );
                }
                return pemDownload({ id }, (await ofEngine(id)).chain);
            }
            const row = store.get(id);
            if (row.fingerprint === '') {
                throw fail.NOT_FOUND(null, { message: `The certificate ${id} is not issued yet` });
            }
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
            await db.write((tx) =>
                call.complete(tx, { action: 'export', resource, resourceId: id, reply: null })
            );
            return pemDownload(row, row.chain + store.open(row));
        }
    };
}

/** What a row has that no CA is asked about. */
const notOrdered = {
    dnsProviderId: null,
    directory: null,
    email: null,
    sealedEab: null,
    autoRenew: false,
    lastError: null,
    nextAttemptAt: null,
    failures: 0,
    warnedDays: null
} as const;

function withoutChain({ chain: _chain, ...view }: EngineCertificate): CertificateView {
    return view;
}

/** @throws VALIDATION_FAILED for a name that does not fit on one line */
function checkName(name: string | undefined): void {
    if (name !== undefined && /[\p{Cc}\p{Cs}\u2028\u2029]/u.test(name)) {
        throw invalid({
            path: 'name',
            message: 'name must not have line breaks or other control characters'
        });
    }
}

/** @throws VERSION_STALE when the caller means another version */
function checkVersion(row: CertificateRow, ifMatch: string | null, sent: number | undefined): void {
    if (
        (ifMatch !== null && ifMatch !== '*' && ifMatch !== String(row.version)) ||
        (sent !== undefined && sent !== row.version)
    ) {
        throw fail.VERSION_STALE({ version: row.version });
    }
}

function pemDownload(row: Pick<CertificateRow, 'id'>, text: string): Download {
    const bytes = new TextEncoder().encode(text);
    return {
        size: bytes.length,
        type: 'application/x-pem-file',
        name: `certificate-${row.id}.pem`,
        async *open({ start, end }) {
            yield bytes.subarray(start, end ?? bytes.length);
        }
    };
}
