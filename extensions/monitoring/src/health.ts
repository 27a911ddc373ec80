/** The health checks of the plugin. */
import type { Health } from '@portico/sdk';

import { findOwnProblems } from './findings/own.ts';
import type { Machine } from './machine.ts';
import type { Monitor } from './sampling/monitor.ts';
import { findHierarchy } from './sampling/sources/containers.ts';
import type { Services } from './services.ts';
import type { Ctx } from './settings.ts';

/** Declares the checks `sampling` (samples are taken and saved) and `containers` (containers can be measured). */
export function registerHealthChecks(ctx: Ctx, { machine, monitor }: Services): void {
    ctx.health('sampling', () => checkSampling(ctx, monitor));
    ctx.health('containers', () => checkContainers(ctx, machine));
}

function checkSampling(ctx: Ctx, monitor: Monitor): Health {
    const { sampledAt, tookMs, series } = monitor.status();
    if (sampledAt === null) {
        // The panel also checks a generation that it only tries out, and that one has not measured anything.
        return { state: 'ok', evidence: 'Not started' };
    }
    const problems = findOwnProblems(ctx, monitor).filter(({ severity }) => severity === 'critical');
    if (problems.length === 0) {
        return { state: 'ok', evidence: `${series} series; a sample takes ${(tookMs ?? 0).toFixed(1)} ms` };
    }
    const remedy = problems[0]?.remedy ?? null;
    return {
        state: 'degraded',
        evidence: problems.map(({ message }) => message).join('; '),
        ...(remedy === null ? {} : { remedy: { text: remedy } })
    };
}

function checkContainers(ctx: Ctx, machine: Machine): Health {
    if (!ctx.settings.containers) {
        return { state: 'ok', evidence: 'Switched off' };
    }
    const hierarchy = findHierarchy(machine);
    return hierarchy === null
        ? {
              state: 'degraded',
              evidence: 'Control groups version 2 are not mounted, so containers are not measured',
              remedy: { text: 'Boot with systemd.unified_cgroup_hierarchy=1, or set `containers` to false' }
          }
        : { state: 'ok', evidence: `Control groups at ${hierarchy}` };
}
