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
import { Issuance } from './acme/issuance.ts';
import { renewalTime } from './acme/pace.ts';
import { Renewals } from './acme/renewals.ts';
import { type EngineCertificate, type EngineCertificates, firstEngineId } from './engine-certificates.ts';
import type { CertificateRow } from './entities.ts';
import { readDomains } from './input/domains.ts';
import { type ParsedCertificate, parseUpload } from './input/pem.ts';
import { Placement, stored } from './placement/placement.ts';
import type { OrderPorts, StartedTask } from './ports.ts';
import type { CertificateCreate, CertificateUpdate, CertificateView } from './schema.ts';
import type { DatabaseCertificateStore } from './store.ts';
import { usersOfAll, viewOf } from './view.ts';

export interface CertificatesOptions {
    readonly engine: Engine;
    readonly store: DatabaseCertificateStore;
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

const resource = 'certificates';
const defaultDirectory = 'https://acme-v02.api.letsencrypt.org/directory';

export class Certificates {
    readonly #options: CertificatesOptions;
    readonly #engine: Engine;
    readonly #store: DatabaseCertificateStore;
    readonly #db: Database;
    readonly #clock: Clock;
    readonly #ports: OrderPorts;
    readonly #own: EngineCertificates;
    readonly #placement: Placement;
    readonly #issuance: Issuance;
    readonly #renewals: Renewals;

