/**
 * The fast way through a hook: a loop awaits one tap after another, and nothing is copied or checked in between. It holds while every
 * tap is there and answers nothing, as nearly always. At the first tap that fails, answers, hangs or is being replaced, the run goes on as a `TapRun`.
 */
import { AsyncResource } from 'node:async_hooks';

import { endCall, isThenable, TapCall, type TapDeadline, type TapWaiter, waited } from './tap-call.ts';
import type { TapRecord, TapRun } from './tap-run.ts';

/** What all runs over the same taps share. */
export interface QuickCourse {
    readonly taps: readonly TapRecord[];
    readonly deadline: TapDeadline;
    /** How it goes on, tap by tap. */
    careful(): TapRun;
}

/** The state of one quick run. */
export interface QuickRun extends TapWaiter {
    readonly course: QuickCourse;
    readonly payload: unknown;
    /** The asynchronous context of the publisher. */
    readonly context: AsyncResource;
    lent: TapCall | null;
    /** It went through the gate of the present tap. */
    isInside: boolean;
    isOver: boolean;
    readonly resolve: () => void;
    readonly reject: (error: unknown) => void;
}

/** The outcome of the tap at which a quick run stopped. */
interface Outcome {
    readonly isGood: boolean;
    readonly value: unknown;
    readonly milliseconds: number;
}

/** Runs the hook. @throws what the `TapRun` throws */
export function runQuickly(payload: unknown, course: QuickCourse): Promise<void> {
    return new Promise((resolve, reject) => {
        const run: QuickRun = {
            before: null,
            after: null,
            step: 0,
            seenAt: 0,
            seenStep: 0,
            isWaiting: false,
            giveUp,
            course,
            payload,
            context: new AsyncResource('HookRun'),
            lent: null,
            isInside: false,
            isOver: false,
            resolve,
            reject
        };
        course.deadline.enter(run);
        void walk(run);
    });
}

/** Asks the taps in turn, to the end or to the first that fails or answers. It never rejects: `stop` and `end` settle the run. */
async function walk(run: QuickRun): Promise<void> {
    const { taps } = run.course;
    try {
        for (let index = 0; index < taps.length; index += 1) {
            const given = ask(run, taps[index] as TapRecord, index);
            if (run.isOver) {
                return;
            }
            const answer = isThenable(given) ? await given : given;
            if (answer !== undefined) {
                stop(run, { isGood: true, value: answer, milliseconds: 0 });
                return;
            }
            if (run.isOver || !left(run)) {
                return;
            }
        }
    } catch (error) {
        stop(run, { isGood: false, value: error, milliseconds: waited(run) });
        return;
    }
    end(run);
    run.resolve();
}

/** Asks one tap. Where its gate is closed, the run stops before it. */
function ask(run: QuickRun, { call, gate }: TapRecord, index: number): unknown {
    run.step = index;
    if (gate !== null) {
        if (call === null || gate.isParked || !gate.enter()) {
            stop(run, null);
            return undefined;
        }
        run.isInside = true;
    }
    return call === null ? undefined : call(run.payload, (run.lent = new TapCall()));
}

function giveUp(run: QuickRun, reason: Error): void {
    run.context.runInAsyncScope(() => {
        if (run.lent !== null) {
            endCall(run.lent, reason);
        }
        stop(run, { isGood: false, value: reason, milliseconds: waited(run) });
    });
}

/** Leaves the gate of the tap before. False when its plugin was replaced meanwhile, so that the new plugin's taps must be asked. */
function left(run: QuickRun): boolean {
    if (!run.isInside) {
        return true;
    }
    const { gate, call } = recordOf(run);
    run.isInside = false;
    gate?.leave();
    if (call !== null) {
        return true;
    }
    stop(run, { isGood: true, value: undefined, milliseconds: 0 });
    return false;
}

function end(run: QuickRun): void {
    run.isOver = true;
    run.course.deadline.leave(run);
    if (run.isInside) {
        run.isInside = false;
        recordOf(run).gate?.leave();
    }
}

function stop(run: QuickRun, outcome: Outcome | null): void {
    if (!run.isOver) {
        end(run);
        goOn(run, outcome).then(run.resolve, run.reject);
    }
}

/** Goes on at the tap where the quick run stopped. @param outcome - null when that tap was not asked yet */
async function goOn(
    { course: { taps, careful }, step, payload }: QuickRun,
    outcome: Outcome | null
): Promise<void> {
    const run = careful();
    const record = taps[step] as TapRecord;
    if (outcome === null) {
        await run.visit(payload, record);
    } else if (record.call !== null) {
        run[outcome.isGood ? 'gave' : 'failed'](payload, record, outcome.value, outcome.milliseconds);
    } else if (record.gate !== null) {
        await run.follow(record.gate, payload, record);
    }
    for (const next of taps.slice(step + 1)) {
        await run.visit(payload, next);
    }
}

function recordOf({ course, step }: QuickRun): TapRecord {
    return course.taps[step] as TapRecord;
}
