/** What is asked of a log, and which lines answer it. */
import { type Level, levels, type LogLine } from './line.ts';

/** What is asked of a log. */
export interface LogQuery {
    /** A part of the text; letters of ASCII match in both cases. */
    readonly q: string | null;
    /** The least severe level that is wanted; null: also lines without one. */
    readonly level: Level | null;
    /** Milliseconds since 1970; null: without a bound. Lines without a time answer neither bound. */
    readonly from: number | null;
    readonly to: number | null;
}

/** One page of a log, the newest line first. */
export interface LogPage {
    readonly lines: LogLine[];
    /** Where the next page begins; null after the last one. */
    readonly next: string | null;
}

/** Says whether a line is wanted. */
export function isWanted(line: LogLine, { q, level, from, to }: LogQuery): boolean {
    if (level !== null && (line.level === null || levels.indexOf(line.level) < levels.indexOf(level))) {
        return false;
    }
    if (from !== null || to !== null) {
        const at = line.at === null ? Number.NaN : Date.parse(line.at);
        if (!(at >= (from ?? -Infinity) && at <= (to ?? Infinity))) {
            return false;
        }
    }
    return q === null || matches(line, q.toLowerCase());
}

function matches({ text, fields }: LogLine, part: string): boolean {
    return (
        text.toLowerCase().includes(part) ||
        (Object.keys(fields).length > 0 && JSON.stringify(fields).toLowerCase().includes(part))
    );
}
