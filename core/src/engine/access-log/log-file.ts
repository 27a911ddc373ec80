/** One file of the access log, which all its readers share: each line is read and parsed once. */
import type { FileHandle } from 'node:fs/promises';

import { isOwnQuestion, parseVisit, type Visit } from './visit.ts';

/** Complete lines of a file. */
export interface Block {
    readonly visits: readonly Visit[];
    /** Lines that are none of the engine's. */
    readonly unreadable: number;
    /** Where the next line begins. */
    readonly end: number;
}

const window = 64 * 1024;
/** A request's head may have a megabyte, and JSON writes some characters as six. */
const longestLine = 8 * 1024 * 1024;
const mostBlocks = 8;
const lineBreak = 10;
/** Lines stand in the order in which they were written, which is nearly that of their times. */
const slackMs = 2000;

/** An open file of the log. */
export class LogFile {
    /** Names the file for as long as it is open, whatever it is renamed to. */
    readonly inode: number;
    readonly #handle: FileHandle;
    readonly #closed: () => void;
    readonly #blocks = new Map<number, Promise<Block | null>>();
    #users = 1;

    constructor(handle: FileHandle, inode: number, closed: () => void) {
        this.#handle = handle;
        this.inode = inode;
        this.#closed = closed;
    }

    /** Counts another reader. */
    share(): this {
        this.#users += 1;
        return this;
    }

    /** Ends the use by one reader; the last one closes the file. */
    async release(): Promise<void> {
        this.#users -= 1;
        if (this.#users === 0) {
            this.#closed();
            this.#blocks.clear();
            await this.#handle.close();
        }
    }

    async size(): Promise<number> {
        return (await this.#handle.stat()).size;
    }

    /** The complete lines at an offset where a line begins; null when there is none yet. */
    read(offset: number): Promise<Block | null> {
        const known = this.#blocks.get(offset);
        if (known !== undefined) {
            return known;
        }
        const reading = this.#read(offset);
        this.#blocks.set(offset, reading);
        const forget = (): void => {
            this.#blocks.delete(offset);
        };
        reading.then((block) => (block === null ? forget() : undefined), forget);
        for (const oldest of this.#blocks.keys()) {
            if (this.#blocks.size <= mostBlocks) {
                break;
            }
            this.#blocks.delete(oldest);
        }
        return reading;
    }

    /** The time of the first line from this offset on that can be read; null when there is none in reach. */
    async timeAfter(offset: number): Promise<number | null> {
        const bytes = await this.#bytes(offset, window);
        const begin = offset === 0 ? 0 : bytes.indexOf(lineBreak) + 1;
        const end = bytes.lastIndexOf(lineBreak);
        for (const line of end < begin ? [] : bytes.toString('utf8', begin, end).split('\n')) {
            const visit = parseVisit(line);
            if (visit !== null) {
                return visit.at;
            }
        }
        return null;
    }

    /** Where a line begins before which no record is of this time (milliseconds since 1970), or a later one. */
    async offsetOf(time: number): Promise<number> {
        let [low, high] = [0, await this.size()];
        while (high - low > window) {
            const middle = Math.floor((low + high) / 2);
            const at = await this.timeAfter(middle);
            if (at !== null && at < time - slackMs) {
                low = middle;
            } else {
                high = middle;
            }
        }
        return low === 0 ? 0 : low + (await this.#bytes(low, window)).indexOf(lineBreak) + 1;
    }

    /** Counts the lines from an offset on, for some bytes. @returns where the first line after them begins; `end` is `offset` when there is none */
    async count(offset: number, most: number): Promise<{ readonly lines: number; readonly end: number }> {
        const bytes = await this.#bytes(offset, Math.min(most, 16 * window));
        let [lines, end] = [0, 0];
        for (let at = bytes.indexOf(lineBreak); at >= 0; at = bytes.indexOf(lineBreak, end)) {
            lines += 1;
            end = at + 1;
        }
        return { lines, end: offset + end };
    }

    async #read(offset: number): Promise<Block | null> {
        // Up to a border that is the same for readers that began at different lines, so that they soon share their blocks.
        const border = (Math.floor((offset + window / 2) / window) + 1) * window;
        let bytes = await this.#bytes(offset, border - offset);
        let last = bytes.lastIndexOf(lineBreak);
        if (last < 0 && bytes.length === border - offset) {
            bytes = await this.#bytes(offset, longestLine);
            last = bytes.indexOf(lineBreak);
        }
        if (last < 0) {
            return bytes.length < longestLine
                ? null
                : { visits: [], unreadable: 1, end: offset + bytes.length };
        }
        const lines = bytes.toString('utf8', 0, last).split('\n');
        const visits: Visit[] = [];
        let unreadable = 0;
        for (const line of lines) {
            const visit = parseVisit(line);
            if (visit === null) {
                unreadable += 1;
            } else if (!isOwnQuestion(visit)) {
                visits.push(visit);
            }
        }
        return { visits, unreadable, end: offset + last + 1 };
    }

    async #bytes(offset: number, length: number): Promise<Buffer> {
        const { buffer, bytesRead } = await this.#handle.read(Buffer.allocUnsafe(length), 0, length, offset);
        return buffer.subarray(0, bytesRead);
    }
}
