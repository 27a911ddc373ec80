/** Queries that several services share. */
import { type EntityManager, findRows } from '@portico/sdk/db';

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
    return findRows(em, RepositoryEntity, where, { orderBy: { id: 'asc' } });
}

/** Finds plans. In a write, changes of the rows are saved. */
export async function findPlans(em: EntityManager, where: object): Promise<PlanRow[]> {
    return findRows(em, PlanEntity, where, { orderBy: { id: 'asc' } });
}

/** Finds runs, newest first. In a write, changes of the rows are saved. */
export async function findRuns(em: EntityManager, where: object, limit?: number): Promise<RunRow[]> {
    const options = { orderBy: { id: 'desc' as const }, ...(limit === undefined ? {} : { limit }) };
    return findRows(em, RunEntity, where, options);
}
