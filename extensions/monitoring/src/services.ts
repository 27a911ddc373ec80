/** The services of one generation of the plugin. */
import { Checks } from './checks/checks.ts';
import { realTiming } from './checks/timing.ts';
import { Exports } from './exports/exports.ts';
import { UpstreamTries } from './findings/upstreams.ts';
import { Hardware } from './hardware/hardware.ts';
import { Requests } from './logs/requests.ts';
import type { Machine } from './machine.ts';
import { ProcessHistory } from './processes/history.ts';
import { Tries } from './routes/tries.ts';
import { Monitor } from './sampling/monitor.ts';
import { ProcessList } from './sampling/sources/processes.ts';
import type { Ctx } from './settings.ts';
import { Traffic } from './traffic/traffic.ts';

/** Everything that routes and health checks work with. */
export interface Services {
    readonly machine: Machine;
    readonly checks: Checks;
    readonly exports: Exports;
    readonly hardware: Hardware;
    readonly monitor: Monitor;
    readonly processes: ProcessList;
    readonly processHistory: ProcessHistory;
    readonly requests: Requests;
    readonly traffic: Traffic;
    readonly tries: Tries;
    readonly upstreams: UpstreamTries;
}

/** Creates the services; {@link Monitor.start} begins their work. */
export function createServices(ctx: Ctx, machine: Machine): Services {
    const checks = new Checks(ctx, () => machine.now(), realTiming);
    const hardware = new Hardware(ctx, machine);
    const requests = new Requests();
    return {
        machine,
        checks,
        exports: new Exports(ctx, machine),
        hardware,
        monitor: new Monitor(ctx, machine, () => ({
            checks: [...checks.values()],
            drives: hardware.drives.map(({ name, wear, temperature }) => ({ name, wear, temperature })),
            gpus: hardware.gpus.map(({ name, usage, memoryUsed, temperature, power }) => ({
                ...{ name, usage, memoryUsed, temperature, power }
            }))
        })),
        processes: new ProcessList(machine),
        processHistory: new ProcessHistory(ctx, machine),
        requests,
        traffic: new Traffic(ctx, requests),
        tries: new Tries(() => machine.now()),
        upstreams: new UpstreamTries(machine)
    };
}
