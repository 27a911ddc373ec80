/** Chains: tasks that run when a run of another task has ended. */
import { errors, joi } from '@portico/sdk';
import type { EntityManager } from '@portico/sdk/db';

import type { RunRow, TaskRow } from '../entities.ts';
import { fail } from '../errors.ts';
import { findTasks } from '../queries.ts';

/** A task that follows. */
export interface Step {
    readonly taskId: number;
    readonly on: 'success' | 'failure' | 'always';
}

/** So many runs follow the first one of a chain at most. */
export const deepest = 20;

/** The field `then` of a task: the tasks that start when it has ended. */
export const thenField = joi
    .array()
    .items(
        joi.object({
            taskId: joi
                .number()
                .integer()
                .min(1)
                .required()
                .label('Task')
                .meta({ ui: { ref: 'cronjob.tasks' } }),
            on: joi
                .choice({
                    success: 'When it succeeded',
                    failure: 'When it failed, also in its last retry',
                    always: 'In either case, also when it was stopped'
                })
                .required()
                .label('When')
        })
    )
    .unique('taskId')
    .max(20)
    .label('Then')
    .description(
        'Tasks that run afterwards, also disabled ones: they get the defaults of their parameters, and no blackout holds them'
    );

/** The steps of a task. */
export function stepsOf({ steps }: Pick<TaskRow, 'steps'>): readonly Step[] {
    return JSON.parse(steps) as readonly Step[];
}

/** The tasks that follow a run that will not be retried. */
export function stepsAfter(task: TaskRow, { state, reason }: RunRow): readonly number[] {
    const wanted = state === 'succeeded' ? 'success' : reason === 'STOPPED' ? null : 'failure';
    return stepsOf(task).flatMap(({ taskId, on }) => (on === 'always' || on === wanted ? [taskId] : []));
}

/** Checks the steps of a task, in the write that stores them and before. @throws VALIDATION_FAILED 40001 for a step without a task, CHAIN_CYCLE 40950 */
export async function checkSteps(em: EntityManager, id: number, steps: readonly Step[]): Promise<void> {
    if (steps.length === 0) {
        return;
    }
    const rows = await em.execute<{ id: number; name: string; steps: string }[]>(
        'select id, name, steps from tasks'
    );
    const tasks = new Map(rows.map((row) => [row.id, row]));
    const missing = steps.findIndex(({ taskId }) => !tasks.has(taskId));
    if (missing >= 0) {
        throw errors.invalid([
            { path: `then.${missing}.taskId`, message: `There is no task ${steps[missing]?.taskId}` }
        ]);
    }
    const seen = new Set<number>();
    const left = steps.map(({ taskId }) => taskId);
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
        if (next === id) {
            throw fail.CHAIN_CYCLE({ task: tasks.get(id)?.name ?? String(id) });
        }
        if (!seen.has(next)) {
            seen.add(next);
            left.push(...stepsOf({ steps: tasks.get(next)?.steps ?? '[]' }).map(({ taskId }) => taskId));
        }
    }
}

/** Takes removed tasks out of the steps of all others, in the write that removes them. */
export async function forgetSteps(em: EntityManager, removed: readonly number[]): Promise<void> {
    for (const task of await findTasks(em, { steps: { $ne: '[]' }, id: { $nin: [...removed] } })) {
        const kept = stepsOf(task).filter(({ taskId }) => !removed.includes(taskId));
        const steps = JSON.stringify(kept);
        if (steps !== task.steps) {
            Object.assign(task, { steps, version: task.version + 1 });
        }
    }
}
