/** The files of the access log: the current one, and those that the engine rolled it to. */
import { readdir, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

import { openLog } from '../../platform/log/file.ts';
import { LogFile } from './log-file.ts';

/** Where the log is, and the users whose files are read. */
export interface LogPlace {
    readonly path: string;
    readonly uids: readonly number[];
}

/** A file as it is listed. */
export interface ListedFile {
    readonly path: string;
    readonly inode: number;
    readonly size: number;
}

/** The folder of the log. */
export class LogFolder {
    readonly #place: () => LogPlace | null;
    readonly #open = new Map<number, LogFile>();

    /** @param place - null while the engine has no folders on this machine */
    constructor(place: () => LogPlace | null) {
        this.#place = place;
    }

    /** The files that are there, oldest first. */
    async list(): Promise<readonly ListedFile[]> {
        const files = await Promise.all(
            (await this.#paths()).map(async (path) => {
                const stats = await stat(path).catch(() => null);
                return stats === null ? [] : [{ path, inode: stats.ino, size: stats.size }];
            })
        );
        return files.flat();
    }

    /** Opens the oldest file, or shares it; null when there is none. */
    async oldest(): Promise<LogFile | null> {
        return this.#openFirst(await this.list());
    }

    /** Opens the current file, or shares it; null when there is none. */
    async newest(): Promise<LogFile | null> {
        return this.#openFirst((await this.list()).slice(-1));
    }

    /**
     * The file that the engine began after this one; null while this one is the newest.
     * @returns `gap`: files between the two are gone
     */
    async after(file: LogFile): Promise<{ readonly file: LogFile; readonly gap: boolean } | null> {
        const place = this.#place();
        if (place === null || (await stat(place.path).catch(() => null))?.ino === file.inode) {
            return null;
        }
        const files = await this.list();
        const index = files.findIndex(({ inode }) => inode === file.inode);
        const next = await this.#openFirst(files.slice(index + 1));
        return next === null ? null : { file: next, gap: index < 0 };
    }

    /** The newest file whose first record is not later than this time, or else the oldest; null when there is none. */
    async holding(time: number): Promise<LogFile | null> {
        let found: LogFile | null = null;
        for (const { path } of (await this.list()).toReversed()) {
            const file = await this.#share(path);
            if (file === null) {
                continue;
            }
            await found?.release();
            found = file;
            const first = await file.timeAfter(0);
            if (first !== null && first <= time) {
                break;
            }
        }
        return found;
    }

    /** Removes all files. */
    async remove(): Promise<void> {
        await Promise.all((await this.#paths()).map((path) => rm(path, { force: true })));
    }

    async #openFirst(files: readonly ListedFile[]): Promise<LogFile | null> {
        for (const { path } of files) {
            const file = await this.#share(path);
            if (file !== null) {
                return file;
            }
        }
        return null;
    }

    async #share(path: string): Promise<LogFile | null> {
        const handle = await openLog(path, this.#place()?.uids ?? []);
        if (handle === null) {
            return null;
        }
        const { ino } = await handle.stat();
        const known = this.#open.get(ino);
        if (known !== undefined) {
            await handle.close();
            return known.share();
        }
        const file = new LogFile(handle, ino, () => this.#open.delete(ino));
        this.#open.set(ino, file);
        return file;
    }

    async #paths(): Promise<readonly string[]> {
        const place = this.#place();
        if (place === null) {
            return [];
        }
        const [folder, current] = [dirname(place.path), basename(place.path)];
        const stem = `${basename(current, '.log')}-`;
        const names = await readdir(folder).catch(() => []);
        // The engine names a rolled file by its time, so that their order is that of their names.
        const rolled = names.filter((name) => name.startsWith(stem) && name.endsWith('.log')).sort();
        return [...rolled, ...names.filter((name) => name === current)].map((name) => join(folder, name));
    }
}
