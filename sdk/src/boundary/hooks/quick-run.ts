/**
 * The fast way through a hook: one tap is asked after another, and nothing is copied or checked in between. It holds while every
 * tap is there and answers nothing, as nearly always. At the first tap that fails, answers, hangs or is being replaced, the run goes on as a `TapRun`.
 */
import { endCall, TapCall, type TapDeadline, type TapWaiter, waited } from './tap-call.ts';
import type { TapRecord, TapRun } from './tap-run.ts';

/** What all runs over the same taps share. */
export interface QuickCourse {
    readonly taps: readonly TapRecord[];
    readonly deadline: TapDeadline;
    /** How it goes on, tap by tap. */
    careful(): TapRun;
}

/** Where a quick run stopped, and why. */
interface Stop {
    readonly payload: unknown;
    readonly course: QuickCourse;
    readonly step: number;
    /** The outcome of that tap; null when it was not asked yet. */
    readonly outcome: Outcome | null;
    /** The tap's call, when its time was over. */
    readonly late: TapCall | null;
}

interface Outcome {
    readonly isGood: boolean;
    readonly value: unknown;
    readonly milliseconds: number;
}

/** Runs the hook. @throws what the `TapRun` throws */
export function runQuickly(payload: unknown, course: QuickCourse): Promise<void> {
    // What is called by `then` has the asynchronous context of the publisher, also when a timer stopped the run.
    return new Promise<Stop | null>((resolve) => new QuickRun(payload, course, resolve).begin()).then(goOn);
}

/** Goes on at the tap where the quick run stopped. */
function goOn(stop: Stop | null): Promise<void> | undefined {
    return stop === null ? undefined : goOnCarefully(stop);
}

async function goOnCarefully({ payload, course, step, outcome, late }: Stop): Promise<void> {
    const run = course.careful();
    const record = course.taps[step] as TapRecord;
    if (late !== null) {
        endCall(late, outcome?.value as Error);
    }
    if (outcome === null) {
        await run.visit(payload, record);
    } else if (record.call !== null) {
        run[outcome.isGood ? 'gave' : 'failed'](payload, record, outcome.value, outcome.milliseconds);
    } else if (record.gate !== null) {
        await run.follow(record.gate, payload, record);
    }
    for (const next of course.taps.slice(step + 1)) {
        await run.visit(payload, next);
    }
}

const { then } = Promise.prototype;

/** What a tap gave, as a promise that calls back once and later, whatever `then` it brought. */
function promiseOf(given: unknown): Promise<unknown> {
    const promise = Promise.resolve(given);
    return promise.then === then ? promise : (async () => promise)();
}

/** One quick run. */
class QuickRun implements TapWaiter {
    before: TapWaiter | null = null;
    after: TapWaiter | null = null;
    step = 0;
    seenAt = 0;
    seenStep = 0;
    isWaiting = false;
    readonly #payload: unknown;
    readonly #course: QuickCourse;
    readonly #resolve: (stop: Stop | null) => void;
    #lent: TapCall | null = null;
    /** It went through the gate of the present tap. */
    #isInside = false;
    #isOver = false;

    constructor(payload: unknown, course: QuickCourse, resolve: (stop: Stop | null) => void) {
        this.#payload = payload;
        this.#course = course;
        this.#resolve = resolve;
    }

    begin(): void {
        this.#course.deadline.enter(this);
        this.#walk();
    }

    giveUp(reason: Error): void {
        this.#stop({ isGood: false, value: reason, milliseconds: waited(this) }, this.#lent);
    }

    /** Asks the taps in turn, to the end or to the next one that must be waited for. */
    #walk(): void {
        const { taps } = this.#course;
        try {
            for (; this.step < taps.length; this.step += 1) {
                const given = this.#ask(taps[this.step] as TapRecord);
                if (given !== undefined) {
                    // `await` would make three functions for each tap; these two serve the whole run.
                    void promiseOf(given).then(this.#answered, this.#failed);
                    return;
                }
                if (this.#isOver || !this.#leave()) {
                    return;
                }
            }
        } catch (error) {
            this.#failed(error);
            return;
        }
        this.#end(null);
    }

    /** Asks one tap. Where its gate is closed, the run stops before it. */
    #ask({ call, gate }: TapRecord): unknown {
        if (gate !== null) {
            if (call === null || gate.isParked || !gate.enter()) {
                this.#stop(null);
                return undefined;
            }
            this.#isInside = true;
        }
        return call === null ? undefined : call(this.#payload, (this.#lent = new TapCall()));
    }

    readonly #answered = (value: unknown): void => {
        if (value !== undefined) {
            this.#stop({ isGood: true, value, milliseconds: 0 });
        } else if (!this.#isOver && this.#leave()) {
            this.step += 1;
            this.#walk();
        }
    };

    readonly #failed = (error: unknown): void =>
        this.#stop({ isGood: false, value: error, milliseconds: waited(this) });

    /** Leaves the gate of the present tap. False when its plugin was replaced meanwhile, so that the new plugin's taps must be asked. */
    #leave(): boolean {
        if (!this.#isInside) {
            return true;
        }
        const { gate, call } = this.#course.taps[this.step] as TapRecord;
        this.#isInside = false;
        gate?.leave();
        if (call !== null) {
            return true;
        }
        this.#stop({ isGood: true, value: undefined, milliseconds: 0 });
        return false;
    }

    #stop(outcome: Outcome | null, late: TapCall | null = null): void {
        if (!this.#isOver) {
            this.#end({ payload: this.#payload, course: this.#course, step: this.step, outcome, late });
        }
    }

    #end(stop: Stop | null): void {
        this.#isOver = true;
        this.#course.deadline.leave(this);
        if (this.#isInside) {
            this.#isInside = false;
            this.#course.taps[this.step]?.gate?.leave();
        }
        this.#resolve(stop);
    }
}
