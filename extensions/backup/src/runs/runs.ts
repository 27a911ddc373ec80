/** Runs of plans: queued, executed as tasks, recorded, and tried again when they fail. */
import { type Actor, errors, KeyedMutex } from '@portico/sdk';

import {
    PlanEntity,
    type RepositoryRow,
    RunEntity,
    type RunRow,
    type RunState,
    type Trigger
} from '../entities.ts';
import { fail } from '../errors.ts';
import type { Plan, Plans } from '../plans/plans.ts';
import { findRuns } from '../queries.ts';
import { statusOf } from '../repositories/stored.ts';
import type { Scratch } from '../scratch.ts';
import { type Ended, Execution, type RunServices } from './execution.ts';
import { tellEnd } from './notices.ts';
import { RunLog } from './run-log.ts';

/** What starts a run. */
export interface RunStart {
    readonly trigger: Trigger;
    readonly dryRun?: boolean;
    readonly attempt?: number;
    readonly actor?: Actor | undefined;
}

interface Active {
    readonly controller: AbortController;
    readonly log: RunLog;
    readonly ended: Promise<void>;
    readonly end: () => void;
}

const dayMs = 24 * 60 * 60_000;
/** The longest wait before another try. */
const longestBackoffMs = dayMs;

/** Starts, queues, repeats and lists the runs of all plans. */
export class Runs {
    readonly #services: RunServices;
    readonly #scratch: Scratch;
    readonly #findPlan: (id: number) => Promise<Plan>;
    readonly #active = new Map<number, Active>();
    readonly #retries = new Map<number, NodeJS.Timeout>();
    readonly #starts = new KeyedMutex();
    readonly #waiting: (() => void)[] = [];
    #running = 0;

    /** @param findPlan - the plan as it is now */
    constructor(services: RunServices, scratch: Scratch, findPlan: (id: number) => Promise<Plan>) {
        this.#services = services;
        this.#scratch = scratch;
        this.#findPlan = findPlan;
    }

    /** Starts a run as a task. Resolves when it is recorded. @throws IN_USE 40901 while the plan runs already */
    start(plan: Plan, start: RunStart): Promise<RunRow> {
        return this.#starts.run(String(plan.id), () => this.#start(plan, start));
    }

