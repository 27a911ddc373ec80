/** How often the supervisor looks, and how it backs off. Milliseconds, but for `pingsMissed`. */
export interface SupervisorTiming {
    readonly tickMs: number;
    readonly pingEveryMs: number;
    /** The number of pings in a row without an answer after which the engine is unresponsive. */
    readonly pingsMissed: number;
    /** The first wait before a restart; it doubles with every further one. */
    readonly backoffMs: number;
    readonly backoffCapMs: number;
    /** After so long without a failure the next wait is the first again. */
    readonly stableMs: number;
}

/** What the supervisor looks at and does. `recover` ends in `watch` or `retry`, through the driver. */
export interface Supervised {
    isAlive(): boolean;
    answers(): Promise<boolean>;
    failed(reason: string): void;
    recover(): Promise<void>;
    /** Called with every ping. */
    tidy(): void;
}

/** Watches one engine by polling: the panel is the parent only of an engine that it started itself. */
export class Supervisor {
    readonly #timing: SupervisorTiming;
    readonly #supervised: Supervised;
    #mode: 'paused' | 'watching' | 'retrying' | 'closed' = 'paused';
    #timer: NodeJS.Timeout | null = null;
    #attempts = 0;
    #missed = 0;
    #suspected = false;
    #watchedSince = 0;
    #pingedAt = 0;
    /** Counts the plans: a look that was overtaken by a newer plan ends. */
    #round = 0;

    constructor(timing: SupervisorTiming, supervised: Supervised) {
        this.#timing = timing;
        this.#supervised = supervised;
    }

    /** The engine should run, and does not run yet: from now on a failure is retried. */
    expectRunning(): void {
        if (this.#mode === 'paused') {
            this.#mode = 'retrying';
        }
    }

    /** The engine runs: watches it from now on. */
    watch(): void {
        if (this.#mode === 'closed' || this.#mode === 'paused') {
            return;
        }

        if (this.#mode !== 'watching') {
            this.#watchedSince = performance.now();
        }

        this.#mode = 'watching';
        this.#missed = 0;
        this.#suspected = false;
        this.#pingedAt = performance.now();
        this.#plan(this.#timing.tickMs, () => this.#look());
    }

    /** The engine failed: recovers it after the next wait. Does nothing while paused. */
    retry(): void {
        if (this.#mode === 'closed' || this.#mode === 'paused') {
            return;
        }

        this.#mode = 'retrying';
        const { backoffMs, backoffCapMs } = this.#timing;
        const wait = Math.min(backoffCapMs, backoffMs * 2 ** Math.min(this.#attempts, 20));
        this.#attempts += 1;
        this.#plan(wait * (0.75 + Math.random() / 4), () => this.#supervised.recover());
    }

    /** The engine can no longer be trusted: fails it, and has its process replaced. */
    suspect(reason: string): void {
        this.#suspected = true;
        this.#supervised.failed(reason);
    }

    isSuspected(): boolean {
        return this.#suspected;
    }

    /** Looks now: something happened to the process. */
    checkNow(): void {
        if (this.#mode === 'watching') {
            this.#plan(0, () => this.#look());
        }
    }

    /** The engine should not run: leaves it alone. */
    pause(): void {
        if (this.#mode !== 'closed') {
            this.#mode = 'paused';
            this.#round += 1;
            this.#attempts = 0;
        }
    }

    close(): void {
        this.#mode = 'closed';
        this.#round += 1;
        if (this.#timer !== null) {
            clearTimeout(this.#timer);
        }
    }

    #plan(delayMs: number, next: () => Promise<void>): void {
        this.#round += 1;
        const round = this.#round;
        if (this.#timer !== null) {
            clearTimeout(this.#timer);
        }

        this.#timer = setTimeout(() => {
            this.#timer = null;
            if (round === this.#round) {
                void next();
            }
        }, delayMs);
        this.#timer.unref();
    }

    async #look(): Promise<void> {
        const round = this.#round;
        const now = performance.now();
        if (!this.#supervised.isAlive()) {
            this.#supervised.failed("the engine's process ended unexpectedly");
            return;
        }

        if (now - this.#watchedSince > this.#timing.stableMs) {
            this.#attempts = 0;
        }

        if (now - this.#pingedAt >= this.#timing.pingEveryMs) {
            this.#pingedAt = now;
            this.#supervised.tidy();
            this.#missed = (await this.#supervised.answers()) ? 0 : this.#missed + 1;
            if (round !== this.#round) {
                return;
            }

            if (this.#missed >= this.#timing.pingsMissed) {
                this.suspect('the engine does not answer');
                return;
            }
        }

        this.#plan(this.#timing.tickMs, () => this.#look());
    }
}
