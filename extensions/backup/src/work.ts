/** Checks and drills as tasks, started by people or by the clock. */
import { type Actor, isFailure, type TaskView } from '@portico/sdk';

import { type Drills, failureOf } from './drills/drills.ts';
import { RepositoryEntity, type RepositoryRow } from './entities.ts';
import { fail } from './errors.ts';
import type { Plan } from './plans/plans.ts';
import type { Repositories } from './repositories/repositories.ts';
import type { CheckResult } from './repositories/stored.ts';
import type { Restic } from './restic/restic.ts';
import type { Ctx } from './settings.ts';

/** Starts the tasks that check a repository and that drill a plan. */
export class Work {
    readonly #ctx: Ctx;
    readonly #restic: Restic;
    readonly #repositories: Repositories;
    readonly #drills: Drills;

    constructor(ctx: Ctx, restic: Restic, repositories: Repositories, drills: Drills) {
        this.#ctx = ctx;
        this.#restic = restic;
        this.#repositories = repositories;
        this.#drills = drills;
    }

    /** Checks the repository of a plan as its rule says. */
    async check({ repositoryId, check }: Plan): Promise<TaskView> {
        return this.checkRepository(await this.#repositories.get(repositoryId), check?.readPercent ?? 0);
    }

    /** Checks a repository. The task fails when the repository is not whole. */
    checkRepository(row: RepositoryRow, readPercent: number, actor?: Actor): Promise<TaskView> {
        const options = {
            kind: 'check',
            title: `Check of ${row.name}`,
            access: 'run',
            key: `check-${row.id}`
        };
        return this.#ctx.task(
            { ...options, ...(actor === undefined ? {} : { actor }) },
            async ({ signal }) => {
                const found = await this.#repositories.writing(row.id, () =>
                    this.#check(row, readPercent, signal)
                );
                if (!found.ok) {
                    throw fail.CHECK_FAILED({ message: found.message ?? '' });
                }
                return found;
            }
        );
    }

    /** Drills a plan. The task fails when the snapshot does not come back. */
    async drill(plan: Plan, actor?: Actor): Promise<TaskView> {
        await this.#repositories.get(plan.repositoryId);
        const options = {
            kind: 'drill',
            title: `Drill of ${plan.name}`,
            access: 'run',
            key: `drill-${plan.id}`
        };
        return this.#ctx.task(
            { ...options, ...(actor === undefined ? {} : { actor }) },
            async ({ signal }) => {
                const proof = await this.#drills.run(plan, signal);
                if (!proof.ok) {
                    throw fail.DRILL_FAILED({ message: failureOf(proof) });
                }
                return proof;
            }
        );
    }

    /** Checks the structure, and reads so many per cent of the data. The result is stored, and a fault is told to people. @throws LOCKED 40951: nothing is known then */
    async #check(row: RepositoryRow, readPercent: number, signal: AbortSignal): Promise<CheckResult> {
        const args = readPercent === 0 ? ['check'] : ['check', `--read-data-subset=${readPercent}%`];
        const at = new Date().toISOString();
        const error = await this.#repositories
            .target(row)
            .then((target) => this.#restic.run(target, args, { signal, keepNone: true }))
            .then(
                () => null,
                (failure: unknown) => {
                    signal.throwIfAborted();
                    return failure as Error;
                }
            );
        const result: CheckResult = { at, ok: error === null, message: error?.message ?? null };
        const reason = isFailure(error) ? error.reason : null;
        if (reason !== 'LOCKED') {
            await this.#ctx.db.write((em) =>
                em.nativeUpdate(RepositoryEntity, { id: row.id }, { lastCheck: JSON.stringify(result) })
            );
        }
        await this.#repositories.see(row.id, error, {}, reason === 'RESTIC_FAILED' ? 'damaged' : undefined);
        if (error !== null) {
            await this.#ctx.notify({
                event: 'check-failed',
                severity: 'error',
                title: `The check of ${row.name} failed`.slice(0, 200),
                text: error.message,
                data: { repositoryId: row.id }
            });
        }
        if (error !== null && reason === 'LOCKED') {
            throw error;
        }
        return result;
    }
}
