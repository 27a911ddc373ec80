/** Starts what is due: by the clock, after a boot, as a retry; and notifies when no run succeeded in time. A due time and its run are one write, so no crash doubles or loses a run. */
import type { Mutex, Notification } from '@portico/sdk';
import type { EntityManager } from '@portico/sdk/db';

import { TaskEntity, type TaskRow } from '../entities.ts';
import type { Machine } from '../machine.ts';
import { findRuns, findTasks } from '../queries.ts';
import { retryRequest, type RunRequest } from '../runs/admission.ts';
import { overdueNotification, sendNotifications } from '../runs/results/notifications.ts';
import type { Runs, StartedRun } from '../runs/runs.ts';
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

/** One look at the clock. */
interface Look {
    /** Milliseconds since 1970. */
    readonly now: number;
    /** What is to be sent afterwards. */
    readonly notifications: Notification[];
    /** Runs that were admitted in the same write. */
    readonly started: readonly StartedRun[];
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
                    return this.#admitBooted(em, tasks, boot, now);
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
            const started: StartedRun[] = [];
            await ctx.db.write(async (em) => {
                for (const task of await findTasks(em, { id: { $in: ids } })) {
                    started.push(...(await this.#admitDue(em, task, { now, notifications, started })));
                }
            });
            this.#launch(started);
        }
        this.#alarm.set(await this.#nextTime());
    }

    async #admitDue(em: EntityManager, task: TaskRow, look: Look): Promise<StartedRun[]> {
        const { now, notifications } = look;
        const started: StartedRun[] = [];
        if (task.dueAt !== null && task.dueAt <= now) {
            const request = requestFor(task, task.dueAt, now);
            task.dueAt = scheduleOf(task).next(now);
            if (request !== null) {
                started.push(...(await this.#admitByTime(em, task, request, look)));
            }
        }
        if (task.startAt !== null && task.startAt <= now) {
            started.push(...(await this.#admitWaiting(em, task, look)));
        }
        if (task.retryAt !== null && task.retryAt <= now) {
            started.push(...(await this.#admitRetry(em, task, look)));
        }
        if (task.deadAt !== null && task.deadAt <= now) {
            task.deadAt = null;
            task.overdueSince = now;
            notifications.push(overdueNotification(task));
        }
        return started;
    }

    /** Starts what is due by the clock, or puts it off: until the end of a blackout, and by jitter. One start of a task waits at most. */
    async #admitByTime(
        em: EntityManager,
        task: TaskRow,
        request: RunRequest,
        look: Look
    ): Promise<StartedRun[]> {
        const { now } = look;
        const at = request.trigger === 'missed' ? now : (request.dueAt ?? now);
        const start = startOf(task, blackoutsOf(task, this.#options.ctx.settings), at);
        if (start === null) {
            return [await this.#admit(em, task, { ...request, isHeld: true }, look)];
        }
        // A new due time replaces the retry of an earlier one.
        task.retryAt = null;
        if (start <= now) {
            return [await this.#admit(em, task, request, look)];
        }
        if (task.startAt === null) {
            Object.assign(task, { startAt: start, startDueAt: request.dueAt });
        }
        return [];
    }

    /** Starts what was put off, unless a blackout is on now that was not known then. */
    async #admitWaiting(em: EntityManager, task: TaskRow, look: Look): Promise<StartedRun[]> {
        const { now } = look;
        const request = waitingRequest(task, now);
        const closed = blackoutsOf(task, this.#options.ctx.settings);
        const start = startOf({ ...task, jitterSeconds: 0 }, closed, now);
        if (start !== null && start > now) {
            task.startAt = start;
            return [];
        }
        Object.assign(task, { startAt: null, startDueAt: null });
        return request === null
            ? []
            : [await this.#admit(em, task, { ...request, isHeld: start === null }, look)];
    }

    /** A retry waits for the end of a blackout, whatever the policy. */
    async #admitRetry(em: EntityManager, task: TaskRow, look: Look): Promise<StartedRun[]> {
        const { now } = look;
        const free = blackoutsOf(task, this.#options.ctx.settings).firstFree(now);
        task.retryAt = free === now ? null : free;
        return task.retryAt === null && free !== null
            ? [await this.#admit(em, task, await retryRequest(em, task), look)]
            : [];
    }

    async #admitBooted(
        em: EntityManager,
        tasks: readonly TaskRow[],
        boot: string | null,
        now: number
    ): Promise<StartedRun[]> {
        const started: StartedRun[] = [];
        for (const task of tasks) {
            if (boot !== null && task.boot !== boot && scheduleOf(task).reboot) {
                task.boot = boot;
                const request = { trigger: 'schedule', dueAt: now, attempt: 1 } as const;
                started.push(
                    ...(await this.#admitByTime(em, task, request, { now, notifications: [], started }))
                );
            }
        }
        return started;
    }

    async #admit(
        em: EntityManager,
        task: TaskRow,
        request: RunRequest,
        { started }: Look
    ): Promise<StartedRun> {
        const starting = started.filter(({ run }) => run.state === 'running').length;
        return { task, run: await this.#options.runs.admit(em, task, request, starting) };
    }

    #launch(started: readonly StartedRun[]): void {
        started.forEach((each) => this.#options.runs.launch(each));
    }

    async #nextTime(): Promise<number | null> {
        const rows = await this.#options.ctx.db.read((em) =>
            em.execute<{ at: number | null }[]>(
                'select min(at) as at from (select min(due_at) as at from tasks union all select min(start_at) from tasks union all select min(retry_at) from tasks union all select min(dead_at) from tasks)'
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
