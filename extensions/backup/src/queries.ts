/** Queries that several services share. */
import type { EntityManager } from '@portico/sdk/db';

import {
    PlanEntity,
    type PlanRow,
    RepositoryEntity,
    type RepositoryRow,
    RunEntity,
    type RunRow
} from './entities.ts';

/** Finds repositories. In a write, changes of the rows are saved. */
export async function findRepositories(em: EntityManager, where: object): Promise<RepositoryRow[]> {
    // The entity's type allows undefined in a nullable column; the database gives null.
    return (await em.find(RepositoryEntity, where, { orderBy: { id: 'asc' } })) as unknown as RepositoryRow[];
}

/** Finds plans. In a write, changes of the rows are saved. */
export async function findPlans(em: EntityManager, where: object): Promise<PlanRow[]> {
    // The entity's type allows undefined in a nullable column; the database gives null.
    return (await em.find(PlanEntity, where, { orderBy: { id: 'asc' } })) as unknown as PlanRow[];
}

/** Finds runs, newest first. In a write, changes of the rows are saved. */
export async function findRuns(em: EntityManager, where: object, limit?: number): Promise<RunRow[]> {
    const options = { orderBy: { id: 'desc' as const }, ...(limit === undefined ? {} : { limit }) };
    // The entity's type allows undefined in a nullable column; the database gives null.
    return (await em.find(RunEntity, where, options)) as unknown as RunRow[];
}
