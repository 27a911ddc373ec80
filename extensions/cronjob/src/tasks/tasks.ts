/** Creates, changes and removes tasks. Each change is guarded by the version and planned in the same write. */
import { type Actor, errors, type Mutex, requireVersion } from '@portico/sdk';
import type { EntityManager } from '@portico/sdk/db';

import { type RunRow, TaskEntity, type TaskRow } from '../entities.ts';
import type { Machine } from '../machine.ts';
import { findRuns, findTask, findTasks } from '../queries.ts';
import type { Accounts } from '../runs/execution/accounts.ts';
import { ownFolders, trySandbox } from '../runs/execution/sandbox.ts';
import type { Runs } from '../runs/runs.ts';
import { machineZone } from '../schedule/schedule.ts';
import type { Scheduler } from '../schedule/scheduler.ts';
import type { Ctx } from '../settings.ts';
import { type Defaults, type Draft, draftOf, draftOfRow, rowOf, secretDefaults } from './draft.ts';
import { conditionOf, type TaskFilter } from './filter.ts';
import { checkDraft } from './input/checks.ts';
import type { TaskInput } from './input/input.ts';
import { checkSteps, forgetSteps } from './steps.ts';

/** What the tasks need. */
export interface TasksOptions {
    readonly ctx: Ctx;
    readonly machine: Machine;
    readonly mutex: Mutex;
    readonly accounts: Accounts;
    readonly runs: Runs;
    readonly scheduler: Scheduler;
}

/** A task with the newest of its runs that started. */
export interface TaskWithRun {
    readonly task: TaskRow;
    readonly lastRun: RunRow | null;
}

/** What is sealed of a task. */
type Sealed = Pick<TaskRow, 'env' | 'headers' | 'parameterDefaults'>;

/** All tasks of the plugin. */
export class Tasks {
    readonly #options: TasksOptions;

    constructor(options: TasksOptions) {
        this.#options = options;
    }

