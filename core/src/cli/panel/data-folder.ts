/** The data folder as the command line finds it: is it a panel's, and may we use it? */
import { accessSync, constants, type Stats, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';

import { databaseName } from '../../platform/data-dir.ts';
import { Complaint } from '../command/command-error.ts';

export const databaseOf = (dataDir: string): string => join(dataDir, databaseName);

/**
 * Makes sure that there is a panel's data, and that we are whom it belongs to. Root becomes that user: a file of root's in the folder
 * would lock the panel out.
 *
 * @throws Complaint
 */
export function enterFolder(dataDir: string): void {
    const folder = look(dataDir, dataDir);
    if (folder?.isDirectory() !== true) {
        throw new Complaint(
            `There is no data folder at ${dataDir}: name the panel's with --data-dir or PORTICO_DATA_DIR`
        );
    }
    const database = look(databaseOf(dataDir), dataDir);
    if (database?.isFile() !== true) {
        throw new Complaint(
            `${dataDir} is not the data folder of a panel: there is no ${databaseName} in it. Name the right one with --data-dir or PORTICO_DATA_DIR, or start the panel once`
        );
    }
    become(database);
    if (look(join(dataDir, 'keys', 'master'), dataDir)?.isFile() !== true) {
        throw new Complaint(
            `The key ${join(dataDir, 'keys', 'master')} is missing: without it nothing that is sealed can be opened, and the audit log cannot be proven. Put it back from a backup`
        );
    }
    for (const path of [dataDir, databaseOf(dataDir)]) {
        try {
            accessSync(path, constants.R_OK | constants.W_OK);
        } catch {
            throw notPermitted(dataDir, database);
        }
    }
}

function look(path: string, dataDir: string): Stats | undefined {
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

function become({ uid, gid }: Stats): void {
    if (process.geteuid?.() !== 0 || uid === 0) {
        return;
    }
    process.setgroups?.([gid]);
    process.setgid?.(gid);
    process.setuid?.(uid);
}

function notPermitted(dataDir: string, owner: Stats | null): Complaint {
    const whose = owner === null ? 'the user whom the panel runs as' : `the user with the id ${owner.uid}`;
    return new Complaint(`The user ${whoAmI()} may not use ${dataDir}: run this as ${whose}, or as root`);
}

/** Who sits at the console, as far as the system knows. */
export function whoAmI(): string {
    try {
        return userInfo().username;
    } catch {
        return String(process.geteuid?.() ?? 'unknown');
    }
}
