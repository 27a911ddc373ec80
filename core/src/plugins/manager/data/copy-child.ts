/**
 * The child process that copies a plugin's data: a process of its own, since whoever closes a SQLite file drops every lock that its process holds
 * on it, and since giving up means killing it. One job, one answer, then it ends.
 */
import { constants, type Stats } from 'node:fs';
import { chown, copyFile, lstat, mkdir, open, readdir, readlink, symlink, utimes } from 'node:fs/promises';
import { join } from 'node:path';

import Database from 'better-sqlite3';

import type { CopyAnswer, CopyJob } from './copy.ts';

const database = 'data.db';
/** Shared memory of whoever has the database open; whoever opens the copy makes it anew. */
const shared = `${database}-shm`;

process.on('disconnect', () => process.exit(1)); // the panel is gone
process.once('message', (job: CopyJob) => {
    void run(job).then((answer) => process.send?.(answer, () => process.disconnect()));
});

async function run({ from, to, isOpen }: CopyJob): Promise<CopyAnswer> {
    try {
        await mkdir(to, { mode: 0o700 });
        await copyDatabase(from, to, isOpen);
        await copyFolder(from, to, new Set([database, `${database}-wal`, shared]));
        return { done: true };
    } catch (error) {
        const { code = '', message } = error as NodeJS.ErrnoException;
        return { failed: { code, message } };
    }
}

/**
 * A reader that is inside keeps the log from being begun anew, so the file and the log behind it give one state, whatever is written meanwhile:
 * what was torn in the file is whole in the log, and what is torn at the end of the log does not count.
 */
async function copyDatabase(from: string, to: string, isOpen: boolean): Promise<void> {
    if ((await typeOf(join(from, database))) === null) {
        return;
    }
    const reader = isOpen ? new Database(join(from, database), { fileMustExist: true }) : null;
    try {
        reader?.exec('begin');
        reader?.prepare('select count(*) from sqlite_master').get();
        for (const name of [database, `${database}-wal`]) {
            await copyEntry(join(from, name), join(to, name));
        }
    } finally {
        reader?.close();
    }
}

async function copyFolder(from: string, to: string, except: ReadonlySet<string> = new Set()): Promise<void> {
    for (const name of await readdir(from)) {
        if (!except.has(name)) {
            await copyEntry(join(from, name), join(to, name));
        }
    }
    await sync(to);
}

/** Files, folders and links; what is gone by now was never there, and pipes and sockets hold nothing. */
async function copyEntry(from: string, to: string): Promise<void> {
    const stat = await typeOf(from);
    if (stat?.isDirectory() === true) {
        await mkdir(to, { mode: stat.mode & 0o7777 });
        await copyFolder(from, to);
    } else if (stat?.isSymbolicLink() === true) {
        await symlink(await readlink(from), to);
    } else if (stat?.isFile() === true) {
        await copyFile(from, to, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
        await utimes(to, stat.atime, stat.mtime);
        await sync(to);
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

/** Brings it to the disk: the swap relies on it after a cut of the power, too. */
async function sync(path: string): Promise<void> {
    const handle = await open(path, 'r');
    try {
        await handle.sync();
    } finally {
        await handle.close();
    }
}
