/** Tasks: made, changed and removed, each change guarded by its version and planned in the same write. */
import { errors } from '@portico/sdk';
import { type EntityManager, raw } from '@portico/sdk/db';

import type { Accounts } from '../runs/accounts.ts';
import { checkDraft, type Draft, draftOf, type TaskInput } from './input.ts';
import type { Machine } from '../machine.ts';
import type { Planner } from '../schedule/scheduler.ts';
import type { Runs } from '../runs/runs.ts';
import { machineZone } from '../schedule/schedule.ts';
import type { Ctx } from '../settings.ts';
import { findRuns, findTasks, type RunRow, TaskEntity, type TaskRow } from '../entities.ts';
import type { Turns } from '../mutex.ts';

export interface TasksOptions {
    readonly ctx: Ctx;
    readonly machine: Machine;
    readonly turns: Turns;
    readonly accounts: Accounts;
    readonly runs: Runs;
    readonly planner: Planner;
}

/** A task with the newest of its runs that began. */
export interface Seen {
    readonly task: TaskRow;
    readonly lastRun: RunRow | null;
}

export interface TaskFilter {
    readonly q?: string | undefined;
    readonly enabled?: boolean | undefined;
    /** Only ids after this one. */
    readonly after: number;
    readonly limit: number;
}

export class Tasks {
    readonly #options: TasksOptions;

    constructor(options: TasksOptions) {
        this.#options = options;
    }

