/** Runs: admitted by the overlap policy, executed, ended, retried and written down. Decisions are made in turns; programs run beside each other. */
import { randomUUID } from 'node:crypto';

import { errors, type Notification } from '@portico/sdk';
import type { EntityManager } from '@portico/sdk/db';

import type { Accounts } from './accounts.ts';
import { type Ending, execute } from './execution.ts';
import { failures } from '../errors.ts';
import { inTimeNotice, noticeOf } from './notifications.ts';
import { Output } from './output.ts';
import { prune } from './retention.ts';
import type { Ctx } from '../settings.ts';
import {
    findRuns,
    findTasks,
    OutputEntity,
    RunEntity,
    type RunRow,
    type TaskRow,
    type Trigger
} from '../entities.ts';
import type { Turns } from '../mutex.ts';

export interface RunsOptions {
    readonly ctx: Ctx;
    readonly accounts: Accounts;
    readonly turns: Turns;
    now(): number;
    /** When something is due has changed. */
    changed(): void;
}

interface Active {
    readonly taskId: number;
    readonly output: Output;
    readonly stopping: AbortController;
    readonly done: Promise<void>;
    /** False when somebody disabled the task or stopped the run meanwhile. */
    retry: boolean;
    flushed: number;
}

/** Why a run is asked for. */
export interface Wanted {
    readonly trigger: Trigger;
    readonly dueAt: number | null;
    /** 1 for the first try. */
    readonly attempt: number;
}

interface Verdict {
    readonly state: 'running' | 'queued' | 'skipped';
    readonly reason: string | null;
    readonly message: string | null;
}

const flushMs = 5_000;
const longestBackoffMs = 24 * 60 * 60_000;
/** Runs by hand that wait for one to end, of one task. */
const mostQueued = 20;
/** Waiting runs that are looked at when one has ended. */
const mostLooked = 500;
/** Reason of the abort that somebody asked for. */
const byHand = 'STOPPED';
/** Reason of the abort by the end of the generation. */
const byEnd = 'PLUGIN_STOPPED';

export class Runs {
    readonly #options: RunsOptions;
    readonly #active = new Map<number, Active>();
    /** Who waits for a run to begin or to end. */
    #moved = Promise.withResolvers<void>();
    #flushing: NodeJS.Timeout | null = null;
    #ending = false;

    constructor(options: RunsOptions) {
        this.#options = options;
    }

    /** The output of a run that is under way. */
    outputOf(runId: number): Output | null {
        return this.#active.get(runId)?.output ?? null;
    }

    /** Resolves when some run has begun or ended. */
    get moved(): Promise<void> {
        return this.#moved.promise;
    }

    /** Writes a run down, in the state that the policy gives it. In a turn and in a write; call `launch` once that is durable. */
    async admit(em: EntityManager, task: TaskRow, wanted: Wanted): Promise<RunRow> {
        if (this.#ending) {
            throw failures.ENDING();
        }
        const now = this.#options.now();
        const verdict = await this.#verdict(em, task, wanted);
        if (verdict.state === 'skipped' && wanted.trigger === 'schedule') {
            // A long run of a task that is due each second is one line of the history, and not thousands.
            const [last] = await findRuns(em, { taskId: task.id }, { newestFirst: true, limit: 1 });
            if (last?.state === 'skipped' && last.trigger === 'schedule' && last.reason === verdict.reason) {
                Object.assign(last, { times: last.times + 1, finishedAt: now, version: last.version + 1 });
                return last;
            }
        }
        const startedAt = verdict.state === 'running' ? now : null;
        const finishedAt = verdict.state === 'skipped' ? now : null;
        const id = await em.insert(RunEntity, {
            ...wanted,
            ...verdict,
            taskId: task.id,
            version: 1,
            times: 1,
            createdAt: now,
            startedAt,
            finishedAt,
            exitCode: null,
            signal: null,
            mark: randomUUID(),
            scratch: null
        });
        const [run] = await findRuns(em, { id });
        return run as RunRow;
    }

