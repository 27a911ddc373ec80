/** When a task is due next, and what a due time asks for. Changes rows only; the caller saves them. */
import type { TaskRow } from '../entities.ts';
import type { RunRequest } from '../runs/admission.ts';
import type { Ctx } from '../settings.ts';
import { type Blackout, type BlackoutPolicy, Blackouts } from './blackouts.ts';
import { parseSchedule, type Schedule } from './schedule.ts';
import { type Timetable, timetableOf } from './timetable.ts';

/** A due time that passed longer ago was missed. */
const graceMs = 60_000;
const noneWaits = { startAt: null, startDueAt: null } as const;

/** Plans a task that was created or changed. `boot` is the id of the current boot. */
export function planTask(task: TaskRow, now: number, boot: string | null): void {
    task.dueAt = task.enabled ? scheduleOf(task).next(now) : null;
    task.boot = boot;
    Object.assign(task, noneWaits);
    task.awaitedSince = Math.min(task.awaitedSince, now);
    expectSuccess(task);
}

/** Plans an enabled task again, because the clock or the time zone's rules have changed. */
export function replanTask(task: TaskRow, now: number): void {
    task.dueAt = scheduleOf(task).next(now);
    Object.assign(task, noneWaits);
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

/** What a start asks for that a blackout or jitter has put off, when its time has come; null when it was missed and nothing makes up for it. */
export function waitingRequest(task: TaskRow, now: number): RunRequest | null {
    const { startAt, startDueAt: dueAt, missed } = task;
    const isInTime = startAt !== null && startAt >= now - graceMs;
    return isInTime || missed === 'run-once'
        ? { trigger: isInTime ? 'schedule' : 'missed', dueAt, attempt: 1 }
        : null;
}

/** When a start that is due at `at` may be; null: not at all. Jitter never moves it into a blackout. */
export function startOf(
    { blackoutPolicy, jitterSeconds }: TaskRow,
    closed: Blackouts,
    at: number
): number | null {
    const free = closed.firstFree(at);
    if (free === null || (free !== at && blackoutPolicy === 'skip')) {
        return null;
    }
    const later = free + Math.floor(Math.random() * (jitterSeconds * 1000 + 1));
    return closed.firstFree(later) === later ? later : free;
}

/** The times of the week at which a task does not start: its own and those of all tasks. */
export function blackoutsOf(
    task: Pick<TaskRow, 'blackouts' | 'timezone'>,
    settings: Ctx['settings']
): Blackouts {
    const blackouts = [...(JSON.parse(task.blackouts) as Blackout[]), ...settings.blackouts];
    try {
        return new Blackouts(blackouts, task.timezone);
    } catch {
        return new Blackouts([], 'UTC');
    }
}

/** The starts of a task without jitter; none when its schedule is not valid any more. */
export function timetableOfRow(
    { schedule, timezone, blackouts, blackoutPolicy }: TaskRow,
    settings: Ctx['settings']
): Timetable {
    try {
        return timetableOf({
            schedule,
            timezone,
            blackouts: [...(JSON.parse(blackouts) as Blackout[]), ...settings.blackouts],
            blackoutPolicy: blackoutPolicy as BlackoutPolicy
        });
    } catch {
        return { next: () => null };
    }
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
