/** How many calls one token or user makes. */
import { MinuteLimit } from '@portico/sdk';

import { fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';

/** Counts calls by actor. */
export class CallLimits {
    readonly #ctx: Ctx;
    readonly #calls = new MinuteLimit();
    /** Calls under way; an actor without one is not in it. */
    readonly #running = new Map<string, number>();

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** Does work as one call of an actor. @throws TOO_MANY_CALLS 42950 */
    async run<T>(key: string, work: () => Promise<T>): Promise<T> {
        const { callsPerMinute, parallelCalls } = this.#ctx.settings;
        const retryAfter =
            (this.#running.get(key) ?? 0) < parallelCalls ? this.#calls.take(key, callsPerMinute) : 1;
        if (retryAfter > 0) {
            throw fail.TOO_MANY_CALLS({ retryAfter });
        }
        this.#change(key, 1);
        try {
            return await work();
        } finally {
            this.#change(key, -1);
        }
    }

    #change(key: string, by: 1 | -1): void {
        const running = (this.#running.get(key) ?? 0) + by;
        if (running === 0) {
            this.#running.delete(key);
        } else {
            this.#running.set(key, running);
        }
    }
}
