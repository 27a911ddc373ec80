/** The place of one reader in the access log. */
import { Mutex } from '@portico/sdk';

import type { Block, LogFile } from './log-file.ts';
import type { LogFolder } from './log-folder.ts';

/** Reads the log line by line, over all its files. What it cannot read is counted. */
export class LogCursor {
    readonly #folder: LogFolder;
    readonly #mutex = new Mutex();
    #file: LogFile | null = null;
    #offset = 0;
    #missed = 0;
    #isClosed = false;

    constructor(folder: LogFolder) {
        this.#folder = folder;
    }

    /** Goes to the first record of this time (milliseconds since 1970), or to the end. */
    begin(time: number | null): Promise<void> {
        return this.#mutex.run(async () => {
            const file = await (time === null ? this.#folder.newest() : this.#folder.holding(time));
            if (file !== null) {
                await this.#move(file, time === null ? await file.size() : await file.offsetOf(time));
            }
        });
    }

    /** The next lines; null when there are none yet. */
    next(): Promise<Block | null> {
        return this.#mutex.run(() => this.#next());
    }

    /** How many lines were missed since this was asked last. */
    takeMissed(): number {
        const missed = this.#missed;
        this.#missed = 0;
        return missed;
    }

    /** Leaves out lines of a reader that is more than so many bytes behind, so that it is half as far behind. */
    catchUp(most: number): Promise<void> {
        return this.#mutex.run(async () => {
            if (this.#file !== null && (await this.#behind()) > most) {
                await this.#skip(most / 2);
            }
        });
    }

    /** Begins again with whatever file comes: all that were there have been removed on purpose. */
    restart(): Promise<void> {
        return this.#mutex.run(() => this.#move(null, 0));
    }

    /** Lets go of the file. */
    close(): Promise<void> {
        this.#isClosed = true;
        return this.#mutex.run(() => this.#move(null, 0));
    }

    async #next(): Promise<Block | null> {
        while (!this.#isClosed) {
            this.#file ??= await this.#folder.oldest();
            const block = (await this.#file?.read(this.#offset)) ?? null;
            if (block !== null) {
                return this.#take(block);
            }
            if (this.#file === null || !(await this.#follow(this.#file))) {
                return null;
            }
        }
        return null;
    }

    /** Goes on with the next file, once all of this one is read. @returns whether there is anything to read now */
    async #follow(file: LogFile): Promise<boolean> {
        const next = await this.#folder.after(file);
        if (next === null) {
            return false;
        }
        // The engine wrote to this one until it began the next one.
        if ((await file.read(this.#offset)) !== null) {
            await next.file.release();
            return true;
        }
        const isCut = (await file.size()) > this.#offset;
        this.#missed += (isCut ? 1 : 0) + (next.gap ? 1 : 0);
        await this.#move(next.file, 0);
        return true;
    }

    #take(block: Block): Block {
        this.#offset = block.end;
        this.#missed += block.unreadable;
        return block;
    }

    /** Bytes from here to the end of the log. */
    async #behind(): Promise<number> {
        const file = this.#file;
        if (file === null) {
            return 0;
        }
        const files = await this.#folder.list();
        const later = files.slice(files.findIndex(({ inode }) => inode === file.inode) + 1);
        return later.reduce((sum, { size }) => sum + size, (await file.size()) - this.#offset);
    }

    async #skip(left: number): Promise<void> {
        for (
            let behind = await this.#behind();
            this.#file !== null && behind > left;
            behind = await this.#behind()
        ) {
            const { lines, end } = await this.#file.count(this.#offset, behind - left);
            if (end > this.#offset) {
                this.#missed += lines;
                this.#offset = end;
            } else if (!(await this.#follow(this.#file))) {
                return;
            }
        }
    }

    async #move(file: LogFile | null, offset: number): Promise<void> {
        const former = this.#file;
        this.#file = file;
        this.#offset = offset;
        await former?.release();
    }
}
