/** Searches a tree for a text in the content of files, within limits. Links are never followed, and binary files are left out. */
import type { Files } from '@portico/sdk';

import { nameOf } from '../roots/path.ts';
import { filesystem } from './filesystem.ts';
import { matcher } from './search.ts';
import { walkNames } from './tree.ts';

/** Files that are read together. */
const readTogether = 128;
/** A file with more bytes is read on its own. */
const smallBytes = 16 * 1024;
/** Large files that are read at the same time. */
const atOnce = 16;
const chunkBytes = 256 * 1024;
/** A line that is longer is searched in pieces. */
const longestLine = 64 * 1024;
/** Characters of a line that an answer shows, and those of them before the text. */
const [shown, shownBefore] = [300, 100];
const newline = 10;

/** What is looked for. */
export interface ContentQuery {
    readonly text: string;
    /** Whether the case counts. */
    readonly exactCase: boolean;
    /** Whether only whole words count. */
    readonly word: boolean;
    /** Names of files, as the search for names takes them; null: all. */
    readonly glob: string | null;
    readonly limit: number;
    readonly milliseconds: number;
}

/** A line that has the text. */
export interface Match {
    readonly path: string;
    /** From 1. */
    readonly line: number;
    /** In characters, from 1. */
    readonly column: number;
    readonly text: string;
}

/** What a search found. */
export interface ContentResult {
    readonly found: readonly Match[];
    /** Why it ended before the end of the tree; null when it did not. */
    readonly truncated: 'results' | 'time' | null;
}

/** Finds lines that have a text, in the order of the tree. */
export async function searchContent(
    files: Files,
    folder: string,
    query: ContentQuery,
    signal: AbortSignal
): Promise<ContentResult> {
    const until = Date.now() + query.milliseconds;
    const isOver = (): boolean => signal.aborted || Date.now() > until;
    const search = new FileSearch(files, query, isOver);
    const found: Match[] = [];
    const finish = async (started: Promise<readonly Beginning[]>): Promise<ContentResult['truncated']> => {
        found.push(...(await search.run(await started)));
        signal.throwIfAborted();
        return found.length > query.limit ? 'results' : Date.now() > until ? 'time' : null;
    };
    // Some files are read while the ones before them are searched.
    let reading: Promise<readonly Beginning[]> = Promise.resolve([]);
    let truncated: ContentResult['truncated'] = null;
    try {
        for await (const paths of pathsIn(files, folder, query.glob, isOver)) {
            const before = reading;
            reading = search.read(paths);
            truncated = await finish(before);
            if (truncated !== null) {
                break;
            }
        }
        truncated ??= await finish(reading);
    } finally {
        await reading;
    }
    return { found: found.slice(0, query.limit), truncated };
}

/** Yields the files below a folder, some at a time, until the time is over. */
async function* pathsIn(
    files: Files,
    folder: string,
    glob: string | null,
    isOver: () => boolean
): AsyncGenerator<readonly string[]> {
    const accepts = glob === null ? () => true : matcher(glob);
    let paths: string[] = [];
    for await (const { path, entry } of walkNames(files, folder)) {
        if (isOver()) {
            return;
        }
        if (entry.type === 'file' && accepts(nameOf(path))) {
            paths.push(path);
        }
        if (paths.length === readTogether) {
            yield paths;
            paths = [];
        }
    }
    yield paths;
}

/** A file and its first bytes. */
interface Beginning {
    readonly path: string;
    readonly size: number;
    readonly bytes: Buffer;
}

class FileSearch {
    readonly #files: Files;
    readonly #query: ContentQuery;
    readonly #isOver: () => boolean;
    readonly #bytes: Buffer;
    readonly #wanted: string;
    /** For the next files; there are never more than are read at the same time. */
    readonly #buffers: Buffer[] = [];

    constructor(files: Files, query: ContentQuery, isOver: () => boolean) {
        this.#files = files;
        this.#query = query;
        this.#isOver = isOver;
        this.#bytes = Buffer.from(query.text);
        this.#wanted = query.exactCase ? query.text : query.text.toLowerCase();
    }

