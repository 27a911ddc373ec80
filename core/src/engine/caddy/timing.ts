import type { StallTiming } from './admin.ts';
import type { InstanceTiming } from './process/instance.ts';
import type { SupervisorTiming } from './process/supervisor.ts';

/** All time limits of the engine's driver, in milliseconds. */
export interface EngineTiming extends SupervisorTiming, InstanceTiming, StallTiming {
    /** For a load, and for reading the whole configuration. */
    readonly loadMs: number;
}

/** Time limits of a panel in production. */
export const defaultTiming: EngineTiming = {
    startMs: 15_000,
    pingMs: 5000,
    loadMs: 60_000,
    stallAfterMs: 1500,
    stallPingMs: 2500,
    graceMs: 10_000,
    tickMs: 1000,
    pingEveryMs: 5000,
    pingsMissed: 3,
    backoffMs: 500,
    backoffCapMs: 30_000,
    stableMs: 60_000
};
