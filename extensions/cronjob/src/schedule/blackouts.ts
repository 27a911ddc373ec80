/** Times of the week at which tasks do not start, on the wall clock of a time zone. */

/** The days of a week, as blackouts name them. */
export const weekdays = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;

/** A part of each of some days. */
export interface Blackout {
    /** The days on which it begins. */
    readonly days: readonly (typeof weekdays)[number][];
    /** `HH:MM`. */
    readonly from: string;
    /** `HH:MM`, exclusive. Not later than `from`: of the day after. */
    readonly to: string;
}

/** What becomes of a due time in a blackout. */
export type BlackoutPolicy = 'skip' | 'delay';

const minuteMs = 60_000;
const dayMinutes = 24 * 60;
const weekMinutes = 7 * dayMinutes;
/** Blackouts that follow each other without a gap; more than any week holds in practice. */
const mostInARow = 200;

/** A part of the week in minutes since Monday 00:00; `end` may lie in the week after. */
interface Span {
    readonly start: number;
    readonly end: number;
}

/** When tasks of a time zone may start. */
export class Blackouts {
    readonly #spans: readonly Span[];
    readonly #zone: string;

    /** @param zone - a time zone that this machine knows */
    constructor(blackouts: readonly Blackout[], zone: string) {
        this.#zone = zone;
        this.#spans = blackouts.flatMap(({ days, from, to }) => {
            const [start, end] = [minutesOf(from), minutesOf(to)];
            const length = end > start ? end - start : end - start + dayMinutes;
            return [...new Set(days)].map((day) => {
                const begin = weekdays.indexOf(day) * dayMinutes + start;
                return { start: begin, end: begin + length };
            });
        });
    }

    /** Whether there is none. */
    get isEmpty(): boolean {
        return this.#spans.length === 0;
    }

    /**
     * The first time from `at` on that is in no blackout: `at` itself where it is in none; null when there is none. Blackouts that follow
     * each other without a gap are one. Times in milliseconds since 1970.
     */
    firstFree(at: number): number | null {
        let free = at;
        for (let round = 0; round < mostInARow; round += 1) {
            const left = this.#minutesLeft(free);
            if (left === null) {
                return free;
            }
            free = Math.floor(free / minuteMs) * minuteMs + left * minuteMs;
        }
        return null;
    }

    /** Minutes until the last of the blackouts ends that are on at a time; null when none is. */
    #minutesLeft(at: number): number | null {
        if (this.isEmpty) {
            return null;
        }
        const minute = minuteOfWeek(at, this.#zone);
        const left = this.#spans.flatMap(({ start, end }) =>
            [minute, minute + weekMinutes]
                .filter((each) => each >= start && each < end)
                .map((each) => end - each)
        );
        return left.length === 0 ? null : this.#shortenedByClocks(at, Math.max(...left));
    }

    /** Where clocks are put forward meanwhile, the wall clock gets there sooner. Put back, a second look finds the rest. */
    #shortenedByClocks(at: number, minutes: number): number {
        const wanted = (minuteOfWeek(at, this.#zone) + minutes) % weekMinutes;
        const reached = minuteOfWeek(at + minutes * minuteMs, this.#zone);
        const over = (reached - wanted + weekMinutes) % weekMinutes;
        return over < dayMinutes && over < minutes ? minutes - over : minutes;
    }
}

const formats = new Map<string, Intl.DateTimeFormat>();

function minuteOfWeek(at: number, zone: string): number {
    let format = formats.get(zone);
    if (format === undefined) {
        format = new Intl.DateTimeFormat('en-GB', {
            timeZone: zone,
            weekday: 'short',
            hour: '2-digit',
            minute: '2-digit',
            hourCycle: 'h23'
        });
        formats.set(zone, format);
    }
    // Such as `Mon 09:30`; some versions put a comma behind the day.
    const text = format.format(at);
    const day = weekdays.indexOf(text.slice(0, 3).toLowerCase() as (typeof weekdays)[number]);
    return day * dayMinutes + minutesOf(text.slice(-5));
}

function minutesOf(time: string): number {
    return Number(time.slice(0, 2)) * 60 + Number(time.slice(3, 5));
}
