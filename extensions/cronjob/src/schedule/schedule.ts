/** Parses schedules: cron expressions on the wall clock of a time zone, and `@reboot`. */
import { messageOf } from '@portico/sdk';
import { Cron } from 'croner';

const macros: Readonly<Record<string, string>> = {
    '@yearly': '0 0 1 1 *',
    '@annually': '0 0 1 1 *',
    '@monthly': '0 0 1 * *',
    '@weekly': '0 0 * * 0',
    '@daily': '0 0 * * *',
    '@midnight': '0 0 * * *',
    '@hourly': '0 * * * *'
};

/** A schedule that was parsed and is valid. */
export interface Schedule {
    /** Whether it is due once after each boot of the machine, and at no time of the clock. */
    readonly reboot: boolean;
    /** The first time after `after`, both in milliseconds since 1970; null when there is none. */
    next(after: number): number | null;
}

/** Tells whether a name is one of the time zones that this machine knows; offsets such as `+02:00` are not. */
export function isZone(name: string): boolean {
    if (!/^[A-Za-z]/.test(name)) {
        return false;
    }
    try {
        new Intl.DateTimeFormat('en', { timeZone: name });
        return true;
    } catch {
        return false;
    }
}

/** The machine's own time zone. */
export function machineZone(): string {
    return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

const cache = new Map<string, Schedule>();
const maxCached = 2_000;

/**
 * Parses five fields, six with seconds first, or a macro. A time of day that clocks skip in spring is due right after the gap, and one
 * that they repeat in autumn is due once; with `*` or a step in seconds, minutes or hours a schedule follows real time.
 *
 * @throws Error with what is wrong with the expression
 */
export function parseSchedule(expression: string, zone: string): Schedule {
    const key = `${zone} ${expression}`;
    let schedule = cache.get(key);
    if (schedule === undefined) {
        schedule = parse(expression.trim(), zone);
        if (cache.size >= maxCached) {
            cache.clear();
        }
        cache.set(key, schedule);
    }
    return schedule;
}

function parse(expression: string, zone: string): Schedule {
    if (expression.toLowerCase() === '@reboot') {
        return { reboot: true, next: () => null };
    }
    const macro = expression.startsWith('@') ? macros[expression.toLowerCase()] : expression;
    if (macro === undefined) {
        throw new Error(
            `there is no macro ${expression}; there are @reboot, ${Object.keys(macros).join(', ')}`
        );
    }
    const fields = macro.split(/\s+/).length;
    if (fields !== 5 && fields !== 6) {
        throw new Error(
            `it has ${fields} ${fields === 1 ? 'field' : 'fields'}, and five, or six with seconds first, are needed`
        );
    }
    const cron = createCron(macro, zone);
    const times = new DueTimes((after) => cron.nextRun(new Date(after))?.getTime() ?? null);
    return { reboot: false, next: (after) => times.next(after) };
}

/** Times that are remembered of each schedule. */
const maxRemembered = 256;

/** The due times that were asked for last, without a gap between them: tasks often share a schedule, and then also what was computed of it. */
class DueTimes {
    readonly #compute: (after: number) => number | null;
    /** All due times after it, up to the last one of `#times`, are in `#times`. */
    #since = 0;
    #times: number[] = [];

    constructor(compute: (after: number) => number | null) {
        this.#compute = compute;
    }

    next(after: number): number | null {
        const last = this.#times.at(-1);
        if (last !== undefined && after >= this.#since && after < last) {
            return this.#times.find((time) => time > after) ?? null;
        }
        const following = last === undefined || after < this.#since ? null : this.#compute(last);
        if (following !== null && following > after && this.#times.length < maxRemembered) {
            this.#times.push(following);
            return following;
        }
        const at = this.#compute(after);
        this.#since = after;
        this.#times = at === null ? [] : [at];
        return at;
    }
}

function createCron(expression: string, zone: string): Cron {
    try {
        return new Cron(expression, {
            paused: true,
            timezone: zone,
            mode: '5-or-6-parts',
            fixedTimeRule: 'no-wildcard'
        });
    } catch (error) {
        throw new Error(messageOf(error).replace(/^Cron\w+: /, ''), {
            cause: error
        });
    }
}
