/** Metrics of the machine with history, alert rules and Prometheus text. */
import { definePlugin, type PluginDefinition } from '@portico/sdk';

import { entities, migrations } from './entities.ts';
import { registerHealthChecks } from './health.ts';
import { registerHooks } from './hooks.ts';
import { registerAlertRoutes } from './routes/alerts.ts';
import { registerHistoryRoutes } from './routes/history.ts';
import { registerMetricRoutes } from './routes/metrics.ts';
import { registerProcessRoutes } from './routes/processes.ts';
import { registerPrometheusRoutes } from './routes/prometheus.ts';
import { registerRuleRoutes } from './routes/rules.ts';
import { registerUnhealthyRoutes } from './routes/unhealthy.ts';
import { createMachine, type Machine } from './sampling/sources/machine.ts';
import { createServices } from './services.ts';
import { settings } from './settings.ts';

/** Defines the plugin for one machine: the real one, or the one of a test. */
export function defineMonitoring(machine: Machine): PluginDefinition<void> {
    return definePlugin({
        settings,
        entities,
        migrations,
        setup(ctx) {
            const services = createServices(ctx, machine);
            const { monitor } = services;
            registerMetricRoutes(ctx, services);
            registerHistoryRoutes(ctx, services);
            registerProcessRoutes(ctx, services);
            registerRuleRoutes(ctx, services);
            registerAlertRoutes(ctx, services);
            registerUnhealthyRoutes(ctx, services);
            registerPrometheusRoutes(ctx, services);
            registerHooks(ctx, services);
            registerHealthChecks(ctx, services);
            ctx.onSettings(() => monitor.applySettings());
            ctx.onStart(async () => {
                await monitor.start();
                await ctx.schedule('prune', { everySeconds: 21_600, missed: 'run-once' }, () =>
                    monitor.prune()
                );
            });
            ctx.onStop(() => monitor.stop());
        }
    });
}

/** The plugin, on the machine that the panel runs on. */
export default defineMonitoring(createMachine());