    /** In the order of ids, one more than asked for where there are more. */
    async list({
        q,
        enabled,
        after,
        limit
    }: TaskFilter): Promise<{ readonly rows: readonly Seen[]; readonly total: number }> {
        // A fragment of SQL is good for one query; unlike a pattern it takes % and _ as they are.
        const where = (): object => ({
            ...(enabled === undefined ? {} : { enabled }),
            ...(q === undefined ? {} : { [raw('instr(lower(name), lower(?))', [q])]: { $gt: 0 } })
        });
        return this.#options.ctx.db.read(async (em) => {
            const tasks = await findTasks(em, { ...where(), id: { $gt: after } }, { limit: limit + 1 });
            return { rows: await withRuns(em, tasks), total: await em.count(TaskEntity, where()) };
        });
    }

    /** @throws NOT_FOUND 40400 */
    async get(id: number): Promise<Seen> {
        return this.#options.ctx.db.read(async (em) => {
            const [seen] = await withRuns(em, [await found(em, id)]);
            return seen as Seen;
        });
    }

    /** @throws VALIDATION_FAILED 40001 */
    async create(input: TaskInput): Promise<Seen> {
        const { ctx, machine, turns, planner } = this.#options;
        const draft = draftOf(input, null, this.#zone());
        await checkDraft(draft, null, this.#options.accounts, machine.now());
        const env = await this.#seal(draft, {});
        const boot = await machine.boot();
        const task = await turns.take(() =>
            ctx.db.write(async (em) => {
                const now = machine.now();
                const row = {
                    ...rowOf(draft),
                    env,
                    version: 1,
                    createdAt: now,
                    updatedAt: now,
                    dueAt: null,
                    boot,
                    retryAt: null,
                    retryAttempt: 1,
                    awaitedSince: now,
                    deadAt: null,
                    overdueSince: null,
                    failing: false
                };
                planner.plan(row as TaskRow, boot);
                return found(em, await em.insert(TaskEntity, row));
            })
        );
        planner.look();
        return { task, lastRun: null };
    }

    /** @throws NOT_FOUND 40400, VERSION_STALE 41200, VALIDATION_FAILED 40001 */
    async update(
        id: number,
        input: TaskInput,
        ifMatch: string | null
    ): Promise<{ readonly before: Seen; readonly after: Seen }> {
        const { ctx, machine, turns, planner, runs } = this.#options;
        const before = await this.get(id);
        checkVersion(before.task, ifMatch, input.version);
        const draft = draftOf(input, draftOfRow(before.task), this.#zone());
        await checkDraft(draft, draftOfRow(before.task), this.#options.accounts, machine.now());
        const values =
            before.task.env === null
                ? {}
                : (JSON.parse(await ctx.secrets.open(before.task.env)) as Record<string, string>);
        const env = input.env === undefined ? before.task.env : await this.#seal(draft, values);
        const boot = await machine.boot();
        await turns.take(() =>
            ctx.db.write(async (em) => {
                const task = await found(em, id);
                // What was read before the turn is what was checked and merged.
                if (task.version !== before.task.version) {
                    throw errors.stale(task.version);
                }
                const { enabled, schedule, timezone, deadManSeconds } = task;
                const now = machine.now();
                Object.assign(task, rowOf(draft), { env, version: task.version + 1, updatedAt: now });
                if (
                    task.enabled !== enabled ||
                    task.schedule !== schedule ||
                    task.timezone !== timezone ||
                    task.deadManSeconds !== deadManSeconds
                ) {
                    if (task.enabled !== enabled || deadManSeconds === null || task.deadManSeconds === null) {
                        Object.assign(task, { awaitedSince: now, overdueSince: null });
                    }
                    const { dueAt } = task;
                    planner.plan(task, boot);
                    if (
                        task.enabled === enabled &&
                        task.schedule === schedule &&
                        task.timezone === timezone
                    ) {
                        task.dueAt = dueAt;
                    }
                    if (task.overdueSince !== null) {
                        task.deadAt = null;
                    }
                }
                if (!task.enabled) {
                    task.retryAt = null;
                    runs.forgo(id);
                }
            })
        );
        planner.look();
        return { before, after: await this.get(id) };
    }

    /** Ends what runs of it; its runs go with it. @throws NOT_FOUND 40400, VERSION_STALE 41200 */
    async remove(id: number, ifMatch: string | null): Promise<Seen> {
        const { ctx, turns, planner, runs } = this.#options;
        const seen = await this.get(id);
        checkVersion(seen.task, ifMatch, undefined);
        await turns.take(() =>
            ctx.db.write(async (em) => {
                const task = await found(em, id);
                checkVersion(task, ifMatch, undefined);
                await em.remove(task).flush();
            })
        );
        await runs.stopAll(id);
        planner.look();
        return seen;
    }

    #zone(): string {
        return this.#options.ctx.settings.timezone ?? machineZone();
    }

    async #seal({ env }: Draft, kept: Readonly<Record<string, string>>): Promise<string | null> {
        const values = Object.fromEntries(
            Object.entries(env).map(([name, value]) => [name, value ?? kept[name] ?? ''])
        );
        return Object.keys(values).length === 0
            ? null
            : this.#options.ctx.secrets.seal(JSON.stringify(values));
    }
}

async function found(em: EntityManager, id: number): Promise<TaskRow> {
    const [task] = await findTasks(em, { id });
    if (task === undefined) {
        throw errors.notFound('There is no task of that id');
    }
    return task;
}

async function withRuns(em: EntityManager, tasks: readonly TaskRow[]): Promise<Seen[]> {
    if (tasks.length === 0) {
        return [];
    }
    const ids = tasks.map(({ id }) => id);
    const newest = await em.execute<{ id: number }[]>(
        `select max(id) as id from runs where started_at is not null and task_id in (${ids.map(() => '?').join(', ')}) group by task_id`,
        ids
    );
    const runs = new Map(
        (await findRuns(em, { id: { $in: newest.map(({ id }) => id) } })).map((run) => [run.taskId, run])
    );
    return tasks.map((task) => ({ task, lastRun: runs.get(task.id) ?? null }));
}

/** @throws VERSION_STALE 41200 */
function checkVersion({ version }: TaskRow, ifMatch: string | null, sent: number | undefined): void {
    if (
        (ifMatch !== null && ifMatch !== '*' && ifMatch !== String(version)) ||
        (sent !== undefined && sent !== version)
    ) {
        throw errors.stale(version);
    }
}

function rowOf({
    env,
    command,
    ...draft
}: Draft): Omit<Draft, 'env' | 'command'> & { readonly command: string | null; readonly envNames: string } {
    return {
        ...draft,
        command: command === null ? null : JSON.stringify(command),
        envNames: JSON.stringify(Object.keys(env))
    };
}

function draftOfRow(task: TaskRow): Draft {
    const {
        name,
        schedule,
        timezone,
        script,
        user,
        cwd,
        timeoutSeconds,
        overlap,
        retries,
        backoffSeconds,
        missed,
        enabled,
        notifyOn,
        deadManSeconds
    } = task;
    return {
        name,
        schedule,
        timezone,
        script,
        user,
        cwd,
        timeoutSeconds,
        overlap: overlap as Draft['overlap'],
        retries,
        backoffSeconds,
        missed: missed as Draft['missed'],
        enabled,
        notifyOn: notifyOn as Draft['notifyOn'],
        deadManSeconds,
        command: task.command === null ? null : (JSON.parse(task.command) as string[]),
        env: Object.fromEntries((JSON.parse(task.envNames) as string[]).map((each) => [each, null]))
    };
}
