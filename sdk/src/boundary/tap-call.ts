/** One call of a tap: what it is lent, and how long it is waited for. */

const controllers = new WeakMap<TapCall, AbortController>();

/** What a tap is lent. Most taps never look at their signal, so it is made when one does: until then the call is an empty object, the cheapest there is. */
export class TapCall {
    get signal(): AbortSignal {
        return controllerOf(this).signal;
    }
}

/** Tells the tap that nobody waits for it any more. */
export function endCall(lent: TapCall, reason: Error): void {
    controllerOf(lent).abort(reason);
}

function controllerOf(lent: TapCall): AbortController {
    let controller = controllers.get(lent);
    if (controller === undefined) {
        controller = new AbortController();
        controllers.set(lent, controller);
    }
    return controller;
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
    return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}

/** Somebody who waits for one tap after another. Made as a plain object, all in one: one comes with every run. */
export interface TapWaiter {
    before: TapWaiter | null;
    after: TapWaiter | null;
    /** Which tap it waits for. */
    step: number;
    /** When, and at which tap, it was seen first; 0 before that. */
    seenAt: number;
    seenStep: number;
    isWaiting: boolean;
    /** The tap's time is over. */
    readonly giveUp: (waiter: never, reason: Error) => void;
}

/** The timer looks so often, milliseconds, or more often where the time is short. */
const lookEveryMs = 100;

/**
 * The time that each tap of a hook has. A timer for each call would cost several times what the call does, and so would a look at the clock;
 * most taps settle before any clock moves. So one timer, which runs only while somebody waits or did just now, passes all who wait: it notes
 * for which tap, and gives up those whom it saw at the same tap a whole time ago. A tap has its time and at most a tenth more.
 */
export class TapDeadline {
    readonly #milliseconds: number;
    #first: TapWaiter | null = null;
    #last: TapWaiter | null = null;
    #timer: NodeJS.Timeout | null = null;

    constructor(milliseconds: number) {
        this.#milliseconds = milliseconds;
    }

    enter(waiter: TapWaiter): void {
        const last = this.#last;
        waiter.before = last;
        waiter.isWaiting = true;
        if (last === null) {
            this.#first = waiter;
        } else {
            last.after = waiter;
        }
        this.#last = waiter;
        if (this.#timer === null) {
            this.#timer = this.#look();
        }
    }

    leave(waiter: TapWaiter): void {
        if (!waiter.isWaiting) {
            return;
        }
        const { before, after } = waiter;
        if (before === null) {
            this.#first = after;
        } else {
            before.after = after;
        }
        if (after === null) {
            this.#last = before;
        } else {
            after.before = before;
        }
        // A tap that never settles keeps its waiter in memory, which must not keep those that came after it.
        waiter.before = null;
        waiter.after = null;
        waiter.isWaiting = false;
    }

    #look(): NodeJS.Timeout {
        return setTimeout(
            () => {
                const now = performance.now();
                for (let waiter = this.#first, after: TapWaiter | null; waiter !== null; waiter = after) {
                    after = waiter.after;
                    if (waiter.seenAt === 0 || waiter.seenStep !== waiter.step) {
                        waiter.seenAt = now;
                        waiter.seenStep = waiter.step;
                    } else if (now - waiter.seenAt >= this.#milliseconds) {
                        this.leave(waiter);
                        waiter.giveUp(
                            waiter as never,
                            new Error(`The tap took longer than ${this.#milliseconds / 1000} s`)
                        );
                    }
                }
                this.#timer = this.#first === null ? null : this.#look();
            },
            Math.min(lookEveryMs, Math.ceil(this.#milliseconds / 20))
        );
    }
}

/** For about how long somebody has waited for the present tap, milliseconds; 0 when no timer saw it. */
export function waited({ step, seenAt, seenStep }: TapWaiter): number {
    return seenAt === 0 || seenStep !== step ? 0 : performance.now() - seenAt;
}

/** What one tap promised, if it comes in time and somebody still waits. */
export function within(
    promised: PromiseLike<unknown>,
    deadline: TapDeadline,
    lent: TapCall,
    signal: AbortSignal | undefined
): Promise<unknown> {
    return new Promise((resolve, reject) => {
        const give = (reason: Error): void => {
            settle();
            endCall(lent, reason);
            reject(reason);
        };
        const leave = (): void =>
            give(
                signal?.reason instanceof Error
                    ? signal.reason
                    : new Error('Nobody waits for the tap any more')
            );
        const waiter: TapWaiter = {
            before: null,
            after: null,
            step: 0,
            seenAt: 0,
            seenStep: 0,
            isWaiting: false,
            giveUp: (_waiter, reason) => give(reason)
        };
        const settle = (): void => {
            deadline.leave(waiter);
            signal?.removeEventListener('abort', leave);
        };
        deadline.enter(waiter);
        signal?.addEventListener('abort', leave, { once: true });
        promised.then(
            (result) => {
                settle();
                resolve(result);
            },
            (error: unknown) => {
                settle();
                reject(error as Error);
            }
        );
    });
}
