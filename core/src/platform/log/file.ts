import { constants } from 'node:fs';
import { type FileHandle, open, readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import { setTimeout as wait } from 'node:timers/promises';

/** The files of one log, and who may own them. */
export interface LogSource {
    /** Paths, oldest writer first where the times of their last changes are equal. */
    readonly paths: readonly string[];
    /** Only files of these users are read. A link or file of another user in the place of a log shows nothing. */
    readonly uids: readonly number[];
}

/** Bytes; what a line has beyond it is left out. */
const longestLine = 16 * 1024;
const block = 64 * 1024;
/** Bytes read for the last lines, however many were asked for. */
const longestTail = 8 * 1024 * 1024;
const mostLines = 10_000;

/**
 * The last lines of a log, newest last, and with `follow` each further one until the signal ends, across rotation and
 * truncation. Reads only as fast as its consumer takes, and holds one block a file.
 */
export async function* readLog(
    source: LogSource,
    options: {
        readonly lines: number;
        readonly follow: boolean;
        readonly signal: AbortSignal;
        readonly pollMs?: number;
    }
): AsyncGenerator<string, void, undefined> {
    const wanted = Math.min(Math.max(0, Math.floor(options.lines)), mostLines);
    const followed: Follower[] = [];
    try {
        let tail: string[] = [];
        for (const path of await byChange(source.paths)) {
            const follower = new Follower(path, source.uids);
            followed.push(follower);
            tail.push(...(await follower.start(wanted)));
        }

        tail = wanted === 0 ? [] : tail.slice(-wanted);
        for (const line of tail) {
            if (options.signal.aborted) {
                return;
            }

            yield line;
        }

        while (options.follow && !options.signal.aborted) {
            let quiet = true;
            for (const follower of followed) {
                for (const line of await follower.next()) {
                    quiet = false;
                    yield line;
                }
            }

            if (quiet) {
                await wait(options.pollMs ?? 200, undefined, { signal: options.signal }).catch(
                    () => undefined
                );
            }
        }
    } finally {
        for (const follower of followed) {
            await follower.close();
        }
    }
}

/** Reads one file of a log from the current position to its end, as often as it is asked. */
class Follower {
    readonly #path: string;
    readonly #uids: readonly number[];
    #file: FileHandle | null = null;
    #position = 0;
    /** Another file has the path now: this one is read to its end once more, for what was written until then. */
    #isReplaced = false;
    #lines = new LineCutter();

    constructor(path: string, uids: readonly number[]) {
        this.#path = path;
        this.#uids = uids;
    }

    /** The last lines so far. `next` continues after them. */
    async start(wanted: number): Promise<readonly string[]> {
        this.#file = await openLog(this.#path, this.#uids);
        if (this.#file === null) {
            return [];
        }

        const { size } = await this.#file.stat();
        const now = await lastLines(this.#file, size, wanted);
        this.#position = now.end;
        if (now.lines.length >= wanted) {
            return now.lines;
        }

        const older = await rolledOf(this.#path);
        const file = older === null ? null : await openLog(older, this.#uids);
        if (file === null) {
            return now.lines;
        }

        try {
            return [
                ...(await lastLines(file, (await file.stat()).size, wanted - now.lines.length)).lines,
                ...now.lines
            ];
        } finally {
            await file.close();
        }
    }

    /** The lines of the next block. */
    async next(): Promise<readonly string[]> {
        this.#file ??= await openLog(this.#path, this.#uids);
        if (this.#file === null) {
            return [];
        }

        const { size, ino } = await this.#file.stat();
        if (size < this.#position) {
            this.#position = 0;
            this.#lines = new LineCutter();
        }

        const { buffer, bytesRead } = await this.#file.read(
            Buffer.allocUnsafe(block),
            0,
            block,
            this.#position
        );
        this.#position += bytesRead;
        if (bytesRead > 0) {
            return this.#lines.push(buffer.subarray(0, bytesRead));
        }

        if (this.#isReplaced) {
            await this.close();
            return [];
        }

        const current = await stat(this.#path).catch(() => null);
        this.#isReplaced = current !== null && current.ino !== ino;
        return [];
    }

    async close(): Promise<void> {
        const file = this.#file;
        this.#file = null;
        this.#position = 0;
        this.#isReplaced = false;
        this.#lines = new LineCutter();
        await file?.close();
    }
}

/** Cuts a stream of bytes into lines, and lines to a length, in bounded memory. */
class LineCutter {
    readonly #decoder = new StringDecoder('utf8');
    #rest = '';

    push(bytes: Uint8Array): string[] {
        const parts = (
            this.#rest + this.#decoder.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
        ).split('\n');
        this.#rest = (parts.pop() ?? '').slice(0, longestLine + 1);
        return parts.filter((line) => line !== '').map(shorten);
    }
}

const shorten = (line: string): string =>
    line.length > longestLine ? `${line.slice(0, longestLine)}…` : line;

/** The last complete lines before `size`, and where they end. */
const lastLines = async (
    file: FileHandle,
    size: number,
    wanted: number
): Promise<{ readonly lines: readonly string[]; readonly end: number }> => {
    const blocks: Buffer[] = [];
    let start = size;
    let breaks = 0;
    while (start > 0 && breaks <= wanted && size - start < longestTail) {
        const length = Math.min(block, start);
        const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, start - length);
        start -= length;
        blocks.unshift(buffer.subarray(0, bytesRead));
        breaks += buffer.reduce((count, byte) => count + (byte === 10 ? 1 : 0), 0);
    }

    const all = Buffer.concat(blocks);
    const last = all.lastIndexOf(10);
    const lines = all
        .subarray(0, last + 1)
        .toString('utf8')
        .split('\n')
        .slice(start > 0 ? 1 : 0)
        .filter((line) => line !== '')
        .map(shorten);
    return { lines: wanted === 0 ? [] : lines.slice(-wanted), end: start + last + 1 };
};

/** Opens a log only if it is a file of the right user: neither a link nor a pipe. @returns null when it is not there, or is none */
export const openLog = async (path: string, uids: readonly number[]): Promise<FileHandle | null> => {
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
        () => null
    );
    const stats = await file?.stat();
    if (file !== null && (stats?.isFile() !== true || !uids.includes(stats.uid) || stats.nlink > 1)) {
        await file.close();
        return null;
    }

    return file;
};

/** The newest of the files that the log was rolled to and that are not compressed. */
const rolledOf = async (path: string): Promise<string | null> => {
    const stem = basename(path, '.log');
    const names = await readdir(dirname(path)).catch(() => []);
    const newest = names
        .filter(
            (name) => name === `${basename(path)}.1` || (name.startsWith(`${stem}-`) && name.endsWith('.log'))
        )
        .sort()
        .at(-1);
    return newest === undefined ? null : join(dirname(path), newest);
};

const byChange = async (paths: readonly string[]): Promise<readonly string[]> => {
    const changed = await Promise.all(
        paths.map(async (path) => ({ path, at: (await stat(path).catch(() => null))?.mtimeMs ?? 0 }))
    );
    return changed.sort((left, right) => left.at - right.at).map(({ path }) => path);
};
