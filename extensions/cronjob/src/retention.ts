/** Runs that are kept: not more than so many of each task, and not longer than so many days. */
import type { Ctx } from './settings.ts';

const dayMs = 86_400_000;
/** Removed in one write. */
const batch = 1_000;

export async function prune(ctx: Ctx, now: number, signal: AbortSignal): Promise<void> {
    const { runsKept, daysKept } = ctx.settings;
    for (let removed = batch; removed >= batch && !signal.aborted;) {
        removed = await ctx.db.write(async (em) => {
            const { affectedRows } = await em.execute<{ affectedRows: number }>(`delete from runs where id in (
                select id from (select id, created_at, row_number() over (partition by task_id order by id desc) as place from runs where state not in ('queued', 'running'))
                where place > ? or created_at < ? limit ${batch})`, [runsKept, now - daysKept * dayMs], 'run');
            return affectedRows;
        });
    }
}
