/** Runs that are kept: not more than so many of each task, and not longer than so many days. */
import type { EntityManager } from '@portico/sdk/db';

import type { Ctx } from '../settings.ts';

const dayMs = 86_400_000;
/** Removed in one write. */
const batch = 1_000;

/** Removes runs that are too many or too old, of one task or of all; gives how many. */
export async function prune(
    em: EntityManager,
    { runsKept, daysKept }: Ctx['settings'],
    now: number,
    taskId: number | null
): Promise<number> {
    const { affectedRows } = await em.execute<{ affectedRows: number }>(
        `delete from runs where id in (
        select id from (select id, created_at, row_number() over (partition by task_id order by id desc) as place from runs where state not in ('queued', 'running') and task_id = coalesce(?, task_id))
        where place > ? or created_at < ? limit ${batch})`,
        [taskId, runsKept, now - daysKept * dayMs],
        'run'
    );
    return affectedRows;
}

/** Removes them all, in as many writes as it takes: for tasks that no run ends of any more. */
export async function sweep(ctx: Ctx, now: number, signal: AbortSignal): Promise<void> {
    for (let removed = batch; removed >= batch && !signal.aborted;) {
        removed = await ctx.db.write((em) => prune(em, ctx.settings, now, null));
    }
}
