/** One run: its commands, its sources, restic, the keep rules, and the copies. */
import type { RepositoryRow, RunState } from '../entities.ts';
import { fail } from '../errors.ts';
import type { Plan } from '../plans/plans.ts';
import type { Copies } from '../repositories/copies.ts';
import type { Repositories } from '../repositories/repositories.ts';
import { connectionIn } from '../repositories/stored.ts';
import type { Document } from '../restic/output.ts';
import { partialCode, type Restic } from '../restic/restic.ts';
import type { Ctx } from '../settings.ts';
import type { Snapshots } from '../snapshots/snapshots.ts';
import { commandsOf, runCommand } from './commands.ts';
import { excludesOf } from './excludes.ts';
import { selectOld } from './keep.ts';
import { type Count, SourceTally } from './results.ts';
import type { RunLog } from './run-log.ts';
import type { SourceResult, Sources, StagedSource } from './sources.ts';

/** What a run of a plan works with. */
export interface RunServices {
    readonly ctx: Ctx;
    readonly restic: Restic;
    readonly repositories: Repositories;
    readonly sources: Sources;
    readonly snapshots: Snapshots;
    readonly copies: Copies;
}

/** How a run ended. */
export interface Ended {
    readonly state: RunState;
    readonly message: string | null;
    readonly snapshotId: string | null;
    readonly sources: readonly SourceResult[];
}

/** What one run is given. */
export interface RunInput {
    readonly plan: Plan;
    readonly dryRun: boolean;
    readonly log: RunLog;
    readonly signal: AbortSignal;
    progress(part: number | null, text?: string): void;
}

/** A restic that says nothing for so long is taken for dead: while it works, it tells of its progress each second. */
const silenceMs = 15 * 60_000;
const mostErrors = 100;

/** Executes one run of a plan, from its sources to the snapshot. */
export class Execution {
    readonly #services: RunServices;
    readonly #input: RunInput;

    constructor(services: RunServices, input: RunInput) {
        this.#services = services;
        this.#input = input;
    }

    /** Holds the right to write to the plan's repository meanwhile. @throws what kept it from making a snapshot */
    async run(): Promise<Ended> {
        const { ctx } = this.#services;
        const { plan, dryRun, log, signal } = this.#input;
        const commands = dryRun ? {} : await commandsOf(ctx, plan);
        const env = { BACKUP_PLAN: plan.name.replaceAll('\0', ''), BACKUP_PLAN_ID: String(plan.id) };
        const after = async (state: RunState): Promise<string | null> => {
            try {
                await runCommand(ctx, 'after', commands, { ...env, BACKUP_STATE: state }, log, ctx.signal);
                return null;
            } catch (error) {
                log.add('error', (error as Error).message);
                return (error as Error).message;
            }
        };
        try {
            await runCommand(ctx, 'before', commands, env, log, signal);
            const ended = await this.#backUp();
            const failure = await after(ended.state);
            return failure === null ? ended : { ...ended, ...worse(ended, failure) };
        } catch (error) {
            // What was stopped before the run is started again, however it went.
            await after(signal.aborted ? 'cancelled' : 'failed');
            throw error;
        }
    }

