/** Numbers, times and units as the user's language writes them. */
import { language } from './language.ts';
import { t } from './t.ts';

const steps: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
    ['year', 31_536_000],
    ['month', 2_592_000],
    ['day', 86_400],
    ['hour', 3_600],
    ['minute', 60],
    ['second', 1]
];
const byteUnits = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** A time as its distance from now: `3 hours ago`. */
export function relativeTime(time: string, now = Date.now()): string {
    const seconds = (Date.parse(time) - now) / 1000;
    const [unit, size] = steps.find(([, length]) => Math.abs(seconds) >= length) ?? ['second', 1];
    return new Intl.RelativeTimeFormat(language(), { numeric: 'auto' }).format(
        Math.trunc(seconds / size),
        unit
    );
}

/** A time with its date. */
export function fullTime(time: string): string {
    return new Intl.DateTimeFormat(language(), { dateStyle: 'medium', timeStyle: 'medium' }).format(
        new Date(time)
    );
}

/** The sentence for one thing or for another number of them, as the language counts. */
export const counted = (count: number, one: string, others: string): string =>
    new Intl.PluralRules(language()).select(count) === 'one' ? one : others;

/** A number with its unit: the `x-unit` of its schema. */
export function quantity(value: number, unit: string | undefined): string {
    const number = (digits = 2): string =>
        new Intl.NumberFormat(language(), { maximumFractionDigits: digits }).format(value);
    switch (unit) {
        case undefined:
            return number();
        case 'byte':
            return bytes(value);
        case 'byte/second':
            return `${bytes(value)}/s`;
        case 'percent':
            return `${number(1)} %`;
        case 'ratio':
            return `${new Intl.NumberFormat(language(), { maximumFractionDigits: 1 }).format(value * 100)} %`;
        default:
            return duration(value, unit) ?? `${number()} ${t(unit)}`;
    }
}

function bytes(value: number): string {
    const power = Math.min(Math.floor(Math.log2(Math.max(Math.abs(value), 1)) / 10), byteUnits.length - 1);
    const digits = power === 0 ? 0 : 1;
    return `${new Intl.NumberFormat(language(), { maximumFractionDigits: digits }).format(value / 1024 ** power)} ${byteUnits[power] ?? 'B'}`;
}

/** Where a time is told in the next larger unit. */
const larger: readonly (readonly [unit: string, next: string, times: number])[] = [
    ['millisecond', 'second', 1000],
    ['second', 'minute', 60],
    ['minute', 'hour', 60],
    ['hour', 'day', 24]
];
const mostOfUnit = 2;

function duration(value: number, unit: string): string | null {
    const [, next, times = 1] = larger.find(([each]) => each === unit) ?? [];
    if (next !== undefined && Math.abs(value) >= mostOfUnit * times) {
        return duration(Math.round((value / times) * 10) / 10, next);
    }
    const known = ['millisecond', 'second', 'minute', 'hour', 'day', 'week', 'month', 'year'];
    return known.includes(unit)
        ? new Intl.NumberFormat(language(), {
              style: 'unit',
              unit,
              unitDisplay: 'short',
              maximumFractionDigits: 2
          }).format(value)
        : null;
}
