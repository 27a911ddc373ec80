/** The time of day, as a port: tests turn it. Timers stay the platform's own. */
export interface Clock {
    /** Milliseconds since 1970, UTC. */
    now(): number;
}

/** The clock of the machine, in milliseconds since 1970. */
export const systemClock: Clock = { now: () => Date.now() };
