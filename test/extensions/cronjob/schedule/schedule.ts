import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { isZone, parseSchedule } from '../../../../extensions/cronjob/src/schedule/schedule.ts';

export const lab = Lab.script();
const { describe, it } = lab;

/** The wall clock of a zone, minute by minute, by nothing but the platform's own formatting. */
interface Wall {
    readonly at: number;
    readonly month: number;
    readonly day: number;
    readonly weekday: number;
    readonly hour: number;
    readonly minute: number;
    /** The wall time as a number that grows with it. */
    readonly stamp: number;
}

const minuteMs = 60_000;
const weekdays = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];

function* wallClock(zone: string, from: number, to: number): Generator<Wall> {
    const format = new Intl.DateTimeFormat('en-US', {
        timeZone: zone,
        hourCycle: 'h23',
        year: 'numeric',
        month: 'numeric',
        day: 'numeric',
        hour: 'numeric',
        minute: 'numeric',
        weekday: 'short'
    });
    for (let at = from; at <= to; at += minuteMs) {
        const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, value]));
        const [year, month, day, hour, minute] = ['year', 'month', 'day', 'hour', 'minute'].map((type) =>
            Number(parts[type])
        ) as [number, number, number, number, number];
        yield {
            at,
            month,
            day,
            hour,
            minute,
            weekday: weekdays.indexOf(parts['weekday'] ?? ''),
            stamp: Date.UTC(year, month - 1, day, hour, minute)
        };
    }
}

/** One field, by trying every value. */
function fits(field: string, value: number, low: number, high: number): boolean {
    return field.split(',').some((item) => {
        const [range = '', step = '1'] = item.split('/');
        const [first, last] =
            range === '*'
                ? [low, high]
                : range.includes('-')
                  ? (range.split('-').map(Number) as [number, number])
                  : [Number(range), Number(range)];
        return value >= first && value <= last && (value - first) % Number(step) === 0;
    });
}

/** All times in a span at which an expression is due: interval tasks in real time; of fixed times the first of two equal ones, and those that clocks skip at the end of the gap. */
function bruteForce(expression: string, zone: string, from: number, to: number): number[] {
    const [minutes = '', hours = '', days = '', months = '', dows = ''] = expression.split(' ');
    const due = ({
        month,
        day,
        weekday,
        hour,
        minute
    }: Pick<Wall, 'month' | 'day' | 'weekday' | 'hour' | 'minute'>): boolean => {
        const onDay = fits(days, day, 1, 31);
        const onWeekday = fits(dows, weekday, 0, 7) || (weekday === 0 && fits(dows, 7, 0, 7));
        return (
            fits(minutes, minute, 0, 59) &&
            fits(hours, hour, 0, 23) &&
            fits(months, month, 1, 12) &&
            (days === '*' || dows === '*' ? onDay && onWeekday : onDay || onWeekday)
        );
    };
    const fixed = ![minutes, hours].some((field) => /[*/]/.test(field));
    const found = new Set<number>();
    let latest = -Infinity;
    let previous: Wall | null = null;
    // A day earlier, so that what was repeated or skipped at the edge is known.
    for (const wall of wallClock(zone, from - 86_400_000, to)) {
        if (fixed && previous !== null && wall.stamp > previous.stamp + minuteMs) {
            for (let stamp = previous.stamp + minuteMs; stamp < wall.stamp; stamp += minuteMs) {
                const skipped = new Date(stamp);
                const at = {
                    month: skipped.getUTCMonth() + 1,
                    day: skipped.getUTCDate(),
                    weekday: skipped.getUTCDay(),
                    hour: skipped.getUTCHours(),
                    minute: skipped.getUTCMinutes()
                };
                if (due(at)) {
                    found.add(wall.at);
                }
            }
        }
        if (due(wall) && (!fixed || wall.stamp > latest)) {
            found.add(wall.at);
        }
        latest = Math.max(latest, wall.stamp);
        previous = wall;
    }
    return [...found].filter((at) => at > from).sort((a, b) => a - b);
}

