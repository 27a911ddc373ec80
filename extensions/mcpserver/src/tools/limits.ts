/** How many calls one token or user makes. */
import { pluginErrors } from '../errors.ts';
import type { Ctx } from '../settings.ts';

interface Count {
    /** Whole minute since 1970. */
    minute: number;
    calls: number;
    running: number;
}

/** Counts calls by actor; a minute begins with the clock's. */
export class CallLimits {
    readonly #ctx: Ctx;
    readonly #counts = new Map<string, Count>();

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** Does work as one call of an actor. @throws TOO_MANY_CALLS 42950 */
    async run<T>(key: string, work: () => Promise<T>): Promise<T> {
        const { callsPerMinute, parallelCalls } = this.#ctx.settings;
        const now = Date.now();
        const minute = Math.floor(now / 60_000);
        const count = this.#counts.get(key) ?? { minute, calls: 0, running: 0 };
        if (count.minute !== minute) {
            Object.assign(count, { minute, calls: 0 });
        }
        if (count.calls >= callsPerMinute || count.running >= parallelCalls) {
            const retryAfter = count.calls >= callsPerMinute ? 60 - (Math.floor(now / 1_000) % 60) : 1;
            throw pluginErrors.TOO_MANY_CALLS({ retryAfter });
        }
        count.calls += 1;
        count.running += 1;
        this.#counts.set(key, count);
        try {
            return await work();
        } finally {
            count.running -= 1;
        }
    }

    /** Forgets who makes no calls any more. */
    clean(): void {
        const minute = Math.floor(Date.now() / 60_000);
        for (const [key, count] of this.#counts) {
            if (count.running === 0 && count.minute !== minute) {
                this.#counts.delete(key);
            }
        }
    }
}
