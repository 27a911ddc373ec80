/**
 * Failed logins slow the next ones down, by network and by account, and a restart changes nothing.
 *
 * An account is counted twice: once for all networks together that it never logged in from, and once for each network that it did, so a
 * stranger who guesses does not keep the owner out at home. (From a new place the owner waits like all others; the console opens the account.)
 * A network is shared by many, so it may fail more often; what one account failed there is forgotten when that account logs in.
 */
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';

import { networkOf } from '../../../platform/address/caller.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Database, Transaction } from '../../../platform/database/database.ts';
import { fail } from '../../../platform/errors.ts';
import { ThrottleEntity } from '../entities.ts';

/** From so many failures on, each further one closes for so long. */
export interface Step {
    readonly failures: number;
    readonly seconds: number;
}

/** What `Throttle` is built from. */
export interface ThrottleDependencies {
    readonly db: Database;
    readonly clock: Clock;
    /** Names of accounts are kept as HMACs: people type passwords into the wrong field. */
    readonly key: Buffer;
    readonly accountSteps?: readonly Step[];
    readonly networkSteps?: readonly Step[];
}

/** One attempt that was let through; to be settled once. */
export interface Attempt extends Disposable {
    /** The account got in from this network within the last 30 days. */
    readonly known: boolean;
    /** Counts it as failed; a wrong code only for the network, since the second step keeps a count of its own. Answers what this closed, and for how many seconds. */
    failed(
        tx: Transaction,
        what: 'password' | 'code'
    ): Promise<{ readonly seconds: number; readonly closed: readonly ('account' | 'network')[] }>;
    /** Counts it as right: what this account failed is forgotten. */
    succeeded(tx: Transaction): Promise<void>;
}

interface Counter {
    readonly key: string;
    readonly kind: 'account' | 'network';
    readonly steps: readonly Step[];
    /** Attempts that may be under way at the same time while nothing has failed lately. */
    readonly together: number;
}

interface Row {
    readonly failures: number;
    readonly blocked_until: number;
    readonly failed_at: number;
    readonly succeeded_at: number;
}

const accountSteps: readonly Step[] = [
    { failures: 5, seconds: 60 },
    { failures: 10, seconds: 900 },
    { failures: 20, seconds: 3600 }
];
const networkSteps: readonly Step[] = [
    { failures: 20, seconds: 60 },
    { failures: 40, seconds: 900 },
    { failures: 80, seconds: 3600 }
];
const forgottenAfterMs = 24 * 3600_000;
const knownForMs = 30 * 24 * 3600_000;

/** Limits failed logins by account and by network. */
export class Throttle {
    readonly #clock: Clock;
    readonly #key: KeyObject;
    readonly #accountSteps: readonly Step[];
    readonly #networkSteps: readonly Step[];
    readonly #pending = new Map<string, number>();
    readonly #row;