    /** Reads the beginnings of files. What vanished, or may not be read, has none. */
    async read(paths: readonly string[]): Promise<readonly Beginning[]> {
        const read = await Promise.all(
            paths.map(async (path) => {
                const found = await this.#files.read(path, smallBytes).catch(() => null);
                return found && { path, size: found.entry.size, bytes: bufferOf(found.bytes) };
            })
        );
        return read.filter((each) => each !== null);
    }

    /** The lines of files, in their order. */
    async run(files: readonly Beginning[]): Promise<Match[]> {
        const found: Match[] = [];
        for (let at = 0; at < files.length; at += atOnce) {
            const results = files.slice(at, at + atOnce).map((each) => this.#one(each));
            found.push(...(await Promise.all(results)).flat());
        }
        return found;
    }

    async #one({ path, size, bytes }: Beginning): Promise<Match[]> {
        if (this.#isOver()) {
            return [];
        }
        if (bytes.byteLength < size) {
            return this.#large(path, size);
        }
        const found: Match[] = [];
        if (!isBinary(bytes)) {
            this.#lines(path, bytes, 1, found);
        }
        return found;
    }

    async #large(path: string, size: number): Promise<Match[]> {
        const handle = await filesystem(() => this.#files.open(path, 'r')).catch(() => null);
        if (handle === null) {
            return [];
        }
        const buffer = this.#buffers.pop() ?? Buffer.allocUnsafe(chunkBytes + longestLine);
        try {
            const found: Match[] = [];
            let [kept, line, at] = [0, 1, 0];
            for (;;) {
                const { bytesRead } = await handle
                    .read(buffer, kept, chunkBytes, at)
                    .catch(() => ({ bytesRead: 0 }));
                const filled = buffer.subarray(0, kept + bytesRead);
                if (at === 0 && isBinary(filled)) {
                    return [];
                }
                at += bytesRead;
                const isEnd = bytesRead === 0 || (bytesRead < chunkBytes && at >= size);
                const last = filled.lastIndexOf(newline);
                const isWhole = isEnd || (last < 0 && filled.byteLength >= longestLine);
                const end = isWhole ? filled.byteLength : last + 1;
                this.#lines(path, filled.subarray(0, end), line, found);
                if (isEnd || found.length > this.#query.limit || this.#isOver()) {
                    return found;
                }
                line += countLines(filled.subarray(0, end));
                kept = Math.min(filled.byteLength - end, longestLine);
                buffer.copyWithin(0, filled.byteLength - kept, filled.byteLength);
            }
        } finally {
            this.#buffers.push(buffer);
            await handle.close();
        }
    }

    /** Adds the matches of whole lines. */
    #lines(path: string, bytes: Buffer, first: number, found: Match[]): void {
        const { exactCase } = this.#query;
        const has = exactCase
            ? bytes.includes(this.#bytes)
            : bytes.toString('utf8').toLowerCase().includes(this.#wanted);
        if (!has) {
            return;
        }
        const lines = bytes.toString('utf8').split('\n');
        for (const [index, text] of lines.entries()) {
            const column = this.#find(text);
            if (column >= 0 && found.length <= this.#query.limit) {
                const start = Math.max(0, column - shownBefore);
                found.push({
                    path,
                    line: first + index,
                    column: column + 1,
                    text: text.slice(start, start + shown).replace(/\r$/, '')
                });
            }
        }
    }

    #find(line: string): number {
        const text = this.#query.exactCase ? line : line.toLowerCase();
        for (let at = text.indexOf(this.#wanted); at >= 0; at = text.indexOf(this.#wanted, at + 1)) {
            if (!this.#query.word || this.#isWord(text, at)) {
                return at;
            }
        }
        return -1;
    }

    #isWord(text: string, at: number): boolean {
        const letter = /[\p{L}\p{N}_]/u;
        const [before, after] = [text[at - 1], text[at + this.#wanted.length]];
        return !(before !== undefined && letter.test(before)) && !(after !== undefined && letter.test(after));
    }
}

function bufferOf(bytes: Uint8Array): Buffer {
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function isBinary(bytes: Buffer): boolean {
    return bytes.subarray(0, 8_192).includes(0);
}

function countLines(bytes: Buffer): number {
    let count = 0;
    for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, at + 1)) {
        count += 1;
    }
    return count;
}
