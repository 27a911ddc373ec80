/** Log files below /var/log: only those that the setting `logFiles` names, and never through a link. */
import type { FileHandle } from 'node:fs/promises';

import { errors, type Files, pages } from '@portico/sdk';

import type { Ctx } from '../settings.ts';
import { readBackwards } from './backwards.ts';
import { type LogLine, parseLine } from './line.ts';
import { isWanted, type LogPage, type LogQuery } from './query.ts';

/** The folder that all log files lie in. */
const logRoot = '/var/log';

/** A log file that can be read. */
export interface LogFile {
    /** Absolute. */
    readonly path: string;
    readonly bytes: number;
}

/** One page is looked for so long; then the next page goes on where it ended. */
const searchMs = 5_000;
const mostFiles = 1_000;

/** Lists the files that the setting names, sorted by path. */
export async function listLogFiles(ctx: Ctx): Promise<LogFile[]> {
    const files = ctx.files(logRoot);
    const found = new Map<string, LogFile>();
    for (const pattern of ctx.settings.logFiles) {
        for (const file of await expand(files, '', pattern.slice(logRoot.length + 1).split('/'))) {
            found.set(file.path, file);
        }
    }
    return [...found.values()].sort((a, b) => (a.path < b.path ? -1 : 1)).slice(0, mostFiles);
}

/**
 * Reads one page of a file, the newest line first.
 *
 * @throws NOT_FOUND 40400 for a file that the setting does not name; VALIDATION_FAILED 40001 for a cursor that no page gave
 */
export async function readLogFile(
    ctx: Ctx,
    path: string,
    query: LogQuery,
    page: {
        readonly limit: number;
        readonly cursor?: string | undefined;
        readonly now: number;
        readonly signal: AbortSignal;
    }
): Promise<LogPage> {
    const handle = await openLogFile(ctx, path);
    try {
        const { size } = await handle.stat();
        const end = Math.min(pages.afterNumber(page) ?? size, size);
        const lines: LogLine[] = [];
        const until = performance.now() + searchMs;
        let reached = end;
        for await (const raw of readBackwards(handle, { end, q: query.q, signal: page.signal })) {
            if (raw === null) {
                if (performance.now() > until) {
                    return { lines, next: reached > 0 ? pages.cursor(reached) : null };
                }
                continue;
            }
            reached = raw.start;
            const line = parseLine(raw.text, raw.cut, page.now);
            if (raw.text !== '' && isWanted(line, query)) {
                lines.push(line);
                if (lines.length === page.limit) {
                    return { lines, next: reached > 0 ? pages.cursor(reached) : null };
                }
            }
        }
        return { lines, next: null };
    } finally {
        await handle.close();
    }
}

/** Opens a file for reading. @throws NOT_FOUND 40400 for a file that the setting does not name */
export async function openLogFile(ctx: Ctx, path: string): Promise<FileHandle> {
    const [files, inner] = [ctx.files(logRoot), path.slice(logRoot.length + 1)];
    const isNamed = ctx.settings.logFiles.some((pattern) => isLike(path, pattern));
    const entry = isNamed ? await files.stat(inner).catch(() => null) : null;
    if (entry?.type !== 'file') {
        throw errors.notFound(`There is no log ${path}, or the setting logFiles does not name it`);
    }
    return files.open(inner);
}

/** Whether a path is one that a pattern names, part by part. */
function isLike(path: string, pattern: string): boolean {
    const [parts, wanted] = [path.split('/'), pattern.split('/')];
    return (
        parts.length === wanted.length &&
        wanted.every((each, index) => nameForm(each).test(parts[index] ?? ''))
    );
}

/** A name in which `*` stands for any characters, and `?` for one. */
function nameForm(part: string): RegExp {
    const text = part.replace(/[\\^$.+()|[\]{}]/g, '\\$&');
    return new RegExp(`^${text.replaceAll('*', '.*').replaceAll('?', '.')}$`);
}

async function expand(files: Files, folder: string, parts: readonly string[]): Promise<LogFile[]> {
    const [part = '', ...rest] = parts;
    const name = nameForm(part);
    const entries = await files.list(folder).catch(() => []);
    const found: LogFile[] = [];
    for (const entry of entries.filter((each) => name.test(each.name))) {
        const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
        if (rest.length > 0 && entry.type === 'folder') {
            found.push(...(await expand(files, path, rest)));
        } else if (rest.length === 0 && entry.type === 'file') {
            found.push({ path: `${logRoot}/${path}`, bytes: entry.size });
        }
    }
    return found;
}
