/** One call of a tap: its signal, and its time limit. */

const controllers = new WeakMap<TapCall, AbortController>();

/** The second argument of a tap. Most taps never read their signal, so the signal is made when a tap reads it. */
export class TapCall {
    get signal(): AbortSignal {
        return controllerOf(this).signal;
    }
}

/** Aborts the tap's signal: its outcome is not needed any more. */
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

/** Whether a value can be awaited. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
    return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}

/** A run that waits for one tap after another. */
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
    giveUp(reason: Error): void;
}

/** The timer looks so often, milliseconds, or more often where the time is short. */
const lookEveryMs = 100;

/**
 * The time limit of each tap of a hook. A timer for each call, or reading the clock, would cost several times what the call does, and most taps end at
 * once. So one timer, which runs only while a run waits, visits all waiting runs: it notes at which tap each one is, and ends those that it saw at the
 * same tap a whole limit ago. A tap has its limit and at most a tenth more.
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
                        waiter.giveUp(new Error(`The tap took longer than ${this.#milliseconds / 1000} s`));
                    }
                }
                this.#timer = this.#first === null ? null : this.#look();
            },
            Math.min(lookEveryMs, Math.ceil(this.#milliseconds / 20))
        );
    }
}

/** Milliseconds, about, that the run has waited for the present tap; 0 when the timer has not seen it. */
export function waited({ step, seenAt, seenStep }: TapWaiter): number {
    return seenAt === 0 || seenStep !== step ? 0 : performance.now() - seenAt;
}

/** Awaits one tap until its time limit, or until the run is given up by its signal. */
export function within(
    promised: PromiseLike<unknown>,
    deadline: TapDeadline,
    lent: TapCall,
    signal: AbortSignal | undefined
): Promise<unknown> {
    return new Promise((resolve, reject) => {
        const give = (reason: Error): void => {
            stopWaiting();
            endCall(lent, reason);
            reject(reason);
        };
        const leave = (): void =>
            give(
                signal?.reason instanceof Error
                    ? signal.reason
                    : new Error('The run of the hook was given up')
            );
        const waiter: TapWaiter = {
            before: null,
            after: null,
            step: 0,
            seenAt: 0,
            seenStep: 0,
            isWaiting: false,
            giveUp: give
        };
        const stopWaiting = (): void => {
            deadline.leave(waiter);
            signal?.removeEventListener('abort', leave);
        };
        deadline.enter(waiter);
        signal?.addEventListener('abort', leave, { once: true });
        promised.then(
            (result) => {
                stopWaiting();
                resolve(result);
            },
            (error: unknown) => {
                stopWaiting();
                reject(error as Error);
            }
        );
    });
}
