/** Scheduled work and the clock that it runs by: both stand still until the test moves them. */
import type { When } from '../context.ts';
import { cronOf } from './cron.ts';

/** The clock of the test. The plugin's own `Date.now()` is the machine's: what depends on the time takes it from its run, or from a setting. */
export interface TestClock {
    now(): Date;
    /** Turns it; what is due runs as `advance` says, in one step. */
    set(to: Date | number): Promise<void>;
    /** Moves it on, and runs what comes due on the way, in order and at its time; resolves when all that began is over. */
    advance(by: {
        readonly days?: number;
        readonly hours?: number;
        readonly minutes?: number;
        readonly seconds?: number;
        readonly milliseconds?: number;
    }): Promise<void>;
}

type Run = (run: {
    readonly at: Date;
    readonly missed: boolean;
    readonly signal: AbortSignal;
}) => Promise<void>;

interface Entry {
    readonly name: string;
    readonly when: When;
    readonly next: (after: Date, due?: Date) => Date | null;
    readonly run: Run;
    readonly ending: AbortController;
    due: Date | null;
    running: Promise<void> | null;
    queued: Date | null;
}

/** What is later than this when it is looked at was missed. */
const lateMs = 5 * 60_000;

export class SchedulesFake implements TestClock {
    #now: number;
    readonly #entries = new Map<string, Entry>();
    /** When work with `missed: 'run-once'` is due, kept over a restart as the panel keeps it. */
    readonly #kept = new Map<string, number>();
    readonly #failed: (name: string, error: unknown) => void;

    constructor(now: number, failed: (name: string, error: unknown) => void) {
        this.#now = now;
        this.#failed = failed;
    }

    now(): Date {
        return new Date(this.#now);
    }

    async set(to: Date | number): Promise<void> {
        const before = this.#now;
        this.#now = Number(to);
        const begun = [...this.#entries.values()]
            .map((entry) => {
                if (this.#now < before - lateMs) {
                    entry.due = entry.next(this.now());
                    return null;
                }
                return this.#look(entry);
            })
            .filter((run) => run !== null);
        await Promise.all(begun);
    }

    async advance({
        days = 0,
        hours = 0,
        minutes = 0,
        seconds = 0,
        milliseconds = 0
    }: Parameters<TestClock['advance']>[0]): Promise<void> {
        const end = this.#now + (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + milliseconds;
        for (;;) {
            const due = Math.min(
                end,
                ...[...this.#entries.values()].map((entry) => entry.due?.getTime() ?? Infinity)
            );
            this.#now = Math.max(this.#now, due);
            const begun = [...this.#entries.values()]
                .map((entry) => this.#look(entry))
                .filter((run) => run !== null);
            if (begun.length === 0) {
                this.#now = end;
                return;
            }
            await Promise.all(begun);
        }
    }

    /** @throws TypeError for a pattern or a time zone that nobody knows */
    async add(name: string, when: When, run: Run): Promise<void> {
        const next = nextOf(when);
        await this.remove(name);
        const entry: Entry = {
            name,
            when,
            next,
            run,
            ending: new AbortController(),
            due: next(this.now()),
            running: null,
            queued: null
        };
        this.#entries.set(name, entry);
        const kept = this.#kept.get(name);
        if (when.missed === 'run-once' && kept !== undefined && kept <= this.#now) {
            void this.#begin(entry, new Date(kept), true);
        }
        this.#keep(entry);
    }

    async remove(name: string): Promise<void> {
        const entry = this.#entries.get(name);
        if (entry !== undefined) {
            this.#entries.delete(name);
            entry.queued = null;
            entry.ending.abort(new Error('The schedule ended'));
            await entry.running;
        }
    }

    /** When it runs next; null when never. */
    next(name: string): Date | null {
        return this.#entries.get(name)?.due ?? null;
    }

    names(): readonly string[] {
        return [...this.#entries.keys()];
    }

    /** Runs it now, whatever the clock says. @throws Error when nothing has that name */
    async run(name: string, { missed = false }: { readonly missed?: boolean } = {}): Promise<void> {
        const entry = this.#entries.get(name);
        if (entry === undefined) {
            throw new Error(
                `Nothing is scheduled as ${name}; there is ${this.names().join(', ') || 'nothing'}`
            );
        }
        await this.#begin(entry, this.now(), missed);
    }

    #look(entry: Entry): Promise<void> | null {
        const { due } = entry;
        if (due === null || due.getTime() > this.#now) {
            return null;
        }
        const late = this.#now - due.getTime() > lateMs;
        entry.due = entry.next(this.now(), due);
        this.#keep(entry);
        return late && entry.when.missed !== 'run-once' ? null : this.#begin(entry, due, late);
    }

    #begin(entry: Entry, at: Date, missed: boolean): Promise<void> {
        if (entry.running !== null) {
            entry.queued = entry.when.overlap === 'queue' ? at : null;
            return entry.running;
        }
        const run = (async () => {
            try {
                await entry.run({ at, missed, signal: entry.ending.signal });
            } catch (error) {
                if (!entry.ending.signal.aborted) {
                    this.#failed(entry.name, error);
                }
            }
            entry.running = null;
            const { queued } = entry;
            entry.queued = null;
            if (queued !== null && !entry.ending.signal.aborted) {
                await this.#begin(entry, queued, false);
            }
        })();
        entry.running = run;
        return run;
    }

    #keep({ name, when, due }: Entry): void {
        if (when.missed === 'run-once' && due !== null) {
            this.#kept.set(name, due.getTime());
        }
    }
}

function nextOf(when: When): Entry['next'] {
    if ('cron' in when) {
        return cronOf(when.cron, when.timezone);
    }
    if (!(when.everySeconds >= 1)) {
        throw new TypeError('everySeconds is at least 1');
    }
    const step = when.everySeconds * 1000;
    return (after, due = after) =>
        new Date(
            due.getTime() + Math.max(1, Math.floor((after.getTime() - due.getTime()) / step) + 1) * step
        );
}