    async #backUp(): Promise<Ended> {
        const { repositories, sources, snapshots } = this.#services;
        const { plan, dryRun, log, signal, progress } = this.#input;
        const row = await repositories.get(plan.repositoryId);
        progress(null, 'Collecting the sources');
        log.add('info', 'Collecting the sources');
        const staged = await sources.stage(plan, signal);
        staged
            .filter(({ message }) => message !== null)
            .forEach(({ source, message }) =>
                log.add('error', `${source.path ?? source.plugin ?? 'panel'}: ${message}`)
            );
        const tally = new SourceTally(staged);
        const ready = staged.filter(({ message }) => message === null);
        if (ready.length === 0) {
            return {
                state: 'failed',
                message: messageOf(tally.results(null, 0)),
                snapshotId: null,
                sources: tally.results(null, 0)
            };
        }
        progress(0, 'Backing up');
        log.add('info', `Backing up to ${row.name}`);
        const { isPartial, summary } = await this.#write(row, ready, tally).finally(() =>
            snapshots.forget(row.id)
        );
        const made = String(summary['snapshot_id'] ?? '');
        const [snapshotId, counts] = await Promise.all([
            dryRun ? null : this.#wholeId(row, made),
            this.#counts(row, dryRun ? null : made, ready, summary)
        ]);
        const results = tally.results(counts, Number(summary['data_added'] ?? 0));
        const isWhole = !isPartial && results.every(({ state }) => state === 'succeeded');
        log.add('info', dryRun ? 'Nothing was stored: it was only a try' : `Made the snapshot ${made}`);
        let ended: Ended = {
            state: isWhole ? 'succeeded' : 'incomplete',
            message: isWhole ? null : messageOf(results) || 'Not everything could be read',
            snapshotId,
            sources: results
        };
        if (isWhole && snapshotId !== null) {
            await this.#forget(row);
            const failure = await this.#copy(row, snapshotId);
            ended = failure === null ? ended : { ...ended, ...worse(ended, failure) };
        }
        return ended;
    }

    /** @throws RESTIC_FAILED 50355 when restic ends well without having said what it made */
    async #write(
        row: RepositoryRow,
        ready: readonly StagedSource[],
        tally: SourceTally
    ): Promise<{ readonly isPartial: boolean; readonly summary: Document }> {
        const { ctx, restic, repositories, sources } = this.#services;
        const { plan, dryRun, log, signal, progress } = this.#input;
        let summary: Document | null = null;
        const { code, said } = await restic.run(
            await repositories.target(row),
            [
                'backup',
                ...(dryRun ? ['--dry-run'] : []),
                ...(ready.length > 1 ? ['--verbose=2'] : []),
                ...(ready.some(({ source }) => source.oneFileSystem === true) ? ['--one-file-system'] : []),
                '--tag=portico',
                `--tag=plan-${plan.id}`,
                ...plan.tags.map((tag) => `--tag=${tag}`),
                ...plan.excludes.map((pattern) => `--exclude=${pattern}`),
                ...(await excludesOf(ctx, sources.notePath(plan.id), ready)).map(
                    (pattern) => `--exclude=${pattern}`
                ),
                '--',
                sources.notePath(plan.id),
                ...new Set(ready.flatMap(({ paths }) => paths))
            ],
            {
                signal,
                silenceMs,
                keepNone: true,
                accepted: [partialCode],
                onDocument(document) {
                    const { message_type: type, percent_done: part } = document;
                    tally.take(document);
                    if (type === 'summary') {
                        summary = document;
                    } else if (type === 'status' && typeof part === 'number') {
                        progress(Math.min(1, Math.max(0, part)));
                    }
                }
            }
        );
        if (code === partialCode) {
            tally.takeErrors(said);
            said.split('\n')
                .filter((line) => line.trim() !== '')
                .slice(-mostErrors)
                .forEach((line) => log.add('error', line));
        }
        const found = summary as Document | null;
        if (found === null || (!dryRun && typeof found['snapshot_id'] !== 'string')) {
            throw fail.RESTIC_FAILED({ message: 'it did not say which snapshot it made' });
        }
        return { isPartial: code === partialCode, summary: found };
    }

    /** restic before 0.17 says the first characters of the id. In a folder of this machine the rest is seen without asking restic. */
    async #wholeId(row: RepositoryRow, made: string): Promise<string> {
        const { ctx, snapshots } = this.#services;
        const { type, path } = connectionIn(row);
        if (made.length === 64) {
            return made;
        }
        const files =
            type === 'local'
                ? await ctx
                      .files(path ?? '')
                      .list('snapshots')
                      .catch(() => [])
                : [];
        return files.find(({ name }) => name.startsWith(made))?.name ?? (await snapshots.get(row, made)).id;
    }

    async #counts(
        row: RepositoryRow,
        made: string | null,
        ready: readonly StagedSource[],
        summary: Document
    ): Promise<ReadonlyMap<StagedSource, Count> | null> {
        const { sources, snapshots } = this.#services;
        const [only] = ready;
        if (ready.length === 1 && only !== undefined) {
            const note = await sources.noteBytes(this.#input.plan.id);
            return new Map([
                [
                    only,
                    {
                        files: Math.max(0, Number(summary['total_files_processed'] ?? 1) - 1),
                        bytes: Math.max(0, Number(summary['total_bytes_processed'] ?? note) - note)
                    }
                ]
            ]);
        }
        return made === null ? null : snapshots.counts(row, made, ready, this.#input.signal);
    }

    /** Removes the snapshots of the plan that its rules do not keep. */
    async #forget(row: RepositoryRow): Promise<void> {
        const { ctx, restic, repositories, snapshots } = this.#services;
        const { plan, log, signal } = this.#input;
        if (row.appendOnly || Object.values(plan.keep).every((count) => count === 0)) {
            return;
        }
        const own = (await snapshots.list(row, signal)).filter(({ planId }) => planId === plan.id);
        const old = selectOld(own, plan.keep, plan.schedule?.timezone ?? ctx.settings.timezone);
        if (old.length > 0) {
            await restic
                .run(await repositories.target(row), ['forget', ...old], { signal, keepNone: true })
                .finally(() => snapshots.forget(row.id));
            log.add('info', `Removed ${old.length} snapshots that no rule keeps`);
        }
    }

    /** Copies the snapshot to the further repositories of the plan. Returns what failed; null when nothing did. */
    async #copy(from: RepositoryRow, id: string): Promise<string | null> {
        const { repositories, copies } = this.#services;
        const { plan, log, signal, progress } = this.#input;
        const failures: string[] = [];
        for (const each of plan.copyTo) {
            signal.throwIfAborted();
            try {
                const to = await repositories.get(each);
                progress(null, `Copying to ${to.name}`);
                log.add('info', `Copying to ${to.name}`);
                await repositories.writing(to.id, async () => {
                    await copies.copy(from, to, [{ id }], signal);
                    await this.#forget(to);
                });
            } catch (error) {
                signal.throwIfAborted();
                failures.push(`The copy to repository ${each} failed: ${(error as Error).message}`);
            }
        }
        failures.forEach((failure) => log.add('error', failure));
        return failures.length === 0 ? null : failures.join('; ');
    }
}

function worse(
    { state, message }: Ended,
    failure: string
): { readonly state: RunState; readonly message: string } {
    return {
        state: state === 'succeeded' ? 'incomplete' : state,
        message: message === null ? failure : `${message}; ${failure}`
    };
}

function messageOf(results: readonly SourceResult[]): string {
    return results
        .map(({ message }) => message)
        .filter((message) => message !== null)
        .join('; ');
}
