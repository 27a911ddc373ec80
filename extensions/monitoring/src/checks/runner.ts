/** Tries all checks in time: spread over their intervals, and no more than 20 at once. */
import type { Outcome } from './probes/outcome.ts';
import type { CheckSpec } from './spec.ts';

/** Most checks that are tried at the same time. */
export const mostAtOnce = 20;
/** Milliseconds from a try that failed to the next one, while the check is not down yet. */
const retryMs = 5_000;
/** Multiples of it, without their whole part, lie apart from one another whatever their number. */
const golden = 0.618_033_988_749_895;

/** A check to be tried. */
export interface Job {
    readonly id: number;
    readonly intervalSeconds: number;
    readonly spec: CheckSpec;
}

/** The clock of the runner; tests use one of their own. */
export interface Timing {
    /** Milliseconds by a clock that does not jump. */
    now(): number;
    /** Calls back once after a time. Returns how to call it off. */
    after(milliseconds: number, work: () => void): () => void;
}

/** What the runner is made from. */
export interface RunnerOptions {
    readonly timing: Timing;
    /** Tries a check once. */
    probe(job: Job): Promise<Outcome>;
    /** Takes the outcome. Resolves with whether it shall be tried again soon. */
    conclude(job: Job, outcome: Outcome): boolean;
    /** Tells of a fault of `probe` or `conclude`. */
    failed(job: Job, error: unknown): void;
}

interface Entry {
    job: Job;
    next: number;
    running: Promise<Outcome | null> | null;
}

/** Milliseconds until a check is due, so that those of one interval are spread over it. */
export function untilDue(id: number, intervalSeconds: number, now: number): number {
    const interval = intervalSeconds * 1000;
    const offset = ((id * golden) % 1) * interval;
    return interval - ((((now - offset) % interval) + interval) % interval);
}

/** Tries checks from start to stop. */
export class CheckRunner {
    readonly #options: RunnerOptions;
    readonly #entries = new Map<number, Entry>();
    #callOff: () => void = () => undefined;
    #active = 0;
    #isOpen = false;

    constructor(options: RunnerOptions) {
        this.#options = options;
    }

    /** Begins to try what {@link CheckRunner.put} gave. */
    start(): void {
        this.#isOpen = true;
        this.#pump();
    }

    /** Begins no further try, and resolves when those under way are over. */
    async stop(): Promise<void> {
        this.#isOpen = false;
        this.#callOff();
        await Promise.all([...this.#entries.values()].flatMap(({ running }) => running ?? []));
    }

    /** Takes up a new or changed check. @param soon - it is tried at once, and then in its turn */
    put(job: Job, soon: boolean): void {
        const now = this.#options.timing.now();
        const next = soon ? now : now + untilDue(job.id, job.intervalSeconds, now);
        const entry = this.#entries.get(job.id);
        if (entry === undefined) {
            this.#entries.set(job.id, { job, next, running: null });
        } else {
            entry.job = job;
            entry.next = next;
        }
        this.#pump();
    }

    /** Tries a check no more. */
    remove(id: number): void {
        this.#entries.delete(id);
    }

    /** Number of tries under way. */
    get active(): number {
        return this.#active;
    }

    /** Begins what is due, and sleeps until the next is. */
    #pump(): void {
        this.#callOff();
        if (!this.#isOpen) {
            return;
        }
        const { timing } = this.#options;
        const now = timing.now();
        const idle = [...this.#entries.values()].filter(({ running }) => running === null);
        const due = idle.filter(({ next }) => next <= now).sort((a, b) => a.next - b.next);
        due.slice(0, mostAtOnce - this.#active).forEach((entry) => this.#begin(entry));
        if (this.#active < mostAtOnce) {
            const next = Math.min(...idle.filter((each) => each.running === null).map((each) => each.next));
            this.#callOff = Number.isFinite(next)
                ? timing.after(Math.max(0, next - now), () => this.#pump())
                : () => undefined;
        }
    }

    #begin(entry: Entry): void {
        const { job } = entry;
        const { timing, probe, conclude, failed } = this.#options;
        this.#active += 1;
        // A millisecond later, so that a timer that fires early, and the rounding of numbers, make no second try.
        const now = timing.now() + 1;
        entry.next = now + untilDue(job.id, job.intervalSeconds, now);
        entry.running = probe(job)
            .then((outcome) => {
                // A check that was changed or removed meanwhile takes no outcome of what it was.
                if (entry.job === job && this.#entries.get(job.id) === entry && conclude(job, outcome)) {
                    entry.next = Math.min(entry.next, timing.now() + retryMs);
                }
                return outcome;
            })
            .catch((error: unknown) => {
                failed(job, error);
                return null;
            })
            .finally(() => {
                this.#active -= 1;
                entry.running = null;
                this.#pump();
            });
    }
}
