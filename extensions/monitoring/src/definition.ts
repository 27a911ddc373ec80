/** The plugin, on whatever machine it is given. */
import { definePlugin, type Health, type PluginDefinition } from '@portico/sdk';

import { createParts, type Parts } from './parts.ts';
import { alertRoutes } from './routes/alerts.ts';
import { metricRoutes } from './routes/metrics.ts';
import { processRoutes } from './routes/processes.ts';
import { prometheusRoutes } from './routes/prometheus.ts';
import { ruleRoutes } from './routes/rules.ts';
import { settings } from './settings.ts';
import { hierarchyOf } from './sampling/sources/containers.ts';
import type { Machine } from './sampling/sources/machine.ts';
import { entities, migrations } from './entities.ts';
import { own } from './findings/unhealthy.ts';

export function defineMonitoring(machine: Machine): PluginDefinition<void> {
    return definePlugin({
        settings,
        entities,
        migrations,
        setup(ctx) {
            const parts = createParts(ctx, machine);
            const { monitor } = parts;
            [metricRoutes, processRoutes, ruleRoutes, alertRoutes, prometheusRoutes].forEach((declare) =>
                declare(parts)
            );
            ctx.health('sampling', () => samplingHealth(parts));
            ctx.health('containers', () => containerHealth(parts, machine));
            ctx.onSettings(() => monitor.refit());
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

function samplingHealth({ ctx, monitor }: Parts): Health {
    const { sampledAt, tookMs, series } = monitor.vitals();
    if (sampledAt === null) {
        // A generation that is tried out before it starts has measured nothing yet.
        return { state: 'ok', evidence: 'Not started' };
    }
    const [worst, ...more] = own(ctx, monitor).filter(({ severity }) => severity === 'critical');
    if (worst === undefined) {
        return { state: 'ok', evidence: `${series} series; a sample takes ${(tookMs ?? 0).toFixed(1)} ms` };
    }
    return {
        state: 'degraded',
        evidence: [worst, ...more].map(({ message }) => message).join('; '),
        ...(worst.remedy === null ? {} : { remedy: { text: worst.remedy } })
    };
}

function containerHealth({ ctx }: Parts, machine: Machine): Health {
    if (!ctx.settings.containers) {
        return { state: 'ok', evidence: 'Switched off' };
    }
    const hierarchy = hierarchyOf(machine);
    return hierarchy === null
        ? {
              state: 'degraded',
              evidence: 'No unified hierarchy of control groups is mounted, so containers are not measured',
              remedy: { text: 'Boot with systemd.unified_cgroup_hierarchy=1, or set `containers` to false' }
          }
        : { state: 'ok', evidence: `Control groups at ${hierarchy}` };
}
