/** Wakes somebody at a time of the clock, however the clock is turned meanwhile. */

export class Alarm {
    readonly #now: () => number;
    readonly #lookMs: number;
    readonly #ring: () => void;
    #timer: NodeJS.Timeout | null = null;
    #off = false;

    /** `lookMs`: how often the clock is looked at while nothing is due: a timer counts its own time, and sleeps with the machine. */
    constructor(now: () => number, lookMs: number, ring: () => void) {
        this.#now = now;
        this.#lookMs = lookMs;
        this.#ring = ring;
    }

    /** Rings at `at`, and in any case when it is time to look again. */
    set(at: number | null): void {
        clearTimeout(this.#timer ?? undefined);
        if (!this.#off) {
            this.#timer = setTimeout(
                this.#ring,
                Math.max(0, Math.min(this.#lookMs, (at ?? Infinity) - this.#now()))
            ).unref();
        }
    }

    /** For good. */
    close(): void {
        this.#off = true;
        clearTimeout(this.#timer ?? undefined);
        this.#timer = null;
    }
}