    /** Starts a run that was admitted. */
    launch(task: TaskRow, run: RunRow): void {
        if (run.state !== 'running') {
            return;
        }
        const output = new Output(this.#options.ctx.settings.outputBytes);
        const stopping = new AbortController();
        const { promise: started, resolve: start } = Promise.withResolvers<void>();
        const done = started.then(() => this.#run(task, run, output, stopping.signal));
        this.#active.set(run.id, { taskId: task.id, output, stopping, done, retry: true, flushed: 0 });
        this.#flushing ??= setInterval(() => void this.#flush(), flushMs).unref();
        start();
        this.#move();
    }

    /** A run by hand. @throws NOT_FOUND 40400 */
    async start(taskId: number): Promise<RunRow> {
        return this.#options.turns.take(async () => {
            const { task, run } = await this.#options.ctx.db.write(async (em) => {
                const [found] = await findTasks(em, { id: taskId });
                if (found === undefined) {
                    throw errors.notFound('There is no task of that id');
                }
                return {
                    task: found,
                    run: await this.admit(em, found, { trigger: 'manual', dueAt: null, attempt: 1 })
                };
            });
            this.launch(task, run);
            return run;
        });
    }

    /** Ends a run with all of its processes, and waits for that; one that is over stays as it is. @throws NOT_FOUND 40400 */
    async stop(runId: number): Promise<void> {
        const { ctx, turns } = this.#options;
        await turns.take(() =>
            ctx.db.write(async (em) => {
                const [run] = await findRuns(em, { id: runId });
                if (run === undefined) {
                    throw errors.notFound('There is no run of that id');
                }
                if (run.state === 'queued') {
                    Object.assign(run, {
                        state: 'stopped',
                        reason: byHand,
                        finishedAt: this.#options.now(),
                        version: run.version + 1
                    });
                }
            })
        );
        this.#move();
        const active = this.#active.get(runId);
        if (active !== undefined) {
            active.retry = false;
            active.stopping.abort(byHand);
            await active.done;
        }
    }

    /** A task was disabled: what runs goes on, and is not tried again. */
    forgo(taskId: number): void {
        this.#of(taskId).forEach((active) => {
            active.retry = false;
        });
    }

    /** Ends all runs of a task that goes. */
    async stopAll(taskId: number): Promise<void> {
        this.forgo(taskId);
        const active = this.#of(taskId);
        active.forEach(({ stopping }) => stopping.abort(byHand));
        await Promise.all(active.map(({ done }) => done));
    }

    /** Ends every run: the generation ends. Afterwards nothing is started. */
    async close(): Promise<void> {
        this.#ending = true;
        const active = [...this.#active.values()];
        active.forEach(({ stopping }) => stopping.abort(byEnd));
        await Promise.all(active.map(({ done }) => done));
        clearInterval(this.#flushing ?? undefined);
        this.#flushing = null;
        await this.#options.turns.take(() =>
            this.#options.ctx.db.write(async (em) => {
                await em.nativeUpdate(
                    RunEntity,
                    { state: 'queued' },
                    { state: 'stopped', reason: byEnd, finishedAt: this.#options.now(), version: 2 }
                );
            })
        );
    }

    /** Writes down how a run ended, and what that means to its task. In a turn and in a write; the notices are for afterwards. */
    async settle(
        em: EntityManager,
        runId: number,
        ending: Ending,
        retry: boolean
    ): Promise<readonly Notification[]> {
        const [run] = await findRuns(em, { id: runId });
        const [task] = run === undefined ? [] : await findTasks(em, { id: run.taskId });
        if (run === undefined || task === undefined) {
            return [];
        }
        const now = this.#options.now();
        Object.assign(run, ending, { finishedAt: now, scratch: null, version: run.version + 1 });
        const { failing, overdueSince } = task;
        if (ending.state === 'succeeded') {
            Object.assign(task, {
                failing: false,
                awaitedSince: now,
                overdueSince: null,
                retryAt: null,
                deadAt: task.enabled && task.deadManSeconds !== null ? now + task.deadManSeconds * 1000 : null
            });
            return [
                overdueSince !== null ? inTimeNotice(task, run) : null,
                overdueSince !== null && failing ? null : noticeOf(task, run, failing)
            ].filter((notice) => notice !== null);
        }
        if (ending.state === 'stopped' && ending.reason !== byEnd) {
            return [];
        }
        if (retry && run.attempt <= task.retries) {
            task.retryAt =
                now + Math.min(longestBackoffMs, task.backoffSeconds * 1000 * 2 ** (run.attempt - 1));
            task.retryAttempt = run.attempt + 1;
            return [];
        }
        task.failing = true;
        const notice = noticeOf(task, run, failing);
        return notice === null ? [] : [notice];
    }

    /** Tells people. A channel that fails is not the task's fault. */
    async tell(notices: readonly Notification[]): Promise<void> {
        for (const notice of notices) {
            await this.#options.ctx.notify(notice).catch((error: unknown) =>
                this.#options.ctx.log.warn('Nobody could be told', {
                    event: notice.event,
                    error: String(error)
                })
            );
        }
    }

    #move(): void {
        const { resolve } = this.#moved;
        this.#moved = Promise.withResolvers<void>();
        resolve();
    }

    #of(taskId: number): Active[] {
        return [...this.#active.values()].filter((active) => active.taskId === taskId);
    }

    async #verdict(em: EntityManager, task: TaskRow, { trigger }: Wanted): Promise<Verdict> {
        const skipped = (reason: string, message: string): Verdict => ({ state: 'skipped', reason, message });
        const waiting = await findRuns(em, { taskId: task.id, state: 'queued' });
        const busy = waiting.length > 0 || this.#of(task.id).length > 0;
        if (busy && task.overlap === 'skip') {
            return skipped('OVERLAP', 'The run before was not over');
        }
        const isRoom = this.#active.size < this.#options.ctx.settings.concurrentRuns;
        if (isRoom && !(busy && task.overlap === 'queue')) {
            return { state: 'running', reason: null, message: null };
        }
        const enough =
            trigger === 'manual'
                ? waiting.length >= mostQueued
                : waiting.some((run) => run.trigger !== 'manual');
        return enough
            ? skipped('QUEUE_FULL', 'Enough runs wait already')
            : { state: 'queued', reason: null, message: null };
    }

    async #run(task: TaskRow, run: RunRow, output: Output, signal: AbortSignal): Promise<void> {
        const { ctx, accounts, turns } = this.#options;
        const job = {
            ...task,
            runId: run.id,
            taskId: task.id,
            command: task.command === null ? null : (JSON.parse(task.command) as string[]),
            mark: run.mark
        };
        const placed = async (scratch: string): Promise<void> =>
            void (await ctx.db.write((em) => em.nativeUpdate(RunEntity, { id: run.id }, { scratch })));
        const how = await execute(job, { ctx, accounts, output, signal, placed });
        const ending = how.state === 'stopped' ? { ...how, reason: String(signal.reason) } : how;
        try {
            await turns.take(async () => {
                const { notices, next } = await ctx.db.write(async (em) => {
                    await keepOutput(em, run.id, output);
                    const told = await this.settle(
                        em,
                        run.id,
                        ending,
                        this.#active.get(run.id)?.retry === true
                    );
                    this.#active.delete(run.id);
                    await em.flush();
                    await prune(em, ctx.settings, this.#options.now(), task.id);
                    return { notices: told, next: await this.#next(em) };
                });
                void this.tell(notices);
                next.forEach((each) => this.launch(each.task, each.run));
            });
        } catch (error) {
            ctx.log.error('The end of a run could not be written down', {
                run: run.id,
                error: String(error)
            });
        } finally {
            this.#active.delete(run.id);
            output.close();
            this.#move();
            if (this.#active.size === 0) {
                clearInterval(this.#flushing ?? undefined);
                this.#flushing = null;
            }
            this.#options.changed();
        }
    }

    /** Those that waited longest, as far as there is room and their tasks allow it. */
    async #next(em: EntityManager): Promise<readonly { readonly task: TaskRow; readonly run: RunRow }[]> {
        const begun: { readonly task: TaskRow; readonly run: RunRow }[] = [];
        const room = this.#options.ctx.settings.concurrentRuns - this.#active.size;
        if (this.#ending || room <= 0) {
            return begun;
        }
        for (const run of await findRuns(em, { state: 'queued' }, { limit: mostLooked })) {
            const [task] = await findTasks(em, { id: run.taskId });
            const alone =
                this.#of(run.taskId).length === 0 && !begun.some((each) => each.run.taskId === run.taskId);
            if (task !== undefined && begun.length < room && (alone || task.overlap === 'allow')) {
                Object.assign(run, {
                    state: 'running',
                    startedAt: this.#options.now(),
                    version: run.version + 1
                });
                begun.push({ task, run });
            }
        }
        return begun;
    }

    /** What a killed panel had captured is at most this old. */
    async #flush(): Promise<void> {
        const grown = [...this.#active].filter(([, { output, flushed }]) => output.total > flushed);
        for (const [runId, active] of grown) {
            active.flushed = active.output.total;
            await this.#options.ctx.db
                .write((em) => keepOutput(em, runId, active.output))
                .catch((error: unknown) =>
                    this.#options.ctx.log.warn('Output could not be kept', {
                        run: runId,
                        error: String(error)
                    })
                );
        }
    }
}

async function keepOutput(em: EntityManager, runId: number, output: Output): Promise<void> {
    if (output.total > 0 && (await em.count(RunEntity, { id: runId })) > 0) {
        await em.upsert(OutputEntity, { runId, ...output.kept() });
    }
}
