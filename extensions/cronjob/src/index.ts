/** The plugin, on a machine that tests may replace. */
import { definePlugin, type Health, type PluginDefinition } from '@portico/sdk';

import { Accounts } from './runs/accounts.ts';
import { type Machine, machine as real } from './machine.ts';
import { Planner } from './schedule/scheduler.ts';
import { recover } from './runs/recovery.ts';
import { sweep } from './runs/retention.ts';
import { runRoutes } from './routes/runs.ts';
import { taskRoutes } from './routes/tasks.ts';
import { Runs } from './runs/runs.ts';
import { type Ctx, settings } from './settings.ts';
import { entities, findTasks, migrations, TaskEntity } from './entities.ts';
import { Tasks } from './tasks/tasks.ts';
import { Turns } from './mutex.ts';

/** Makes the definition. */
export function createCronjob(machine: Machine = real): PluginDefinition {
    return definePlugin({
        settings,
        entities,
        migrations,
        setup(ctx) {
            const turns = new Turns();
            const accounts = new Accounts(ctx);
            const runs = new Runs({ ctx, accounts, turns, now: machine.now, changed: () => planner.look() });
            const planner = new Planner({ ctx, machine, turns, runs });
            const tasks = new Tasks({ ctx, machine, turns, accounts, runs, planner });
            taskRoutes(ctx, tasks, runs);
            runRoutes(ctx, tasks, runs);
            ctx.health('tasks', () => health(ctx));
            ctx.onStart(async () => {
                await recover(ctx, runs, machine.now());
                await planner.begin();
                await ctx.schedule('retention', { everySeconds: 600 }, ({ signal }) =>
                    sweep(ctx, machine.now(), signal)
                );
            });
            ctx.onStop(async () => {
                planner.close();
                await runs.close();
            });
        }
    });
}

async function health(ctx: Ctx): Promise<Health> {
    const [all, overdue, undue] = await ctx.db.read(
        async (em) =>
            [
                await em.count(TaskEntity, { enabled: true }),
                await findTasks(em, { overdueSince: { $ne: null } }, { limit: 10 }),
                await findTasks(em, { enabled: true, dueAt: null })
            ] as const
    );
    const never = undue.filter(({ schedule }) => schedule.toLowerCase() !== '@reboot').slice(0, 10);
    if (never.length > 0) {
        return {
            state: 'degraded',
            evidence: `These are never due: ${never.map(({ name }) => name).join(', ')}`,
            remedy: {
                text: 'Give them a schedule and a time zone that this machine knows',
                route: '/api/plugins/cronjob/tasks'
            }
        };
    }
    return overdue.length === 0
        ? { state: 'ok', evidence: `${all} tasks are enabled` }
        : {
              state: 'degraded',
              evidence: `These have not succeeded in time: ${overdue.map(({ name }) => name).join(', ')}`,
              remedy: { text: 'See how their last runs ended', route: '/api/plugins/cronjob/runs' }
          };
}

export default createCronjob();
