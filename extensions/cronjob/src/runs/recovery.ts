/** After a kill: processes that are left are ended, and runs that were cut are written down as that. */
import { type Ending, markName } from './execution.ts';
import { endMarked } from '../machine.ts';
import type { Runs } from './runs.ts';
import { removeScript } from './script.ts';
import type { Ctx } from '../settings.ts';
import { findRuns, RunEntity } from '../entities.ts';

const cut: Ending = {
    state: 'failed',
    exitCode: null,
    signal: null,
    reason: 'PANEL_DIED',
    message: 'The panel ended without a word while it ran'
};

/** Once, before anything is started. */
export async function recover(ctx: Ctx, runs: Runs, now: number): Promise<void> {
    const left = await ctx.db.read((em) => findRuns(em, { state: { $in: ['running', 'queued'] } }));
    const running = left.filter(({ state }) => state === 'running');
    const ended = await endMarked(markName, new Set(running.map(({ mark }) => mark)));
    if (running.length > 0) {
        ctx.log.warn('Runs were cut by the end of the panel', {
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
    const notices = await ctx.db.write(async (em) => {
        await em.nativeUpdate(
            RunEntity,
            { state: 'queued' },
            {
                state: 'skipped',
                reason: 'PANEL_DIED',
                message: 'The panel ended before it began',
                finishedAt: now,
                version: 2
            }
        );
        const told = [];
        for (const { id } of running) {
            told.push(...(await runs.settle(em, id, cut, true)));
        }
        return told;
    });
    void runs.tell(notices);
}
