/** Starts what is due: by the clock, after a boot, as a retry; and notifies when no run succeeded in time. A due time and its run are one write, so no crash doubles or loses a run. */
import type { Mutex, Notification } from '@portico/sdk';
import type { EntityManager } from '@portico/sdk/db';

import { TaskEntity, type TaskRow } from '../entities.ts';
import type { Machine } from '../machine.ts';
import { findRuns, findTasks } from '../queries.ts';
import { retryRequest, type RunRequest, type WantedRun } from '../runs/admission.ts';
import type { StartedRun } from '../runs/recording.ts';
import { overdueNotification, sendNotifications } from '../runs/results/notifications.ts';
import type { Runs } from '../runs/runs.ts';
import type { Ctx } from '../settings.ts';
import { Alarm } from './alarm.ts';
import {
    blackoutsOf,
    planTask,
    replanTask,
    requestFor,
    scheduleOf,
    startOf,
    waitingRequest
} from './planning.ts';

/** What the scheduler needs. */
export interface SchedulerOptions {
    readonly ctx: Ctx;
    readonly machine: Machine;
    readonly mutex: Mutex;
    readonly runs: Runs;
}

/** A clock that was set back by more was wrong before, so everything is planned again. By less, what ran does not run again. */
const setBackMs = 60 * 60_000;

/** Tasks whose runs are admitted in one write. */
const admittedAtOnce = 50;

/** Later than all times of tasks, in milliseconds since 1970. */
const never = Number.MAX_SAFE_INTEGER;

/** One look at the clock. */
interface Look {
    /** Milliseconds since 1970. */
    readonly now: number;
    /** What is to be sent afterwards. */
    readonly notifications: Notification[];
}

/** Watches the clock and starts due tasks. */
export class Scheduler {
    readonly #options: SchedulerOptions;
    readonly #alarm: Alarm;
    #lastCheck = 0;
    #closed = false;

    constructor(options: SchedulerOptions) {
        this.#options = options;
        this.#alarm = new Alarm(options.machine.now, options.machine.pollMs, () => this.checkSoon());
    }

