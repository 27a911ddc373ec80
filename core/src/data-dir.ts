/** The data folder: made with mode 0700, and held by one process at a time. */
import { chmodSync, lstatSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';

/** The exclusive right to write to a data folder, dropped by the kernel with the process. */
export interface DataLock {
    release(): void;
}

/** Makes the folder when it is missing and closes it to others. @throws Error when it is not a folder. */
export function prepareDataDir(dataDir: string): void {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    if (!lstatSync(dataDir).isDirectory()) {
        throw new Error(`${dataDir} is not a folder`);
    }
    chmodSync(dataDir, 0o700);
}

/** Takes the lock; null when another process holds it. */
export function lockDataDir(dataDir: string): DataLock | null {
    const lock = new Database(join(dataDir, 'panel.lock'), { timeout: 0 });
    try {
        lock.pragma('journal_mode = DELETE');
        lock.exec('BEGIN EXCLUSIVE');
    }
    catch (error) {
        lock.close();
        if ((error as { code?: string }).code?.startsWith('SQLITE_BUSY') === true) {
            return null;
        }
        throw error;
    }
    return { release: () => lock.close() };
}
