/**
 * The gate of one plugin: requests, sockets, injected calls, calls of its contract and runs of its taps all pass here on their way in and are
 * counted. While its generation is swapped the gate is parked: whoever comes waits, whoever is inside drains.
 */
import { AsyncLocalStorage } from 'node:async_hooks';

import { fail } from '../../platform/errors.ts';

/** Takes back one's place inside. To be called once. */
export type Leave = () => void;

export interface Waiting {
    /** Whoever waited gives up. */
    readonly signal?: AbortSignal;
    /** Milliseconds; default and most: those of the gate. */
    readonly patienceMs?: number;
}

/** The limits of a gate. */
export interface GateLimits {
    /** So many wait at most; default 1,000. */
    readonly most: number;
    /** So long at most, milliseconds; default 30,000. */
    readonly patienceMs: number;
}

export interface Gate {
    /** Whether newcomers wait. */
    readonly isParked: boolean;
    /** Goes in at once; null when one has to wait. What the plugin itself causes passes a parked gate: what it waits for would never end. */
    pass(): Leave | null;
    /** The same, and nothing is made for it: true for whoever is in, and has to call `leave` once. */
    enter(): boolean;
    leave(): void;
    /** Goes in as soon as the gate is open. @throws NOT_READY 50300 when it stays parked for too long, or too many wait already; the signal's reason */
    wait(options?: Waiting): Promise<Leave>;
    /** Whatever this work causes, however far away, counts as caused by the plugin. */
    within<T>(work: () => T): T;
    /** Newcomers wait from now on. @throws TypeError when it is parked already */
    park(): void;
    /** Lets in whoever waits, in the order of coming, and all that come later. */
    open(): void;
    /** Resolves as soon as nobody is inside, or when the time is over; with how many still are. */
    empty(milliseconds: number): Promise<number>;
    /** Calls once, when the parked gate opens. */
    onOpen(listener: () => void): void;
    /** Sends away whoever waits: the panel ends. */
    close(): void;
}

/** The plugins that led here, the last one first. */
interface Trail {
    readonly gate: Gate;
    readonly before: Trail | undefined;
}

const trails = new AsyncLocalStorage<Trail>();
const usual: GateLimits = { most: 1_000, patienceMs: 30_000 };

/** When somebody who was sent away may come again. */
const retryAfterSeconds = 2;

interface Waiter {
    enter(leave: Leave): void;
    refuse(error: unknown): void;
}

export function createGate(plugin: string, limits: Partial<GateLimits> = {}): Gate {
    const { most, patienceMs } = { ...usual, ...limits };
    const waiters = new Set<Waiter>();
    const emptied = new Set<() => void>();
    let listeners: (() => void)[] = [];
    let inside = 0;
    let parked = false;
    let closed = false;

    const leave = (): void => {
        inside -= 1;
        if (inside === 0 && emptied.size > 0) {
            emptied.forEach((tell) => tell());
        }
    };
    const enter = (): Leave => {
        inside += 1;
        let left = false;
        return () => {
            if (!left) {
                left = true;
                leave();
            }
        };
    };
    const sentAway = (message: string): Error => fail.NOT_READY({ plugin, retryAfterSeconds }, { message });
    const open = (): void => {
        if (!parked) {
            return;
        }
        parked = false;
        const told = listeners;
        listeners = [];
        told.forEach((listener) => listener());
        for (const waiter of waiters) {
            waiter.enter(enter());
        }
    };
    const gate: Gate = {
        get isParked() {
            return parked;
        },
        pass: () => (!parked || isWithin(gate) ? enter() : null),
        enter() {
            if (parked && !isWithin(gate)) {
                return false;
            }
            inside += 1;
            return true;
        },
        leave,
        wait: ({ signal, patienceMs: own = patienceMs } = {}) =>
            new Promise<Leave>((resolve, reject) => {
                if (signal?.aborted === true) {
                    reject(signal.reason as Error);
                    return;
                }
                if (!parked) {
                    resolve(enter());
                    return;
                }
                if (waiters.size >= most || closed) {
                    reject(
                        sentAway(`The plugin ${plugin} is being changed, and too many wait for it already`)
                    );
                    return;
                }
                const settle = (): void => {
                    waiters.delete(waiter);
                    clearTimeout(timer);
                    signal?.removeEventListener('abort', leave);
                };
                const waiter: Waiter = {
                    enter: (given) => {
                        settle();
                        resolve(given);
                    },
                    refuse: (error) => {
                        settle();
                        reject(error as Error);
                    }
                };
                const leave = (): void => waiter.refuse(signal?.reason);
                const timer = setTimeout(
                    () => waiter.refuse(sentAway(`The plugin ${plugin} is still being changed`)),
                    Math.min(own, patienceMs)
                );
                signal?.addEventListener('abort', leave, { once: true });
                waiters.add(waiter);
            }),
        within: (work) => trails.run({ gate, before: trails.getStore() }, work),
        park() {
            if (parked) {
                throw new TypeError(`The gate of ${plugin} is parked already`);
            }
            parked = true;
        },
        open,
        empty: (milliseconds) =>
            new Promise((resolve) => {
                if (inside === 0) {
                    resolve(0);
                    return;
                }
                const done = (): void => {
                    clearTimeout(timer);
                    emptied.delete(done);
                    resolve(inside);
                };
                const timer = setTimeout(done, milliseconds);
                emptied.add(done);
            }),
        onOpen: (listener) => void listeners.push(listener),
        close() {
            closed = true;
            for (const waiter of waiters) {
                waiter.refuse(sentAway('The panel stops'));
            }
        }
    };
    return gate;
}

function isWithin(gate: Gate): boolean {
    for (let trail = trails.getStore(); trail !== undefined; trail = trail.before) {
        if (trail.gate === gate) {
            return true;
        }
    }
    return false;
}

/** Where one stands now, to go on from there later, in another turn of the loop: a plugin in a thread answers by messages. */
export function trailOf(): <T>(work: () => T) => T {
    const trail = trails.getStore();
    return (work) => (trail === undefined ? trails.exit(work) : trails.run(trail, work));
}
