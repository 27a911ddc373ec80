/** The time of day, as a port: tests turn it. Timers stay the platform's own. */
export interface Clock {
    /** Milliseconds since 1970, UTC. */
    now(): number;
}

/** The machine's clock. */
export const systemClock: Clock = { now: () => Date.now() };
