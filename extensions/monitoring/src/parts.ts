/** Everything that the routes are made of, built once for each generation. */
import { Monitor } from './monitor.ts';
import type { Ctx } from './settings.ts';
import type { Machine } from './sampling/sources/machine.ts';
import { Processes } from './sampling/sources/processes.ts';

export interface Parts {
    readonly ctx: Ctx;
    readonly monitor: Monitor;
    readonly processes: Processes;
}

export function createParts(ctx: Ctx, machine: Machine): Parts {
    return { ctx, monitor: new Monitor(ctx, machine), processes: new Processes(machine) };
}
