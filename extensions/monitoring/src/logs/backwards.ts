/** Reads a file from its end, in pieces of constant size, and finds the lines that hold a text. */
import type { FileHandle } from 'node:fs/promises';

import { lineBytes } from './line.ts';

/** One line of a file. */
export interface RawLine {
    /** Where it begins, in bytes. */
    readonly start: number;
    readonly text: string;
    /** It was longer than is read. */
    readonly cut: boolean;
}

/** Which lines of a log are read, from the newest back. */
export interface BackwardsOptions {
    /** Lines that end before this byte. */
    readonly end: number;
    /** Only lines that may hold this text; the caller looks again. Null: all. */
    readonly q: string | null;
    readonly signal: AbortSignal;
}

const pieceBytes = 1024 * 1024;
const newline = 0x0a;

/**
 * Yields lines, the last one first, and after each piece null, so that the caller can stop. Of a long line only its beginning is in memory.
 */
export async function* readBackwards(
    handle: FileHandle,
    { end, q, signal }: BackwardsOptions
): AsyncGenerator<RawLine | null> {
    const piece = Buffer.alloc(pieceBytes + lineBytes + 1);
    /** The beginning, as far as it was read, of the line that the piece before began within. */
    let carried = Buffer.alloc(0);
    let isCarriedCut = false;
    let position = end;
    while (position > 0) {
        signal.throwIfAborted();
        const start = Math.max(0, position - pieceBytes);
        const length = await readFully(handle, piece, start, position - start);
        if (length < position - start) {
            return; // The file was cut meanwhile.
        }
        carried.copy(piece, length);
        const data = piece.subarray(0, length + carried.length);
        const first = start === 0 ? 0 : data.indexOf(newline) + 1;
        const isOneLine = start > 0 && (first === 0 || first > length || first === data.length);
        if (!isOneLine) {
            yield* linesOf(data, { first, start, q, isLastCut: isCarriedCut });
        }
        const rest = data.subarray(0, isOneLine ? data.length : first);
        isCarriedCut = rest.length > lineBytes + 1 || (isOneLine && isCarriedCut);
        carried = Buffer.from(rest.subarray(0, lineBytes + 1));
        position = start;
        yield null;
    }
}

interface Piece {
    /** Where its first whole line begins. */
    readonly first: number;
    /** Where it lies in the file. */
    readonly start: number;
    readonly q: string | null;
    /** The end of its last line is not in it. */
    readonly isLastCut: boolean;
}

function* linesOf(data: Buffer, { first, start, q, isLastCut }: Piece): Generator<RawLine> {
    // Bytes as characters: a search in them is ten times as fast as one in lines that are decoded first.
    const needle = q === null ? null : Buffer.from(q).toString('latin1').toLowerCase();
    const haystack = needle === null ? '' : data.toString('latin1', first).toLowerCase();
    let end = data.length;
    if (end > first && data[end - 1] === newline) {
        end -= 1;
    }
    const last = end;
    while (end >= first) {
        if (needle !== null) {
            const hit =
                end - first < needle.length ? -1 : haystack.lastIndexOf(needle, end - first - needle.length);
            if (hit < 0) {
                return;
            }
            const after = data.indexOf(newline, first + hit);
            end = after < 0 || after > end ? end : after;
        }
        const begin = end === first ? first : Math.max(first, data.lastIndexOf(newline, end - 1) + 1);
        const isLong = end - begin > lineBytes;
        yield {
            start: start + begin,
            text: data.toString('utf8', begin, isLong ? begin + lineBytes : end),
            cut: isLong || (isLastCut && end === last)
        };
        end = begin - 1;
    }
}

async function readFully(handle: FileHandle, buffer: Buffer, at: number, length: number): Promise<number> {
    let done = 0;
    while (done < length) {
        const { bytesRead } = await handle.read(buffer, done, length - done, at + done);
        if (bytesRead === 0) {
            break;
        }
        done += bytesRead;
    }
    return done;
}
