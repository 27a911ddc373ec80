/** One call of a tap: what it is lent, and how long it is waited for. */
import type { AsyncResource } from 'node:async_hooks';

/** What a tap is lent. Most taps never look at their signal, so it is made when one does. */
export class TapCall {
    #controller: AbortController | null = null;
    #reason: Error | null = null;

    get signal(): AbortSignal {
        if (this.#controller === null) {
            this.#controller = new AbortController();
            if (this.#reason !== null) {
                this.#controller.abort(this.#reason);
            }
        }
        return this.#controller.signal;
    }

    end(reason: Error): void {
        this.#reason = reason;
        this.#controller?.abort(reason);
    }
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
    return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}

/** Hears once what became of a tap: what it gave, or why it failed, and for about how many milliseconds it was waited for. */
type Settle = (isGood: boolean, value: unknown, milliseconds: number) => void;

interface Waiting {
    before: Waiting | null;
    after: Waiting | null;
    /** When the timer saw it first; 0 until then. */
    seenAt: number;
    readonly lent: TapCall;
    /** Where the run stands, to go on from there when the tap is given up. */
    readonly context: AsyncResource;
    readonly settle: Settle;
    isOver: boolean;
}

/** The timer looks so often, milliseconds, or more often where the time is short. */
const lookEveryMs = 100;

/**
 * The time that each tap of a hook has. A timer for each call would cost several times what the call does, and so would looking at the clock;
 * most taps settle before any clock moves. So one timer, which runs only while somebody is waited for or was just now, passes all who wait: it
 * notes who is there, and gives up those whom it saw a whole time ago. A tap has its time and at most a tenth more.
 */
export class TapDeadline {
    readonly #milliseconds: number;
    #first: Waiting | null = null;
    #last: Waiting | null = null;
    #timer: NodeJS.Timeout | null = null;

    constructor(milliseconds: number) {
        this.#milliseconds = milliseconds;
    }

    /** @param signal - whoever waits gives up */
    wait(promised: PromiseLike<unknown>, lent: TapCall, context: AsyncResource, settle: Settle, signal?: AbortSignal): void {
        const last = this.#last;
        const waiting: Waiting = { before: last, after: null, seenAt: 0, lent, context, settle: signal === undefined ? settle : heeding(signal, settle, (reason) => this.#giveUp(waiting, reason)), isOver: false };
        if (last === null) {
            this.#first = waiting;
        }
        else {
            last.after = waiting;
        }
        this.#last = waiting;
        this.#timer ??= this.#look();
        try {
            (promised instanceof Promise ? promised as Promise<unknown> : Promise.resolve(promised)).then((value) => this.#end(waiting, true, value), (error: unknown) => this.#end(waiting, false, error));
        }
        catch (error) {
            this.#end(waiting, false, error);
        }
    }

    #end(waiting: Waiting, isGood: boolean, value: unknown): void {
        if (waiting.isOver) {
            return;
        }
        waiting.isOver = true;
        const { before, after, seenAt } = waiting;
        if (before === null) {
            this.#first = after;
        }
        else {
            before.after = after;
        }
        if (after === null) {
            this.#last = before;
        }
        else {
            after.before = before;
        }
        // A tap that never settles keeps its place in memory, and must not keep those that came after it.
        waiting.before = null;
        waiting.after = null;
        waiting.settle(isGood, value, seenAt === 0 ? 0 : performance.now() - seenAt);
    }

    #giveUp(waiting: Waiting, reason: Error): void {
        if (!waiting.isOver) {
            waiting.context.runInAsyncScope(() => {
                waiting.lent.end(reason);
                this.#end(waiting, false, reason);
            });
        }
    }

    #look(): NodeJS.Timeout {
        return setTimeout(() => {
            const now = performance.now();
            for (let waiting = this.#first, after: Waiting | null; waiting !== null; waiting = after) {
                after = waiting.after;
                if (waiting.seenAt === 0) {
                    waiting.seenAt = now;
                }
                else if (now - waiting.seenAt >= this.#milliseconds) {
                    this.#giveUp(waiting, new Error(`The tap took longer than ${this.#milliseconds / 1000} s`));
                }
            }
            this.#timer = this.#first === null ? null : this.#look();
        }, Math.min(lookEveryMs, Math.ceil(this.#milliseconds / 20)));
    }
}

/** Listens to a signal until the tap has settled. */
function heeding(signal: AbortSignal, settle: Settle, giveUp: (reason: Error) => void): Settle {
    const leave = (): void => giveUp(signal.reason instanceof Error ? signal.reason : new Error('Nobody waits for the tap any more'));
    signal.addEventListener('abort', leave, { once: true });
    if (signal.aborted) {
        queueMicrotask(leave);
    }
    return (isGood, value, milliseconds) => {
        signal.removeEventListener('abort', leave);
        settle(isGood, value, milliseconds);
    };
}
