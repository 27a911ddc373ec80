/** Scheduled work of a plugin. It follows the wall clock, also when the clock is set, and ends with its generation. */
import { AsyncLocalStorage } from 'node:async_hooks';

import type { When } from '@portico/sdk';
import { Cron } from 'croner';

import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Logger } from '../../platform/log/log.ts';

/** One run of a schedule. */
export interface DueRun {
    readonly at: Date;
    readonly missed: boolean;
    readonly signal: AbortSignal;
}

/** Calls `ring` once, after about that many milliseconds. Returns a function that cancels it. */
export type Alarm = (milliseconds: number, ring: () => void) => () => void;

/** An alarm by a timer that does not keep the process alive. */
export const systemAlarm: Alarm = (milliseconds, ring) => {
    const timer = setTimeout(ring, milliseconds).unref();
    return () => clearTimeout(timer);
};

/** What the schedules of one generation need. */
export interface SchedulesOptions {
    readonly plugin: string;
    readonly clock: Clock;
    readonly db: Database;
    readonly log: Logger;
    readonly signal: AbortSignal;
    readonly alarm: Alarm;
}

interface Entry {
    readonly name: string;
    readonly when: When;
    /** The next due time after `after`. An interval counts from `due`; cron ignores it. */
    readonly next: (after: Date, due?: Date) => Date | null;
    readonly run: (run: DueRun) => Promise<void>;
    readonly ending: AbortController;
    due: Date | null;
    running: Promise<void> | null;
    queued: Date | null;
    silence: () => void;
    looked: number;
}

/** The clock is read at least this often, since it may be set at any time. */
const lookMs = 30_000;
/** A larger difference between the clock and the due time means that the clock was set or the panel slept. */
const jumpMs = 5 * 60_000;
const shortestSeconds = 1;

/** The schedules of one generation. */
export class Schedules {
    readonly #options: SchedulesOptions;
    readonly #entries = new Map<string, Entry>();
    /** The schedule whose run is calling: `stop` must not wait for a run that waits for `stop`. */
    readonly #within = new AsyncLocalStorage<Entry>();

    constructor(options: SchedulesOptions) {
        this.#options = options;
    }

    /** Adds a schedule; a schedule of the same name is replaced. @throws TypeError for an invalid pattern or time zone */
    async add(name: string, when: When, run: Entry['run']): Promise<void> {
        const next = nextOf(when);
        await this.stop(name);
        const now = this.#options.clock.now();
        const entry: Entry = {
            name,
            when,
            next,
            run,
            ending: new AbortController(),
            due: next(new Date(now)),
            running: null,
            queued: null,
            silence: () => undefined,
            looked: now
        };
        this.#entries.set(name, entry);
        const kept = await this.#kept(name);
        if (this.#entries.get(name) !== entry) {
            return; // It was replaced or removed meanwhile.
        }
        if (when.missed === 'run-once') {
            if (kept !== null && kept <= now) {
                this.#begin(entry, new Date(kept), true);
            }
            await this.#keep(entry);
        } else if (kept !== null) {
            await this.#forget(name);
        }
        this.#arm(entry);
    }

    /** Removes a schedule and forgets when it was due: if it is added again, no run counts as missed. Waits for a run under way. */
    async remove(name: string): Promise<void> {
        const isKept = this.#entries.get(name)?.when.missed === 'run-once';
        await this.stop(name);
        if (isKept && !this.#entries.has(name)) {
            await this.#forget(name);
        }
    }

    /** Stops a schedule and waits for a run under way. The next generation still knows when it was due. */
    async stop(name: string): Promise<void> {
        const entry = this.#entries.get(name);
        if (entry !== undefined) {
            this.#entries.delete(name);
            entry.silence();
            entry.queued = null;
            entry.ending.abort(new Error('The schedule ended'));
            await (this.#within.getStore() === entry ? null : entry.running);
        }
    }

    next(name: string): Date | null {
        return this.#entries.get(name)?.due ?? null;
    }

    names(): readonly string[] {
        return [...this.#entries.keys()];
    }

    #arm(entry: Entry): void {
        if (entry.due === null || this.#entries.get(entry.name) !== entry) {
            return;
        }
        const now = this.#options.clock.now();
        entry.looked = now;
        entry.silence = this.#options.alarm(Math.max(0, Math.min(entry.due.getTime() - now, lookMs)), () =>
            this.#look(entry)
        );
    }

