/** The work of `portico data restore`: a copy beside the data folder, checked, and then put in place by one rename. */
import { constants, existsSync, lstatSync, readdirSync, type Stats } from 'node:fs';
import { cp, lchown, lstat, mkdir, readdir, rename, rm, statfs } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

import type { Config } from '../../platform/config.ts';
import { backupNoteName, databaseName, type DataLock, lockDataDir } from '../../platform/data-dir/data-dir.ts';
import { syncPath } from '../../platform/data-dir/durable.ts';
import { sizeOf } from '../../plugins/manager/data/copy.ts';
import { CommandError } from '../command/command-error.ts';
import { checkDataFolder } from './check-folder.ts';

/** What the restored panel needs in any case. */
const needed = [databaseName, join('keys', 'master'), backupNoteName];
/** Bytes that are left free for the panel to start. */
const reserve = 64 * 1024 * 1024;

/**
 * Copies the panel of a backup to the data folder, which must not exist or be empty.
 *
 * @returns how many bytes it has
 * @throws CommandError, and nothing was changed
 */
export async function restoreFolder(from: string, config: Config): Promise<number> {
    const { dataDir } = config;
    requireBackup(from);
    const found = requireEmpty(dataDir);
    const parent = dirname(dataDir);
    const prefix = `${basename(dataDir)}.restore-`;
    if (!existsSync(parent)) {
        throw new CommandError(`There is no folder ${parent} to make ${basename(dataDir)} in`);
    }
    await removeAbandoned(parent, prefix);
    const bytes = await sizeOf(from);
    const { bavail, bsize } = await statfs(parent);
    if (bytes + reserve > bavail * bsize) {
        throw new CommandError(
            `The copy needs ${mebi(bytes)} MiB, and ${mebi(bavail * bsize)} MiB are free for ${parent}; nothing was changed`
        );
    }
    const copy = join(parent, `${prefix}${process.pid}`);
    await mkdir(copy, { mode: 0o700 });
    let lock: DataLock | null = null;
    try {
        lock = lockDataDir(copy); // says that it is in use
        await copyAll(from, copy);
        await requireWhole({ ...config, dataDir: copy });
        if (found !== null) {
            await giveTo(copy, found);
        }
        await syncAll(copy);
        await putInPlace(copy, dataDir);
        await syncPath(parent);
    } catch (error) {
        await rm(copy, { recursive: true, force: true });
        throw error;
    } finally {
        lock?.release();
    }
    return bytes;
}

function requireBackup(from: string): void {
    if (lstatSync(from, { throwIfNoEntry: false })?.isDirectory() !== true) {
        throw new CommandError(`There is no folder ${from}`, 2);
    }
    const missing = needed.find(
        (name) => lstatSync(join(from, name), { throwIfNoEntry: false })?.isFile() !== true
    );
    if (missing !== undefined) {
        throw new CommandError(
            `${from} is not the whole panel of a backup: there is no ${missing} in it. Name the folder that has ${needed.join(', ')} in it`,
            2
        );
    }
}

/** What lies at the data folder: an empty folder, or nothing. @throws CommandError for everything else */
function requireEmpty(dataDir: string): Stats | null {
    const found = lstatSync(dataDir, { throwIfNoEntry: false });
    if (found === undefined) {
        return null;
    }
    if (!found.isDirectory()) {
        throw new CommandError(`${dataDir} is not a folder: name another one with --data-dir`);
    }
    if (readdirSync(dataDir).length > 0) {
        const lock = lockDataDir(dataDir);
        lock?.release();
        throw new CommandError(
            lock === null
                ? `A panel runs on ${dataDir}: a restore never goes over a running panel. Stop it, and move its folder away`
                : `${dataDir} is not empty: move it away, or name another folder with --data-dir. Nothing was changed`
        );
    }
    return found;
}

/** Removes what restores left that were ended half-way. One that is under way holds a lock. */
async function removeAbandoned(parent: string, prefix: string): Promise<void> {
    for (const name of (await readdir(parent)).filter((each) => each.startsWith(prefix))) {
        const path = join(parent, name);
        const lock = (await lstat(path)).isDirectory() ? lockDataDir(path) : null;
        if (lock !== null) {
            await rm(path, { recursive: true, force: true });
            lock.release();
        }
    }
}

async function copyAll(from: string, copy: string): Promise<void> {
    for (const name of (await readdir(from)).filter((each) => each !== backupNoteName)) {
        await cp(join(from, name), join(copy, name), {
            recursive: true,
            mode: constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL,
            preserveTimestamps: true,
            verbatimSymlinks: true
        });
    }
}

async function requireWhole(config: Config): Promise<void> {
    const faults = (await checkDataFolder(config)).filter(({ state }) => state === 'fail');
    if (faults.length > 0) {
        throw new CommandError(
            `The panel in the backup is not whole, so nothing was changed: ${faults.map(({ id, evidence }) => `${id}: ${evidence}`).join('; ')}`
        );
    }
}

/** The account that the empty data folder belongs to is the one that the panel runs as. */
async function giveTo(copy: string, { uid, gid }: Stats): Promise<void> {
    if (process.geteuid?.() !== 0 || uid === 0) {
        return;
    }
    for (const entry of await readdir(copy, { recursive: true, withFileTypes: true })) {
        await lchown(join(entry.parentPath, entry.name), uid, gid);
    }
    await lchown(copy, uid, gid);
}

async function syncAll(folder: string): Promise<void> {
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
        if (entry.isFile() || entry.isDirectory()) {
            await syncPath(join(entry.parentPath, entry.name));
        }
    }
    await syncPath(folder);
}

/** One rename: it takes the place of an empty folder, and fails when anything has come into it meanwhile. */
async function putInPlace(copy: string, dataDir: string): Promise<void> {
    try {
        await rename(copy, dataDir);
    } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (code === 'ENOTEMPTY' || code === 'EEXIST' || code === 'ENOTDIR') {
            throw new CommandError(`${dataDir} is not empty any more; nothing was changed`);
        }
        if (code === 'EBUSY' || code === 'EXDEV') {
            throw new CommandError(
                `${dataDir} is the root of a file system, so it cannot be replaced: name a folder in it with --data-dir`
            );
        }
        throw error;
    }
}

const mebi = (bytes: number): number => Math.ceil(bytes / 1024 / 1024);
