/** The clock of a test, and the scheduled work that it drives: both stand still until the test moves them. */
import { setImmediate as turn } from 'node:timers/promises';

import type { Alarm, GuestSides } from '@portico/core/plugin-runtime';

import { inTime } from '../deadline.ts';

/** A time that passes. */
export interface Span {
    readonly days?: number;
    readonly hours?: number;
    readonly minutes?: number;
    readonly seconds?: number;
    readonly milliseconds?: number;
}

interface Ringing {
    readonly at: number;
    readonly ring: () => void;
}

/** The clock of the test. The plugin's own `Date.now()` is the machine's: what depends on the time takes it from its run, or from a setting. */
export class TestClock {
    #now: number;
    readonly #patienceMs: number;
    readonly #alarms = new Set<Ringing>();
    readonly #running = new Map<Promise<unknown>, string>();

    /** @internal */
    constructor(now: number, patienceMs: number) {
        this.#now = now;
        this.#patienceMs = patienceMs;
    }

    now(): Date {
        return new Date(this.#now);
    }

    /** Turns it in one step; what is late by then was missed. Resolves when all that began is over. */
    async set(to: Date | number): Promise<void> {
        this.#now = Number(to);
        for (const alarm of [...this.#alarms]) {
            this.#alarms.delete(alarm);
            alarm.ring();
        }
        await this.#finish();
    }

    /** Moves it on, and runs what comes due on the way, in order and at its time. Resolves when all that began is over. */
    async advance({ days = 0, hours = 0, minutes = 0, seconds = 0, milliseconds = 0 }: Span): Promise<void> {
        await this.#finish();
        const end = this.#now + (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + milliseconds;
        for (;;) {
            const at = Math.min(...[...this.#alarms].map((alarm) => alarm.at));
            if (at > end) {
                this.#now = end;
                return;
            }
            this.#now = Math.max(this.#now, at);
            for (const alarm of [...this.#alarms].filter((each) => each.at <= at)) {
                this.#alarms.delete(alarm);
                alarm.ring();
            }
            await this.#finish();
        }
    }

    /** What schedules wait with: rings when the test has moved the clock so far. @internal */
    readonly alarm: Alarm = (milliseconds, ring) => {
        const alarm = { at: this.#now + milliseconds, ring };
        this.#alarms.add(alarm);
        return () => this.#alarms.delete(alarm);
    };

    /** Waits for this when the clock is moved. @internal */
    track<T>(what: string, work: Promise<T>): Promise<T> {
        const over = work.then(
            () => undefined,
            () => undefined
        );
        this.#running.set(over, what);
        void over.then(() => this.#running.delete(over));
        return work;
    }

    async #finish(): Promise<void> {
        while (this.#running.size > 0) {
            for (const [work, what] of [...this.#running]) {
                await inTime(what, this.#patienceMs, work);
            }
            // What waited for its end begins a turn later.
            await turn();
        }
    }
}

type Schedule = GuestSides['hostApi']['schedule'];
type Run = Parameters<Schedule>[0]['run'];

/** Scheduled work, as a test sees it. */
export class TestSchedules {
    readonly #clock: TestClock;
    readonly #patienceMs: number;
    readonly #runs = new Map<string, Run>();
    #nextOf: (name: string) => Promise<Date | null> = async () => null;
    #added = Promise.withResolvers<void>();

    /** @internal */
    constructor(clock: TestClock, patienceMs: number) {
        this.#clock = clock;
        this.#patienceMs = patienceMs;
    }

    /** Names of what is scheduled, in the order in which it was. */
    names(): readonly string[] {
        return [...this.#runs.keys()];
    }

    /** Resolves when the plugin has scheduled something by this name. */
    async added(name: string): Promise<void> {
        while (!this.#runs.has(name)) {
            await inTime(`a schedule ${name}`, this.#patienceMs, this.#added.promise);
        }
    }

    /** When it runs next; null when never. */
    next(name: string): Promise<Date | null> {
        return this.#nextOf(name);
    }

    /** Runs it now, whatever the clock says. @throws Error when nothing has that name */
    async run(name: string, { missed = false }: { readonly missed?: boolean } = {}): Promise<void> {
        const run = this.#runs.get(name);
        if (run === undefined) {
            throw new Error(
                `Nothing is scheduled as ${name}; there is ${this.names().join(', ') || 'nothing'}`
            );
        }
        const signal = new AbortController().signal;
        await inTime(`the run of ${name}`, this.#patienceMs, run({ at: this.#clock.now(), missed, signal }));
    }

    /** The same sides, with every run known here. @internal */
    watch({ hostApi, local }: GuestSides): GuestSides {
        this.#runs.clear();
        this.#nextOf = async (name) => (this.#runs.has(name) ? hostApi.nextRun({ name }) : null);
        return {
            local,
            hostApi: {
                ...hostApi,
                schedule: ({ name, when, run }) => {
                    const tracked: Run = (due) => this.#clock.track(`the run of ${name}`, run(due));
                    const adding = hostApi.schedule({ name, when, run: tracked }).then(() => {
                        this.#runs.set(name, tracked);
                        this.#added.resolve();
                        this.#added = Promise.withResolvers();
                    });
                    return this.#clock.track(`the schedule ${name}`, adding);
                },
                unschedule: async ({ name }) => {
                    this.#runs.delete(name);
                    await hostApi.unschedule({ name });
                }
            }
        };
    }
}
