/** A timer that follows the clock of the machine, also when that is set or the machine sleeps. */

/** Calls back at a time of the clock, and at least every `pollMs` milliseconds: a Node timer counts its own time, and stops while the machine sleeps. */
export class Alarm {
    readonly #now: () => number;
    readonly #pollMs: number;
    readonly #onRing: () => void;
    #timer: NodeJS.Timeout | null = null;
    #closed = false;

    /** `onRing` reads the clock by itself and sets the alarm again. */
    constructor(now: () => number, pollMs: number, onRing: () => void) {
        this.#now = now;
        this.#pollMs = pollMs;
        this.#onRing = onRing;
    }

    /** Rings at `at` (milliseconds since 1970; null for no time), or after `pollMs` if that is sooner. Replaces the earlier time. */
    set(at: number | null): void {
        clearTimeout(this.#timer ?? undefined);
        if (!this.#closed) {
            const untilDue = (at ?? Infinity) - this.#now();
            this.#timer = setTimeout(this.#onRing, Math.max(0, Math.min(this.#pollMs, untilDue))).unref();
        }
    }

    /** Never rings again. */
    close(): void {
        this.#closed = true;
        clearTimeout(this.#timer ?? undefined);
        this.#timer = null;
    }
}
