/** Runs commands and scripts by the clock. */
import { definePlugin, type PluginDefinition } from '@portico/sdk';

import { entities, migrations } from './entities.ts';
import { registerHealthChecks } from './health.ts';
import { registerHooks } from './hooks.ts';
import { type Machine, realMachine } from './machine.ts';
import { registerCalendarRoute } from './routes/calendar.ts';
import { registerCollectionRoutes } from './routes/collections.ts';
import { registerCrontabRoutes } from './routes/crontab.ts';
import { registerRunRoutes } from './routes/runs.ts';
import { registerScheduleRoutes } from './routes/schedules.ts';
import { registerStatisticsRoutes } from './routes/statistics.ts';
import { registerTaskRoutes } from './routes/tasks.ts';
import { registerTriggerRoutes } from './routes/triggers.ts';
import { recoverRuns } from './runs/recovery.ts';
import { removeExpiredRuns } from './runs/results/retention.ts';
import { createServices } from './services.ts';
import { settings } from './settings.ts';

/** Defines the plugin on a machine; tests pass one whose clock they set. */
export function defineCronjob(machine: Machine): PluginDefinition {
    return definePlugin({
        settings,
        entities,
        migrations,
        setup(ctx) {
            const services = createServices(ctx, machine);
            const { runs, scheduler } = services;
            registerTaskRoutes(ctx, services);
            registerCollectionRoutes(ctx, services);
            registerRunRoutes(ctx, services);
            registerScheduleRoutes(ctx, services);
            registerCalendarRoute(ctx, services);
            registerStatisticsRoutes(ctx, services);
            registerCrontabRoutes(ctx, services);
            registerTriggerRoutes(ctx, services);
            registerHooks(ctx, services);
            registerHealthChecks(ctx);
            ctx.onStart(async () => {
                await recoverRuns(ctx, runs, machine.now());
                await runs.resume();
                await scheduler.start();
                await ctx.schedule('retention', { everySeconds: 600 }, ({ signal }) =>
                    removeExpiredRuns(ctx, machine.now(), signal)
                );
            });
            ctx.onStop(async () => {
                scheduler.close();
                await runs.close();
            });
        }
    });
}

/** The plugin on the machine that it runs on. */
export default defineCronjob(realMachine);
