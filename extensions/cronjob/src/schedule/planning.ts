/** When a task is due next, and what a due time asks for. Changes rows only; the caller saves them. */
import type { TaskRow } from '../entities.ts';
import type { RunRequest } from '../runs/admission.ts';
import { parseSchedule, type Schedule } from './schedule.ts';

/** A due time that passed longer ago was missed. */
const graceMs = 60_000;

/** Plans a task that was created or changed. `boot` is the id of the current boot. */
export function planTask(task: TaskRow, now: number, boot: string | null): void {
    task.dueAt = task.enabled ? scheduleOf(task).next(now) : null;
    task.boot = boot;
    task.awaitedSince = Math.min(task.awaitedSince, now);
    expectSuccess(task);
}

/** Plans an enabled task again, because the clock or the time zone's rules have changed. */
export function replanTask(task: TaskRow, now: number): void {
    task.dueAt = scheduleOf(task).next(now);
    task.retryAt = task.retryAt === null ? null : Math.min(task.retryAt, now + task.backoffSeconds * 1000);
    task.awaitedSince = Math.min(task.awaitedSince, now);
    if (task.overdueSince === null) {
        expectSuccess(task);
    }
}

/** What a due time that has come asks for: a run in time, one run for all times that were missed, or null for nothing. */
export function requestFor(task: TaskRow, dueAt: number, now: number): RunRequest | null {
    const inTime = dueAt >= now - graceMs ? dueAt : scheduleOf(task).next(now - graceMs - 1);
    if (inTime !== null && inTime <= now) {
        return { trigger: 'schedule', dueAt: inTime, attempt: 1 };
    }
    return task.missed === 'run-once' ? { trigger: 'missed', dueAt, attempt: 1 } : null;
}

/** The schedule of a task; one that is never due when it is not valid any more, because machines know different time zones. One such task must not stop all others. */
export function scheduleOf({ schedule, timezone }: TaskRow): Schedule {
    try {
        return parseSchedule(schedule, timezone);
    } catch {
        return { reboot: false, next: () => null };
    }
}

/** Sets when a success will be overdue. */
function expectSuccess(task: TaskRow): void {
    task.deadAt =
        task.enabled && task.deadManSeconds !== null ? task.awaitedSince + task.deadManSeconds * 1000 : null;
}
