/** Folders and who they belong to. */
import { chmodSync, lchownSync, lstatSync, mkdirSync, readdirSync, type Stats } from 'node:fs';
import { join } from 'node:path';

import { EngineUnavailable } from '../port.ts';

/** What lies at a path, without following a link; null for nothing. */
export const lstat = (path: string): Stats | null => lstatSync(path, { throwIfNoEntry: false }) ?? null;

/** Whether a folder belongs to a user, and no other one can look into it. */
export const isPrivate = (path: string, uid: number): boolean => {
    const stats = lstat(path);
    return stats !== null && stats.isDirectory() && stats.uid === uid && (stats.mode & 0o077) === 0;
};

/** For a folder whose parent is writable by others: it must belong to us already, or be made by us. @throws EngineUnavailable */
export const claimFolder = (
    path: string,
    owner: { readonly uid: number; readonly gid: number },
    mode: number
): void => {
    makeFolder(path);
    const stats = lstatSync(path);
    if (stats.uid !== owner.uid || (stats.mode & 0o022) !== 0) {
        throw new EngineUnavailable(
            `${path} belongs to another user, or others may write to it; the panel does not use it`
        );
    }

    setOwner(path, owner, mode);
};

/** Makes a folder, or keeps one that is there. @throws EngineUnavailable */
export const makeFolder = (path: string): void => {
    try {
        mkdirSync(path, { mode: 0o700 });
    } catch (error) {
        const code = (error as NodeJS.ErrnoException).code;
        if (code === 'EEXIST' && lstat(path)?.isDirectory() === true) {
            return;
        }

        throw new EngineUnavailable(
            code === 'EEXIST'
                ? `${path} is not a folder; the panel does not use it`
                : `cannot make the folder ${path}: ${code}`
        );
    }
};

/** Gives a path an owner and a mode, where it has others. */
export const setOwner = (
    path: string,
    owner: { readonly uid: number; readonly gid: number },
    mode: number
): void => {
    const stats = lstatSync(path);
    if (stats.uid !== owner.uid || stats.gid !== owner.gid) {
        lchownSync(path, owner.uid, owner.gid);
    }

    if ((stats.mode & 0o7777) !== mode) {
        chmodSync(path, mode);
    }
};

/** Gives a folder to the engine's user. Below it, only entries of the former owner follow: never a file of another user that is linked into it. */
export const handOver = (path: string, owner: { readonly uid: number; readonly gid: number }): void => {
    const former = lstatSync(path).uid;
    if (former !== owner.uid) {
        for (const entry of readdirSync(path, { recursive: true, withFileTypes: true })) {
            const child = join(entry.parentPath, entry.name);
            if (lstat(child)?.uid === former) {
                lchownSync(child, owner.uid, owner.gid);
            }
        }
    }

    setOwner(path, owner, 0o700);
};
