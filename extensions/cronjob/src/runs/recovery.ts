/** Cleans up after the panel was killed: ends processes that are left, and records runs that were cut off. */
import type { Notification } from '@portico/sdk';

import { RunEntity } from '../entities.ts';
import { endProcessesWith } from '../machine.ts';
import { findRuns, findRunsWithTasks } from '../queries.ts';
import type { Ctx } from '../settings.ts';
import { markVariable } from './execution/execution.ts';
import { removeScript } from './execution/script.ts';
import { sendNotifications } from './results/notifications.ts';
import { recordOutcome } from './results/outcome.ts';
import { emptyResult, type RunResult } from './results/result.ts';
import type { Runs } from './runs.ts';

const cutOff: RunResult = {
    ...emptyResult,
    state: 'failed',
    reason: 'PANEL_DIED',
    message: 'The panel was killed while it ran'
};

/** Ends and records what an earlier, killed panel left. Call it once, before the first run of a generation. */
export async function recoverRuns(ctx: Ctx, runs: Runs, now: number): Promise<void> {
    const unfinished = await ctx.db.read((em) => findRuns(em, { state: { $in: ['running', 'queued'] } }));
    const running = unfinished.filter(({ state }) => state === 'running');
    const ended = await endProcessesWith(markVariable, new Set(running.map(({ mark }) => mark)));
    if (running.length > 0) {
        ctx.log.warn('The panel was killed while these runs were running', {
            runs: running.map(({ id }) => id),
            processes: ended
        });
    }
    for (const { scratch } of running) {
        if (scratch !== null) {
            await removeScript(ctx, scratch).catch((error: unknown) =>
                ctx.log.warn('The file of a script could not be removed', {
                    path: scratch,
                    error: String(error)
                })
            );
        }
    }
    const notifications = await ctx.db.write(async (em) => {
        await em.nativeUpdate(
            RunEntity,
            { state: 'queued', trigger: { $ne: 'chain' } },
            {
                state: 'skipped',
                reason: 'PANEL_DIED',
                message: 'The panel was killed before it began',
                finishedAt: now,
                version: 2
            }
        );
        const sent: Notification[] = [];
        const ids = running.map(({ id }) => id);
        for (const [run, task] of await findRunsWithTasks(em, ids)) {
            const outcome = { result: cutOff, mayRetry: true, now };
            const { notifications: toSend, steps } = recordOutcome(run, task, outcome);
            sent.push(...toSend);
            await em.flush();
            await runs.queueSteps(em, run.id, steps);
        }
        return sent;
    });
    void sendNotifications(ctx, notifications);
}
