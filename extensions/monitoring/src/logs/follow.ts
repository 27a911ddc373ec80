/** Follows logs: each line as it is written. */
import type { FileHandle } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';

import type { Ctx } from '../settings.ts';
import { openLogFile } from './files.ts';
import { followArguments, parseEntry } from './journal.ts';
import { lineBytes, type LogLine, parseLine } from './line.ts';
import { isWanted, type LogQuery } from './query.ts';

/** A line, and the id with which a client goes on after it. */
export interface FollowedLine {
    readonly id: string;
    readonly line: LogLine;
}

/** How a log is followed. */
export interface FollowOptions {
    readonly query: LogQuery;
    /** The id of the last line that the client has; null: from now on. */
    readonly after: string | null;
    readonly now: () => number;
    readonly signal: AbortSignal;
}

/** How often a file is looked at. */
const pauseMs = 500;
const pieceBytes = 64 * 1024;
const newline = 0x0a;

/**
 * Follows a file, also when it is cut, or when another file takes its name, as `logrotate` does.
 *
 * @throws NOT_FOUND 40400 for a file that the setting does not name
 */
export async function* followFile(
    ctx: Ctx,
    path: string,
    { query, after, now, signal }: FollowOptions
): AsyncGenerator<FollowedLine> {
    let handle = await openLogFile(ctx, path);
    try {
        const { ino, size } = await handle.stat();
        const tail = new Tail(ino, startOf(after, ino, size));
        while (!signal.aborted) {
            for await (const { end, text, cut } of tail.read(handle)) {
                const line = parseLine(text, cut, now());
                if (text !== '' && isWanted(line, query)) {
                    yield { id: `${tail.file}.${end}`, line };
                }
            }
            await wait(pauseMs, undefined, { signal }).catch(() => undefined);
            const next = await openLogFile(ctx, path).catch(() => null);
            if (next !== null) {
                const isOther = tail.turnTo(await next.stat());
                const [old, kept] = isOther ? [handle, next] : [next, handle];
                handle = kept;
                await old.close();
            }
        }
    } finally {
        await handle.close();
    }
}

/** Follows the journal of a unit. @throws TOOL_MISSING 50302 */
export async function* followJournal(
    ctx: Ctx,
    unit: string,
    { query, after, signal }: FollowOptions
): AsyncGenerator<FollowedLine> {
    await using child = await ctx.spawn('journalctl', followArguments(unit, query.level, after), { signal });
    const decoder = new TextDecoder();
    let text = '';
    for await (const chunk of child.stdout) {
        text += decoder.decode(chunk, { stream: true });
        const lines = text.split('\n');
        text = lines.pop() ?? '';
        for (const entry of lines.flatMap((each) => parseEntry(each) ?? [])) {
            if (isWanted(entry.line, query)) {
                yield { id: entry.cursor, line: entry.line };
            }
        }
    }
}

/** Reads what is added to a file, line by line. */
class Tail {
    file: number;
    #position: number;
    #carried = Buffer.alloc(0);
    #isCut = false;

    constructor(file: number, position: number) {
        this.file = file;
        this.#position = position;
    }

    /** The lines that ended since the last time; `end` is the byte after the line. */
    async *read(handle: FileHandle): AsyncGenerator<{ end: number; text: string; cut: boolean }> {
        const piece = Buffer.alloc(pieceBytes);
        for (;;) {
            const { bytesRead } = await handle.read(piece, 0, pieceBytes, this.#position);
            if (bytesRead === 0) {
                return;
            }
            let begin = 0;
            const data = piece.subarray(0, bytesRead);
            for (let end = data.indexOf(newline); end >= 0; end = data.indexOf(newline, begin)) {
                this.#carry(data.subarray(begin, end));
                const [text, cut] = [this.#carried.toString(), this.#isCut];
                begin = end + 1;
                this.#drop();
                yield { end: this.#position + begin, text, cut };
            }
            this.#carry(data.subarray(begin));
            this.#position += bytesRead;
        }
    }

    /** Takes up what lies at the path now. Whether it is another file. */
    turnTo({ ino, size }: { readonly ino: number; readonly size: number }): boolean {
        const isOther = ino !== this.file;
        if (isOther || size < this.#position) {
            this.file = ino;
            this.#position = 0;
            this.#drop();
        }
        return isOther;
    }

    #carry(part: Buffer): void {
        const whole = Buffer.concat([this.#carried, part]);
        this.#isCut ||= whole.length > lineBytes;
        this.#carried = whole.subarray(0, lineBytes);
    }

    #drop(): void {
        this.#carried = Buffer.alloc(0);
        this.#isCut = false;
    }
}

/** Where a client goes on: after its last line where the file is still the same, else at the end. */
function startOf(after: string | null, file: number, size: number): number {
    const [, ino, end] = /^(\d{1,20})\.(\d{1,15})$/.exec(after ?? '') ?? [];
    return ino === String(file) && Number(end) <= size ? Number(end) : size;
}
