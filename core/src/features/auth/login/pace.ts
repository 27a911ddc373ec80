/** How often one network may do what costs next to nothing, such as asking for challenges. In memory only: it protects a processor, not an account. */
import { networkOf } from '../../../platform/address/caller.ts';
import type { Clock } from '../../../platform/clock.ts';
import { fail } from '../../../platform/errors.ts';

const windowMs = 60_000;
const mostNetworks = 50_000;

/** Counts the requests of each network in the current minute. */
export class Pace {
    readonly #clock: Clock;
    readonly #perMinute: number;
    readonly #counts = new Map<string, number>();
    #until = 0;

    constructor(clock: Clock, perMinute: number) {
        this.#clock = clock;
        this.#perMinute = perMinute;
    }

    /** @throws RATE_LIMITED 42900 until the minute is over */
    step(ip: string | null): void {
        const now = this.#clock.now();
        if (now >= this.#until || this.#until > now + windowMs) {
            this.#counts.clear();
            this.#until = now + windowMs;
        }
        const network = networkOf(ip);
        const count = (this.#counts.get(network) ?? 0) + 1;
        if (count > this.#perMinute || (count === 1 && this.#counts.size >= mostNetworks)) {
            throw fail.RATE_LIMITED({ retryAfterSeconds: Math.ceil((this.#until - now) / 1000) });
        }
        this.#counts.set(network, count);
    }
}
