/** What people are told, and when. Never what a task runs or prints: a channel may lead anywhere. */
import type { Notification } from '@portico/sdk';

import type { RunRow, TaskRow } from '../entities.ts';

/** What one finished run means to people; null for nothing. `wasFailing` is how the task stood before it. */
export function noticeOf(task: TaskRow, run: RunRow, wasFailing: boolean): Notification | null {
    const { name, notifyOn } = task;
    const succeeded = run.state === 'succeeded';
    const wanted =
        notifyOn === 'always' ||
        (notifyOn === 'failure' && !succeeded) ||
        (notifyOn === 'change' && wasFailing === succeeded);
    if (!wanted) {
        return null;
    }
    if (!succeeded) {
        return {
            event: 'task-failed',
            severity: 'error',
            title: `The task ${name} failed`,
            text: `Run ${run.id}${run.attempt > 1 ? `, try ${run.attempt},` : ''} ${howOf(run)}.`
        };
    }
    return wasFailing
        ? {
              event: 'task-recovered',
              severity: 'info',
              title: `The task ${name} succeeds again`,
              text: `Run ${run.id} ${howOf(run)}.`
          }
        : {
              event: 'task-succeeded',
              severity: 'info',
              title: `The task ${name} succeeded`,
              text: `Run ${run.id} ${howOf(run)}.`
          };
}

/** The dead man's alert. */
export function overdueNotice({ name, deadManSeconds, awaitedSince }: TaskRow): Notification {
    return {
        event: 'task-overdue',
        severity: 'error',
        title: `The task ${name} has not succeeded in time`,
        text: `No run succeeded since ${new Date(awaitedSince).toISOString()}; one was due within ${deadManSeconds ?? 0} s.`
    };
}

/** Its end. */
export function inTimeNotice({ name }: TaskRow, run: RunRow): Notification {
    return {
        event: 'task-recovered',
        severity: 'info',
        title: `The overdue task ${name} succeeded`,
        text: `Run ${run.id} ${howOf(run)}.`
    };
}

function howOf({ state, exitCode, signal, reason, startedAt, finishedAt }: RunRow): string {
    const seconds =
        startedAt === null || finishedAt === null
            ? ''
            : ` after ${Math.max(0, Math.round((finishedAt - startedAt) / 1000))} s`;
    if (state === 'succeeded') {
        return `succeeded${seconds}`;
    }
    if (state === 'timeout') {
        return `took too long and was ended${seconds}`;
    }
    return exitCode !== null
        ? `ended with exit code ${exitCode}${seconds}`
        : signal !== null
          ? `was ended by ${signal}${seconds}`
          : `failed: ${reason ?? state}`;
}
