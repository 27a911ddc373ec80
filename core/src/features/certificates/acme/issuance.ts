/**
 * Orders and renewals: one attempt is one task. The certificate that is there stays until the new one is proven served; what went wrong
 * stays on record in the CA's own words, with the time of the next attempt.
 */
import { type Failure, isFailure } from '@portico/sdk';

import type { Call } from '../../../platform/call.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Database } from '../../../platform/database/database.ts';
import { fail, invalid } from '../../../platform/errors.ts';
import type { TaskView } from '../../../server/http/answer/task-view.ts';
import type { CertificateRow } from '../entities.ts';
import { type ParsedCertificate, parseUpload } from '../input/pem.ts';
import type { Placement } from '../placement/placement.ts';
import type { OrderPorts, TaskRun } from '../ports.ts';
import type { CertificateView } from '../schema.ts';
import type { DatabaseCertificateStore, Notes } from '../store.ts';
import type { AcmeAccounts } from './accounts.ts';
import { AcmeClient } from './client.ts';
import type { ExternalAccount } from './jws.ts';
import { obtain, type Ordered } from './order.ts';
import { renewalTime, retryAfter } from './pace.ts';
import { AcmeFailure, ownProblem, type Problem } from './problem.ts';

/** What {@link Issuance} works with. */
export interface IssuanceOptions extends OrderPorts {
    readonly store: DatabaseCertificateStore;
    readonly db: Database;
    readonly clock: Clock;
    readonly accounts: AcmeAccounts;
    readonly placement: Placement;
    /** Called after each attempt, because the next renewal may be due at another time. */
    over(): void;
}

/** How far the clock of a CA may run ahead. */
const skewMs = 10 * 60_000;

/** Obtains certificates from CAs, one task for each attempt. */
export class Issuance {
    readonly #options: IssuanceOptions;
    readonly #store: DatabaseCertificateStore;
    readonly #db: Database;
    readonly #clock: Clock;
    readonly #accounts: AcmeAccounts;
    readonly #events: IssuanceOptions['events'];
    readonly #placement: Placement;
    readonly #tasks: IssuanceOptions['tasks'];
    readonly #working = new Set<number>();

    constructor(options: IssuanceOptions) {
        this.#options = options;
        this.#store = options.store;
        this.#db = options.db;
        this.#clock = options.clock;
        this.#accounts = options.accounts;
        this.#events = options.events;
        this.#placement = options.placement;
        this.#tasks = options.tasks;
    }

    /** Whether an attempt is under way. */
    busy(id: number): boolean {
        return this.#working.has(id);
    }

    /**
     * Starts an attempt. A `fresh` row is written together with the task.
     * @throws IN_USE 40901 while an attempt is under way, VALIDATION_FAILED for a DNS provider that is gone
     */
    async start(row: CertificateRow, call: Call, fresh: boolean): Promise<TaskView> {
        const { id } = row;
        const title = `${row.fingerprint === '' ? 'Issue' : 'Renew'} the certificate ${row.name}`;
        return this.#tasks.start({
            kind: row.fingerprint === '' ? 'certificate.issue' : 'certificate.renew',
            title,
            access: 'certificates:write',
            call,
            key: `certificate ${id}`,
            audit: {
                action: fresh ? 'create' : 'renew',
                resource: 'certificates',
                resourceId: id,
                ...(fresh ? { before: null, after: { ...this.#placement.view(row) } } : {})
            },
            ...(fresh
                ? {
                      also: async (tx) => {
                          if (
                              row.dnsProviderId === null ||
                              !(await this.#options.dns.existsIn(tx, row.dnsProviderId))
                          ) {
                              throw invalid({
                                  path: 'dnsProviderId',
                                  message: 'dnsProviderId must be the id of a DNS provider'
                              });
                          }
                          await this.#store.write(tx, row);
                      }
                  }
                : {}),
            work: async (run) => {
                this.#working.add(id);
                try {
                    return await this.#attempt(id, run);
                } finally {
                    this.#working.delete(id);
                    this.#options.over();
                }
            }
        });
    }

    #note(id: number, notes: Notes): Promise<void> {
        return this.#db.write((tx) => this.#store.note(tx, id, notes));
    }

    async #order(row: CertificateRow, { signal, progress, log }: TaskRun): Promise<Ordered> {
        const { directory, email, dnsProviderId } = row;
        if (directory === null || dnsProviderId === null) {
            throw new AcmeFailure(ownProblem('no-provider', 'The certificate names no DNS provider'));
        }
        const eab = this.#store.openEab(row);
        const account = await this.#accounts.get(directory, email, eab?.keyId ?? null);
        const writer = await this.#options.dns.writer(dnsProviderId);
        const { roots } = this.#options.settings();
        const client = new AcmeClient({
            http: this.#options.http,
            clock: this.#clock,
            directory,
            key: account.key,
            roots: roots === null ? [] : [roots],
            signal
        });
        await this.#register(client, account, email, eab);
        progress(0.1, `Speaks to ${new URL(directory).host}`);
        return obtain({
            client,
            accountKey: account.key,
            domains: JSON.parse(row.domains) as string[],
            writer,
            signal,
            progress,
            log
        });
    }

