/** Checks of the data folder: whether it belongs to a panel, and whether the command may use it. */
import { accessSync, constants, type Stats, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';

import { databaseName } from '../../platform/data-dir/data-dir.ts';
import { CommandError } from '../command/command-error.ts';

/** The path of the database in a data folder. */
export const databasePath = (dataDir: string): string => join(dataDir, databaseName);

/**
 * Makes sure that the folder holds the data of a panel and that this process may use it. Root becomes the user whom the folder belongs to, since
 * the panel could not read files that root creates in it.
 *
 * @throws CommandError
 */
export function enterFolder(dataDir: string): void {
    const folder = statIfAllowed(dataDir, dataDir);
    if (folder?.isDirectory() !== true) {
        throw new CommandError(
            `There is no data folder at ${dataDir}: name the folder of the panel with --data-dir or PORTICO_DATA_DIR`
        );
    }
    const database = statIfAllowed(databasePath(dataDir), dataDir);
    if (database?.isFile() !== true) {
        throw new CommandError(
            `${dataDir} is not the data folder of a panel: there is no ${databaseName} in it. Name the right one with --data-dir or PORTICO_DATA_DIR, or start the panel once`
        );
    }
    becomeOwner(database);
    if (statIfAllowed(join(dataDir, 'keys', 'master'), dataDir)?.isFile() !== true) {
        throw new CommandError(
            `The key ${join(dataDir, 'keys', 'master')} is missing: without it no encrypted value can be read, and the audit log cannot be verified. Put it back from a backup`
        );
    }
    for (const path of [dataDir, databasePath(dataDir)]) {
        try {
            accessSync(path, constants.R_OK | constants.W_OK);
        } catch {
            throw notPermitted(dataDir, database);
        }
    }
}

function statIfAllowed(path: string, dataDir: string): Stats | undefined {
    try {
        return statSync(path, { throwIfNoEntry: false });
    } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (code === 'EACCES' || code === 'EPERM') {
            throw notPermitted(dataDir, null);
        }
        if (code === 'ENOTDIR' || code === 'ELOOP' || code === 'ENAMETOOLONG') {
            return undefined;
        }
        throw error;
    }
}

function becomeOwner({ uid, gid }: Stats): void {
    if (process.geteuid?.() !== 0 || uid === 0) {
        return;
    }
    process.setgroups?.([gid]);
    process.setgid?.(gid);
    process.setuid?.(uid);
}

function notPermitted(dataDir: string, owner: Stats | null): CommandError {
    const whose = owner === null ? 'the user whom the panel runs as' : `the user with the id ${owner.uid}`;
    return new CommandError(
        `The user ${currentUser()} may not use ${dataDir}: run this as ${whose}, or as root`
    );
}

/** The name of the user who runs the command, or the number of the account. */
export function currentUser(): string {
    try {
        return userInfo().username;
    } catch {
        return String(process.geteuid?.() ?? 'unknown');
    }
}
