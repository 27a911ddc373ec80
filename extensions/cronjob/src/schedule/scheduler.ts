/** What is due: by the clock, after a boot, as a retry, or as an alert that nothing succeeded. Each due time and its run are one write: no crash doubles or loses it. */
import type { Notification } from '@portico/sdk';
import type { EntityManager } from '@portico/sdk/db';

import { Alarm } from './alarm.ts';
import type { Machine } from '../machine.ts';
import { overdueNotice } from '../runs/notifications.ts';
import type { Runs, Wanted } from '../runs/runs.ts';
import { parseSchedule, type Schedule } from './schedule.ts';
import type { Ctx } from '../settings.ts';
import { findRuns, findTasks, type RunRow, TaskEntity, type TaskRow } from '../entities.ts';
import type { Turns } from '../mutex.ts';

/** What is later than this was missed. */
const graceMs = 60_000;
/** A clock set back by more was wrong before: everything is planned anew. By less, what ran does not run again. */
const setBackMs = 60 * 60_000;

export interface PlannerOptions {
    readonly ctx: Ctx;
    readonly machine: Machine;
    readonly turns: Turns;
    readonly runs: Runs;
}

interface Begun {
    readonly task: TaskRow;
    readonly run: RunRow;
}

export class Planner {
    readonly #options: PlannerOptions;
    readonly #alarm: Alarm;
    #looked = 0;
    #closed = false;

    constructor(options: PlannerOptions) {
        this.#options = options;
        this.#alarm = new Alarm(options.machine.now, options.machine.lookMs, () => this.look());
    }

    /** Plans what a task does next. In the write that makes or changes it. */
    plan(task: TaskRow, boot: string | null): void {
        const now = this.#options.machine.now();
        task.dueAt = task.enabled ? scheduleOf(task).next(now) : null;
        task.boot = boot;
        task.awaitedSince = Math.min(task.awaitedSince, now);
        expectSuccess(task);
    }

