/** Puts certificates where they belong: into the database and before the engine, together or not at all. */
import { type Reply, reply } from '@portico/sdk';

import type { CertificatePem, Draft, Engine } from '../../../engine/change.ts';
import type { SiteCertificate } from '../../../engine/site.ts';
import { authorOf, type Call } from '../../../platform/call.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Database, Transaction } from '../../../platform/database/database.ts';
import { fail, invalid } from '../../../platform/errors.ts';
import type { CertificateRow } from '../entities.ts';
import type { ParsedCertificate } from '../input/pem.ts';
import type { CertificateView } from '../schema.ts';
import { type DatabaseCertificateStore, siteCertificate } from '../store.ts';
import { usersOf, viewOf } from '../view.ts';
import { proveServed } from './served.ts';

/** What {@link Placement} works with. */
export interface PlacementOptions {
    readonly engine: Pick<Engine, 'change' | 'draft' | 'pending' | 'process'>;
    readonly store: DatabaseCertificateStore;
    readonly db: Database;
    readonly clock: Clock;
    /** Whether names of a certificate hold for a name of a host. */
    covers(names: readonly string[], name: string): boolean;
    /** How long the engine may take to serve a new one. Milliseconds, default 10,000. */
    readonly proofMs?: number;
}

/** Makes the reply from the certificate as it is afterwards. */
type Answer = (after: CertificateView, headers: Readonly<Record<string, string>>) => Reply<CertificateView>;

const resource = 'certificates';
/** Names of one certificate that are looked at before it is believed to be served. */
const mostProofs = 5;
/** Changes that may come in between. */
const mostAttempts = 20;

/** The certificate that a change was made of is not the present one any more. */
class Moved extends Error {}

/** Changes certificates in the database and in the engine together. */
export class Placement {
    readonly #engine: PlacementOptions['engine'];
    readonly #store: DatabaseCertificateStore;
    readonly #db: Database;
    readonly #clock: Clock;
    readonly #covers: PlacementOptions['covers'];
    readonly #proofMs: PlacementOptions['proofMs'];

    constructor({ engine, store, db, clock, covers, proofMs }: PlacementOptions) {
        this.#engine = engine;
        this.#store = store;
        this.#db = db;
        this.#clock = clock;
        this.#covers = covers;
        this.#proofMs = proofMs;
    }

    view(row: CertificateRow): CertificateView {
        return viewOf(row, usersOf(this.#engine.draft(), row.id), this.#store);
    }

    /** Puts a row in place: the engine's copy and the database's, or neither. @throws Moved, VALIDATION_FAILED, ENGINE_REJECTED, ENGINE_UNAVAILABLE */
    async put(
        row: CertificateRow,
        before: CertificateRow | null,
        pem: CertificatePem,
        call: Call,
        answer: Answer
    ): Promise<Reply<CertificateView>> {
        const certificate = siteCertificate(row);
        const { value } = await this.#engine.change({
            by: authorOf(call),
            plan: (draft) => {
                if (before !== null && !isPresent(draft.certificates.get(before.id), before)) {
                    throw new Moved();
                }
                this.#checkUsers(draft, row.id, certificate.names);
                return { certificates: [{ id: row.id, certificate, pem }] };
            },
            commit: async (tx, { reloaded }) => {
                await this.#mustBe(tx, before);
                await this.#store.write(tx, row);
                const after = this.view(row);
                return call.complete(tx, {
                    action: before === null ? 'create' : 'update',
                    resource,
                    resourceId: row.id,
                    before: before === null ? null : this.view(before),
                    after,
                    reply: answer(after, { 'x-engine-reload': String(reloaded) })
                });
            }
        });
        return value;
    }

