/** Runs of plans: from the sources to a snapshot, and the record of how that went. */
import { type Actor, errors } from '@portico/sdk';

import { PlanEntity, RunEntity, type RunRow, type RunState, type Trigger } from '../entities.ts';
import { pluginErrors } from '../errors.ts';
import type { Plan } from '../plans/plans.ts';
import { findRuns } from '../queries.ts';
import type { Repositories } from '../repositories/repositories.ts';
import { partialCode, type Restic } from '../restic/restic.ts';
import type { Ctx } from '../settings.ts';
import type { Snapshots } from '../snapshots/snapshots.ts';
import { forgetOld } from './keep.ts';
import { noteName, type SourceResult, type Sources, type StagedSource, stageOf } from './sources.ts';

/** What a run needs. */
export interface RunsOptions {
    readonly ctx: Ctx;
    readonly restic: Restic;
    readonly repositories: Repositories;
    readonly sources: Sources;
    readonly snapshots: Snapshots;
}

interface Ended {
    readonly state: RunState;
    readonly message: string | null;
    readonly snapshotId: string | null;
    readonly sources: readonly SourceResult[];
}

/** All runs. */
export class Runs {
    readonly #options: RunsOptions;
    readonly #active = new Map<number, AbortController>();
    readonly #waiting: (() => void)[] = [];
    #running = 0;

    constructor(options: RunsOptions) {
        this.#options = options;
    }

    /** Starts a run as a task. Resolves when it is recorded. @throws IN_USE 40901 while the plan runs already */
    async start(plan: Plan, trigger: Trigger, dryRun = false, actor?: Actor): Promise<RunRow> {
        const { ctx } = this.#options;
        const busy = await ctx.db.read((em) =>
            findRuns(em, { planId: plan.id, state: { $in: ['queued', 'running'] } }, 1)
        );
        if (busy.length > 0) {
            throw errors.inUse(`run ${busy[0]?.id}`);
        }
        const id = await ctx.db.write((em) =>
            em.insert(RunEntity, {
                planId: plan.id,
                trigger,
                state: 'queued',
                dryRun,
                startedAt: Date.now(),
                finishedAt: null,
                snapshotId: null,
                message: null,
                sources: '[]'
            })
        );
        const controller = new AbortController();
        this.#active.set(id, controller);
        const options = { kind: 'run', title: `Backup: ${plan.name}`, access: 'run', key: `plan-${plan.id}` };
        try {
            await ctx.task({ ...options, ...(actor === undefined ? {} : { actor }) }, async (task) => {
                const signal = AbortSignal.any([task.signal, controller.signal]);
                const ended = await this.#execute(plan, id, dryRun, signal, (part, text) =>
                    task.progress(part, text)
                );
                if (ended.state !== 'succeeded') {
                    throw pluginErrors.RUN_FAILED({ state: ended.state, message: ended.message ?? '' });
                }
                return { runId: id, snapshotId: ended.snapshotId };
            });
        } catch (error) {
            await this.#record(plan, id, dryRun, {
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
        const [run] = await this.#options.ctx.db.read((em) => findRuns(em, { id }));
        if (run === undefined) {
            throw errors.notFound('There is no run of that id');
        }
        return run;
    }

    /** Ends a run; one that is over stays as it is. Resolves when it has ended. */
    async cancel(id: number): Promise<RunRow> {
        await this.get(id);
        this.#active.get(id)?.abort(new Error('The run was cancelled'));
        while (this.#active.has(id)) {
            await new Promise((resolve) => setTimeout(resolve, 50));
        }
        return this.get(id);
    }

    /** Marks runs that a killed panel left, and removes what they left behind. */
    async recover(): Promise<void> {
        const { ctx, restic, repositories, sources } = this.#options;
        const cut = await ctx.db.write(async (em) => {
            const runs = await findRuns(em, { state: { $in: ['queued', 'running'] } });
            for (const run of runs) {
                Object.assign(run, {
                    state: 'interrupted',
                    finishedAt: Date.now(),
                    message: 'The panel ended while it ran'
                });
            }
            return runs.length;
        });
        await sources.remove('scratch');
        for (const row of cut === 0 ? [] : await repositories.list()) {
            // Removes only locks whose process is gone.
            await restic
                .run(await repositories.target(row), ['unlock'], { timeoutSeconds: 60 })
                .catch((error: unknown) =>
                    ctx.log.warn('A stale lock could not be removed', {
                        repository: row.id,
                        error: String(error)
                    })
                );
        }
    }

