/**
 * One batch of changes: planned one after the other, brought to the engine together, committed in one transaction. A change that the engine
 * refuses is found by halving and refused alone; a commit that fails takes the engine back.
 */
import { isFailure } from '@portico/sdk';

import type { Author, Outcome, Plan } from '../change.ts';
import { translateError } from '../errors.ts';
import { EngineRejected, EngineUnavailable } from '../port.ts';
import type { HostDelta } from '../revisions/revisions.ts';
import { type Rows, DraftOverlay } from './draft-overlay.ts';
import { projected } from './engine-context.ts';
import type { SyncPorts, Batch, Waiter } from './ports.ts';
import type { Serving, Staged } from './served-state.ts';

/** Milliseconds until the engine may be asked to load again. */
export const waitOf = (ports: SyncPorts): number =>
    ports.served().loadedAt + ports.windowMs - performance.now();

/** Takes one batch through. */
export const createBatch = (ports: SyncPorts): BatchRun => new BatchRun(ports);

interface Step {
    readonly waiter: Waiter;
    readonly plan: Plan;
    readonly staged: Staged;
    readonly mark: number;
}

interface Refusal {
    readonly waiter: Waiter;
    readonly error: unknown;
}

class BatchRun {
    readonly #ports: SyncPorts;
    readonly #served: Serving;
    readonly #draft: DraftOverlay;
    readonly #answered = new Set<Waiter>();
    #steps: Step[] = [];
    #refused: Refusal[] = [];
    #left: readonly Waiter[] = [];
    /** The engine may have more than the steps that are still staged. */
    #engineTouched = false;
    #reloaded = false;

    constructor(ports: SyncPorts) {
        this.#ports = ports;
        this.#served = ports.served();
        this.#draft = new DraftOverlay(ports.rows());
    }

    /** What must wait for the next load. */
    get left(): readonly Waiter[] {
        return this.#left;
    }

    async run(waiters: readonly Waiter[]): Promise<void> {
        const mode = this.#ports.mode();
        this.#left = this.#stageUntil(waiters, mode === 'live' && waitOf(this.#ports) > 0);
        const taken = waiters.slice(0, waiters.length - this.#left.length);
        if (mode === 'live') {
            await this.#syncStaged(taken);
        } else {
            await this.#prove(taken);
            this.#reloaded = this.#served.needsReload;
        }

        await this.#commit(mode === 'live');
        this.#refuse();
    }

    /** Refuses what is left undecided, and takes the engine back. */
    async abandon(error: unknown, waiters: readonly Waiter[]): Promise<void> {
        this.#unstage(0);
        if (error instanceof EngineUnavailable) {
            // Nobody knows what it has, and it does not say: whoever speaks with it next has to look.
            this.#served.invalidate();
        } else if (this.#engineTouched) {
            await this.#revert();
        }

        this.#refuse();
        const cause = translateError(error);
        for (const waiter of waiters) {
            if (!this.#answered.has(waiter) && !this.#left.includes(waiter)) {
                this.#answered.add(waiter);
                waiter.reject(cause);
            }
        }
    }

    /** Plans in order. Inside the window it stops before the first change that needs a load. */
    #stageUntil(waiters: readonly Waiter[], closed: boolean): readonly Waiter[] {
        if (closed && this.#served.needsReload) {
            return waiters;
        }

        for (const [index, waiter] of waiters.entries()) {
            this.#stage(waiter);
            if (closed && this.#served.needsReload) {
                this.#unstage(this.#steps.length - 1);
                return waiters.slice(index);
            }
        }

        return [];
    }

