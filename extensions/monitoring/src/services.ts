/** The services of one generation of the plugin. */
import { Checks } from './checks/checks.ts';
import { realTiming } from './checks/timing.ts';
import { Monitor } from './monitor.ts';
import type { Machine } from './sampling/sources/machine.ts';
import { ProcessList } from './sampling/sources/processes.ts';
import type { Ctx } from './settings.ts';
import { Traffic } from './traffic/traffic.ts';

/** Everything that routes and health checks work with. */
export interface Services {
    readonly machine: Machine;
    readonly checks: Checks;
    readonly monitor: Monitor;
    readonly processes: ProcessList;
    readonly traffic: Traffic;
}

/** Creates the services; {@link Monitor.start} begins their work. */
export function createServices(ctx: Ctx, machine: Machine): Services {
    const checks = new Checks(ctx, () => machine.now(), realTiming);
    return {
        machine,
        checks,
        monitor: new Monitor(ctx, machine, () => [...checks.values()]),
        processes: new ProcessList(machine),
        traffic: new Traffic(ctx)
    };
}
