/** The health checks of the plugin. */
import { type Health, isFailure } from '@portico/sdk';

import { TaskEntity } from './entities.ts';
import { findTasks } from './queries.ts';
import { sandboxInstall } from './runs/execution/sandbox.ts';
import type { Ctx } from './settings.ts';

/** Names that one message shows at most. */
const maxNames = 10;

/** Registers the checks `tasks`, degraded when enabled tasks are never due or have not succeeded in time, and `sandbox`. */
export function registerHealthChecks(ctx: Ctx): void {
    ctx.health('tasks', () => checkTasks(ctx));
    ctx.health('sandbox', () => checkSandbox(ctx));
}

/** Degraded without the program that makes sandboxes. */
async function checkSandbox(ctx: Ctx): Promise<Health> {
    try {
        const { stdout } = await ctx.exec('bwrap', ['--version'], { timeoutSeconds: 5 });
        return { state: 'ok', evidence: stdout.trim() };
    } catch (error) {
        if (!isFailure(error)) {
            throw error;
        }
        return {
            state: 'degraded',
            evidence: 'bubblewrap is missing: no task can run in a sandbox',
            remedy: { text: sandboxInstall }
        };
    }
}

async function checkTasks(ctx: Ctx): Promise<Health> {
    const [enabled, overdue, unplanned] = await ctx.db.read(
        async (em) =>
            [
                await em.count(TaskEntity, { enabled: true }),
                await findTasks(em, { overdueSince: { $ne: null } }, { limit: maxNames }),
                await findTasks(em, { enabled: true, dueAt: null })
            ] as const
    );
    const neverDue = unplanned
        .filter(({ schedule }) => schedule.toLowerCase() !== '@reboot')
        .slice(0, maxNames);
    if (neverDue.length > 0) {
        return {
            state: 'degraded',
            evidence: `These tasks are never due: ${neverDue.map(({ name }) => name).join(', ')}`,
            remedy: {
                text: 'Give them a schedule and a time zone that this machine knows',
                route: '/api/plugins/cronjob/tasks'
            }
        };
    }
    if (overdue.length > 0) {
        return {
            state: 'degraded',
            evidence: `These tasks have not succeeded in time: ${overdue.map(({ name }) => name).join(', ')}`,
            remedy: { text: 'See how their last runs ended', route: '/api/plugins/cronjob/runs' }
        };
    }
    return { state: 'ok', evidence: `${enabled} tasks are enabled` };
}
