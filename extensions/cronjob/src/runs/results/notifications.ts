/** The texts of notifications. They never contain what a task runs or prints, because a channel may lead anywhere. */
import type { Notification } from '@portico/sdk';

import type { RunRow, TaskRow } from '../../entities.ts';
import type { Ctx } from '../../settings.ts';
import { channelsOf } from '../../tasks/draft.ts';

/** Sends notifications. A failure is only logged: it is not the task's fault. */
export async function sendNotifications(ctx: Ctx, notifications: readonly Notification[]): Promise<void> {
    for (const notification of notifications) {
        await ctx.notify(notification).catch((error: unknown) =>
            ctx.log.warn('A notification could not be sent', {
                event: notification.event,
                error: String(error)
            })
        );
    }
}

/** The notification of a finished run by the task's `notifyOn`; null for none. `wasFailing` is the task's state before the run. */
export function notificationOf(task: TaskRow, run: RunRow, wasFailing: boolean): Notification | null {
    const { name, notifyOn } = task;
    const succeeded = run.state === 'succeeded';
    const wanted =
        notifyOn === 'always' ||
        (notifyOn === 'failure' && !succeeded) ||
        (notifyOn === 'change' && wasFailing === succeeded);
    if (!wanted) {
        return null;
    }
    const common = { text: textOf(run), ...addressOf(task, run) };
    if (!succeeded) {
        return { event: 'task-failed', severity: 'error', title: `The task ${name} failed`, ...common };
    }
    return wasFailing
        ? { event: 'task-recovered', severity: 'info', title: `The task ${name} succeeds again`, ...common }
        : { event: 'task-succeeded', severity: 'info', title: `The task ${name} succeeded`, ...common };
}

/** The notification that no run succeeded within `deadManSeconds`. */
export function overdueNotification(task: TaskRow): Notification {
    const { name, deadManSeconds, awaitedSince } = task;
    return {
        event: 'task-overdue',
        severity: 'error',
        title: `The task ${name} has not succeeded in time`,
        text: `No run succeeded since ${new Date(awaitedSince).toISOString()}; one was due within ${deadManSeconds ?? 0} s.`,
        ...addressOf(task, null)
    };
}

/** The notification that an overdue task has succeeded. */
export function recoveredNotification(task: TaskRow, run: RunRow): Notification {
    return {
        event: 'task-recovered',
        severity: 'info',
        title: `The overdue task ${task.name} succeeded`,
        text: textOf(run),
        ...addressOf(task, run)
    };
}

/** The task's channels, and the ids by which a program finds the task and the run; `runId` is null where no run is meant. */
function addressOf(task: TaskRow, run: RunRow | null): Pick<Notification, 'data' | 'channels'> {
    const channels = channelsOf(task);
    return {
        data: { taskId: task.id, runId: run?.id ?? null },
        ...(channels === null ? {} : { channels })
    };
}

function textOf(run: RunRow): string {
    return `Run ${run.id}${run.attempt > 1 ? `, try ${run.attempt},` : ''} ${describeEnd(run)}.`;
}

function describeEnd({ state, exitCode, signal, reason, startedAt, finishedAt }: RunRow): string {
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
    if (reason === 'LIMIT_MEMORY') {
        return `used more memory than it may${seconds}`;
    }
    return exitCode !== null
        ? `ended with exit code ${exitCode}${seconds}`
        : signal !== null
          ? `was ended by ${signal}${seconds}`
          : `failed: ${reason ?? state}`;
}
