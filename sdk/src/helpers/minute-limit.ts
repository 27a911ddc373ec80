/** How often a caller may do a thing that costs much or reaches others. */

const minuteMs = 60_000;

/** Counts how often each key was taken within the last 60 seconds, in memory. */
export class MinuteLimit {
    /** When each key was taken, the oldest first. */
    readonly #times = new Map<string, number[]>();
    #cleanedAt = 0;

    /**
     * Counts once for a key, unless `most` were counted in the last minute.
     * @param key - whose limit it is, such as `actor.key`
     * @param now - milliseconds since 1970
     * @returns the seconds until it counts again, at least 1; 0 when it counted
     */
    take(key: string, most: number, now: number = Date.now()): number {
        const since = now - minuteMs;
        this.#clean(since, now);
        const times = this.#times.get(key) ?? [];
        // A clock that was set back must not lock anyone out.
        const past = (times.at(-1) ?? 0) > now ? -1 : times.findIndex((at) => at > since);
        times.splice(0, past < 0 ? times.length : past);
        if (times.length >= most) {
            return Math.max(1, Math.ceil(((times[times.length - most] ?? now) - since) / 1000));
        }
        times.push(now);
        this.#times.set(key, times);
        return 0;
    }

    /** Forgets, once a minute, the keys that were not taken since. */
    #clean(since: number, now: number): void {
        if (Math.abs(now - this.#cleanedAt) < minuteMs) {
            return;
        }
        this.#cleanedAt = now;
        for (const [key, times] of this.#times) {
            if ((times.at(-1) ?? 0) <= since) {
                this.#times.delete(key);
            }
        }
    }
}
