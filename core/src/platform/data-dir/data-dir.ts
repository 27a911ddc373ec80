/** The data folder: made with mode 0700, and held by one process at a time. */
import { spawnSync } from 'node:child_process';
import {
    chmodSync,
    closeSync,
    constants,
    existsSync,
    lstatSync,
    mkdirSync,
    openSync,
    readdirSync
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

/** The exclusive right to write to a data folder, dropped by the kernel with the process. */
export interface DataLock {
    release(): void;
}

/** Name of the core's database in the data folder. */
export const databaseName = 'portico.db';
/** Name of the file that says what a folder of a backup holds. */
export const backupNoteName = 'portico-panel.json';
/** Folder with the certificates that the engine had obtained when a backup was made. The engine takes them over at its next start. */
export const engineStorageName = 'engine-storage';

const openMode = 0o077;
const pollMs = 100;

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
    const isOurs = ['keys', 'audit.head', databaseName].some((name) => existsSync(join(dataDir, name)));
    if (
        (stat.mode & openMode) !== 0 &&
        !isOurs &&
        readdirSync(dataDir).some((name) => name !== 'lost+found')
    ) {
        throw new Error(
            `${dataDir} has other files in it, and the panel would close it to all other accounts: name an empty folder, or one that does not exist`
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

/**
 * Takes the lock; null when another process holds it. The lock is on the folder itself (flock(2)): no file can be removed to get in a second
 * time, and without the folder nothing starts. Node has no call for it, so `flock` takes it on a descriptor that this process keeps open.
 * @throws Error when the folder cannot be opened, or `flock` is missing
 */
export function lockDataDir(dataDir: string): DataLock | null {
    const folder = openSync(dataDir, constants.O_RDONLY | constants.O_DIRECTORY);
    const { status, error, stderr } = spawnSync('flock', ['-n', '-x', '3'], {
        stdio: ['ignore', 'ignore', 'pipe', folder],
        encoding: 'utf8'
    });
    if (status === 0) {
        let held = true;
        return {
            release() {
                if (held) {
                    held = false;
                    closeSync(folder);
                }
            }
        };
    }
    closeSync(folder);
    if (status === 1 && stderr === '') {
        return null;
    }
    throw new Error(
        `${dataDir} cannot be locked: ${error?.message ?? stderr.trim()} (the command flock of util-linux is needed)`
    );
}