    async #start(plan: Plan, { trigger, dryRun = false, attempt = 1, actor }: RunStart): Promise<RunRow> {
        const { ctx } = this.#services;
        const busy = await ctx.db.read((em) =>
            findRuns(em, { planId: plan.id, state: { $in: ['queued', 'running'] } }, 1)
        );
        if (busy.length > 0) {
            throw errors.inUse(`run ${busy[0]?.id}`);
        }
        this.#cancelRetry(plan.id);
        const id = await ctx.db.write((em) =>
            em.insert(RunEntity, {
                planId: plan.id,
                trigger,
                state: 'queued',
                dryRun,
                attempt,
                startedAt: Date.now(),
                finishedAt: null,
                snapshotId: null,
                message: null,
                sources: '[]',
                log: '[]'
            })
        );
        const { promise, resolve } = Promise.withResolvers<void>();
        const active: Active = {
            controller: new AbortController(),
            log: new RunLog(),
            ended: promise,
            end: resolve
        };
        this.#active.set(id, active);
        const options = { kind: 'run', title: `Backup: ${plan.name}`, access: 'run', key: `plan-${plan.id}` };
        try {
            await ctx.task({ ...options, ...(actor === undefined ? {} : { actor }) }, async (task) => {
                const signal = AbortSignal.any([task.signal, active.controller.signal]);
                const ended = await this.#execute(plan, id, active, {
                    dryRun,
                    signal,
                    progress: (part, text) => task.progress(part, text)
                });
                if (ended.state !== 'succeeded') {
                    throw fail.RUN_FAILED({ state: ended.state, message: ended.message ?? '' });
                }
                return { runId: id, snapshotId: ended.snapshotId };
            });
        } catch (error) {
            await this.#record(plan, id, active, {
                state: 'failed',
                message: (error as Error).message,
                snapshotId: null,
                sources: []
            });
            throw error;
        }
        return this.get(id);
    }

    /** @throws NOT_FOUND 40400 */
    async get(id: number): Promise<RunRow> {
        const [run] = await this.#services.ctx.db.read((em) => findRuns(em, { id }));
        if (run === undefined) {
            throw errors.notFound('There is no run of that id');
        }
        return run;
    }

    /** The log of a run that is not over; null for one that is. */
    logOf(id: number): RunLog | null {
        return this.#active.get(id)?.log ?? null;
    }

    /** Resolves when a run is over. */
    async ended(id: number): Promise<void> {
        await this.#active.get(id)?.ended;
    }

    /** Ends a run; one that is over stays as it is. Resolves when it has ended. */
    async cancel(id: number): Promise<RunRow> {
        const { planId } = await this.get(id);
        this.#cancelRetry(planId);
        this.#active.get(id)?.controller.abort(new Error('The run was cancelled'));
        await this.ended(id);
        return this.get(id);
    }

    /** Marks runs that a killed panel left, removes what they left behind, and starts again what was cut off or waited for another try. */
    async recover(plans: Plans): Promise<void> {
        const { ctx, repositories } = this.#services;
        const cut = await ctx.db.write(async (em) => {
            const runs = await findRuns(em, { state: { $in: ['queued', 'running'] } });
            for (const run of runs) {
                Object.assign(run, {
                    state: 'interrupted',
                    finishedAt: Date.now(),
                    message: 'The panel ended while it ran'
                });
            }
            return runs.map(({ planId, trigger, dryRun }) => ({ planId, trigger, dryRun }));
        });
        await this.#scratch.clear();
        await repositories.recover();
        for (const plan of (await plans.list()).filter(({ enabled }) => enabled)) {
            const run = cut.find(({ planId }) => planId === plan.id);
            if (
                run !== undefined &&
                !run.dryRun &&
                plan.schedule?.missed !== 'skip' &&
                run.trigger !== 'manual'
            ) {
                await this.start(plan, { trigger: 'missed' });
            } else if (run === undefined) {
                await this.#resumeRetry(plan);
            }
        }
    }

    /** Ends every run, and waits for them. */
    async close(): Promise<void> {
        [...this.#retries.keys()].forEach((planId) => this.#cancelRetry(planId));
        await Promise.all([...this.#active.keys()].map((id) => this.cancel(id)));
    }

    async #execute(
        plan: Plan,
        id: number,
        active: Active,
        how: Pick<ConstructorParameters<typeof Execution>[1], 'dryRun' | 'signal' | 'progress'>
    ): Promise<Ended> {
        const { ctx, repositories, sources } = this.#services;
        const { signal } = how;
        let ended: Ended;
        let failure: unknown = null;
        try {
            await this.#enter(signal);
            try {
                ended = await repositories.writing(plan.repositoryId, async () => {
                    signal.throwIfAborted();
                    await ctx.db.write((em) => em.nativeUpdate(RunEntity, { id }, { state: 'running' }));
                    return new Execution(this.#services, { plan, log: active.log, ...how }).run();
                });
            } finally {
                this.#leave();
            }
        } catch (error) {
            failure = error;
            const state = signal.aborted ? 'cancelled' : 'failed';
            active.log.add('error', (error as Error).message);
            ended = { state, message: (error as Error).message, snapshotId: null, sources: [] };
        }
        if (!signal.aborted) {
            await repositories.see(plan.repositoryId, failure);
        }
        await sources
            .clear(plan.id)
            .catch((error: unknown) =>
                ctx.log.warn('A stage could not be removed', { error: String(error) })
            );
        await this.#record(plan, id, active, ended, how.dryRun);
        return ended;
    }

    async #record(plan: Plan, id: number, active: Active, ended: Ended, dryRun = false): Promise<void> {
        const { ctx } = this.#services;
        const { state, message, snapshotId } = ended;
        active.log.add(state === 'succeeded' ? 'info' : 'warning', `The run ${state}`);
        active.log.end();
        const now = Date.now();
        const before = await ctx.db.write(async (em) => {
            const [last] = await findRuns(em, { planId: plan.id, id: { $lt: id }, dryRun: false }, 1);
            await em.nativeUpdate(
                RunEntity,
                { id },
                {
                    ...{ state, message, snapshotId, finishedAt: now },
                    sources: JSON.stringify(ended.sources),
                    log: JSON.stringify(active.log.lines())
                }
            );
            if (state === 'succeeded' && !dryRun) {
                await em.nativeUpdate(PlanEntity, { id: plan.id }, { lastSuccessAt: now, overdueAt: null });
            }
            const [oldest] = await em.execute<{ id: number }[]>(
                'select id from runs order by id desc limit 1 offset ?',
                [ctx.settings.runsKept]
            );
            if (oldest !== undefined) {
                await em.nativeDelete(RunEntity, { id: { $lte: oldest.id } });
            }
            return last?.state ?? null;
        });
        this.#active.delete(id);
        active.end();
        if (!dryRun && !ctx.signal.aborted) {
            await tellEnd(ctx, plan, { id, state, message }, before);
            await this.#after(plan, id, state);
        }
    }

    /** Plans another try of a run that failed, and reads the sizes of its repositories once a day. */
    async #after(plan: Plan, id: number, state: RunState): Promise<void> {
        const { ctx, repositories, snapshots } = this.#services;
        const run = await this.get(id);
        if (state === 'failed' && run.attempt <= plan.retries && plan.enabled) {
            this.#planRetry(plan, run, backoffOf(plan, run.attempt));
        }
        if (state !== 'succeeded') {
            return;
        }
        const used = new Set([plan.repositoryId, ...plan.copyTo]);
        const isOld = (row: RepositoryRow) => (statusOf(row).readAt ?? 0) < Date.now() - dayMs;
        for (const row of (await repositories.list()).filter((each) => used.has(each.id) && isOld(each))) {
            await repositories.see(row.id, null, { readAt: Date.now() });
            void snapshots
                .measure(row, ctx.signal)
                .catch((error: unknown) =>
                    ctx.log.debug('The sizes of a repository could not be read', { error: String(error) })
                );
        }
    }

    async #resumeRetry(plan: Plan): Promise<void> {
        const [last] = await this.#services.ctx.db.read((em) =>
            findRuns(em, { planId: plan.id, dryRun: false }, 1)
        );
        if (last?.state === 'failed' && last.attempt <= plan.retries && last.finishedAt !== null) {
            const left = last.finishedAt + backoffOf(plan, last.attempt) - Date.now();
            this.#planRetry(plan, last, Math.max(0, left));
        }
    }

    #planRetry(plan: Plan, { attempt }: Pick<RunRow, 'attempt'>, delayMs: number): void {
        const { ctx } = this.#services;
        this.#cancelRetry(plan.id);
        const timer = setTimeout(() => {
            this.#retries.delete(plan.id);
            this.#findPlan(plan.id)
                .then((found) => this.start(found, { trigger: 'retry', attempt: attempt + 1 }))
                .catch((error: unknown) =>
                    ctx.log.debug('A run was not tried again', { plan: plan.id, error: String(error) })
                );
        }, delayMs);
        this.#retries.set(plan.id, timer);
    }

    #cancelRetry(planId: number): void {
        clearTimeout(this.#retries.get(planId));
        this.#retries.delete(planId);
    }

    /** Waits for a place among `concurrentRuns`. */
    async #enter(signal: AbortSignal): Promise<void> {
        signal.throwIfAborted();
        while (this.#running >= this.#services.ctx.settings.concurrentRuns) {
            await new Promise<void>((resolve) => {
                this.#waiting.push(resolve);
                signal.addEventListener('abort', () => resolve(), { once: true });
            });
            signal.throwIfAborted();
        }
        this.#running += 1;
    }

    #leave(): void {
        this.#running -= 1;
        this.#waiting.splice(0).forEach((wake) => wake());
    }
}

function backoffOf({ backoffSeconds }: Plan, attempt: number): number {
    return Math.min(longestBackoffMs, backoffSeconds * 1_000 * 2 ** (attempt - 1));
}
