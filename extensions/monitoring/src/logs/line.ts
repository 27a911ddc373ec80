/** One line of a log: its time, its level and its text, read from the formats that programs write. */
import { joi, type Value } from '@portico/sdk';

/** From the least to the most severe. */
export const levels = ['debug', 'info', 'warning', 'error', 'critical'] as const;
/** How severe a line is. */
export type Level = (typeof levels)[number];

/** The shape of a line in an answer. */
export const lineSchema = joi.object({
    at: joi
        .string()
        .isoDate()
        .allow(null)
        .required()
        .label('Time')
        .description('Null where the line names none')
        .meta({ ui: { column: 1 } }),
    level: joi
        .valid(...levels)
        .allow(null)
        .required()
        .label('Level')
        .description('Null where the line names none')
        .meta({
            ui: {
                column: 2,
                tones: {
                    debug: 'neutral',
                    info: 'neutral',
                    warning: 'warning',
                    error: 'bad',
                    critical: 'bad'
                }
            }
        }),
    text: joi
        .string()
        .allow('')
        .required()
        .label('Text')
        .meta({ ui: { column: 3 } }),
    fields: joi
        .object({})
        .unknown()
        .required()
        .label('Fields')
        .description('What the log keeps apart; `cut` where the line was longer than 16 KiB')
        .meta({ ui: { column: false } })
});
/** One line of a log. */
export type LogLine = Value<typeof lineSchema>;

/** Bytes of a line that are read; what comes after them is cut. */
export const lineBytes = 16_384;

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const isoTime = /^\[?(\d{4}[-/]\d{2}[-/]\d{2})[T ](\d{2}:\d{2}:\d{2}(?:[.,]\d{1,9})?)(Z|[+-]\d{2}:?\d{2})?/;
const syslogTime = /^(?:<\d{1,3}>)?([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d{2}:\d{2}:\d{2})/;
const commonTime = /\[(\d{2})\/([A-Z][a-z]{2})\/(\d{4}):(\d{2}:\d{2}:\d{2}) ([+-]\d{2})(\d{2})\]/;
const levelWord =
    /\b(emerg(?:ency)?|alert|crit(?:ical)?|fatal|panic|err(?:or)?|warn(?:ing)?|notice|info|debug|trace)\b/i;
/** Level and time stand at the beginning of a line; a word further on is a part of the message. */
const headCharacters = 200;

/** Reads a line of a file. @param now - milliseconds since 1970: the times of syslog have no year */
export function parseLine(raw: string, cut: boolean, now: number): LogLine {
    const text = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
    const parsed = text.startsWith('{') && !cut ? parseJson(text) : null;
    if (parsed !== null) {
        return parsed;
    }
    const head = text.slice(0, headCharacters);
    return {
        at: timeOf(head, now),
        level: levelOf(levelWord.exec(head)?.[1] ?? null),
        text,
        fields: cut ? { cut: true } : {}
    };
}

/** The level that a word, or a number of syslog from 0 to 7, stands for; null for others. */
export function levelOf(word: unknown): Level | null {
    const text = String(word ?? '').toLowerCase();
    if (/^(?:0|1|2|emerg|alert|crit|fatal|panic)/.test(text)) {
        return 'critical';
    }
    if (/^(?:3|err)/.test(text)) {
        return 'error';
    }
    if (/^(?:4|warn)/.test(text)) {
        return 'warning';
    }
    return /^(?:5|6|notice|info)/.test(text) ? 'info' : /^(?:7|debug|trace)/.test(text) ? 'debug' : null;
}

function parseJson(text: string): LogLine | null {
    let fields: unknown;
    try {
        fields = JSON.parse(text);
    } catch {
        return null;
    }
    if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) {
        return null;
    }
    const { ts, time, timestamp, level, severity, msg, message, ...rest } = fields as Readonly<
        Record<string, unknown>
    >;
    const said = msg ?? message;
    return {
        at: numberOrText(ts ?? time ?? timestamp),
        level: /^\d+$/.test(String(level)) ? null : levelOf(level ?? severity),
        text: typeof said === 'string' ? said : text,
        fields: typeof said === 'string' ? rest : {}
    };
}

/** A time as programs write it in JSON: seconds or milliseconds since 1970, or a text. */
function numberOrText(value: unknown): string | null {
    const ms =
        typeof value === 'number'
            ? value > 1e11
                ? value
                : value * 1000
            : typeof value === 'string'
              ? Date.parse(value)
              : Number.NaN;
    return isoOf(ms);
}

function timeOf(head: string, now: number): string | null {
    const iso = isoTime.exec(head);
    if (iso !== null) {
        const [, day = '', clock = '', zone = ''] = iso;
        return isoOf(Date.parse(`${day.replaceAll('/', '-')}T${clock.replace(',', '.')}${zone}`));
    }
    const syslog = syslogTime.exec(head);
    if (syslog !== null) {
        const [, month = '', day = '', clock = ''] = syslog;
        const of = (year: number): number => Date.parse(`${month} ${day} ${year} ${clock}`);
        const year = new Date(now).getFullYear();
        const thisYear = of(year);
        // A line of December that is read in January is of the year before.
        return isoOf(thisYear > now + 86_400_000 ? of(year - 1) : thisYear);
    }
    const common = commonTime.exec(head);
    if (common === null) {
        return null;
    }
    const [, day = '', month = '', year = '', clock = '', hours = '', minutes = ''] = common;
    const number = String(months.indexOf(month.toLowerCase()) + 1).padStart(2, '0');
    return isoOf(Date.parse(`${year}-${number}-${day}T${clock}${hours}:${minutes}`));
}

function isoOf(ms: number): string | null {
    return Number.isFinite(ms) && Math.abs(ms) < 8.64e15 ? new Date(ms).toISOString() : null;
}
