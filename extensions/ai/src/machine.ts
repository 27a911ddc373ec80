/** What the plugin reads of the machine by itself; tests pass another one. */

/** The clock, and how patient the plugin is. */
export interface Machine {
    /** Milliseconds since 1970. */
    now(): number;
    /** How long a model may be silent before its request counts as failed. */
    readonly patienceMs: number;
}

/** The machine that the plugin runs on. */
export const realMachine: Machine = { now: () => Date.now(), patienceMs: 120_000 };
