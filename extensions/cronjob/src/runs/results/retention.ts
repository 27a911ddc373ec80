/** Removes finished runs by the settings `runsKept` and `daysKept`. */
import type { EntityManager } from '@portico/sdk/db';

import type { Ctx } from '../../settings.ts';

const dayMs = 86_400_000;
/** Runs that one write removes at most. */
const batchSize = 1_000;

/** Removes finished runs of some tasks, or of all tasks for null, that are too many or too old: 1,000 at most. Resolves with how many were removed. */
export async function removeSomeExpiredRuns(
    em: EntityManager,
    { runsKept, daysKept }: Ctx['settings'],
    now: number,
    taskIds: readonly number[] | null
): Promise<number> {
    const ofTasks = taskIds === null ? '' : `and task_id in (${taskIds.map(() => '?').join(', ')})`;
    const { affectedRows } = await em.execute<{ affectedRows: number }>(
        `delete from runs where id in (
        select id from (select id, created_at, row_number() over (partition by task_id order by id desc) as place from runs where state not in ('queued', 'running') ${ofTasks})
        where place > ? or created_at < ? limit ${batchSize})`,
        [...(taskIds ?? []), runsKept, now - daysKept * dayMs],
        'run'
    );
    return affectedRows;
}

/** Removes all runs that are too many or too old, also of tasks that no longer run. */
export async function removeExpiredRuns(ctx: Ctx, now: number, signal: AbortSignal): Promise<void> {
    for (let removed = batchSize; removed >= batchSize && !signal.aborted;) {
        removed = await ctx.db.write((em) => removeSomeExpiredRuns(em, ctx.settings, now, null));
    }
}

/** Removes the finished runs of a task that ended before a time (milliseconds since 1970). Resolves with how many. */
export async function removeRunsBefore(ctx: Ctx, taskId: number, before: number): Promise<number> {
    const remove = `delete from runs where id in (select id from runs where task_id = ? and finished_at < ? limit ${batchSize})`;
    let [all, removed] = [0, batchSize];
    while (removed >= batchSize) {
        removed = await ctx.db.write(
            async (em) =>
                (await em.execute<{ affectedRows: number }>(remove, [taskId, before], 'run')).affectedRows
        );
        all += removed;
    }
    return all;
}
