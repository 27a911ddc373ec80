/** Drills: the newest snapshot of a plan is restored, held against its own list, and the panel in it is booted. */
import { errors, type PanelRehearsal } from '@portico/sdk';

import { DrillEntity, type RepositoryRow } from '../entities.ts';
import type { Source } from '../plans/input.ts';
import type { Plan } from '../plans/plans.ts';
import type { Repositories } from '../repositories/repositories.ts';
import type { Restic } from '../restic/restic.ts';
import { notePathIn, type SnapshotNote, type StagedSource } from '../runs/sources.ts';
import type { Scratch } from '../scratch.ts';
import type { Ctx } from '../settings.ts';
import type { Snapshot } from '../snapshots/documents.ts';
import { countRestored } from '../snapshots/restored.ts';
import type { Snapshots } from '../snapshots/snapshots.ts';

/** What a drill proved. */
export interface Proof {
    readonly planId: number;
    readonly snapshotId: string;
    readonly at: string;
    readonly ok: boolean;
    readonly durationMs: number;
    readonly sources: readonly {
        readonly source: Source;
        readonly ok: boolean;
        readonly files: number;
        readonly bytes: number;
        readonly message: string | null;
    }[];
    readonly panel: PanelRehearsal | null;
}

/** Why a drill failed, in one sentence. */
export function failureOf({ panel, sources }: Proof): string {
    const audit = panel?.booted === true && !panel.auditChain ? 'The audit log in it is broken' : null;
    return (
        panel?.message ??
        audit ??
        sources.find(({ ok }) => !ok)?.message ??
        'There is nothing in the snapshot'
    );
}

const keptProofs = 1_000;

/** Runs drills, and keeps what they proved. */
export class Drills {
    readonly #ctx: Ctx;
    readonly #restic: Restic;
    readonly #repositories: Repositories;
    readonly #snapshots: Snapshots;
    readonly #scratch: Scratch;

    constructor(
        ctx: Ctx,
        restic: Restic,
        repositories: Repositories,
        snapshots: Snapshots,
        scratch: Scratch
    ) {
        this.#ctx = ctx;
        this.#restic = restic;
        this.#repositories = repositories;
        this.#snapshots = snapshots;
        this.#scratch = scratch;
    }

    /** Newest first. */
    async list(): Promise<readonly { readonly id: number; readonly proof: Proof }[]> {
        const rows = await this.#ctx.db.read((em) => em.find(DrillEntity, {}, { orderBy: { id: 'desc' } }));
        return rows.map(({ id, proof }) => ({ id, proof: JSON.parse(proof) as Proof }));
    }

    /** When each plan was proven last, by its id. */
    async lastProofs(): Promise<ReadonlyMap<number, Proof>> {
        return new Map((await this.list()).toReversed().map(({ proof }) => [proof.planId, proof]));
    }

    /** @throws NOT_FOUND 40400 when the plan has no snapshot yet */
    async run(plan: Plan, signal: AbortSignal): Promise<Proof> {
        const row = await this.#repositories.get(plan.repositoryId);
        const snapshot = (await this.#snapshots.list(row, signal)).find(({ planId }) => planId === plan.id);
        if (snapshot === undefined) {
            throw errors.notFound('The plan has no snapshot yet');
        }
        const scratch = `drill-${plan.id}`;
        const folder = await this.#scratch.make(scratch);
        try {
            const proof = await this.#repositories.using(row.id, () =>
                this.#prove(row, snapshot, { planId: plan.id, folder }, signal)
            );
            await this.#store(plan, proof);
            return proof;
        } finally {
            await this.#scratch.remove(scratch);
        }
    }

    async #prove(
        row: RepositoryRow,
        snapshot: Snapshot,
        { planId, folder }: { readonly planId: number; readonly folder: string },
        signal: AbortSignal
    ): Promise<Proof> {
        const began = performance.now();
        const problem = await this.#restore(row, snapshot, folder, signal);
        const note =
            (problem === null ? await this.#restoredNote(folder, snapshot) : null) ??
            (await this.#snapshots.note(row, snapshot, signal));
        const staged = (note?.sources ?? []).map((each): StagedSource => ({ ...each, message: null }));
        const counting = this.#snapshots.counts(row, snapshot.id, staged, signal);
        counting.catch(() => undefined); // it is awaited when the panel has ended
        const panelPath = staged.find(({ source }) => source.type === 'panel')?.paths[0];
        const panel =
            panelPath === undefined || problem !== null
                ? null
                : await this.#ctx.panel.rehearse(`${folder}${panelPath}`, { signal });
        const counts = await counting;
        const sources = await Promise.all(
            staged.map(async (each) => {
                const { files = 0, bytes = 0 } = counts.get(each) ?? {};
                const found = (await countRestored(this.#ctx.files(folder), each.paths)) ?? 0;
                const message = problem ?? (found === files ? null : `${found} of ${files} files came back`);
                return { source: each.source, ok: message === null, files, bytes, message };
            })
        );
        return {
            planId,
            snapshotId: snapshot.id,
            at: new Date().toISOString(),
            ok:
                sources.length > 0 &&
                sources.every(({ ok }) => ok) &&
                (panel === null || (panel.booted && panel.auditChain)),
            durationMs: Math.round(performance.now() - began),
            sources,
            panel
        };
    }

    /** Restores all of a snapshot. Gives why it did not come back; null when it did. @throws STORAGE_FULL 50700; the signal's reason */
    async #restore(
        row: RepositoryRow,
        snapshot: Snapshot,
        folder: string,
        signal: AbortSignal
    ): Promise<string | null> {
        const known = (await this.#snapshots.records()).get(snapshot.id)?.bytes;
        const bytes = known ?? (await this.#snapshots.below(row, snapshot, snapshot.paths, signal)).bytes;
        await this.#scratch.requireRoom(bytes);
        const target = await this.#repositories.target(row);
        // `--verify` reads every restored file, and compares it with the hashes that the snapshot has.
        const args = ['restore', snapshot.id, `--target=${folder}`, '--verify'];
        try {
            await this.#restic.run(target, args, { signal, keepNone: true });
            return null;
        } catch (error) {
            signal.throwIfAborted();
            return (error as Error).message;
        }
    }

    async #store(plan: Plan, proof: Proof): Promise<void> {
        await this.#ctx.db.write(async (em) => {
            await em.insert(DrillEntity, { planId: plan.id, proof: JSON.stringify(proof) });
            await em.execute(
                'delete from drills where id <= (select id from drills order by id desc limit 1 offset ?)',
                [keptProofs]
            );
        });
        if (!proof.ok) {
            await this.#ctx.notify({
                event: 'drill-failed',
                severity: 'error',
                title: `The drill of ${plan.name} failed`,
                text: failureOf(proof),
                data: { planId: plan.id, snapshotId: proof.snapshotId }
            });
        }
    }

    /** The note of the snapshot as it came back; null when it did not. */
    async #restoredNote(folder: string, { paths }: Snapshot): Promise<SnapshotNote | null> {
        const path = notePathIn(paths);
        if (path === undefined) {
            return null;
        }
        await using file = await this.#ctx
            .files(folder)
            .open(path.slice(1), 'r')
            .catch(() => null);
        return file === null ? null : (JSON.parse(await file.readFile('utf8')) as SnapshotNote);
    }
}