function planned(expression: string, zone: string, from: number, to: number): number[] {
    const { next } = parseSchedule(expression, zone);
    const times: number[] = [];
    for (let at = next(from); at !== null && at <= to; at = next(at)) {
        times.push(at);
    }
    return times;
}

const iso = (times: readonly number[]): string[] => times.map((at) => new Date(at).toISOString());

/** Numbers that look random and are the same each time. */
function createRandom(seed: number): (below: number) => number {
    let state = seed;
    return (below) => {
        state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
        return Math.floor((state / 2 ** 32) * below);
    };
}

function randomExpression(random: (below: number) => number): string {
    const field = (low: number, high: number, often: boolean): string => {
        const value = (): number => low + random(high - low + 1);
        const sorted = [value(), value()].sort((a, b) => a - b);
        return (
            [
                () => '*',
                () => `*/${1 + random(Math.min(20, high - low))}`,
                () => `${value()}`,
                () => `${value()},${value()}`,
                () => sorted.join('-'),
                () => `${sorted.join('-')}/${1 + random(5)}`
            ][often ? random(6) : ([0, 0, 0, 2, 4, 3][random(6)] as number)]?.() ?? '*'
        );
    };
    return [
        field(0, 59, true),
        field(0, 23, true),
        field(1, 31, false),
        field(1, 12, false),
        field(0, 6, false)
    ].join(' ');
}

