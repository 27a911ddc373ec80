/** Metrics of the machine with history, alert rules and Prometheus text. */
import { definePlugin, type PluginDefinition } from '@portico/sdk';

import type { MonitoringContract } from './contract.ts';
import { entities, migrations } from './entities.ts';
import { registerHealthChecks } from './health.ts';
import { registerHooks } from './hooks.ts';
import { createMachine, type Machine } from './machine.ts';
import { createContract } from './offered.ts';
import { registerAcknowledgementRoutes, registerAlertRoutes } from './routes/alerts/alerts.ts';
import { registerRuleRoutes, registerRuleWork } from './routes/alerts/rules.ts';
import { registerSilenceRoutes } from './routes/alerts/silences.ts';
import { registerCheckRoutes } from './routes/checks.ts';
import { registerExportRoutes } from './routes/exports.ts';
import { registerHistoryRoutes } from './routes/history.ts';
import { registerLogRoutes } from './routes/logs.ts';
import { registerHardwareRoutes } from './routes/machine/hardware.ts';
import { registerPortRoutes } from './routes/machine/ports.ts';
import { registerOneProcessRoutes } from './routes/machine/process.ts';
import { registerProcessHistoryRoutes } from './routes/machine/process-history.ts';
import { registerProcessRoutes } from './routes/machine/processes.ts';
import { registerUnitRoutes } from './routes/machine/units.ts';
import { registerMetricRoutes } from './routes/metrics.ts';
import { registerPrometheusRoutes } from './routes/prometheus.ts';
import { registerTrafficRoutes } from './routes/traffic.ts';
import { registerUnhealthyRoutes } from './routes/unhealthy.ts';
import { createServices } from './services.ts';
import { settings } from './settings.ts';
import { start, stop } from './start.ts';

/** Defines the plugin for one machine: the real one, or the one of a test. */
export function defineMonitoring(machine: Machine): PluginDefinition<MonitoringContract> {
    return definePlugin({
        settings,
        entities,
        migrations,
        setup(ctx) {
            const services = createServices(ctx, machine);
            registerMetricRoutes(ctx, services);
            registerHistoryRoutes(ctx, services);
            registerHardwareRoutes(ctx, services);
            registerProcessRoutes(ctx, services);
            registerProcessHistoryRoutes(ctx, services);
            registerOneProcessRoutes(ctx, services);
            registerPortRoutes(ctx, services);
            registerLogRoutes(ctx, services);
            registerUnitRoutes(ctx, services);
            registerRuleRoutes(ctx, services);
            registerRuleWork(ctx, services);
            registerAlertRoutes(ctx, services);
            registerAcknowledgementRoutes(ctx, services);
            registerSilenceRoutes(ctx, services);
            registerCheckRoutes(ctx, services);
            registerExportRoutes(ctx, services);
            registerTrafficRoutes(ctx, services);
            registerUnhealthyRoutes(ctx, services);
            registerPrometheusRoutes(ctx, services);
            registerHooks(ctx, services);
            registerHealthChecks(ctx, services);
            ctx.onSettings(() => services.monitor.applySettings());
            ctx.onStart(() => start(ctx, services, machine));
            ctx.onStop(() => stop(services));
            return createContract(services);
        }
    });
}

/** The plugin, on the machine that the panel runs on. */
export default defineMonitoring(createMachine());
