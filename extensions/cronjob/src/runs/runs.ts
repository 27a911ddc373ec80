/** All runs: starts them as the overlap policy allows, ends them, and records how they ended. Decisions are made one at a time, under the mutex; programs run side by side. */
import { errors, type Mutex, type Notification } from '@portico/sdk';
import type { EntityManager } from '@portico/sdk/db';

import { OutputEntity, RunEntity, type RunRow, type TaskRow } from '../entities.ts';
import { fail } from '../errors.ts';
import { findRuns, findRunsWithTasks, findTask, findTasks } from '../queries.ts';
import type { Ctx } from '../settings.ts';
import { draftOfRow } from '../tasks/draft.ts';
import { deepest } from '../tasks/steps.ts';
import { admitRuns, type RunRequest, waitingRuns, type WantedRun } from './admission.ts';
import { type Asked, givenBy } from './asked.ts';
import { Batched } from './batched.ts';
import type { Accounts } from './execution/accounts.ts';
import { execute } from './execution/execution.ts';
import { Output } from './output/output.ts';
import { recordRuns, type StartedRun } from './recording.ts';
import { sendNotifications } from './results/notifications.ts';
import { recordOutcome, stopReason } from './results/outcome.ts';
import type { RunResult } from './results/result.ts';
import { removeSomeExpiredRuns } from './results/retention.ts';

/** What the runs need. */
export interface RunsOptions {
    readonly ctx: Ctx;
    readonly accounts: Accounts;
    readonly mutex: Mutex;
    now(): number;
    /** Is called when the time of the next due task may have changed. */
    onScheduleChange(): void;
}

interface ActiveRun {
    readonly taskId: number;
    readonly output: Output;
    readonly stopping: AbortController;
    readonly done: Promise<void>;
    /** Whether a failure may be retried; false after the task was disabled or the run was stopped. */
    mayRetry: boolean;
    /** Bytes of output that are in the database. */
    savedBytes: number;
}

/** A run that is over. */
interface EndedRun {
    readonly run: RunRow;
    readonly active: ActiveRun;
    readonly result: RunResult;
    /** Null where it cannot be saved. */
    readonly output: Output | null;
}

/** How often the output of active runs is saved. */
const saveMs = 5_000;
/** Waiting runs that are considered when a run has ended. */
const maxConsidered = 500;

/** All runs of the plugin. */
export class Runs {
    readonly #options: RunsOptions;
    readonly #active = new Map<number, ActiveRun>();
    readonly #endings: Batched<EndedRun>;
    /** Resolves at the next start or end of a run, and is then replaced. */
    #change = Promise.withResolvers<void>();
    #saving: NodeJS.Timeout | null = null;
    #closing = false;

    constructor(options: RunsOptions) {
        this.#options = options;
        this.#endings = new Batched(options.mutex, (ended) => this.#recordEnds(ended));
    }

    /** The output of an active run; null when the run does not run now. */
    outputOf(runId: number): Output | null {
        return this.#active.get(runId)?.output ?? null;
    }

    /** Resolves at the next start or end of any run. */
    get change(): Promise<void> {
        return this.#change.promise;
    }

    /**
     * Records runs in the states that the overlap policies give them. Call it under the mutex and in a write, and `launch` what it answers once the write is durable.
     *
     * @throws ENDING 50350 when the generation ends
     */
    async admit(em: EntityManager, wanted: readonly WantedRun[]): Promise<readonly StartedRun[]> {
        if (this.#closing) {
            throw fail.ENDING();
        }
        return this.#record(em, wanted, this.#room);
    }