    constructor(options: CertificatesOptions) {
        this.#options = options;
        this.#engine = options.engine;
        this.#store = options.store;
        this.#db = options.db;
        this.#clock = options.clock;
        this.#ports = options.ports;
        this.#own = options.own;
        this.#placement = new Placement({
            engine: this.#engine,
            store: this.#store,
            db: this.#db,
            clock: this.#clock,
            covers: (names, name) => this.#options.covers(names, name)
        });
        this.#issuance = new Issuance({
            ...this.#ports,
            store: this.#store,
            db: this.#db,
            clock: this.#clock,
            placement: this.#placement,
            accounts: options.accounts,
            over: () => this.#renewals.arm()
        });
        this.#renewals = new Renewals({
            store: this.#store,
            db: this.#db,
            clock: this.#clock,
            log: options.log,
            events: this.#ports.events,
            issuance: this.#issuance,
            systemCall: this.#ports.systemCall
        });
    }

    /** From now on certificates are renewed and spoken of in time. */
    start(): void {
        this.#renewals.start();
    }

    /** Looks again when the next one is due: rows have come by another way. */
    changed(): void {
        this.#renewals.arm();
    }

    stop(): void {
        this.#renewals.stop();
    }

    /** The panel's, then those that the engine obtained by itself. */
    async list(): Promise<readonly CertificateView[]> {
        const draft = this.#engine.draft();
        const users = usersOfAll(draft);
        return [
            ...this.#store.all().map((row) => viewOf(row, users.get(row.id) ?? [], this.#store)),
            ...(await this.#own.list(draft)).map(withoutChain)
        ];
    }

    /** @throws NOT_FOUND */
    async get(id: number): Promise<CertificateView> {
        return id >= firstEngineId
            ? withoutChain(await this.#ofEngine(id))
            : this.#placement.view(this.#store.get(id));
    }

    /** Uploads or orders one. @throws as `upload` or `order` */
    async create(body: CertificateCreate, call: Call): Promise<Reply<CertificateView> | Reply<StartedTask>> {
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
    }

    /** Orders one of a CA. @throws VALIDATION_FAILED with every reason, TOOL_MISSING when the DNS provider needs a program that is not there */
    async order(
        body: Omit<CertificateCreate, 'certificate' | 'key' | 'source'>,
        call: Call
    ): Promise<Reply<StartedTask>> {
        checkName(body.name);
        const { domains, faults } = readDomains(body.domains ?? []);
        if (faults.length > 0 || domains.length === 0) {
            throw invalid(
                ...faults,
                ...(domains.length === 0 ? [{ path: 'domains', message: 'domains is required' }] : [])
            );
        }
        const dnsProviderId = body.dnsProviderId ?? this.#ports.dns.default();
        await this.#checkProvider(dnsProviderId);
        const settings = this.#ports.settings();
        const directory = body.acme?.directory ?? settings.directory ?? defaultDirectory;
        const eab = body.acme?.eab ?? (directory === settings.directory ? settings.eab : null);
        const autoRenew = body.autoRenew ?? true;
        const now = new Date(this.#clock.now()).toISOString();
        const row: CertificateRow = {
            ...notOrdered,
            id: this.#store.nextId(),
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
            sealedEab: this.#store.sealEab(eab),
            autoRenew,
            nextAttemptAt: autoRenew ? this.#clock.now() : null,
            owner: call.actor.plugin,
            version: 1,
            createdAt: now,
            updatedAt: now
        };
        return reply.accepted(await this.#issuance.start(row, call, true));
    }

    /** @throws NOT_FOUND, CONFLICT for one that no CA issues to the panel, IN_USE while an attempt is under way */
    async renew(id: number, call: Call): Promise<Reply<StartedTask>> {
        const row = this.#ofPanel(id);
        checkVersion(row, call.ifMatch, undefined);
        if (row.source !== 'acme') {
            throw fail.CONFLICT(
                { field: 'source' },
                { message: 'An uploaded certificate is replaced, not renewed' }
            );
        }
        await this.#checkProvider(row.dnsProviderId);
        return reply.accepted(await this.#issuance.start(row, call, false));
    }

    /** @throws VALIDATION_FAILED with every reason, ENGINE_REJECTED, ENGINE_UNAVAILABLE */
    async upload(
        body: CertificateUpload,
        call: Call,
        owner: string | null = call.actor.plugin
    ): Promise<Reply<CertificateView>> {
        checkName(body.name);
        const parsed = this.#parse(body);
        const now = new Date(this.#clock.now()).toISOString();
        const row: CertificateRow = {
            ...notOrdered,
            id: this.#store.nextId(),
            name: body.name ?? parsed.names[0] ?? '',
            source: 'upload',
            ...stored(parsed, this.#store),
            owner,
            version: 1,
            createdAt: now,
            updatedAt: now
        };
        return this.#placement.put(
            row,
            null,
            { certificate: parsed.chain, key: parsed.key },
            call,
            (after, headers) => reply.created(`/api/certificates/${row.id}`, after, { headers })
        );
    }

    /** @throws as `upload`, and NOT_FOUND, VERSION_STALE */
    async update(id: number, body: CertificateUpdate, call: Call): Promise<Reply<CertificateView>> {
        const before = this.#ofPanel(id);
        checkVersion(before, call.ifMatch, body.version);
        checkName(body.name);
        const order = await this.#ordered(before, body);
        const { certificate, key } = body;
        if ((certificate === undefined) !== (key === undefined)) {
            const path = certificate === undefined ? 'certificate' : 'key';
            throw invalid({
                path,
                message: `${path} is required: a certificate and its key are replaced together`
            });
        }
        const parsed =
            certificate === undefined || key === undefined ? null : this.#parse({ certificate, key });
        const changed: CertificateRow = {
            ...before,
            ...order,
            name: body.name ?? before.name,
            ...(parsed === null ? {} : stored(parsed, this.#store))
        };
        if (parsed === null && isDeepStrictEqual(changed, before)) {
            return reply.with(this.#placement.view(before), { headers: { 'x-engine-reload': 'false' } });
        }
        const nextAttemptAt =
            changed.autoRenew === before.autoRenew
                ? before.nextAttemptAt
                : !changed.autoRenew
                  ? null
                  : changed.fingerprint === ''
                    ? this.#clock.now()
                    : renewalTime(changed.notBefore, changed.notAfter, this.#clock.now());
        const row: CertificateRow = {
            ...changed,
            nextAttemptAt,
            version: before.version + 1,
            updatedAt: new Date(this.#clock.now()).toISOString()
        };
        return this.#placement.staleWhenMoved(
            () =>
                parsed === null
                    ? this.#placement.rewrite(row, before, call)
                    : this.#placement.put(
                          row,
                          before,
                          { certificate: parsed.chain, key: parsed.key },
                          call,
                          (after, headers) => reply.with(after, { headers })
                      ),
            id
        );
    }

    /** @throws NOT_FOUND, VERSION_STALE, IN_USE with the hosts' ids in `data.by` */
    async remove(id: number, call: Call): Promise<Reply<null>> {
        const before = this.#ofPanel(id);
        checkVersion(before, call.ifMatch, undefined);
        return this.#placement.staleWhenMoved(() => this.#placement.remove(before, call), id);
    }

    /** The chain as PEM, and the key behind it for whoever may have it. @throws NOT_FOUND, FORBIDDEN, STEP_UP_REQUIRED */
    async download(id: number, withKey: boolean | undefined, call: Call): Promise<Download> {
        if (id >= firstEngineId) {
            if (withKey === true) {
                throw fail.CONFLICT(
                    { field: 'source' },
                    { message: "The key of this certificate is the proxy engine's own" }
                );
            }
            return pemDownload({ id }, (await this.#ofEngine(id)).chain);
        }
        const row = this.#store.get(id);
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
        await this.#db.write((tx) =>
            call.complete(tx, { action: 'export', resource, resourceId: id, reply: null })
        );
        return pemDownload(row, row.chain + this.#store.open(row));
    }

    #parse(body: { readonly certificate: string; readonly key: string }): ParsedCertificate {
        const result = parseUpload(body.certificate, body.key, this.#clock.now());
        if ('faults' in result) {
            throw invalid(...result.faults);
        }
        return result.parsed;
    }

    /** @throws NOT_FOUND; CONFLICT for what the engine manages by itself */
    #ofPanel(id: number): CertificateRow {
        if (id >= firstEngineId) {
            throw fail.CONFLICT(
                { field: 'source' },
                { message: 'The proxy engine manages this certificate by itself: it can only be read' }
            );
        }
        return this.#store.get(id);
    }

    async #ofEngine(id: number): Promise<EngineCertificate> {
        const found = (await this.#own.list(this.#engine.draft())).find(
            (certificate) => certificate.id === id
        );
        if (found === undefined) {
            throw fail.NOT_FOUND(null, { message: `There is no certificate ${id}` });
        }
        return found;
    }

    /** The fields of an order that a change names, on top of what they are. */
    async #ordered(
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
        const kept = this.#store.openEab(before);
        if (eab != null && eab.macKey === undefined && eab.keyId !== kept?.keyId) {
            throw invalid({
                path: 'acme.eab.macKey',
                message: 'acme.eab.macKey is required with another keyId'
            });
        }
        const provider = body.dnsProviderId ?? dnsProviderId;
        if (provider !== dnsProviderId) {
            await this.#checkProvider(provider);
        }
        return {
            autoRenew: body.autoRenew ?? autoRenew,
            dnsProviderId: provider,
            directory: body.acme?.directory ?? directory,
            email: body.acme?.email === undefined ? email : body.acme.email,
            sealedEab:
                eab === undefined || (eab?.macKey === undefined && eab !== null)
                    ? sealedEab
                    : this.#store.sealEab(
                          eab === null ? null : { keyId: eab.keyId, macKey: eab.macKey ?? '' }
                      )
        };
    }

    /** @throws VALIDATION_FAILED for one that is not there, TOOL_MISSING for one that cannot work here */
    async #checkProvider(id: number | null): Promise<void> {
        if (id === null) {
            throw invalid({
                path: 'dnsProviderId',
                message: 'dnsProviderId is required: no DNS provider is the default'
            });
        }
        await this.#ports.dns.writer(id).catch((error: unknown) => {
            throw isFailure(error) && error.reason === 'NOT_FOUND'
                ? invalid({
                      path: 'dnsProviderId',
                      message: 'dnsProviderId must be the id of a DNS provider'
                  })
                : error;
        });
    }
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
