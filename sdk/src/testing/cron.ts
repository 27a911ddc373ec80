/** When a cron pattern is due next: five fields, or six with seconds first, and `@daily` and its like. */

const names: Readonly<Record<string, string>> = {
    '@yearly': '0 0 1 1 *',
    '@annually': '0 0 1 1 *',
    '@monthly': '0 0 1 * *',
    '@weekly': '0 0 * * 0',
    '@daily': '0 0 * * *',
    '@midnight': '0 0 * * *',
    '@hourly': '0 * * * *'
};
const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const weekdays = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const dayMs = 86_400_000;
/** 29 February on a certain weekday comes every 28 years at most, but for a turn of the century. */
const farthestDays = 41 * 366;

interface Pattern {
    readonly seconds: readonly number[];
    readonly minutes: readonly number[];
    readonly hours: readonly number[];
    isDay(date: Date): boolean;
}

/**
 * Gives the next time after another, by the wall clock of a time zone; what that clock leaves out in spring is passed over.
 *
 * @throws TypeError for a pattern or a zone that nobody knows
 */
export function cronOf(text: string, timezone?: string): (after: Date) => Date | null {
    const pattern = parse(text);
    const wall = wallClock(timezone);
    return (after) => {
        const begin = wall(after.getTime());
        const first = begin - (begin % dayMs);
        for (let day = first; day <= first + farthestDays * dayMs; day += dayMs) {
            if (!pattern.isDay(new Date(day))) {
                continue;
            }
            for (const time of timesOf(pattern, day)) {
                const instant = time > begin - 2 * 3_600_000 ? instantOf(time, wall) : null;
                if (instant !== null && instant > after.getTime()) {
                    return new Date(instant);
                }
            }
        }
        return null;
    };
}

function* timesOf({ hours, minutes, seconds }: Pattern, day: number): Generator<number> {
    for (const hour of hours) {
        for (const minute of minutes) {
            for (const second of seconds) {
                yield day + ((hour * 60 + minute) * 60 + second) * 1000;
            }
        }
    }
}

function parse(text: string): Pattern {
    const fields = (names[text.trim().toLowerCase()] ?? text).trim().split(/\s+/);
    const wrong = (): never => {
        throw new TypeError(`${JSON.stringify(text)} is not a cron pattern`);
    };
    const [second = '', minute = '', hour = '', day = '', month = '', weekday = ''] =
        fields.length === 5 ? ['0', ...fields] : fields.length === 6 ? fields : wrong();
    const list = (
        field: string,
        low: number,
        high: number,
        words: readonly string[] = []
    ): readonly number[] => {
        const number = (word: string): number => {
            const at = words.indexOf(word.toLowerCase());
            const value = at >= 0 ? at + (words === months ? 1 : 0) : /^\d+$/.test(word) ? Number(word) : NaN;
            return value >= low && value <= high ? value : wrong();
        };
        const found = field.split(',').flatMap((part) => {
            const [range = '', step] = part.split('/', 2);
            const [from, to] =
                range === '*' || range === '?'
                    ? [low, high]
                    : range.includes('-')
                      ? [number(range.split('-', 2)[0] ?? ''), number(range.split('-', 2)[1] ?? '')]
                      : [number(range), step === undefined ? number(range) : high];
            const every = step === undefined ? 1 : /^[1-9]\d*$/.test(step) ? Number(step) : wrong();
            return Array.from(
                { length: Math.max(0, Math.floor((to - from) / every) + 1) },
                (_none, index) => from + index * every
            );
        });
        return [...new Set(found)].sort((a, b) => a - b);
    };
    const [days, monthList, weekdayList] = [
        list(day, 1, 31),
        list(month, 1, 12, months),
        list(weekday, 0, 7, weekdays).map((each) => each % 7)
    ];
    const isOpen = (field: string): boolean => field === '*' || field === '?';
    return {
        seconds: list(second, 0, 59),
        minutes: list(minute, 0, 59),
        hours: list(hour, 0, 23),
        isDay(date) {
            const [inMonth, inWeek] = [
                days.includes(date.getUTCDate()),
                weekdayList.includes(date.getUTCDay())
            ];
            return (
                monthList.includes(date.getUTCMonth() + 1) &&
                (isOpen(day) || isOpen(weekday) ? inMonth && inWeek : inMonth || inWeek)
            );
        }
    };
}

/** What a clock on the wall shows at an instant, as milliseconds of a day in UTC. */
function wallClock(timezone: string | undefined): (instant: number) => number {
    let format: Intl.DateTimeFormat;
    try {
        format = new Intl.DateTimeFormat('en-US', {
            ...(timezone === undefined ? {} : { timeZone: timezone }),
            hourCycle: 'h23',
            year: 'numeric',
            month: 'numeric',
            day: 'numeric',
            hour: 'numeric',
            minute: 'numeric',
            second: 'numeric'
        });
    } catch {
        throw new TypeError(`Nobody knows the time zone ${String(timezone)}`);
    }
    return (instant) => {
        const part = Object.fromEntries(
            format.formatToParts(instant).map(({ type, value }) => [type, Number(value)])
        );
        return Date.UTC(
            part['year'] ?? 0,
            (part['month'] ?? 1) - 1,
            part['day'],
            part['hour'],
            part['minute'],
            part['second']
        );
    };
}

/** Null where the wall clock leaves that time out. */
function instantOf(time: number, wall: (instant: number) => number): number | null {
    let instant = time - (wall(time) - time);
    instant -= wall(instant) - time;
    return wall(instant) === time ? instant : null;
}
