/** Reads those parts of a Caddy configuration that a host has fields for. */
import type { Json } from '../json.ts';

/** The configuration has something that hosts have no field for. */
export class Foreign extends Error {}

/** Refuses unknown keys, because their meaning would be lost. @throws Foreign */
export function keys(value: Json, known: readonly string[]): void {
    const strange = Object.keys(value).find((key) => !known.includes(key));
    if (strange !== undefined) {
        throw new Foreign(
            `its ${typeof value['handler'] === 'string' ? `handler ${value['handler']}` : 'configuration'} has the setting ${strange}`
        );
    }
}

/** Text without placeholders, because a host serves its text literally. @throws Foreign */
export function literal(value: unknown): string {
    if (typeof value !== 'string' || /[{}]/.test(value)) {
        throw new Foreign(`it has ${JSON.stringify(value) ?? 'nothing'} where a host has plain text`);
    }
    return value;
}

const nanoseconds: Readonly<Record<string, number>> = {
    ns: 1,
    us: 1e3,
    µs: 1e3,
    ms: 1e6,
    s: 1e9,
    m: 60e9,
    h: 3_600e9,
    d: 86_400e9
};

/** Seconds of a duration: nanoseconds, or text such as `1m30s` (`caddy.Duration`). @throws Foreign */
export function secondsOf(value: unknown): number {
    if (typeof value === 'number') {
        return value / 1e9;
    }
    const text = typeof value === 'string' ? value : '';
    if (!/^(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h|d))+$/.test(text)) {
        throw new Foreign(`it has ${JSON.stringify(value) ?? 'nothing'} where a duration stands`);
    }
    return [...text.matchAll(/([\d.]+)(\D+)/g)].reduce(
        (sum, [, count, unit = '']) => sum + (Number(count) * (nanoseconds[unit] ?? 0)) / 1e9,
        0
    );
}