    /** Writes what the engine does not know of. @throws Moved */
    rewrite(row: CertificateRow, before: CertificateRow, call: Call): Promise<Reply<CertificateView>> {
        return this.#db.write(async (tx) => {
            await this.#mustBe(tx, before);
            await this.#store.write(tx, row);
            if (row.autoRenew !== before.autoRenew) {
                await this.#store.note(tx, row.id, { nextAttemptAt: row.nextAttemptAt });
            }
            const after = this.view(row);
            return call.complete(tx, {
                action: 'update',
                resource,
                resourceId: row.id,
                before: this.view(before),
                after,
                reply: reply.with(after, { headers: { 'x-engine-reload': 'false' } })
            });
        });
    }

    /** @throws Moved, IN_USE */
    async remove(before: CertificateRow, call: Call): Promise<Reply<null>> {
        const { id } = before;
        const completed = async (tx: Transaction, reloaded: boolean): Promise<Reply<null>> => {
            await this.#mustBe(tx, before);
            await this.#store.remove(tx, id);
            return call.complete(tx, {
                action: 'delete',
                resource,
                resourceId: id,
                before: this.view(before),
                after: null,
                reply: reply.with(null, { headers: { 'x-engine-reload': String(reloaded) } })
            });
        };
        if (before.fingerprint === '') {
            return this.#db.write((tx) => completed(tx, false));
        }
        const { value } = await this.#engine.change({
            by: authorOf(call),
            plan(draft) {
                if (!isPresent(draft.certificates.get(id), before)) {
                    throw new Moved();
                }
                const by = usersOf(draft, id);
                if (by.length > 0) {
                    throw fail.IN_USE(
                        { by },
                        { message: `Certificate ${id} is used by host ${by.join(', ')}` }
                    );
                }
                return { certificates: [{ id, certificate: null }] };
            },
            commit: (tx, { reloaded }) => completed(tx, reloaded)
        });
        return value;
    }

    /** Puts what a CA issued in the place of what is there, whatever else was changed meanwhile. @throws as `put`, but Moved; NOT_FOUND */
    adopt(id: number, parsed: ParsedCertificate, call: Call): Promise<void> {
        return this.#replace(
            id,
            { ...stored(parsed, this.#store), domains: this.#store.get(id).domains },
            { certificate: parsed.chain, key: parsed.key },
            call
        );
    }

    /** Puts a former one back. */
    revert(before: CertificateRow, call: Call): Promise<void> {
        const { domains, issuer, serial, notBefore, notAfter, fingerprint, chain, sealedKey } = before;
        return this.#replace(
            before.id,
            { domains, issuer, serial, notBefore, notAfter, fingerprint, chain, sealedKey },
            { certificate: chain, key: this.#store.open(before) },
            call
        );
    }

    /** Null, or what is wrong. Hosts that the engine does not serve now prove nothing. */
    async prove(id: number, before: CertificateRow, signal: AbortSignal): Promise<string | null> {
        const draft = this.#engine.draft();
        const pending = this.#engine.pending();
        if (this.#engine.process().state !== 'running' || before.fingerprint === '') {
            return null;
        }
        const names = usersOf(draft, id).flatMap((user) => {
            const site = draft.hosts.get(user)?.site;
            return site?.ssl === true && site.enabled && !pending.has(user) ? [site.domain] : [];
        });
        for (const name of names.slice(0, mostProofs)) {
            // The engine must no longer show the certificate that had this id before.
            const wrong = await proveServed(
                draft.settings.httpsPort,
                name,
                (fingerprint) => fingerprint !== before.fingerprint,
                signal,
                this.#proofMs
            );
            if (wrong !== null) {
                return wrong;
            }
        }
        return null;
    }

    /** @throws VERSION_STALE, or NOT_FOUND when it was removed, in place of Moved */
    async staleWhenMoved<T>(work: () => Promise<T>, id: number): Promise<T> {
        try {
            return await work();
        } catch (error) {
            throw error instanceof Moved
                ? fail.VERSION_STALE({ version: this.#store.get(id).version })
                : error;
        }
    }

    /** The hosts that name it keep a certificate that covers them. */
    #checkUsers(draft: Draft, id: number, names: readonly string[]): void {
        const faults = usersOf(draft, id).flatMap((user) => {
            const site = draft.hosts.get(user)?.site;
            const missing =
                site === undefined
                    ? []
                    : [site.domain, ...site.aliases].filter((name) => !this.#covers(names, name));
            return missing.length === 0
                ? []
                : [
                      {
                          path: 'certificate',
                          message: `certificate is not valid for ${missing.join(', ')} of host ${user}, which uses it`
                      }
                  ];
        });
        if (faults.length > 0) {
            throw invalid(...faults);
        }
    }

    /** The queue knows fingerprints only: versions are compared in the transaction. */
    async #mustBe(tx: Transaction, before: CertificateRow | null): Promise<void> {
        if (before !== null && (await this.#store.versionIn(tx, before.id)) !== before.version) {
            throw new Moved();
        }
    }

    async #replace(
        id: number,
        content: ReturnType<typeof stored>,
        pem: CertificatePem,
        call: Call
    ): Promise<void> {
        for (let attempt = 1; ; attempt += 1) {
            const before = this.#store.get(id);
            const row: CertificateRow = {
                ...before,
                ...content,
                version: before.version + 1,
                updatedAt: new Date(this.#clock.now()).toISOString()
            };
            try {
                await this.put(row, before, pem, call, (after) => reply.with(after, {}));
                return;
            } catch (error) {
                if (!(error instanceof Moved) || attempt === mostAttempts) {
                    throw error;
                }
            }
        }
    }
}

/** What a row has of a certificate's content. */
export function stored(parsed: ParsedCertificate, store: DatabaseCertificateStore) {
    return {
        domains: JSON.stringify(parsed.names),
        issuer: parsed.issuer,
        serial: parsed.serial,
        notBefore: parsed.notBefore.toISOString(),
        notAfter: parsed.notAfter.toISOString(),
        fingerprint: parsed.fingerprint,
        chain: parsed.chain,
        sealedKey: store.seal(parsed.key)
    };
}

function isPresent(known: SiteCertificate | undefined, row: CertificateRow): boolean {
    return (known?.fingerprint ?? '') === row.fingerprint;
}
