/** Queries that several services share. */
import { errors } from '@portico/sdk';
import { type EntityManager, findRows } from '@portico/sdk/db';

import { RunEntity, type RunRow, TaskEntity, type TaskRow } from './entities.ts';

/** Order and size of an answer. */
export interface QueryOptions {
    readonly limit?: number;
    /** Default: by ascending ids. */
    readonly newestFirst?: boolean;
}

/** Finds the tasks that match a condition. In a write, changes of the rows are saved. */
export async function findTasks(
    em: EntityManager,
    where: object,
    options: QueryOptions = {}
): Promise<TaskRow[]> {
    return findRows(em, TaskEntity, where, findOptions(options));
}

/** One task. @throws NOT_FOUND 40400 */
export async function findTask(em: EntityManager, id: number): Promise<TaskRow> {
    const [task] = await findTasks(em, { id });
    if (task === undefined) {
        throw errors.notFound('There is no task of that id');
    }
    return task;
}

/** Finds the runs that match a condition. In a write, changes of the rows are saved. */
export async function findRuns(
    em: EntityManager,
    where: object,
    options: QueryOptions = {}
): Promise<RunRow[]> {
    return findRows(em, RunEntity, where, findOptions(options));
}

/** Runs with their tasks, in the order of their ids; those that were removed are left out. In a write, changes of the rows are saved. */
export async function findRunsWithTasks(
    em: EntityManager,
    ids: readonly number[]
): Promise<(readonly [RunRow, TaskRow])[]> {
    const runs = await findRuns(em, { id: { $in: [...ids] } });
    const tasks = await findTasks(em, { id: { $in: [...new Set(runs.map(({ taskId }) => taskId))] } });
    const byId = new Map(tasks.map((task) => [task.id, task]));
    return runs.flatMap((run) => {
        const task = byId.get(run.taskId);
        return task === undefined ? [] : [[run, task] as const];
    });
}

function findOptions({ limit, newestFirst = false }: QueryOptions): {
    readonly orderBy: { readonly id: 'asc' | 'desc' };
    readonly limit?: number;
} {
    return { orderBy: { id: newestFirst ? 'desc' : 'asc' }, ...(limit === undefined ? {} : { limit }) };
}
