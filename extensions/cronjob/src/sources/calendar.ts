/** Calendar expressions of systemd as schedules. Source: systemd.time(7), in the normalized form that `systemctl show` prints. */

/** A schedule, and the time zone that it names. */
export interface ConvertedCalendar {
    readonly schedule: string;
    readonly timezone: string | null;
}

const form =
    /^(?:([A-Za-z.,]+) )?([^ -]+)-([^ -]+)-([^ -]+) ([^ :]+):([^ :]+):([^ :]+)(?: ([A-Za-z_/+-]+))?$/;
const days = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];
const part = /^(?:\*|(\d+)(?:\.\.(\d+))?)(?:\/(\d+))?$/;

/** Converts an expression such as `Mon..Fri *-*-* 06:00:00`; null where a schedule cannot say it. */
export function scheduleOfCalendar(expression: string): ConvertedCalendar | null {
    const [, weekdays, year, month = '', day = '', hour = '', minute = '', second = '', zone = null] =
        form.exec(expression.trim()) ?? [];
    if (year !== '*') {
        return null;
    }
    const times = [
        convert(second, 59),
        convert(minute, 59),
        convert(hour, 23),
        convert(day, 31),
        convert(month, 12)
    ];
    const week = weekdays === undefined ? '*' : weekdaysOf(weekdays);
    if (times.includes(null) || week === null) {
        return null;
    }
    const [seconds, ...others] = times;
    // Both a day of the month and a weekday are asked for; in a schedule either would be enough without the sign.
    const both = week !== '*' && others[2] !== '*' ? `+${week}` : week;
    return {
        schedule: [...(seconds === '0' ? [] : [seconds]), ...others, both].join(' '),
        timezone: zone
    };
}

function convert(list: string, most: number): string | null {
    const parts = list.split(',').map((each) => convertPart(each, most));
    return parts.includes(null) ? null : parts.join(',');
}

function convertPart(text: string, most: number): string | null {
    const [whole, from, to, step] = part.exec(text) ?? [];
    if (whole === undefined) {
        return null;
    }
    const start = from === undefined ? null : Number(from);
    if (step === undefined) {
        return start === null ? '*' : to === undefined ? String(start) : `${start}-${Number(to)}`;
    }
    // From `start` on, up to the end.
    return start === null
        ? `*/${Number(step)}`
        : `${start}-${to === undefined ? most : Number(to)}/${Number(step)}`;
}

function weekdaysOf(text: string): string | null {
    const numbers = text.split(',').map((each) => {
        const [from = '', to = from] = each.split('..').map((day) => day.slice(0, 3).toLowerCase());
        const [first, last] = [days.indexOf(from) + 1, days.indexOf(to) + 1];
        return first === 0 || last === 0 ? null : first === last ? String(first) : `${first}-${last}`;
    });
    return numbers.includes(null) ? null : numbers.join(',');
}

const units: Readonly<Record<string, number>> = {
    us: 1e-6,
    ms: 1e-3,
    s: 1,
    min: 60,
    h: 3_600,
    d: 86_400,
    w: 604_800,
    month: 2_629_800,
    y: 31_557_600
};

/** Seconds of a time span such as `1h 30min`; null where it is none. */
export function secondsOfSpan(span: string): number | null {
    const parts = [...span.matchAll(/(\d+(?:\.\d+)?)\s*([a-z]*)/g)];
    const seconds = parts.map(
        ([, count, unit = '']) => Number(count) * (units[unit] ?? (unit === '' ? 0 : NaN))
    );
    const sum = seconds.reduce((one, other) => one + other, 0);
    return parts.length === 0 || Number.isNaN(sum) ? null : sum;
}