    /** Records the steps that follow a run; those that may begin wait for the next look at what waits. Call it as `admit`. */
    async queueSteps(em: EntityManager, runId: number, steps: readonly number[]): Promise<void> {
        const [parent] = steps.length === 0 ? [] : await findRuns(em, { id: runId });
        const depth = (parent?.depth ?? 0) + 1;
        const tasks = parent === undefined ? [] : await findTasks(em, { id: { $in: [...steps] } });
        if (depth > deepest && tasks.length > 0) {
            this.#options.ctx.log.warn('A chain ends: it is too long', { run: runId, tasks: [...steps] });
            return;
        }
        const given = { parentRunId: runId, depth };
        const request: RunRequest = { trigger: 'chain', dueAt: null, attempt: 1, given };
        await this.#record(
            em,
            tasks.map((task) => ({ task, request })),
            0
        );
    }

    /** Starts the steps of chains that waited when an earlier generation ended. */
    async resume(): Promise<void> {
        await this.#options.mutex.run(async () => {
            const next = await this.#options.ctx.db.write((em) => this.#takeQueued(em));
            next.forEach((each) => this.launch(each));
        });
    }

    /** Starts a run that was admitted as `running`; others wait or were skipped. */
    launch({ task, run }: StartedRun): void {
        if (run.state !== 'running') {
            return;
        }
        const output = new Output(this.#options.ctx.settings.outputBytes);
        const stopping = new AbortController();
        const { promise: started, resolve: start } = Promise.withResolvers<void>();
        const done = started.then(() => this.#run(task, run, output, stopping.signal));
        this.#active.set(run.id, { taskId: task.id, output, stopping, done, mayRetry: true, savedBytes: 0 });
        this.#saving ??= setInterval(() => void this.#save(), saveMs).unref();
        start();
        this.#signalChange();
    }

    /** Asks for a run by hand, or by a trigger. @throws NOT_FOUND 40400, VALIDATION_FAILED 40001, VERSION_STALE 41200 when its parameters change meanwhile */
    async start(taskId: number, { trigger, askedBy, values }: Asked): Promise<RunRow> {
        const { ctx, mutex } = this.#options;
        const seen = await ctx.db.read((em) => findTask(em, taskId));
        const given = await givenBy(ctx, seen, askedBy, values);
        return mutex.run(async () => {
            const started = await ctx.db.write(async (em) => {
                const task = await findTask(em, taskId);
                if (task.parameters !== seen.parameters || task.command !== seen.command) {
                    throw errors.stale(task.version);
                }
                const request = { trigger, dueAt: null, attempt: 1, given };
                const [admitted] = await this.admit(em, [{ task, request }]);
                return admitted as StartedRun;
            });
            this.launch(started);
            return started.run;
        });
    }

    /** Ends a run with all of its processes, and waits until they have ended. A finished run stays as it is. @throws NOT_FOUND 40400 */
    async stop(runId: number): Promise<void> {
        const { ctx, mutex } = this.#options;
        await mutex.run(() =>
            ctx.db.write(async (em) => {
                const [run] = await findRuns(em, { id: runId });
                if (run === undefined) {
                    throw errors.notFound('There is no run of that id');
                }
                if (run.state === 'queued') {
                    Object.assign(run, {
                        state: 'stopped',
                        reason: stopReason.caller,
                        finishedAt: this.#options.now(),
                        version: run.version + 1
                    });
                }
            })
        );
        this.#signalChange();
        const active = this.#active.get(runId);
        if (active !== undefined) {
            active.mayRetry = false;
            active.stopping.abort(stopReason.caller);
            await active.done;
        }
    }

    /** Lets the active runs of a task go on, but never retries them. For a task that was disabled. */
    cancelRetries(taskId: number): void {
        this.#activeOf(taskId).forEach((active) => {
            active.mayRetry = false;
        });
    }

    /** Ends all active runs of a task that was removed, and waits for that. */
    async stopAll(taskId: number): Promise<void> {
        this.cancelRetries(taskId);
        const active = this.#activeOf(taskId);
        active.forEach(({ stopping }) => stopping.abort(stopReason.caller));
        await Promise.all(active.map(({ done }) => done));
    }

    /** Ends all runs and waits for that, because the generation ends. No run starts afterwards. */
    async close(): Promise<void> {
        this.#closing = true;
        this.#endings.close();
        const active = [...this.#active.values()];
        active.forEach(({ stopping }) => stopping.abort(stopReason.shutdown));
        await Promise.all(active.map(({ done }) => done));
        this.#stopSavingWhenIdle();
        await this.#options.mutex.run(() =>
            this.#options.ctx.db.write(async (em) => {
                // Steps of chains begin in the next generation.
                await em.nativeUpdate(
                    RunEntity,
                    { state: 'queued', trigger: { $ne: 'chain' } },
                    {
                        state: 'stopped',
                        reason: stopReason.shutdown,
                        finishedAt: this.#options.now(),
                        version: 2
                    }
                );
            })
        );
    }

    #signalChange(): void {
        const { resolve } = this.#change;
        this.#change = Promise.withResolvers<void>();
        resolve();
    }

    #activeOf(taskId: number): ActiveRun[] {
        return [...this.#active.values()].filter((active) => active.taskId === taskId);
    }

    /** How many more runs may be active. */
    get #room(): number {
        return this.#options.ctx.settings.concurrentRuns - this.#active.size;
    }

    /** @param room - how many of the runs may begin */
    async #record(
        em: EntityManager,
        wanted: readonly WantedRun[],
        room: number
    ): Promise<readonly StartedRun[]> {
        const tasks = new Set(wanted.map(({ task }) => task.id));
        const waiting = await waitingRuns(em, [...tasks]);
        const active = new Set([...this.#active.values()].map(({ taskId }) => taskId));
        return recordRuns(em, admitRuns(wanted, { waiting, active, room }), this.#options.now());
    }

    async #run(task: TaskRow, run: RunRow, output: Output, signal: AbortSignal): Promise<void> {
        const { ctx, accounts } = this.#options;
        const active = this.#active.get(run.id) as ActiveRun;
        const draft = draftOfRow(task);
        const job = {
            ...task,
            runId: run.id,
            taskId: task.id,
            command: draft.command,
            request: draft.request,
            route: draft.route,
            limits: draft.limits,
            sandbox: draft.sandbox,
            parameters: run.parameters,
            secretParameters: run.secretParameters,
            mark: run.mark
        };
        const onScriptPath = async (scratch: string): Promise<void> =>
            void (await ctx.db.write((em) => em.nativeUpdate(RunEntity, { id: run.id }, { scratch })));
        const result = await execute(job, { ctx, accounts, output, signal, onScriptPath });
        const stated = result.state === 'stopped' ? { ...result, reason: String(signal.reason) } : result;
        try {
            await this.#endings.add({ run, active, result: stated, output }).catch(async (error: unknown) => {
                ctx.log.error('The output of a run could not be saved', {
                    run: run.id,
                    error: String(error)
                });
                await this.#endings.add({ run, active, result: stated, output: null });
            });
        } catch (error) {
            ctx.log.error('The end of a run could not be recorded', { run: run.id, error: String(error) });
        } finally {
            this.#active.delete(run.id);
            output.close();
            this.#signalChange();
            this.#stopSavingWhenIdle();
        }
    }

    /** Records the ends of runs, and starts the runs that waited for them. */
    async #recordEnds(ended: readonly EndedRun[]): Promise<void> {
        const { ctx, now } = this.#options;
        const byId = new Map(ended.map((each) => [each.run.id, each]));
        const { notifications, next } = await ctx.db.write(async (em) => {
            const toSend: Notification[] = [];
            const steps: (readonly [number, readonly number[]])[] = [];
            for (const [run, task] of await findRunsWithTasks(em, [...byId.keys()])) {
                const { active, output, result } = byId.get(run.id) as EndedRun;
                await saveOutput(em, run.id, output);
                const recorded = recordOutcome(run, task, { result, mayRetry: active.mayRetry, now: now() });
                toSend.push(...recorded.notifications);
                steps.push([run.id, recorded.steps]);
            }
            await em.flush();
            ended.forEach(({ run }) => this.#active.delete(run.id));
            const tasks = new Set(ended.map(({ run }) => run.taskId));
            await removeSomeExpiredRuns(em, ctx.settings, now(), [...tasks]);
            for (const [id, following] of steps) {
                await this.queueSteps(em, id, following);
            }
            return { notifications: toSend, next: await this.#takeQueued(em) };
        });
        void sendNotifications(ctx, notifications);
        next.forEach((each) => this.launch(each));
        this.#options.onScheduleChange();
    }

    /** Marks the runs that have waited longest as running, as far as there is room and their tasks allow it. */
    async #takeQueued(em: EntityManager): Promise<readonly StartedRun[]> {
        const room = this.#room;
        if (this.#closing || room <= 0) {
            return [];
        }
        const waiting = await em.execute<{ id: number; taskId: number; overlap: string }[]>(
            `select runs.id as id, task_id as taskId, overlap from runs join tasks on tasks.id = task_id
             where state = 'queued' order by runs.id limit ${maxConsidered}`
        );
        const busy = new Set([...this.#active.values()].map(({ taskId }) => taskId));
        const taken: number[] = [];
        for (const { id, taskId, overlap } of waiting) {
            if (taken.length < room && (overlap === 'allow' || !busy.has(taskId))) {
                taken.push(id);
                busy.add(taskId);
            }
        }
        const begun = { state: 'running', startedAt: this.#options.now() } as const;
        return (await findRunsWithTasks(em, taken)).map(([run, task]) => ({
            task,
            run: Object.assign(run, begun, { version: run.version + 1 })
        }));
    }

    #stopSavingWhenIdle(): void {
        if (this.#active.size === 0) {
            clearInterval(this.#saving ?? undefined);
            this.#saving = null;
        }
    }

    /** Saves the output of active runs, so that a killed panel loses at most {@link saveMs} of it. */
    async #save(): Promise<void> {
        const grown = [...this.#active].filter(([, { output, savedBytes }]) => output.total > savedBytes);
        for (const [runId, active] of grown) {
            active.savedBytes = active.output.total;
            await this.#options.ctx.db
                .write((em) => saveOutput(em, runId, active.output))
                .catch((error: unknown) =>
                    this.#options.ctx.log.warn('The output of a run could not be saved', {
                        run: runId,
                        error: String(error)
                    })
                );
        }
    }
}

async function saveOutput(em: EntityManager, runId: number, output: Output | null): Promise<void> {
    if (output !== null && output.total > 0 && (await em.count(RunEntity, { id: runId })) > 0) {
        await em.upsert(OutputEntity, { runId, ...output.kept() });
    }
}