    /** Plans when a task is due. Call it in the write that creates or changes the task, and `checkSoon` afterwards. */
    plan(task: TaskRow, boot: string | null): void {
        planTask(task, this.#options.machine.now(), boot);
    }

    /** Starts: plans again what a change of the clock or of time zones made wrong, runs `@reboot` tasks after a boot, then starts what is due. */
    async start(): Promise<void> {
        const { ctx, machine, mutex } = this.#options;
        const boot = await machine.boot();
        await mutex.run(async () => {
            const now = (this.#lastCheck = machine.now());
            this.#launch(
                await ctx.db.write(async (em) => {
                    const tasks = await findTasks(em, { enabled: true });
                    replanOutdated(tasks, await newestTime(em), now);
                    return this.#options.runs.admit(em, this.#takeBooted(tasks, boot, now));
                })
            );
        });
        await this.#check();
    }

    /** Starts what is due, soon. */
    checkSoon(): void {
        this.#check().catch((error: unknown) => {
            if (!this.#closed) {
                this.#options.ctx.log.error('Due tasks could not be read', { error: String(error) });
                this.#alarm.set(null);
            }
        });
    }

    /** Stops watching the clock for good. */
    close(): void {
        this.#closed = true;
        this.#alarm.close();
    }

    async #check(): Promise<void> {
        const notifications: Notification[] = [];
        if (!this.#closed) {
            await this.#options.mutex.run(async () => {
                if (!this.#closed) {
                    await this.#startDue(notifications);
                }
            });
        }
        void sendNotifications(this.#options.ctx, notifications);
    }

    async #startDue(notifications: Notification[]): Promise<void> {
        const { ctx, machine } = this.#options;
        const now = machine.now();
        if (now < this.#lastCheck - setBackMs) {
            await ctx.db.write(async (em) =>
                (await findTasks(em, { enabled: true })).forEach((task) => replanTask(task, now))
            );
        }
        this.#lastCheck = now;
        const due = {
            $or: [
                { dueAt: { $lte: now } },
                { startAt: { $lte: now } },
                { retryAt: { $lte: now } },
                { deadAt: { $lte: now } }
            ]
        };
        const tasks = await ctx.db.read((em) =>
            em.find(TaskEntity, due, { fields: ['id'], orderBy: { id: 'asc' } })
        );
        for (let first = 0; first < tasks.length; first += admittedAtOnce) {
            const ids = tasks.slice(first, first + admittedAtOnce).map(({ id }) => id);
            this.#launch(
                await ctx.db.write(async (em) => {
                    const wanted: WantedRun[] = [];
                    for (const task of await findTasks(em, { id: { $in: ids } })) {
                        const requests = await this.#takeDue(em, task, { now, notifications });
                        wanted.push(...requests.map((request) => ({ task, request })));
                    }
                    return this.#options.runs.admit(em, wanted);
                })
            );
        }
        this.#alarm.set(await this.#nextTime());
    }

    /** What is due of a task: plans what comes after it. */
    async #takeDue(em: EntityManager, task: TaskRow, { now, notifications }: Look): Promise<RunRequest[]> {
        const due: (RunRequest | null)[] = [];
        if (task.dueAt !== null && task.dueAt <= now) {
            const request = requestFor(task, task.dueAt, now);
            task.dueAt = scheduleOf(task).next(now);
            due.push(request === null ? null : this.#takeByTime(task, request, now));
        }
        if (task.startAt !== null && task.startAt <= now) {
            due.push(this.#takeWaiting(task, now));
        }
        if (task.retryAt !== null && task.retryAt <= now) {
            due.push(await this.#takeRetry(em, task, now));
        }
        if (task.deadAt !== null && task.deadAt <= now) {
            task.deadAt = null;
            task.overdueSince = now;
            notifications.push(overdueNotification(task));
        }
        return due.filter((request) => request !== null);
    }

    /** What the clock asks for. It may be put off: until the end of a blackout, and by jitter. One start of a task waits at most. */
    #takeByTime(task: TaskRow, request: RunRequest, now: number): RunRequest | null {
        const at = request.trigger === 'missed' ? now : (request.dueAt ?? now);
        const start = startOf(task, blackoutsOf(task, this.#options.ctx.settings), at);
        if (start === null) {
            return { ...request, isHeld: true };
        }
        // A new due time replaces the retry of an earlier one.
        task.retryAt = null;
        if (start <= now) {
            return request;
        }
        if (task.startAt === null) {
            Object.assign(task, { startAt: start, startDueAt: request.dueAt });
        }
        return null;
    }

    /** What was put off, unless a blackout is on now that was not known then. */
    #takeWaiting(task: TaskRow, now: number): RunRequest | null {
        const request = waitingRequest(task, now);
        const closed = blackoutsOf(task, this.#options.ctx.settings);
        const start = startOf({ ...task, jitterSeconds: 0 }, closed, now);
        if (start !== null && start > now) {
            task.startAt = start;
            return null;
        }
        Object.assign(task, { startAt: null, startDueAt: null });
        return request === null ? null : { ...request, isHeld: start === null };
    }

    /** A retry waits for the end of a blackout, whatever the policy. */
    async #takeRetry(em: EntityManager, task: TaskRow, now: number): Promise<RunRequest | null> {
        const free = blackoutsOf(task, this.#options.ctx.settings).firstFree(now);
        task.retryAt = free === now ? null : free;
        return task.retryAt === null && free !== null ? retryRequest(em, task) : null;
    }

    /** The `@reboot` tasks that have not run since the machine started. */
    #takeBooted(tasks: readonly TaskRow[], boot: string | null, now: number): WantedRun[] {
        return tasks.flatMap((task) => {
            if (boot === null || task.boot === boot || !scheduleOf(task).reboot) {
                return [];
            }
            task.boot = boot;
            const due = { trigger: 'schedule', dueAt: now, attempt: 1 } as const;
            const request = this.#takeByTime(task, due, now);
            return request === null ? [] : [{ task, request }];
        });
    }

    #launch(started: readonly StartedRun[]): void {
        started.forEach((each) => this.#options.runs.launch(each));
    }

    async #nextTime(): Promise<number | null> {
        const rows = await this.#options.ctx.db.read((em) =>
            em.execute<{ at: number | null }[]>(
                `select nullif(min(min(${['due_at', 'start_at', 'retry_at', 'dead_at'].map((at) => `ifnull(${at}, ${never})`).join(', ')})), ${never}) as at from tasks`
            )
        );
        return rows[0]?.at ?? null;
    }
}

/** Plans tasks again whose next time is wrong: rules of time zones change, and the clock may have been set back far while nothing ran. */
function replanOutdated(tasks: readonly TaskRow[], newest: number, now: number): void {
    for (const task of tasks) {
        const moved =
            task.dueAt !== null && task.dueAt > now && scheduleOf(task).next(task.dueAt - 1) !== task.dueAt;
        if (moved || newest - now > setBackMs) {
            replanTask(task, now);
        }
    }
}

/** The newest time in the history of runs. */
async function newestTime(em: EntityManager): Promise<number> {
    const [run] = await findRuns(em, {}, { newestFirst: true, limit: 1 });
    return Math.max(0, run?.createdAt ?? 0, run?.finishedAt ?? 0);
}