    #stage(waiter: Waiter): void {
        const mark = this.#draft.mark();
        try {
            const plan = waiter.change.plan(this.#draft);
            this.#draft.apply(plan);
            for (const { id, pem } of plan.certificates ?? []) {
                if (pem !== undefined) {
                    this.#ports.pems.set(id, pem);
                }
            }

            this.#steps.push({
                waiter,
                plan,
                staged: this.#served.stage(projected(plan, this.#draft.settings)),
                mark
            });
        } catch (error) {
            this.#draft.rollBack(mark);
            this.#refused.push({ waiter, error });
        }
    }

    #unstage(length: number): void {
        while (this.#steps.length > length) {
            const step = this.#steps.pop();
            step?.staged.undo();
            this.#draft.rollBack(step?.mark ?? 0);
        }
    }

    /** Brings what is staged to the engine; finds and drops what it refuses. */
    async #syncStaged(waiters: readonly Waiter[]): Promise<void> {
        if (this.#steps.length === 0) {
            return;
        }

        try {
            await this.#sync();
            return;
        } catch (error) {
            if (!(error instanceof EngineRejected)) {
                throw error;
            }

            this.#restart();
            if (waiters.length === 1) {
                this.#refused = waiters.map((waiter) => ({ waiter, error: translateError(error) }));
                return;
            }
        }

        // Proving costs no connection; a load that succeeds half-way to the answer would.
        await this.#halve(waiters, () => this.#served.prove());
        if (this.#steps.length === 0) {
            return;
        }

        try {
            await this.#sync();
        } catch (error) {
            if (!(error instanceof EngineRejected)) {
                throw error;
            }

            // What only a real load finds out (an address in use, for one) has to be looked for with real loads.
            this.#restart();
            await this.#halve(waiters, () => this.#sync());
        }
    }

    /** As `#serve` for changes that wait: what the engine is known to refuse is refused at once. Without a verdict the load will tell. */
    async #prove(waiters: readonly Waiter[]): Promise<void> {
        if (this.#steps.length === 0 || !this.#served.needsReload || !this.#ports.provable()) {
            return;
        }

        try {
            await this.#served.prove();
        } catch (error) {
            if (!(error instanceof EngineRejected)) {
                return;
            }

            this.#restart();
            if (await this.#refusesPending()) {
                this.#stageUntil(waiters, false);
                return;
            }

            await this.#halve(waiters, () => this.#served.prove());
        }
    }

    /** Whether what waits already is refused: then no change at hand is to blame. */
    async #refusesPending(): Promise<boolean> {
        return (
            this.#served.behind &&
            (await this.#served.prove().then(
                () => false,
                () => true
            ))
        );
    }

    async #halve(waiters: readonly Waiter[], accept: () => Promise<unknown>): Promise<void> {
        const steps = this.#steps.length;
        const refused = this.#refused.length;
        this.#stageUntil(waiters, false);
        if (this.#steps.length === steps) {
            return;
        }

        try {
            await accept();
        } catch (error) {
            if (!(error instanceof EngineRejected)) {
                throw error;
            }

            this.#unstage(steps);
            this.#refused.length = refused;
            if (waiters.length === 1) {
                this.#refused.push(...waiters.map((waiter) => ({ waiter, error: translateError(error) })));
                return;
            }

            const middle = Math.ceil(waiters.length / 2);
            await this.#halve(waiters.slice(0, middle), accept);
            await this.#halve(waiters.slice(middle), accept);
        }
    }

    async #sync(): Promise<void> {
        const began = performance.now();
        const changes = this.#steps.length;
        try {
            this.#engineTouched = true;
            const reloaded = await this.#served.sync();
            this.#reloaded ||= reloaded;
            this.#ports.attempted({ changes, reloaded, durationMs: performance.now() - began, error: null });
        } catch (error) {
            this.#ports.attempted({
                changes,
                reloaded: this.#served.needsReload,
                durationMs: performance.now() - began,
                error: error as Error
            });
            throw error;
        }
    }

    async #commit(applied: boolean): Promise<void> {
        while (this.#steps.length > 0) {
            const culprit = await this.#write(applied);
            if (culprit === null) {
                return;
            }

            // One change cannot be written: the others can be, on an engine that never had it.
            const others = this.#steps.filter((step) => step !== culprit.step).map((step) => step.waiter);
            this.#refused.push({ waiter: culprit.step.waiter, error: culprit.error });
            this.#unstage(0);
            this.#stageUntil(others, false);
            if (applied) {
                await this.#sync();
            }
        }
    }

    /** @returns the change that could not be written; null when all are */
    async #write(applied: boolean): Promise<{ readonly step: Step; readonly error: unknown } | null> {
        const { db, hosts, rows } = this.#ports;
        const reloaded = this.#reloaded;
        const batch: Batch = {
            applied,
            reloaded,
            draft: this.#draft,
            ...deltasOf(rows(), this.#draft, this.#steps),
            by: authorsOf(this.#steps)
        };
        const outcome: Outcome = { revision: this.#ports.revisionOf(batch), applied, reloaded };
        const values: unknown[] = [];
        let culprit: Step | null = null;
        try {
            await db.write(async (tx) => {
                values.length = 0;
                for (const step of this.#steps) {
                    culprit = step;
                    if (step.plan.hosts !== undefined && step.plan.hosts.length > 0) {
                        await hosts.write(tx, step.plan.hosts, applied);
                    }

                    values.push(await step.waiter.change.commit(tx, outcome));
                    culprit = null;
                }

                const settle = await this.#ports.record(tx, batch);
                tx.afterCommit(() => {
                    rows().advance(this.#draft);
                    settle();
                });
            });
        } catch (error) {
            const alone = culprit as Step | null;
            if (alone === null || this.#steps.length === 1 || isStorageFull(error)) {
                throw error;
            }

            return { step: alone, error };
        }

        for (const [index, { waiter }] of this.#steps.entries()) {
            this.#answered.add(waiter);
            waiter.resolve({ value: values[index], outcome });
        }

        this.#steps = [];
        this.#engineTouched = false;
        this.#ports.committed({ ...outcome, hosts: batch.deltas.map(({ id }) => id) });
        return null;
    }

    async #revert(): Promise<void> {
        try {
            await this.#served.sync();
        } catch (error) {
            this.#served.invalidate();
            this.#ports.attempted({ changes: 0, reloaded: true, durationMs: 0, error: error as Error });
        }
    }

    #restart(): void {
        this.#unstage(0);
        this.#refused = [];
    }

    #refuse(): void {
        for (const { waiter, error } of this.#refused) {
            if (!this.#answered.has(waiter)) {
                this.#answered.add(waiter);
                waiter.reject(error);
            }
        }
    }
}

const deltasOf = (
    rows: Rows,
    sketch: DraftOverlay,
    steps: readonly Step[]
): { readonly deltas: readonly HostDelta[]; readonly beyondHosts: boolean } => ({
    deltas: [...sketch.hosts.changes()]
        .map(([id, after]) => ({ id, before: rows.hosts.get(id) ?? null, after: after ?? null }))
        .filter(({ before, after }) => before !== after),
    beyondHosts: steps.some(
        ({ plan }) =>
            plan.settings !== undefined ||
            plan.fragments !== undefined ||
            (plan.certificates ?? []).length > 0
    )
});

const authorsOf = (steps: readonly Step[]): readonly Author[] =>
    steps.flatMap(({ waiter }) => (waiter.change.by === undefined ? [] : [waiter.change.by]));

const isStorageFull = (error: unknown): boolean => isFailure(error) && error.reason === 'STORAGE_FULL';
