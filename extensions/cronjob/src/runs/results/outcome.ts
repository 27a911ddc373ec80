/** Records how runs ended, and what follows for their tasks. */
import type { Notification } from '@portico/sdk';

import type { RunRow, TaskRow } from '../../entities.ts';
import { stepsAfter } from '../../tasks/steps.ts';
import { notificationOf, recoveredNotification } from './notifications.ts';
import type { RunResult } from './result.ts';

/** The reasons of a stopped run: a caller asked for it, or the generation ends. */
export const stopReason = { caller: 'STOPPED', shutdown: 'PLUGIN_STOPPED' } as const;

/** What follows from the end of a run. */
export interface Recorded {
    /** To be sent when the write is durable. */
    readonly notifications: readonly Notification[];
    /** Tasks that follow in its chain, to be admitted in the same write. */
    readonly steps: readonly number[];
}

/** How a run ended. */
export interface Outcome {
    readonly result: RunResult;
    /** Whether the task's `retries` apply. */
    readonly mayRetry: boolean;
    /** Milliseconds since 1970. */
    readonly now: number;
}

const maxBackoffMs = 24 * 60 * 60_000;

/** Records the end of a run and plans a retry where the task wants one. Call it under the mutex and in a write, and admit the steps in the same write. */
export function recordOutcome(run: RunRow, task: TaskRow, outcome: Outcome): Recorded {
    const { result, now } = outcome;
    Object.assign(run, result, { finishedAt: now, scratch: null, version: run.version + 1 });
    if (result.state === 'succeeded') {
        return { notifications: recordSuccess(task, run, now), steps: stepsAfter(task, run) };
    }
    const isStopped = result.state === 'stopped' && result.reason !== stopReason.shutdown;
    if (!isStopped && planRetry(task, run, outcome)) {
        return { notifications: [], steps: [] };
    }
    return {
        notifications: isStopped ? [] : recordFailure(task, run),
        steps: stepsAfter(task, run)
    };
}

function recordSuccess(task: TaskRow, run: RunRow, now: number): readonly Notification[] {
    const { failing, overdueSince } = task;
    Object.assign(task, {
        failing: false,
        awaitedSince: now,
        overdueSince: null,
        retryAt: null,
        deadAt: task.enabled && task.deadManSeconds !== null ? now + task.deadManSeconds * 1000 : null
    });
    return [
        overdueSince !== null ? recoveredNotification(task, run) : null,
        overdueSince !== null && failing ? null : notificationOf(task, run, failing)
    ].filter((notification) => notification !== null);
}

/** Whether the task will be tried again. */
function planRetry(task: TaskRow, run: RunRow, { mayRetry, now }: Outcome): boolean {
    if (!mayRetry || run.attempt > task.retries) {
        return false;
    }
    const pauseMs = Math.min(maxBackoffMs, task.backoffSeconds * 1000 * 2 ** (run.attempt - 1));
    Object.assign(task, { retryAt: now + pauseMs, retryAttempt: run.attempt + 1, retryOf: run.id });
    return true;
}

function recordFailure(task: TaskRow, run: RunRow): readonly Notification[] {
    const wasFailing = task.failing;
    task.failing = true;
    const notification = notificationOf(task, run, wasFailing);
    return notification === null ? [] : [notification];
}