    /** Runs what is due by the clock. A timer is not enough: it does not follow the clock when that is set. */
    #look(entry: Entry): void {
        if (this.#entries.get(entry.name) !== entry) {
            return;
        }
        const now = this.#options.clock.now();
        const { due } = entry;
        if (now < entry.looked - jumpMs) {
            // The clock was set back, so the due time is computed anew.
            entry.due = entry.next(new Date(now));
        } else if (due !== null && now >= due.getTime()) {
            const late = now - due.getTime() > jumpMs;
            entry.due = entry.next(new Date(now), due);
            if (!late || entry.when.missed === 'run-once') {
                this.#begin(entry, due, late);
            } else {
                this.#options.log.warn('A run of a schedule was missed and is skipped', {
                    schedule: entry.name,
                    due: due.toISOString(),
                    next: entry.due?.toISOString() ?? null
                });
            }
            if (entry.when.missed === 'run-once') {
                void this.#keep(entry).catch((error: unknown) =>
                    this.#options.log.error('A schedule could not be kept', { schedule: entry.name, error })
                );
            }
        }
        this.#arm(entry);
    }

    #begin(entry: Entry, at: Date, missed: boolean): void {
        if (entry.running !== null) {
            entry.queued = entry.when.overlap === 'queue' ? at : null;
            return;
        }
        const signal = AbortSignal.any([entry.ending.signal, this.#options.signal]);
        entry.running = (async () => {
            try {
                await this.#within.run(entry, () => entry.run({ at, missed, signal }));
            } catch (error) {
                if (!signal.aborted) {
                    this.#options.log.error('Scheduled work failed', { schedule: entry.name, error });
                }
            } finally {
                entry.running = null;
            }
            const { queued } = entry;
            entry.queued = null;
            if (queued !== null && !signal.aborted) {
                this.#begin(entry, queued, false);
            }
        })();
    }

    async #kept(name: string): Promise<number | null> {
        const rows = await this.#options.db.read((em) =>
            em.execute<{ due_at: number }[]>(
                'select due_at from plugin_schedules where plugin = ? and name = ?',
                [this.#options.plugin, name]
            )
        );
        return rows[0]?.due_at ?? null;
    }

    async #keep({ name, due }: Entry): Promise<void> {
        if (due === null) {
            await this.#forget(name);
            return;
        }
        await this.#options.db.write(({ em }) =>
            em.execute(
                'insert into plugin_schedules (plugin, name, due_at) values (?, ?, ?) on conflict (plugin, name) do update set due_at = excluded.due_at',
                [this.#options.plugin, name, due.getTime()],
                'run'
            )
        );
    }

    async #forget(name: string): Promise<void> {
        await this.#options.db.write(({ em }) =>
            em.execute(
                'delete from plugin_schedules where plugin = ? and name = ?',
                [this.#options.plugin, name],
                'run'
            )
        );
    }
}

function nextOf(when: When): Entry['next'] {
    if ('cron' in when) {
        const cron = new Cron(when.cron, {
            paused: true,
            ...(when.timezone === undefined ? {} : { timezone: when.timezone })
        });
        return (after) => cron.nextRun(after);
    }
    if (!(when.everySeconds >= shortestSeconds)) {
        throw new TypeError(`everySeconds is at least ${shortestSeconds}`);
    }
    const step = when.everySeconds * 1000;
    return (after, due = after) =>
        new Date(
            due.getTime() + Math.max(1, Math.floor((after.getTime() - due.getTime()) / step) + 1) * step
        );
}