    /** Begins: what the clock, the zones or the machine did meanwhile is looked at first. */
    async begin(): Promise<void> {
        const { ctx, machine, turns } = this.#options;
        const boot = await machine.boot();
        await turns.take(async () => {
            const begun = await ctx.db.write(async (em) => {
                const now = (this.#looked = machine.now());
                const last = await newest(em);
                const tasks = await findTasks(em, { enabled: true });
                for (const task of tasks) {
                    // Zones have new rules now and then, and the clock may have been set back by a lot while nothing ran.
                    if (
                        last - now > setBackMs ||
                        (task.dueAt !== null &&
                            task.dueAt > now &&
                            scheduleOf(task).next(task.dueAt - 1) !== task.dueAt)
                    ) {
                        this.#replan(task);
                    }
                }
                const booted = tasks.filter(
                    (task) => scheduleOf(task).reboot && boot !== null && task.boot !== boot
                );
                return sequence(booted, async (task) => {
                    task.boot = boot;
                    return this.#admit(em, task, { trigger: 'schedule', dueAt: now, attempt: 1 });
                });
            });
            this.#launch(begun);
        });
        await this.#look();
    }

    /** Looks at the clock, soon. */
    look(): void {
        this.#look().catch((error: unknown) => {
            if (!this.#closed) {
                this.#options.ctx.log.error('What is due could not be looked at', { error: String(error) });
                this.#alarm.set(null);
            }
        });
    }

    close(): void {
        this.#closed = true;
        this.#alarm.close();
    }

    async #look(): Promise<void> {
        const { ctx, machine, turns, runs } = this.#options;
        if (this.#closed) {
            return;
        }
        const notices: Notification[] = [];
        await turns.take(async () => {
            if (this.#closed) {
                return;
            }
            const now = machine.now();
            if (now < this.#looked - setBackMs) {
                await ctx.db.write(async (em) =>
                    (await findTasks(em, { enabled: true })).forEach((task) => this.#replan(task))
                );
            }
            this.#looked = now;
            const due = {
                $or: [{ dueAt: { $lte: now } }, { retryAt: { $lte: now } }, { deadAt: { $lte: now } }]
            };
            const ids = (
                await ctx.db.read((em) =>
                    em.find(TaskEntity, due, { fields: ['id'], orderBy: { id: 'asc' } })
                )
            ).map(({ id }) => id);
            for (const id of ids) {
                this.#launch(await ctx.db.write((em) => this.#due(em, id, now, notices)));
            }
            this.#alarm.set(await this.#next());
        });
        void runs.tell(notices);
    }

    async #due(em: EntityManager, id: number, now: number, notices: Notification[]): Promise<Begun[]> {
        const [task] = await findTasks(em, { id });
        if (task === undefined) {
            return [];
        }
        const begun: Begun[] = [];
        if (task.dueAt !== null && task.dueAt <= now) {
            const wanted = wantedAt(task, task.dueAt, now);
            task.dueAt = scheduleOf(task).next(now);
            if (wanted !== null) {
                // What is due anew takes the place of another try of what was due before.
                task.retryAt = null;
                begun.push(await this.#admit(em, task, wanted));
            }
        }
        if (task.retryAt !== null && task.retryAt <= now) {
            task.retryAt = null;
            begun.push(
                await this.#admit(em, task, { trigger: 'retry', dueAt: null, attempt: task.retryAttempt })
            );
        }
        if (task.deadAt !== null && task.deadAt <= now) {
            task.deadAt = null;
            task.overdueSince = now;
            notices.push(overdueNotice(task));
        }
        return begun;
    }

    async #admit(em: EntityManager, task: TaskRow, wanted: Wanted): Promise<Begun> {
        return { task, run: await this.#options.runs.admit(em, task, wanted) };
    }

    #launch(begun: readonly Begun[]): void {
        begun.forEach(({ task, run }) => this.#options.runs.launch(task, run));
    }

    #replan(task: TaskRow): void {
        const now = this.#options.machine.now();
        task.dueAt = scheduleOf(task).next(now);
        task.retryAt =
            task.retryAt === null ? null : Math.min(task.retryAt, now + task.backoffSeconds * 1000);
        task.awaitedSince = Math.min(task.awaitedSince, now);
        if (task.overdueSince === null) {
            expectSuccess(task);
        }
    }

    async #next(): Promise<number | null> {
        const rows = await this.#options.ctx.db.read((em) =>
            em.execute<{ at: number | null }[]>(
                'select min(at) as at from (select min(due_at) as at from tasks union all select min(retry_at) from tasks union all select min(dead_at) from tasks)'
            )
        );
        return rows[0]?.at ?? null;
    }
}

/** Sets when a success is overdue. */
function expectSuccess(task: TaskRow): void {
    task.deadAt =
        task.enabled && task.deadManSeconds !== null ? task.awaitedSince + task.deadManSeconds * 1000 : null;
}

/** What a due time that has come asks for: a run in time, one for all that were missed, or nothing. */
function wantedAt(task: TaskRow, dueAt: number, now: number): Wanted | null {
    const inTime = dueAt >= now - graceMs ? dueAt : scheduleOf(task).next(now - graceMs - 1);
    if (inTime !== null && inTime <= now) {
        return { trigger: 'schedule', dueAt: inTime, attempt: 1 };
    }
    return task.missed === 'run-once' ? { trigger: 'missed', dueAt, attempt: 1 } : null;
}

/** What was understood once may not be any more: another machine may know other zones. One such task must not hold up all others. */
function scheduleOf({ schedule, timezone }: TaskRow): Schedule {
    try {
        return parseSchedule(schedule, timezone);
    } catch {
        return { reboot: false, next: () => null };
    }
}

/** The newest time that anything is known to have happened at. */
async function newest(em: EntityManager): Promise<number> {
    const [run] = await findRuns(em, {}, { newestFirst: true, limit: 1 });
    return Math.max(0, run?.createdAt ?? 0, run?.finishedAt ?? 0);
}

async function sequence<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
    const results: R[] = [];
    for (const item of items) {
        results.push(await work(item));
    }
    return results;
}
