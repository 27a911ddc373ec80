/**
 * The child process that copies data. It is a process of its own because closing a SQLite file drops every lock that the process holds on
 * it, and because a copy is cancelled by killing it. It does one job, sends one answer, and ends.
 */
import { constants, type Stats } from 'node:fs';
import { chown, copyFile, lstat, mkdir, readdir, readlink, symlink, utimes } from 'node:fs/promises';
import { join } from 'node:path';

import Database from 'better-sqlite3';

import { syncPath } from '../../../platform/data-dir/durable.ts';
import type { CopyAnswer, CopyJob } from './copy.ts';

const database = 'data.db';
/** Shared memory of the processes that have the database open. It is not copied: SQLite makes it again for the copy. */
const shared = `${database}-shm`;
/** As in `copy.ts`, which would load more than this process needs. */
const cacheTag = 'CACHEDIR.TAG';

process.on('disconnect', () => process.exit(1)); // the panel is gone
process.once('message', (job: CopyJob) => {
    void run(job).then((answer) => process.send?.(answer, () => process.disconnect()));
});

async function run({ from, to, isOpen, isDatabase, withoutCaches = false }: CopyJob): Promise<CopyAnswer> {
    try {
        if (isDatabase === true) {
            await copyDatabase(from, to, isOpen);
            await joinLog(to);
            return { done: true };
        }
        await mkdir(to, { mode: 0o700 });
        await copyDatabase(join(from, database), join(to, database), isOpen);
        await copyFolder(from, to, { except: new Set([database, `${database}-wal`, shared]), withoutCaches });
        return { done: true };
    } catch (error) {
        const { code = '', message } = error as NodeJS.ErrnoException;
        return { failed: { code, message } };
    }
}

/**
 * Copies the database file, then its write-ahead log. An open read transaction keeps SQLite from starting the log again, so both copies together give
 * one state, whatever is written meanwhile: a page that is torn in the file is whole in the log, and a torn end of the log does not count.
 */
async function copyDatabase(from: string, to: string, isOpen: boolean): Promise<void> {
    if ((await typeOf(from)) === null) {
        return;
    }
    const reader = isOpen ? new Database(from, { fileMustExist: true }) : null;
    try {
        reader?.exec('begin');
        reader?.prepare('select count(*) from sqlite_master').get();
        for (const suffix of ['', '-wal']) {
            await copyEntry(`${from}${suffix}`, `${to}${suffix}`);
        }
    } finally {
        reader?.close();
    }
}

/** Writes the log of a copy into its database, so that the copy is one file. */
async function joinLog(file: string): Promise<void> {
    const copy = new Database(file, { fileMustExist: true });
    try {
        copy.pragma('wal_checkpoint(TRUNCATE)');
    } finally {
        copy.close();
    }
    await syncPath(file);
}

interface FolderOptions {
    /** Names that are left out. */
    readonly except?: ReadonlySet<string>;
    readonly withoutCaches?: boolean;
}

async function copyFolder(
    from: string,
    to: string,
    { except = new Set(), withoutCaches = false }: FolderOptions = {}
): Promise<void> {
    const names = await readdir(from);
    for (const name of withoutCaches && names.includes(cacheTag) ? [] : names) {
        if (!except.has(name)) {
            await copyEntry(join(from, name), join(to, name), withoutCaches);
        }
    }
    await syncPath(to);
}

/** Copies a file, a folder or a link. An entry that was deleted meanwhile is left out, as are pipes and sockets. */
async function copyEntry(from: string, to: string, withoutCaches = false): Promise<void> {
    const stat = await typeOf(from);
    if (stat?.isDirectory() === true) {
        await mkdir(to, { mode: stat.mode & 0o7777 });
        await copyFolder(from, to, { withoutCaches });
    } else if (stat?.isSymbolicLink() === true) {
        await symlink(await readlink(from), to);
    } else if (stat?.isFile() === true) {
        await copyFile(from, to, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
        await utimes(to, stat.atime, stat.mtime);
        await syncPath(to);
    }
    if (
        stat !== null &&
        !stat.isSymbolicLink() &&
        process.getuid?.() === 0 &&
        (stat.isFile() || stat.isDirectory())
    ) {
        await chown(to, stat.uid, stat.gid);
    }
}

async function typeOf(path: string): Promise<Stats | null> {
    return lstat(path).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') {
            return null;
        }
        throw error;
    });
}
