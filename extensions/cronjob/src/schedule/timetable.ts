/** When a task starts by its schedule: its due times, without those that its blackouts skip, and with those that they delay. */
import { type Blackout, type BlackoutPolicy, Blackouts } from './blackouts.ts';
import { parseSchedule, type Schedule } from './schedule.ts';

/** What decides about due times. */
export interface TimetableOptions {
    readonly schedule: string;
    readonly timezone: string;
    readonly blackouts: readonly Blackout[];
    readonly blackoutPolicy: BlackoutPolicy;
}

/** The starts of a task, without jitter. */
export interface Timetable {
    /**
     * The first start after a time, both in milliseconds since 1970; null when there is none.
     *
     * @param until - a later start is not looked for, but may be the answer; by default five years from `after` on
     */
    next(after: number, until?: number): number | null;
}

/** @throws Error with what is wrong with the schedule */
export function timetableOf({ schedule, timezone, blackouts, blackoutPolicy }: TimetableOptions): Timetable {
    const parsed = parseSchedule(schedule, timezone);
    const closed = new Blackouts(blackouts, timezone);
    if (closed.isEmpty) {
        return parsed;
    }
    return blackoutPolicy === 'skip'
        ? { next: (after, until) => nextFree(parsed, closed, { after, until }) }
        : { next: (after) => nextDelayed(parsed, closed, after) };
}

/** So far ahead a free due time is looked for. */
const horizonMs = 5 * 366 * 86_400_000;

interface Period {
    readonly after: number;
    readonly until: number | undefined;
}

/** A schedule whose times all lie in blackouts costs a look at each of them up to `until`. */
function nextFree(
    { next }: Schedule,
    closed: Blackouts,
    { after, until = after + horizonMs }: Period
): number | null {
    for (let at = next(after); at !== null && at <= until;) {
        const free = closed.firstFree(at);
        if (free === at) {
            return at;
        }
        at = free === null ? null : next(free - 1);
    }
    return null;
}

/** All due times of one blackout start once, at its end. What was due before `after` is not looked for. */
function nextDelayed({ next }: Schedule, closed: Blackouts, after: number): number | null {
    const at = next(after);
    return at === null ? null : closed.firstFree(at);
}
