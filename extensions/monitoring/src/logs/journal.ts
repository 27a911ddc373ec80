/** The journal of systemd, unit by unit, as `journalctl` reads it. */
import { errors, pages } from '@portico/sdk';

import { fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';
import { type Level, levelOf, lineBytes, type LogLine } from './line.ts';
import { isWanted, type LogPage, type LogQuery } from './query.ts';

const fields = 'MESSAGE,PRIORITY,SYSLOG_IDENTIFIER,_PID';
const outputBytes = 64 * 1024 * 1024;
/** Entries that one page looks through; with `q` few of them may match. */
const mostEntries = 20_000;
/** Priorities of syslog, 0 to 7, that are at least as severe as a level. */
const priorities: Readonly<Record<Level, number>> = {
    debug: 7,
    info: 6,
    warning: 4,
    error: 3,
    critical: 2
};
const journalCursor = /^[a-z0-9=;]{1,300}$/;

/** Lists the units that have entries in the journal, sorted; none where there is no journal. */
export async function listJournalUnits(ctx: Ctx): Promise<string[]> {
    const { code, stdout } = await ctx
        .exec('journalctl', ['--quiet', '--no-pager', '--field=_SYSTEMD_UNIT'], { timeoutSeconds: 10 })
        .catch(() => ({ code: 1, stdout: '' }));
    return code === 0
        ? stdout
              .split('\n')
              .filter((name) => name !== '')
              .sort()
        : [];
}

/**
 * Reads one page of the entries of a unit, the newest first.
 *
 * @throws TOOL_MISSING 50302; JOURNAL_SILENT 50372; VALIDATION_FAILED 40001 for a cursor that no page gave
 */
export async function readJournal(
    ctx: Ctx,
    unit: string,
    query: LogQuery,
    page: { readonly limit: number; readonly cursor?: string | undefined; readonly signal: AbortSignal }
): Promise<LogPage> {
    const after = pages.after(page);
    if (after !== null && !journalCursor.test(after)) {
        throw errors.invalid([
            { path: 'cursor', message: 'cursor must come from the Link of an earlier page' }
        ]);
    }
    const asked = query.q === null ? page.limit + 1 : mostEntries;
    const seconds = (ms: number): string => `@${(ms / 1000).toFixed(3)}`;
    const { code, stdout, stderr } = await ctx.exec(
        'journalctl',
        [
            ...['--quiet', '--no-pager', '--all', '--reverse', '--output=json', `--output-fields=${fields}`],
            `--lines=${asked}`,
            ...(query.from === null ? [] : [`--since=${seconds(query.from)}`]),
            ...(query.to === null ? [] : [`--until=${seconds(query.to)}`]),
            ...(after === null ? [] : [`--after-cursor=${after}`]),
            ...matchesOf(unit, query.level)
        ],
        { timeoutSeconds: 20, maxOutputBytes: outputBytes, signal: page.signal }
    );
    if (code !== 0) {
        throw fail.JOURNAL_SILENT({ said: stderr.trim().slice(0, 300) });
    }
    return pageOf(stdout, query, { limit: page.limit, asked });
}

/** The arguments that follow a unit. @param after - the cursor of the last entry that is known; null or none of the journal's: from now on */
export function followArguments(unit: string, level: Level | null, after: string | null): readonly string[] {
    return [
        ...['--quiet', '--no-pager', '--all', '--follow', '--output=json', `--output-fields=${fields}`],
        ...(after !== null && journalCursor.test(after)
            ? ['--no-tail', `--after-cursor=${after}`]
            : ['--lines=0']),
        ...matchesOf(unit, level)
    ];
}

function matchesOf(unit: string, level: Level | null): readonly string[] {
    return [
        '--',
        `_SYSTEMD_UNIT=${unit}`,
        ...(level === null
            ? []
            : Array.from({ length: priorities[level] + 1 }, (_none, index) => `PRIORITY=${index}`))
    ];
}

function pageOf(
    output: string,
    query: LogQuery,
    { limit, asked }: { readonly limit: number; readonly asked: number }
): LogPage {
    const entries = output.split('\n').flatMap((text) => parseEntry(text) ?? []);
    const lines: LogLine[] = [];
    for (const [index, { line, cursor }] of entries.entries()) {
        if (isWanted(line, query)) {
            lines.push(line);
        }
        if (lines.length === limit) {
            return { lines, next: index < entries.length - 1 ? pages.cursor(cursor) : null };
        }
    }
    const last = entries.at(-1);
    return { lines, next: last !== undefined && entries.length >= asked ? pages.cursor(last.cursor) : null };
}

/** Reads one entry as `journalctl` writes it; null for what is none. */
export function parseEntry(text: string): { readonly line: LogLine; readonly cursor: string } | null {
    let entry: Readonly<Record<string, unknown>>;
    try {
        entry = JSON.parse(text) as Readonly<Record<string, unknown>>;
    } catch {
        return null; // An empty line, or the last one of output that was too long.
    }
    const { MESSAGE: message, PRIORITY: priority, SYSLOG_IDENTIFIER: program, _PID: pid } = entry;
    // Bytes that are no text come as a list of numbers.
    const whole = Array.isArray(message)
        ? Buffer.from(message as number[]).toString()
        : typeof message === 'string'
          ? message
          : '';
    const micros = Number(entry['__REALTIME_TIMESTAMP']);
    const isLong = Buffer.byteLength(whole) > lineBytes;
    return {
        cursor: String(entry['__CURSOR']),
        line: {
            at: Number.isFinite(micros) ? new Date(micros / 1000).toISOString() : null,
            level: levelOf(priority),
            text: isLong ? Buffer.from(whole).toString('utf8', 0, lineBytes) : whole,
            fields: {
                ...(typeof program === 'string' ? { program } : {}),
                ...(typeof pid === 'string' ? { pid: Number(pid) } : {}),
                ...(isLong ? { cut: true } : {})
            }
        }
    };
}