    /** Lists tasks by ascending ids, one more than `limit` where there are more. */
    async list(
        filter: TaskFilter,
        { after, limit }: { readonly after: number; readonly limit: number }
    ): Promise<{ readonly rows: readonly TaskWithRun[]; readonly total: number }> {
        return this.#options.ctx.db.read(async (em) => {
            const where = { ...conditionOf(filter), id: { $gt: after } };
            const tasks = await findTasks(em, where, { limit: limit + 1 });
            return {
                rows: await withRuns(em, tasks),
                total: await em.count(TaskEntity, conditionOf(filter))
            };
        });
    }

    /** One task. @throws NOT_FOUND 40400 */
    async get(id: number): Promise<TaskWithRun> {
        return this.#options.ctx.db.read(async (em) => {
            const [seen] = await withRuns(em, [await findTask(em, id)]);
            return seen as TaskWithRun;
        });
    }

    /** Creates a task and plans it. @throws VALIDATION_FAILED 40001, TOOL_MISSING 50302 for limits that the machine cannot keep */
    async create(input: TaskInput): Promise<TaskWithRun> {
        const draft = await this.check(input);
        return { task: await this.#insert(draft, await this.#sealed(draft, null)), lastRun: null };
    }

    /** What `create` would make of this; nothing is stored. @throws VALIDATION_FAILED 40001, TOOL_MISSING 50302 */
    async check(input: TaskInput): Promise<Draft> {
        const draft = draftOf(input, null, this.#defaults());
        await this.#checkDraft(draft, null);
        // No task has this number: a new one is in no chain yet.
        await this.#options.ctx.db.read((em) => checkSteps(em, 0, draft.then));
        return draft;
    }

    async #checkDraft(draft: Draft, before: Draft | null): Promise<void> {
        const { ctx, accounts, machine } = this.#options;
        await checkDraft(draft, before, { accounts, now: machine.now(), ownFolders: await ownFolders(ctx) });
        await this.#tryLimits(draft, before);
        await this.#trySandbox(draft, before);
    }

    /** Makes a disabled task like another one, with the values of its environment. @throws NOT_FOUND 40400 */
    async clone(id: number, name: string | undefined): Promise<TaskWithRun> {
        const { task } = await this.get(id);
        const draft = {
            ...draftOfRow(task),
            name: name ?? `${task.name.slice(0, 90)} (copy)`,
            enabled: false
        };
        return { task: await this.#insert(draft, task), lastRun: null };
    }

    /**
     * Makes a task of an export, or puts it in the place of another one with all of its fields. What this machine lacks, such as its account, is no
     * obstacle: the runs say so.
     * @throws VALIDATION_FAILED 40001
     */
    async put(input: TaskInput, before: TaskRow | null): Promise<number> {
        const draft = draftOf(input, null, this.#defaults());
        await this.#checkDraft(draft, draft);
        const sealed = await this.#sealed(draft, null);
        if (before === null) {
            return (await this.#insert(draft, sealed)).id;
        }
        await this.#replace(before, draft, sealed);
        return before.id;
    }

    async #insert(draft: Draft, { env, headers, parameterDefaults }: Sealed): Promise<TaskRow> {
        const { ctx, machine, mutex, scheduler } = this.#options;
        const boot = await machine.boot();
        const task = await mutex.run(() =>
            ctx.db.write(async (em) => {
                const now = machine.now();
                const row = {
                    ...rowOf(draft),
                    ...{ env, headers, parameterDefaults },
                    mandate: null,
                    version: 1,
                    createdAt: now,
                    updatedAt: now,
                    dueAt: null,
                    boot,
                    retryAt: null,
                    retryAttempt: 1,
                    retryOf: null,
                    startAt: null,
                    startDueAt: null,
                    awaitedSince: now,
                    deadAt: null,
                    overdueSince: null,
                    failing: false
                };
                scheduler.plan(row as TaskRow, boot);
                const id = await em.insert(TaskEntity, row);
                await checkSteps(em, id, draft.then);
                return findTask(em, id);
            })
        );
        scheduler.checkSoon();
        return task;
    }

    /** Changes a task; active runs go on as they were started. @throws NOT_FOUND 40400, VERSION_STALE 41200, VALIDATION_FAILED 40001, TOOL_MISSING 50302 */
    async update(
        id: number,
        input: TaskInput,
        ifMatch: string | null
    ): Promise<{ readonly before: TaskWithRun; readonly after: TaskWithRun }> {
        const before = await this.get(id);
        requireVersion(before.task, ifMatch, input.version);
        const former = draftOfRow(before.task);
        const draft = draftOf(input, former, this.#defaults());
        await this.#checkDraft(draft, former);
        await this.#replace(before.task, draft, await this.#sealed(draft, before.task));
        return { before, after: await this.get(id) };
    }

    /** `before` is the version that the draft was made from. @throws VERSION_STALE 41200 */
    async #replace(before: TaskRow, draft: Draft, sealed: Sealed): Promise<void> {
        const { ctx, machine, mutex, scheduler, runs } = this.#options;
        const { id } = before;
        const boot = await machine.boot();
        await mutex.run(() =>
            ctx.db.write(async (em) => {
                const task = await findTask(em, id);
                // The draft was made and checked from the version that was read before the mutex.
                if (task.version !== before.version) {
                    throw errors.stale(task.version);
                }
                const now = machine.now();
                const row = rowOf(draft);
                // A person authorized that very route, with that very body.
                const mandate = row.route === before.route ? task.mandate : null;
                await checkSteps(em, id, draft.then);
                Object.assign(task, row, sealed, {
                    mandate,
                    version: task.version + 1,
                    updatedAt: now
                });
                this.#planChange(task, before, now, boot);
                if (!task.enabled) {
                    task.retryAt = null;
                    runs.cancelRetries(id);
                }
            })
        );
        if (before.mandate !== null && rowOf(draft).route !== before.route) {
            await ctx.mandates.end(before.mandate);
        }
        scheduler.checkSoon();
    }

    /**
     * Lets a task call its route in the name of the person who asks. @throws NOT_FOUND 40400, CONFLICT 40900 for a task of another kind, FORBIDDEN 40300,
     * STEP_UP_REQUIRED 40301
     */
    async authorize(id: number, actor: Actor): Promise<TaskWithRun> {
        const { ctx, mutex } = this.#options;
        const { task } = await this.get(id);
        const { route, name } = draftOfRow(task);
        if (route === null) {
            throw errors.invalid([
                { path: 'route', message: 'Only a task that calls a route is authorized' }
            ]);
        }
        const mandate = await ctx.mandates.give(actor, {
            title: `The task ${name}`.slice(0, 100),
            routes: [route.id]
        });
        const isKept = await mutex.run(() =>
            ctx.db.write(async (em) => {
                const now = await findTask(em, id);
                const isSame = now.route === task.route;
                if (isSame) {
                    Object.assign(now, { mandate: mandate.id, version: now.version + 1 });
                }
                return isSame;
            })
        );
        const ended = isKept ? task.mandate : mandate.id;
        if (ended !== null) {
            await ctx.mandates.end(ended);
        }
        if (!isKept) {
            throw errors.stale(task.version);
        }
        return this.get(id);
    }

    /** Removes a task with the history of its runs, and ends the active ones. @throws NOT_FOUND 40400, VERSION_STALE 41200 */
    async remove(id: number, ifMatch: string | null): Promise<TaskWithRun> {
        const { ctx, mutex, scheduler, runs } = this.#options;
        const seen = await this.get(id);
        requireVersion(seen.task, ifMatch);
        await mutex.run(() =>
            ctx.db.write(async (em) => {
                const task = await findTask(em, id);
                requireVersion(task, ifMatch);
                await forgetSteps(em, [id]);
                await em.remove(task).flush();
            })
        );
        await runs.stopAll(id);
        if (seen.task.mandate !== null) {
            await ctx.mandates.end(seen.task.mandate);
        }
        scheduler.checkSoon();
        return seen;
    }

    /** Plans a changed task again, as far as the change touches its times. */
    #planChange(task: TaskRow, old: Readonly<TaskRow>, now: number, boot: string | null): void {
        const toggled = task.enabled !== old.enabled;
        const rescheduled = toggled || task.schedule !== old.schedule || task.timezone !== old.timezone;
        if (!rescheduled && task.deadManSeconds === old.deadManSeconds) {
            return;
        }
        if (toggled || old.deadManSeconds === null || task.deadManSeconds === null) {
            Object.assign(task, { awaitedSince: now, overdueSince: null });
        }
        const { dueAt, startAt, startDueAt } = task;
        this.#options.scheduler.plan(task, boot);
        if (!rescheduled) {
            Object.assign(task, { dueAt, startAt, startDueAt });
        }
        if (task.overdueSince !== null) {
            task.deadAt = null;
        }
    }

    /** Proves that the machine can keep limits that are new. @throws TOOL_MISSING 50302 */
    async #tryLimits({ limits }: Draft, before: Draft | null): Promise<void> {
        if (limits !== null && JSON.stringify(limits) !== JSON.stringify(before?.limits)) {
            await this.#options.ctx.exec('true', [], { limits: { group: limits } });
        }
    }

    /** Proves that the machine can make a sandbox that is new, as its account. @throws TOOL_MISSING 50302 */
    async #trySandbox({ sandbox, user }: Draft, before: Draft | null): Promise<void> {
        const { ctx, accounts } = this.#options;
        const isNew = JSON.stringify([sandbox, user]) !== JSON.stringify([before?.sandbox, before?.user]);
        const account = sandbox === null || !isNew ? null : await accounts.find(user);
        if (sandbox !== null && account !== null) {
            await trySandbox(ctx, sandbox, account);
        }
    }

    #defaults(): Defaults {
        const { timezone, sandbox } = this.#options.ctx.settings;
        return {
            timezone: timezone ?? machineZone(),
            sandbox: sandbox === 'default' ? { network: false, writable: [] } : null
        };
    }

    /** What is sealed of a task: the values of a draft, or those of the row before where the draft keeps them. */
    async #sealed(draft: Draft, before: TaskRow | null): Promise<Sealed> {
        const { env, request } = draft;
        return {
            env: await this.#seal(env, before?.env ?? null),
            headers: await this.#seal(request?.headers ?? {}, before?.headers ?? null),
            parameterDefaults: await this.#seal(secretDefaults(draft), before?.parameterDefaults ?? null)
        };
    }

    /** The values of something sealed, by name. */
    async open(sealed: string | null): Promise<Readonly<Record<string, string>>> {
        return sealed === null
            ? {}
            : (JSON.parse(await this.#options.ctx.secrets.open(sealed)) as Record<string, string>);
    }

    async #seal(
        given: Readonly<Record<string, string | null>>,
        before: string | null
    ): Promise<string | null> {
        const names = Object.keys(given);
        if (names.length === 0) {
            return null;
        }
        const kept = Object.values(given).includes(null) ? await this.open(before) : {};
        const values = Object.fromEntries(names.map((name) => [name, given[name] ?? kept[name] ?? '']));
        return this.#options.ctx.secrets.seal(JSON.stringify(values));
    }
}

/** Adds the newest run that started to each task. */
async function withRuns(em: EntityManager, tasks: readonly TaskRow[]): Promise<TaskWithRun[]> {
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
