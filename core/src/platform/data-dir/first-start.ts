/**
 * Tells the first start on a data folder from a start without its database. A file marks the folder from the beginning of the first start until
 * its database and keys are complete, since the panel may be killed in between.
 */
import { closeSync, fsyncSync, lstatSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { databaseName } from './data-dir.ts';

const markerName = 'first-start';
/** Files that a panel has made in every data folder that it started on. */
const traces = [join('keys', 'master'), 'audit.head'];

/**
 * Whether this is the first start on the folder, or follows one that was killed before it was complete.
 * @throws Error when the folder was in use before, and its database is missing or empty
 */
export function beginStart(dataDir: string): boolean {
    const marker = join(dataDir, markerName);
    if (exists(marker)) {
        return true;
    }
    const file = join(dataDir, databaseName);
    const found = lstatSync(file, { throwIfNoEntry: false });
    if (found !== undefined && found.size > 0) {
        return false;
    }
    const trace = traces.find((name) => exists(join(dataDir, name)));
    if (trace !== undefined) {
        throw new Error(
            `${file} is ${found === undefined ? 'missing' : 'empty'}, but ${join(dataDir, trace)} shows that this data folder was in use. ${restoreAdvice}`
        );
    }
    closeSync(openSync(marker, 'w', 0o600));
    const folder = openSync(dataDir, 'r');
    fsyncSync(folder);
    closeSync(folder);
    return true;
}

/** Records that the first start is complete: from now on a missing database is a lost one. */
export function completeStart(dataDir: string): void {
    rmSync(join(dataDir, markerName), { force: true });
}

/** What an admin does about a data folder that the panel refuses. */
export const restoreAdvice =
    'Nothing was changed, and an engine that runs serves on. Put a backup in place (docs/operations.md, "The data folder is damaged"), or name a new, empty folder';

function exists(path: string): boolean {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}