    async #register(
        client: AcmeClient,
        account: { readonly id: number; readonly url: string | null },
        email: string | null,
        eab: ExternalAccount | null
    ): Promise<void> {
        const url = await client.register({ email, eab, known: account.url });
        if (url !== account.url) {
            await this.#accounts.registered(account.id, url);
        }
    }

    /** Checks what the CA sent as strictly as an upload. @throws AcmeFailure */
    #check(row: CertificateRow, { chain, key }: Ordered): ParsedCertificate {
        const result = parseUpload(chain, key, this.#clock.now() + skewMs);
        if ('faults' in result) {
            throw new AcmeFailure(
                ownProblem(
                    'bad-certificate',
                    `The CA issued a certificate that cannot be used: ${result.faults.map(({ message }) => message).join('; ')}`
                )
            );
        }
        const missing = (JSON.parse(row.domains) as string[]).filter(
            (domain) => !result.parsed.names.includes(domain)
        );
        if (missing.length > 0) {
            throw new AcmeFailure(
                ownProblem('bad-certificate', `The CA issued a certificate without ${missing.join(', ')}`)
            );
        }
        return result.parsed;
    }

    async #attempt(id: number, run: TaskRun): Promise<CertificateView> {
        const before = this.#store.get(id);
        // If the panel is killed in the middle, the next attempt waits as after a failure.
        await this.#note(id, {
            nextAttemptAt: before.autoRenew ? retryAfter(before.failures + 1, this.#clock.now()) : null
        });
        try {
            const parsed = this.#check(before, await this.#order(before, run));
            const call = this.#options.systemCall();
            await this.#placement.adopt(id, parsed, call);
            run.progress(0.9, 'Handed it to the proxy engine');
            const wrong = await this.#placement.prove(id, before, run.signal);
            if (wrong !== null) {
                await this.#placement.revert(before, this.#options.systemCall());
                throw new AcmeFailure(
                    ownProblem('not-served', `The new certificate was taken back: ${wrong}`)
                );
            }
            const row = this.#store.get(id);
            await this.#note(id, {
                lastError: null,
                failures: 0,
                warnedDays: null,
                nextAttemptAt: row.autoRenew
                    ? renewalTime(row.notBefore, row.notAfter, this.#clock.now())
                    : null
            });
            run.progress(1, `Valid until ${row.notAfter}`);
            this.#events.issued({
                id,
                name: row.name,
                domains: JSON.parse(row.domains) as string[],
                notAfter: row.notAfter,
                renewed: before.fingerprint !== ''
            });
            return this.#placement.view(this.#store.get(id));
        } catch (error) {
            throw await this.#failed(id, error, run);
        }
    }

    async #failed(id: number, error: unknown, { signal }: TaskRun): Promise<unknown> {
        const row = this.#store.all().find((each) => each.id === id);
        if (row === undefined) {
            return fail.NOT_FOUND(null, { message: `The certificate ${id} was removed meanwhile` });
        }
        if (signal.aborted) {
            // A cancelled attempt is no failure: it is neither counted nor reported.
            await this.#note(id, {
                lastError: errorText(ownProblem('cancelled', 'The attempt was cancelled'), this.#clock.now())
            });
            return error;
        }
        const problem = problemOf(error);
        const failures = row.failures + 1;
        const retryAt = error instanceof AcmeFailure ? error.retryAt : null;
        const nextAttemptAt = row.autoRenew ? retryAfter(failures, this.#clock.now(), retryAt) : null;
        await this.#note(id, { lastError: errorText(problem, this.#clock.now()), failures, nextAttemptAt });
        this.#events.failed({
            id,
            name: row.name,
            domains: JSON.parse(row.domains) as string[],
            problem,
            nextAttemptAt: nextAttemptAt === null ? null : new Date(nextAttemptAt).toISOString()
        });
        if (isFailure(error)) {
            return error;
        }
        return problem.type === internal
            ? error
            : fail.CERTIFICATE_NOT_ISSUED(
                  { problem, certificateId: id },
                  { message: problem.detail, cause: error }
              );
    }
}

const internal = 'urn:portico:error:internal';

/** The stored form of the last error of a certificate: JSON of the problem with its time. */
export function errorText(problem: Problem, now: number): string {
    return JSON.stringify({ ...problem, at: new Date(now).toISOString() });
}

/** The problem of an error, in the words of the CA if it gave some. */
function problemOf(error: unknown): Problem {
    if (error instanceof AcmeFailure) {
        return error.problem;
    }
    // A writer's failure, or one of our own: both say what they are by `reason`.
    const { reason, message } = error as Partial<Failure>;
    return typeof reason === 'string' && typeof message === 'string'
        ? ownProblem(reason.toLowerCase().replaceAll('_', '-'), message)
        : { type: internal, detail: 'Something went wrong; the log has it' };
}