    constructor({ db, clock, key, ...steps }: ThrottleDependencies) {
        this.#clock = clock;
        this.#key = createSecretKey(key);
        this.#accountSteps = steps.accountSteps ?? accountSteps;
        this.#networkSteps = steps.networkSteps ?? networkSteps;
        this.#row = db.prepare<[string], Row>(
            'select failures, blocked_until, failed_at, succeeded_at from auth_throttle where key = ?'
        );
    }

    /** Lets an attempt begin. It counts as under way until it is disposed of. @throws RATE_LIMITED 42900 with `data.retryAfterSeconds` */
    begin(username: string, ip: string | null): Attempt {
        const now = this.#clock.now();
        const network = networkOf(ip);
        const name = this.#nameOf(username);
        const pair = `pair:${name}@${network}`;
        const known = (this.#row.get(pair)?.succeeded_at ?? 0) > now - knownForMs;
        const counters: Counter[] = [
            {
                key: known ? pair : `account:${name}`,
                kind: 'account',
                steps: this.#accountSteps,
                together: 20
            },
            { key: `network:${network}`, kind: 'network', steps: this.#networkSteps, together: 60 }
        ];
        for (const counter of counters) {
            this.#admit(counter, now);
        }
        for (const { key } of counters) {
            this.#pending.set(key, (this.#pending.get(key) ?? 0) + 1);
        }
        let settled = false;
        return {
            known,
            failed: async (tx, what) => {
                const counted = counters.filter(({ kind }) => what === 'password' || kind === 'network');
                const results: number[] = [];
                for (const counter of counted) {
                    results.push(await this.#count(tx, counter, now));
                }
                if (!counted.some(({ key }) => key === pair)) {
                    await this.#add(tx, pair, 1, now);
                }
                await tx.em.nativeDelete(ThrottleEntity, {
                    failedAt: { $lt: now - forgottenAfterMs },
                    succeededAt: { $lt: now - knownForMs }
                });
                return {
                    seconds: Math.max(...results),
                    closed: counted
                        .filter((_counter, index) => (results[index] ?? 0) > 0)
                        .map(({ kind }) => kind)
                };
            },
            succeeded: async (tx) => {
                const own = await this.#failures(tx, pair, now);
                await this.#add(tx, `network:${network}`, -own, null);
                await tx.em.nativeDelete(ThrottleEntity, { key: { $in: [`account:${name}`, pair] } });
                await tx.em.insert(ThrottleEntity, {
                    key: pair,
                    failures: 0,
                    blockedUntil: 0,
                    failedAt: 0,
                    succeededAt: now
                });
            },
            [Symbol.dispose]: () => {
                if (!settled) {
                    settled = true;
                    counters.forEach(({ key }) => this.#release(key));
                }
            }
        };
    }

    /** Opens an account again, from wherever. */
    async forgive(tx: Transaction, username: string): Promise<void> {
        const name = this.#nameOf(username);
        await tx.em.nativeDelete(ThrottleEntity, {
            $or: [{ key: `account:${name}` }, { key: { $gte: `pair:${name}@`, $lt: `pair:${name}A` } }]
        });
    }

    #admit({ key, steps, together }: Counter, now: number): void {
        const row = this.#row.get(key);
        const failures = row === undefined || row.failed_at < now - forgottenAfterMs ? 0 : row.failures;
        // Longer than the longest step: the clock was set back, and what is left is unknown.
        const longest = Math.max(...steps.map(({ seconds }) => seconds)) * 1000;
        const wait = (row?.blocked_until ?? 0) - now;
        if (wait > 0 && wait <= longest) {
            throw fail.RATE_LIMITED({ retryAfterSeconds: Math.ceil(wait / 1000) });
        }
        const pending = this.#pending.get(key) ?? 0;
        if (pending >= (failures >= (steps[0]?.failures ?? Infinity) ? 1 : together)) {
            throw fail.RATE_LIMITED({ retryAfterSeconds: 1 });
        }
    }

    async #count(tx: Transaction, { key, steps }: Counter, now: number): Promise<number> {
        const failures = await this.#add(tx, key, 1, now);
        const seconds = steps.findLast((step) => failures >= step.failures)?.seconds ?? 0;
        if (seconds > 0) {
            await tx.em.nativeUpdate(ThrottleEntity, { key }, { blockedUntil: now + seconds * 1000 });
        }
        return seconds;
    }

    async #failures(tx: Transaction, key: string, now: number): Promise<number> {
        const row = await tx.em.findOne(ThrottleEntity, { key });
        return row === null || row.failedAt < now - forgottenAfterMs ? 0 : row.failures;
    }

    async #add(tx: Transaction, key: string, change: number, failedAt: number | null): Promise<number> {
        const row = await tx.em.findOne(ThrottleEntity, { key });
        const kept = row === null || row.failedAt < this.#clock.now() - forgottenAfterMs ? 0 : row.failures;
        const failures = Math.max(0, kept + change);
        if (row !== null) {
            await tx.em.nativeUpdate(
                ThrottleEntity,
                { key },
                { failures, ...(failedAt === null ? {} : { failedAt }) }
            );
        } else if (change > 0) {
            await tx.em.insert(ThrottleEntity, {
                key,
                failures,
                blockedUntil: 0,
                failedAt: failedAt ?? 0,
                succeededAt: 0
            });
        }
        return failures;
    }

    #release(key: string): void {
        const left = (this.#pending.get(key) ?? 1) - 1;
        if (left === 0) {
            this.#pending.delete(key);
        } else {
            this.#pending.set(key, left);
        }
    }

    #nameOf(username: string): string {
        return createHmac('sha256', this.#key)
            .update(username.normalize('NFKC').toLowerCase())
            .digest('base64url')
            .slice(0, 22);
    }
}
