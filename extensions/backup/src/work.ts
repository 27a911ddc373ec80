/** Checks and drills as tasks, started by people or by the clock. */
import type { Actor, TaskView } from '@portico/sdk';

import { type Drills, failureOf } from './drills/drills.ts';
import type { RepositoryRow } from './entities.ts';
import { pluginErrors } from './errors.ts';
import type { Plan } from './plans/plans.ts';
import type { Repositories } from './repositories/repositories.ts';
import type { Ctx } from './settings.ts';

/** Starts tasks. */
export class Work {
    readonly #ctx: Ctx;
    readonly #repositories: Repositories;
    readonly #drills: Drills;

    constructor(ctx: Ctx, repositories: Repositories, drills: Drills) {
        this.#ctx = ctx;
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
                    this.#repositories.check(row, readPercent, signal)
                );
                if (!found.ok) {
                    throw pluginErrors.CHECK_FAILED({ message: found.message ?? '' });
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
                    throw pluginErrors.DRILL_FAILED({ message: failureOf(proof) });
                }
                return proof;
            }
        );
    }
}
