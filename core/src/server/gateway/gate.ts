/**
 * The gate of one plugin. Requests, sockets, injected calls, calls of its contract and runs of its taps all pass here on their way in and are
 * counted. While the plugin's generation is swapped, the gate is parked: new ones wait, and those inside finish.
 */
import { AsyncLocalStorage } from 'node:async_hooks';

import { fail } from '../../platform/errors.ts';

/** Gives back a place inside. To be called once. */
export type Leave = () => void;

/** How one caller waits at a parked gate. */
export interface Waiting {
    /** Ends the wait. */
    readonly signal?: AbortSignal;
    /** Milliseconds; default and most: those of the gate. */
    readonly patienceMs?: number;
}

/** The limits of a gate. */
export interface GateLimits {
    /** The most requests that wait at once; default 1,000. */
    readonly most: number;
    /** The longest time that a request waits, in milliseconds; default 30,000. */
    readonly patienceMs: number;
}

/** The plugins whose gates the running work has passed, the last one first. */
interface Trail {
    readonly gate: Gate;
    readonly before: Trail | undefined;
}

interface Waiter {
    enter(leave: Leave): void;
    refuse(error: unknown): void;
}

const trails = new AsyncLocalStorage<Trail>();
/** The limits of a gate that is given no others. */
export const usualLimits: GateLimits = { most: 1_000, patienceMs: 30_000 };
/** What a refused client is told to wait. */
const retryAfterSeconds = 2;

/** Counts what is inside a plugin, and makes new work wait while the gate is parked. */
export class Gate {
    readonly #plugin: string;
    readonly #limits: GateLimits;
    readonly #waiters = new Set<Waiter>();
    readonly #emptied = new Set<() => void>();
    #listeners: (() => void)[] = [];
    #inside = 0;
    #isParked = false;
    #isClosed = false;

    constructor(plugin: string, limits: Partial<GateLimits> = {}) {
        this.#plugin = plugin;
        this.#limits = { ...usualLimits, ...limits };
    }

    /** Whether new work waits. */
    get isParked(): boolean {
        return this.#isParked;
    }

    /** Goes in at once; null when the work has to wait. Work that the plugin itself causes passes a parked gate: the plugin may wait for it. */
    pass(): Leave | null {
        return !this.#isParked || isWithin(this) ? this.#place() : null;
    }

    /** Like `pass`, without making anything: true when the work is in, which then has to call `leave` once. */
    enter(): boolean {
        if (this.#isParked && !isWithin(this)) {
            return false;
        }
        this.#inside += 1;
        return true;
    }

    /** Gives back the place of an `enter`. Bound, so that it can be handed over. */
    readonly leave = (): void => {
        this.#inside -= 1;
        if (this.#inside === 0 && this.#emptied.size > 0) {
            this.#emptied.forEach((tell) => tell());
        }
    };

    /**
     * Goes in as soon as the gate is open.
     *
     * @throws NOT_READY 50300 when it stays parked for too long, or too many wait already; the signal's reason
     */
    wait({ signal, patienceMs }: Waiting = {}): Promise<Leave> {
        return new Promise((resolve, reject) => {
            if (signal?.aborted === true) {
                reject(signal.reason as Error);
            } else if (!this.#isParked) {
                resolve(this.#place());
            } else if (this.#waiters.size >= this.#limits.most || this.#isClosed) {
                reject(
                    this.#refusal(
                        `The plugin ${this.#plugin} is being changed, and too many wait for it already`
                    )
                );
            } else {
                this.#queue({ enter: resolve, refuse: reject }, signal, patienceMs);
            }
        });
    }

    /** Runs work so that whatever it causes, however far away, counts as caused by the plugin. */
    within<T>(work: () => T): T {
        return trails.run({ gate: this, before: trails.getStore() }, work);
    }

    /** Makes new work wait from now on. @throws TypeError when it is parked already */
    park(): void {
        if (this.#isParked) {
            throw new TypeError(`The gate of ${this.#plugin} is parked already`);
        }
        this.#isParked = true;
    }

    /** Lets the waiting work in, in the order of coming, and all that comes later. */
    open(): void {
        if (!this.#isParked) {
            return;
        }
        this.#isParked = false;
        const told = this.#listeners;
        this.#listeners = [];
        told.forEach((listener) => listener());
        for (const waiter of this.#waiters) {
            waiter.enter(this.#place());
        }
    }

    /** Resolves as soon as the plugin is empty, or when the time is over. @returns how many are still inside */
    empty(milliseconds: number): Promise<number> {
        return new Promise((resolve) => {
            if (this.#inside === 0) {
                resolve(0);
                return;
            }
            const done = (): void => {
                clearTimeout(timer);
                this.#emptied.delete(done);
                resolve(this.#inside);
            };
            const timer = setTimeout(done, milliseconds);
            this.#emptied.add(done);
        });
    }

    /** Calls once, when the parked gate opens. */
    onOpen(listener: () => void): void {
        this.#listeners.push(listener);
    }

    /** Refuses all that wait: the panel ends. */
    close(): void {
        this.#isClosed = true;
        for (const waiter of this.#waiters) {
            waiter.refuse(this.#refusal('The panel stops'));
        }
    }

    /** Takes a place that can be given back more than once without harm. */
    #place(): Leave {
        this.#inside += 1;
        let left = false;
        return () => {
            if (!left) {
                left = true;
                this.leave();
            }
        };
    }

    #queue(outcome: Waiter, signal: AbortSignal | undefined, patienceMs = this.#limits.patienceMs): void {
        const forget = (): void => {
            this.#waiters.delete(waiter);
            clearTimeout(timer);
            signal?.removeEventListener('abort', giveUp);
        };
        const waiter: Waiter = {
            enter: (given) => {
                forget();
                outcome.enter(given);
            },
            refuse: (error) => {
                forget();
                outcome.refuse(error);
            }
        };
        const giveUp = (): void => waiter.refuse(signal?.reason);
        const timer = setTimeout(
            () => waiter.refuse(this.#refusal(`The plugin ${this.#plugin} is still being changed`)),
            Math.min(patienceMs, this.#limits.patienceMs)
        );
        signal?.addEventListener('abort', giveUp, { once: true });
        this.#waiters.add(waiter);
    }

    #refusal(message: string): Error {
        return fail.NOT_READY({ plugin: this.#plugin, retryAfterSeconds }, { message });
    }
}

function isWithin(gate: Gate): boolean {
    for (let trail = trails.getStore(); trail !== undefined; trail = trail.before) {
        if (trail.gate === gate) {
            return true;
        }
    }
    return false;
}

/**
 * Captures the trail, so that work which runs later still counts as caused by the same plugins: a plugin in a thread answers by messages.
 *
 * @returns runs work with the trail of now
 */
export function trailOf(): <T>(work: () => T) => T {
    const trail = trails.getStore();
    return trail === undefined ? outside : (work) => trails.run(trail, work);
}

function outside<T>(work: () => T): T {
    return trails.exit(work);
}