    /** Ends every run, and waits for them. */
    async close(): Promise<void> {
        await Promise.all([...this.#active.keys()].map((id) => this.cancel(id)));
    }

    async #execute(
        plan: Plan,
        id: number,
        dryRun: boolean,
        signal: AbortSignal,
        progress: (part: number | null, text?: string) => void
    ): Promise<Ended> {
        const { ctx, repositories, sources } = this.#options;
        let ended: Ended;
        try {
            await this.#enter(signal);
            try {
                ended = await repositories.writing(plan.repositoryId, async () => {
                    signal.throwIfAborted();
                    await ctx.db.write((em) => em.nativeUpdate(RunEntity, { id }, { state: 'running' }));
                    return this.#backUp(plan, dryRun, signal, progress);
                });
            } finally {
                this.#leave();
            }
        } catch (error) {
            const state = signal.aborted ? 'cancelled' : 'failed';
            ended = { state, message: (error as Error).message, snapshotId: null, sources: [] };
        }
        await sources
            .clear(plan.id)
            .catch((error: unknown) =>
                ctx.log.warn('A stage could not be removed', { error: String(error) })
            );
        await this.#record(plan, id, dryRun, ended);
        return ended;
    }

    async #backUp(
        plan: Plan,
        dryRun: boolean,
        signal: AbortSignal,
        progress: (part: number | null, text?: string) => void
    ): Promise<Ended> {
        const { ctx, restic, repositories, sources, snapshots } = this.#options;
        const row = await repositories.get(plan.repositoryId);
        const target = await repositories.target(row);
        progress(null, 'Collecting the sources');
        const staged = await sources.stage(plan, signal);
        const ready = staged.filter(({ message }) => message === null);
        if (ready.length === 0) {
            return {
                state: 'failed',
                message: messageOf(staged),
                snapshotId: null,
                sources: resultsOf(staged)
            };
        }
        progress(0, 'Backing up');
        const { code, documents, said } = await restic.run(
            target,
            [
                'backup',
                ...(dryRun ? ['--dry-run'] : []),
                '--tag=portico',
                `--tag=plan-${plan.id}`,
                ...plan.tags.map((tag) => `--tag=${tag}`),
                ...plan.excludes.map((pattern) => `--exclude=${pattern}`),
                '--',
                `${ctx.dataDir}/${stageOf(plan.id)}/${noteName}`,
                ...new Set(ready.flatMap(({ paths }) => paths))
            ],
            {
                signal,
                onDocument({ message_type: type, percent_done: part }) {
                    if (type === 'status' && typeof part === 'number') {
                        progress(Math.min(1, part));
                    }
                }
            },
            [partialCode]
        );
        const summary = documents.find((document) => document['message_type'] === 'summary');
        snapshots.forget(row.id);
        const made = String(summary?.['snapshot_id'] ?? '');
        const snapshotId = dryRun || made === '' ? null : (await snapshots.get(row, made)).id;
        const counts = snapshotId === null ? null : await snapshots.counts(row, snapshotId, ready, signal);
        const complete = code === 0 && ready.length === staged.length;
        if (complete && !dryRun) {
            await forgetOld(restic, target, row, plan, signal);
            snapshots.forget(row.id);
        }
        return {
            state: complete ? 'succeeded' : 'incomplete',
            message: complete
                ? null
                : [
                      messageOf(staged),
                      code === partialCode ? `Not everything could be read: ${said.trim().slice(-500)}` : null
                  ]
                      .filter((text) => text !== null && text !== '')
                      .join('; '),
            snapshotId,
            sources: resultsOf(staged, counts)
        };
    }

    async #record(plan: Plan, id: number, dryRun: boolean, ended: Ended): Promise<void> {
        const { ctx } = this.#options;
        const { state, message, snapshotId } = ended;
        const now = Date.now();
        await ctx.db.write(async (em) => {
            await em.nativeUpdate(
                RunEntity,
                { id },
                { state, message, snapshotId, finishedAt: now, sources: JSON.stringify(ended.sources) }
            );
            if (state === 'succeeded' && !dryRun) {
                await em.nativeUpdate(PlanEntity, { id: plan.id }, { lastSuccessAt: now });
            }
            const [oldest] = await em.execute<{ id: number }[]>(
                'select id from runs order by id desc limit 1 offset ?',
                [ctx.settings.runsKept]
            );
            if (oldest !== undefined) {
                await em.nativeDelete(RunEntity, { id: { $lte: oldest.id } });
            }
        });
        this.#active.delete(id);
        const isBad = ['failed', 'incomplete'].includes(state);
        if (plan.notifyOn === 'always' || (plan.notifyOn === 'failure' && isBad)) {
            await ctx
                .notify({
                    event:
                        state === 'succeeded'
                            ? 'run-succeeded'
                            : state === 'incomplete'
                              ? 'run-incomplete'
                              : 'run-failed',
                    severity: state === 'succeeded' ? 'info' : 'error',
                    title: `The backup ${plan.name} ${state === 'succeeded' ? 'succeeded' : `is ${state}`}`,
                    ...(message === null ? {} : { text: message }),
                    data: { planId: plan.id, runId: id }
                })
                .catch((error: unknown) =>
                    ctx.log.warn('A notification could not be sent', { error: String(error) })
                );
        }
    }

    /** Waits for a place among `concurrentRuns`. */
    async #enter(signal: AbortSignal): Promise<void> {
        while (this.#running >= this.#options.ctx.settings.concurrentRuns) {
            signal.throwIfAborted();
            await new Promise<void>((resolve) => {
                this.#waiting.push(resolve);
                signal.addEventListener('abort', () => resolve(), { once: true });
            });
        }
        this.#running += 1;
    }

    #leave(): void {
        this.#running -= 1;
        this.#waiting.splice(0).forEach((wake) => wake());
    }
}

function messageOf(staged: readonly StagedSource[]): string {
    return staged
        .map(({ message }) => message)
        .filter((message) => message !== null)
        .join('; ');
}

function resultsOf(
    staged: readonly StagedSource[],
    counts: ReadonlyMap<StagedSource, { readonly files: number; readonly bytes: number }> | null = null
): readonly SourceResult[] {
    return staged.map((each) => ({
        source: each.source,
        state: each.message === null ? 'succeeded' : 'failed',
        message: each.message,
        files: counts?.get(each)?.files ?? 0,
        bytes: counts?.get(each)?.bytes ?? 0
    }));
}
