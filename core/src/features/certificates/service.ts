/**
 * Certificates: uploads, orders, renewals and downloads. Keys are sealed at rest and leave the panel only by a download that asks for them. A
 * change goes through the engine's queue: when its answer arrives, the engine serves what is stored.
 */
import { isDeepStrictEqual } from 'node:util';

import { type Download, type Reply, reply } from '@portico/sdk';

import type { Engine } from '../../engine/change.ts';
import type { Call } from '../../platform/call.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { fail, invalid } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log/log.ts';
import { requireVersion } from '../../platform/version.ts';
import type { TaskView } from '../../server/http/answer/task-view.ts';
import type { AcmeAccounts } from './acme/accounts.ts';
import { Issuance } from './acme/issuance.ts';
import { renewalTime } from './acme/pace.ts';
import { Renewals } from './acme/renewals.ts';
import { type EngineCertificate, type EngineCertificates, firstEngineId } from './engine-certificates.ts';
import type { CertificateRow } from './entities.ts';
import { checkName } from './input/checks.ts';
import { readDomains } from './input/domains.ts';
import { checkProvider, notOrdered, orderOf } from './input/order.ts';
import { type ParsedCertificate, parseUpload } from './input/pem.ts';
import { Placement, stored } from './placement/placement.ts';
import type { OrderPorts } from './ports.ts';
import type { CertificateCreate, CertificateUpdate, CertificateView } from './schema.ts';
import type { DatabaseCertificateStore } from './store.ts';
import { usersOfAll, viewOf } from './view.ts';

/** What {@link Certificates} works with. */
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

/** A certificate and its key as PEM. */
export interface CertificateUpload {
    readonly name?: string | undefined;
    readonly certificate: string;
    readonly key: string;
}

const resource = 'certificates';
const defaultDirectory = 'https://acme-v02.api.letsencrypt.org/directory';

/** The service behind `/api/certificates`. */
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

    /** Starts renewals and warnings. */
    start(): void {
        this.#renewals.start();
    }

    /** Computes the next renewal again, after rows were written by an import. */
    changed(): void {
        this.#renewals.arm();
    }

    /** Stops renewals and warnings. */
    stop(): void {
        this.#renewals.stop();
    }

    /** The certificates of the panel, then those that the engine obtained by itself. */
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
    async create(body: CertificateCreate, call: Call): Promise<Reply<CertificateView> | Reply<TaskView>> {
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
    ): Promise<Reply<TaskView>> {
        checkName(body.name);
        const { domains, faults } = readDomains(body.domains ?? []);
        if (faults.length > 0 || domains.length === 0) {
            throw invalid(
                ...faults,
                ...(domains.length === 0 ? [{ path: 'domains', message: 'domains is required' }] : [])
            );
        }
        const dnsProviderId = body.dnsProviderId ?? this.#ports.dns.default();
        await checkProvider(this.#ports.dns, dnsProviderId);
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
    async renew(id: number, call: Call): Promise<Reply<TaskView>> {
        const row = this.#ofPanel(id);
        requireVersion(call, undefined, row.version);
        if (row.source !== 'acme') {
            throw fail.CONFLICT(
                { field: 'source' },
                { message: 'An uploaded certificate is replaced, not renewed' }
            );
        }
        await checkProvider(this.#ports.dns, row.dnsProviderId);
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
        requireVersion(call, body.version, before.version);
        checkName(body.name);
        const order = await orderOf(before, body, this.#store, this.#ports.dns);
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
        requireVersion(call, undefined, before.version);
        return this.#placement.staleWhenMoved(() => this.#placement.remove(before, call), id);
    }

    /** The chain as PEM, followed by the key when the caller may have it and did not decline. @throws NOT_FOUND, FORBIDDEN, STEP_UP_REQUIRED */
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
}

function withoutChain({ chain: _chain, ...view }: EngineCertificate): CertificateView {
    return view;
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
