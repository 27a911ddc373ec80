import { isFailure } from '@portico/sdk';

import type { Author, Outcome, Plan } from '../change.ts';
import { translateError } from '../errors.ts';
import { EngineRejected, EngineUnavailable } from '../port.ts';
import type { HostDelta } from '../revisions/revisions.ts';
import { DraftOverlay, type Rows } from './draft-overlay.ts';
import { projectionChangeOf } from './engine-context.ts';
import type { Batch, SyncPorts, Waiter } from './ports.ts';
import type { ServedState, Staged } from './served-state.ts';

/** Milliseconds until the engine may load again; negative when it may now. */
export const remainingWindow = (ports: SyncPorts): number =>
    ports.served().loadedAt + ports.windowMs - performance.now();

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

/**
 * One batch of changes. They are planned one after the other, synced together and committed in one transaction. A change that the engine
 * refuses is found by bisection and refused alone. If the commit fails, the engine is reverted.
 */
export class BatchRun {
    readonly #ports: SyncPorts;
    readonly #served: ServedState;
    readonly #draft: DraftOverlay;
    readonly #answered = new Set<Waiter>();
    #steps: Step[] = [];
    #refused: Refusal[] = [];
    #left: readonly Waiter[] = [];
    /** Whether the engine may serve more than what is still staged. */
    #engineTouched = false;
    #reloaded = false;

    constructor(ports: SyncPorts) {
        this.#ports = ports;
        this.#served = ports.served();
        this.#draft = new DraftOverlay(ports.rows());
    }

    /** The changes that must wait for the next load. */
    get left(): readonly Waiter[] {
        return this.#left;
    }

    /** Plans, syncs and commits. @throws what makes the batch fail as a whole; then call `abandon` */
    async run(waiters: readonly Waiter[]): Promise<void> {
        const mode = this.#ports.mode();
        this.#left = this.#stageUntil(waiters, mode === 'live' && remainingWindow(this.#ports) > 0);
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

    /** Ends a batch that failed: reverts the engine and refuses every change that has no answer yet. */
    async abandon(error: unknown, waiters: readonly Waiter[]): Promise<void> {
        this.#unstage(0);
        if (error instanceof EngineUnavailable) {
            // It is unknown whether the engine took the load: the next sync compares.
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

    /**
     * Plans changes in order. With `closed` (a load is not allowed yet) it stops before the first change that needs one.
     * @returns the changes that were not planned
     */
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
                staged: this.#served.stage(projectionChangeOf(plan, this.#draft.settings)),
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

    /** Syncs what is staged; finds and drops the changes that the engine refuses. */
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

        // Validation costs no connection; each load would.
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

            // Some faults show only in a real load (an address in use, for example): look for them with real loads.
            this.#restart();
            await this.#halve(waiters, () => this.#sync());
        }
    }

    /** For changes that wait: refuses now what the engine would refuse. Without a verdict the later load decides. */
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

    /** Whether the engine refuses what waited before this batch: then no change of the batch is the cause. */
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
            const reloaded = await this.#served.sync({ leavesBridges: true });
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

            // One change cannot be written. The others are written, on an engine that is synced without it.
            const others = this.#steps.filter((step) => step !== culprit.step).map((step) => step.waiter);
            this.#refused.push({ waiter: culprit.step.waiter, error: culprit.error });
            this.#unstage(0);
            this.#stageUntil(others, false);
            if (applied) {
                await this.#sync();
            }
        }
    }

    /** @returns the change that could not be written and why; null when all were written */
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

                const afterCommit = await this.#ports.record(tx, batch);
                tx.afterCommit(() => {
                    rows().advance(this.#draft);
                    afterCommit();
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
    draft: DraftOverlay,
    steps: readonly Step[]
): { readonly deltas: readonly HostDelta[]; readonly beyondHosts: boolean } => ({
    deltas: [...draft.hosts.changes()]
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
