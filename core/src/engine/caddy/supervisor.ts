/** Milliseconds, but for `pingsMissed`. */
export interface SupervisorTiming {
    readonly tickMs: number;
    readonly pingEveryMs: number;
    /** So many pings in a row without an answer make the engine unresponsive. */
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
    /** Called once in a while. */
    tidy(): void;
}

export interface Supervisor {
    /** It is wished to run, but does not yet: from now on a failure is tried again. */
    expectRunning(): void;
    /** The engine runs: look after it from now on. */
    watch(): void;
    /** The engine failed: try again after the next wait. Does nothing while resting. */
    retry(): void;
    /** The engine may not be trusted any more: fail it, and do not let it go on. */
    suspect(reason: string): void;
    isSuspected(): boolean;
    /** Something happened to the process: look now. */
    checkNow(): void;
    /** Stopped by wish: leave it alone. */
    pause(): void;
    close(): void;
}

/** Watches one engine by polling, since the panel is the parent only of an engine that it started itself. */
export const createSupervisor = (timing: SupervisorTiming, supervised: Supervised): Supervisor => {
    let mode: 'resting' | 'watching' | 'retrying' | 'closed' = 'resting';
    let timer: NodeJS.Timeout | null = null;
    let attempts = 0;
    let missed = 0;
    let suspected = false;
    let watchedSince = 0;
    let pingedAt = 0;
    let round = 0;

    const plan = (delayMs: number, next: () => Promise<void>): void => {
        round += 1;
        const mine = round;
        if (timer !== null) {
            clearTimeout(timer);
        }

        timer = setTimeout(() => {
            timer = null;
            if (mine === round) {
                void next();
            }
        }, delayMs);
        timer.unref();
    };

    const look = async (): Promise<void> => {
        const mine = round;
        const now = performance.now();
        if (!supervised.isAlive()) {
            supervised.failed("the engine's process ended unexpectedly");
            return;
        }

        if (now - watchedSince > timing.stableMs) {
            attempts = 0;
        }

        if (now - pingedAt >= timing.pingEveryMs) {
            pingedAt = now;
            supervised.tidy();
            missed = (await supervised.answers()) ? 0 : missed + 1;
            if (mine !== round) {
                return;
            }

            if (missed >= timing.pingsMissed) {
                suspected = true;
                supervised.failed('the engine does not answer');
                return;
            }
        }

        plan(timing.tickMs, look);
    };

    return {
        expectRunning() {
            if (mode === 'resting') {
                mode = 'retrying';
            }
        },
        watch() {
            if (mode === 'closed' || mode === 'resting') {
                return;
            }

            if (mode !== 'watching') {
                watchedSince = performance.now();
            }

            mode = 'watching';
            missed = 0;
            suspected = false;
            pingedAt = performance.now();
            plan(timing.tickMs, look);
        },
        retry() {
            if (mode === 'closed' || mode === 'resting') {
                return;
            }

            mode = 'retrying';
            const wait = Math.min(timing.backoffCapMs, timing.backoffMs * 2 ** Math.min(attempts, 20));
            attempts += 1;
            plan(wait * (0.75 + Math.random() / 4), supervised.recover);
        },
        suspect(reason) {
            suspected = true;
            supervised.failed(reason);
        },
        isSuspected: () => suspected,
        checkNow() {
            if (mode === 'watching') {
                plan(0, look);
            }
        },
        pause() {
            if (mode !== 'closed') {
                mode = 'resting';
                round += 1;
                attempts = 0;
            }
        },
        close() {
            mode = 'closed';
            round += 1;
            if (timer !== null) {
                clearTimeout(timer);
            }
        }
    };
};
