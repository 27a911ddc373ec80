/** The data folder: made with mode 0700, and held by one process at a time. */
import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import Database from 'better-sqlite3';

/** The exclusive right to write to a data folder, dropped by the kernel with the process. */
export interface DataLock {
    release(): void;
}

/** Name of the core's database in the data folder. */
export const databaseName = 'portico.db';

const openMode = 0o077;
const pollMs = 50;

/**
 * Makes the folder when it is missing and closes it to others.
 * @throws Error when it is not a folder, or is not the panel's: a folder that is open to others and has files, but none of a panel's, is left as it is
 */
export function prepareDataDir(dataDir: string): void {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    const stat = lstatSync(dataDir);
    if (!stat.isDirectory()) {
        throw new Error(`${dataDir} is not a folder`);
    }
    if (process.getuid !== undefined && stat.uid !== process.getuid()) {
        throw new Error(
            `${dataDir} belongs to another user (${stat.uid}), who could read and change everything in it: give it to the user that the panel runs as, or name another folder`
        );
    }
    const isOurs = ['panel.lock', databaseName].some((name) => existsSync(join(dataDir, name)));
    if (
        (stat.mode & openMode) !== 0 &&
        !isOurs &&
        readdirSync(dataDir).some((name) => name !== 'lost+found')
    ) {
        throw new Error(
            `${dataDir} has other files in it, and the panel would close it to everybody else: name an empty folder, or one that does not exist`
        );
    }
    chmodSync(dataDir, 0o700);
}

/** Takes the lock, and waits for a command of the command line, or a panel that is just ending, to let go of it. Null when it does not. */
export async function awaitDataDir(dataDir: string, patienceMs: number): Promise<DataLock | null> {
    const end = performance.now() + patienceMs;
    for (;;) {
        const lock = lockDataDir(dataDir);
        if (lock !== null || performance.now() > end) {
            return lock;
        }
        await wait(pollMs);
    }
}

/** Takes the lock; null when another process holds it. */
export function lockDataDir(dataDir: string): DataLock | null {
    const lock = new Database(join(dataDir, 'panel.lock'), { timeout: 0 });
    try {
        lock.pragma('journal_mode = DELETE');
        lock.exec('BEGIN EXCLUSIVE');
    } catch (error) {
        lock.close();
        if ((error as { code?: string }).code?.startsWith('SQLITE_BUSY') === true) {
            return null;
        }
        throw error;
    }
    return { release: () => lock.close() };
}
