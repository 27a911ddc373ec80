/** Sees to it that a trial ends in time while the panel runs. */
import type { Machine } from '../machine.ts';
import type { Ctx } from '../settings.ts';
import type { Guard } from './guard.ts';
import type { Trial } from './state.ts';

/** What the end of a trial is seen by. */
export interface DeadlineOptions {
    readonly ctx: Ctx;
    readonly machine: Machine;
    readonly guard: Guard;
}

/** The guard acts at its own time; the panel acts only when it did not. */
const guardGraceMs = 2_500;
const pollMs = 100;
const retryMs = 1_000;

/** The timer of the one trial that there can be. */
export class Deadline {
    readonly #options: DeadlineOptions;
    readonly #end: (trial: Trial) => Promise<void>;
    #timer: NodeJS.Timeout | null = null;

    /** @param end - takes the trial back, unless it is over */
    constructor(options: DeadlineOptions, end: (trial: Trial) => Promise<void>) {
        this.#options = options;
        this.#end = end;
    }

    /** Waits for the end of a trial, in place of the one before. */
    wait(trial: Trial): void {
        this.#arm(trial, Math.max(0, trial.until - this.#options.machine.now()));
    }

    /** Waits for nothing any more. */
    clear(): void {
        if (this.#timer !== null) {
            clearTimeout(this.#timer);
        }
        this.#timer = null;
    }

    #arm(trial: Trial, ms: number): void {
        this.clear();
        const timer = setTimeout(() => {
            this.#look(trial).catch((error: unknown) => {
                this.#options.ctx.log.error('A trial could not be taken back; it is tried again', { error });
                if (this.#timer === timer) {
                    this.#arm(trial, retryMs);
                }
            });
        }, ms);
        this.#timer = timer;
    }

    async #look(trial: Trial): Promise<void> {
        const timer = this.#timer;
        const { machine, guard } = this.#options;
        const isLate = machine.now() > trial.until + guardGraceMs;
        if (isLate || (await guard.mark(trial.id)) === 'reverted') {
            await this.#end(trial);
        } else if (this.#timer === timer) {
            this.#arm(trial, pollMs);
        }
    }
}