describe('parseSchedule', () => {
    const zones: readonly (readonly [string, string])[] = [
        ['Europe/Berlin', '2026-03-28'],
        ['Europe/Berlin', '2026-10-24'],
        ['America/New_York', '2026-03-07'],
        ['America/New_York', '2026-10-31'],
        ['Australia/Lord_Howe', '2026-04-04'],
        ['Australia/Lord_Howe', '2026-10-03'],
        ['Africa/Cairo', '2026-04-23'],
        ['America/Santiago', '2026-09-05'],
        ['Asia/Kathmandu', '2026-06-01'],
        ['Atlantic/Azores', '2026-10-24'],
        ['UTC', '2028-02-28']
    ];

    it('is due exactly when a look at each minute of the wall clock says so', { timeout: 60_000 }, () => {
        const random = createRandom(20_261_121);
        let compared = 0;
        for (const [zone, day] of zones) {
            const [from, to] = [
                Date.parse(`${day}T00:00:00Z`),
                Date.parse(`${day}T00:00:00Z`) + 3 * 86_400_000
            ];
            for (const expression of [
                '30 2 * * *',
                '*/20 * * * *',
                '15,45 0-3 * * *',
                '0 2 * * *',
                '59 1 * * *',
                ...Array.from({ length: 12 }, () => randomExpression(random))
            ]) {
                const expected = bruteForce(expression, zone, from, to);
                expect(iso(planned(expression, zone, from, to)), `${expression} in ${zone}`).to.equal(
                    iso(expected)
                );
                compared += expected.length;
            }
        }
        expect(compared > 3_000).to.be.true();
    });

    it('runs what the clocks skip right after the gap, and what they repeat once', () => {
        const first = (expression: string, zone: string, from: string, count: number): string[] =>
            iso(
                planned(expression, zone, Date.parse(from), Date.parse(from) + 4 * 86_400_000).slice(0, count)
            );
        expect(first('30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00:00Z', 2)).to.equal([
            '2026-03-29T01:00:00.000Z',
            '2026-03-30T00:30:00.000Z'
        ]);
        expect(first('30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00:00Z', 2)).to.equal([
            '2026-10-25T00:30:00.000Z',
            '2026-10-26T01:30:00.000Z'
        ]);
        expect(first('*/30 * * * *', 'Europe/Berlin', '2026-10-24T23:59:00Z', 5)).to.equal([
            '2026-10-25T00:00:00.000Z',
            '2026-10-25T00:30:00.000Z',
            '2026-10-25T01:00:00.000Z',
            '2026-10-25T01:30:00.000Z',
            '2026-10-25T02:00:00.000Z'
        ]);
        // Half an hour only.
        expect(first('15 2 * * *', 'Australia/Lord_Howe', '2026-10-03T12:00:00Z', 1)).to.equal([
            '2026-10-03T15:30:00.000Z'
        ]);
    });

    it('knows leap days, also where a century has none', () => {
        const { next } = parseSchedule('0 12 29 2 *', 'UTC');
        expect(iso([next(Date.parse('2026-01-01')) ?? 0, next(Date.parse('2096-03-01')) ?? 0])).to.equal([
            '2028-02-29T12:00:00.000Z',
            '2104-02-29T12:00:00.000Z'
        ]);
        expect(parseSchedule('0 0 30 2 *', 'UTC').next(Date.parse('2026-01-01'))).to.be.null();
    });

    it('takes seconds, names and macros', () => {
        const from = Date.parse('2026-05-13T10:20:30Z');
        const next = (expression: string): string =>
            new Date(parseSchedule(expression, 'UTC').next(from) ?? 0).toISOString();
        expect(
            [
                '*/7 * * * * *',
                '0 30 9 * * mon-fri',
                '@hourly',
                '@daily',
                '@midnight',
                '@weekly',
                '@Monthly',
                '@yearly',
                '@annually',
                '0 0 L * *'
            ].map(next)
        ).to.equal([
            '2026-05-13T10:20:35.000Z',
            '2026-05-14T09:30:00.000Z',
            '2026-05-13T11:00:00.000Z',
            '2026-05-14T00:00:00.000Z',
            '2026-05-14T00:00:00.000Z',
            '2026-05-17T00:00:00.000Z',
            '2026-06-01T00:00:00.000Z',
            '2027-01-01T00:00:00.000Z',
            '2027-01-01T00:00:00.000Z',
            '2026-05-31T00:00:00.000Z'
        ]);
        expect(parseSchedule('@reboot', 'UTC')).to.include({ reboot: true });
        expect(parseSchedule('@reboot', 'UTC').next(from)).to.be.null();
    });

    it('refuses what is none, also what the library would take for a date', () => {
        for (const expression of [
            '',
            '* * * *',
            '* * * * * * *',
            '60 * * * *',
            '* 24 * * *',
            '* * 0 * *',
            '* * * 13 *',
            '* * * * 8',
            '*/0 * * * *',
            '5-1 * * * *',
            'a b c d e',
            '@never',
            '@every 5m',
            '2026-05-13T10:20:30Z',
            '* * * * * ; rm'
        ]) {
            expect(() => parseSchedule(expression, 'UTC'), expression).to.throw(Error);
        }
    });
});

describe('parseSchedule, asked again', () => {
    it('answers the same, whatever it was asked before', () => {
        const start = Date.parse('2026-03-20T00:00:00Z');
        const ask = (after: number): number | null =>
            parseSchedule('*/17 */3 * * *', 'Europe/Berlin').next(after);
        const times: number[] = [];
        for (let at = ask(start); at !== null && times.length < 600; at = ask(at)) {
            times.push(at);
        }
        expect(times).to.have.length(600);
        // Forwards, backwards, within what is remembered and far from it.
        for (const hours of [0, 1, 300, 2, 299, 3, 3, 40, 41, 90, 5, 298, 0]) {
            const after = start + hours * 3_600_000 + 1;
            expect(ask(after)).to.equal(times.find((time) => time > after) ?? null);
        }
    });
});

describe('isZone', () => {
    it('knows the zones of the machine, and takes no offset for one', () => {
        expect(
            [
                'Europe/Berlin',
                'UTC',
                'Etc/GMT+5',
                'Asia/Kolkata',
                'Mars/Olympus',
                '+02:00',
                '',
                'Europe/Berlin\n',
                '../etc'
            ].map(isZone)
        ).to.equal([true, true, true, true, false, false, false, false, false]);
    });
});
