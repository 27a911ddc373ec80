/** Space that is kept for what must work on a full disk: a file beside the database, which gets shorter when such a write finds no space. */
import { randomBytes } from 'node:crypto';
import { closeSync, openSync, statfsSync, statSync, truncateSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

import { diskFailureOf } from './disk-failure.ts';

/** Where the reserve lies, and how large it is. */
export interface DiskReserveOptions {
    /** Path of the file. */
    readonly file: string;
    /** Default: 4 MiB, which is as much as the write-ahead log takes before SQLite begins it again. */
    readonly bytes?: number;
}

/** The bytes that are given up at once: enough for several logins, and little enough that another program cannot take all of it. */
const partBytes = 262_144;
/** Ordinary writes need so much free space while the reserve is not whole. Otherwise they would use up what it gave. */
const ordinaryBytes = 1_048_576;

/** The reserve of one database. */
export class DiskReserve {
    readonly #file: string;
    readonly #bytes: number;
    #size: number;

    /** Opens the reserve and fills it. On a full disk it gives up a part instead, so that the database can be opened. */
    constructor({ file, bytes = 4 * 1_048_576 }: DiskReserveOptions) {
        this.#file = file;
        this.#bytes = bytes;
        this.#size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
        if (!this.admitsOrdinary()) {
            this.release();
        }
    }

    /** Whether ordinary writes may run. Fills the reserve again as far as there is space. */
    admitsOrdinary(): boolean {
        if (this.#size >= this.#bytes) {
            return true;
        }
        const spare = this.#spare();
        return spare >= 0 && this.#grow(Math.min(this.#bytes - this.#size, spare));
    }

    /** Whether so little space is free that ordinary writes may fail. */
    get isNeeded(): boolean {
        return this.#spare() < 0;
    }

    /** Gives up a part for a write that must work; false when nothing is left. */
    release(): boolean {
        if (this.#size === 0) {
            return false;
        }
        this.#size = Math.max(0, this.#size - partBytes);
        try {
            truncateSync(this.#file, this.#size);
        } catch (error) {
            if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
                throw error;
            }
            this.#size = 0; // the admin removed it, which gave up all of it
        }
        return true;
    }

    /** Free bytes beyond those that ordinary writes need; negative when there are fewer. */
    #spare(): number {
        const { bavail, bsize } = statfsSync(dirname(this.#file));
        return bavail * bsize - ordinaryBytes;
    }

    /** @returns false when the disk took no more, although it said that it had space: a quota ends before the disk does */
    #grow(bytes: number): boolean {
        const file = openSync(this.#file, 'a', 0o600);
        try {
            // Random, so that no file system stores it in less space.
            writeSync(file, randomBytes(bytes));
        } catch (error) {
            if (diskFailureOf(error) === null) {
                throw error;
            }
            truncateSync(this.#file, this.#size);
            return false;
        } finally {
            closeSync(file);
        }
        this.#size += bytes;
        return true;
    }
}
