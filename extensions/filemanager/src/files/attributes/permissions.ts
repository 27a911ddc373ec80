/** Changes bits and owners, of one entry or of everything below a folder. Links are never followed. */
import type { FileEntry, Files } from '@portico/sdk';

import { fail } from '../../errors.ts';
import { filesystem, isMissing } from '../filesystem.ts';
import { walk } from '../tree.ts';

/** What a change of permissions sets; what is left out stays. */
export interface PermissionChange {
    /** Bits of files, and of folders without bits of their own. */
    readonly mode?: number | undefined;
    /** Bits of folders. */
    readonly folderMode?: number | undefined;
    readonly uid?: number | undefined;
    readonly gid?: number | undefined;
}

/** Folders keep their set-group-id: it is given to folders of groups, and lends no rights there. */
const setGroup = 0o2000;

/** Changes one entry. @throws WRONG_TYPE 40950 for the bits of what is neither a file nor a folder, NOT_PERMITTED 40351 */
export async function changePermissions(
    files: Files,
    path: string,
    entry: FileEntry,
    { mode, folderMode, uid, gid }: PermissionChange
): Promise<void> {
    const isFolder = entry.type === 'folder';
    const bits = isFolder ? (folderMode ?? mode) : mode;
    if (bits !== undefined && entry.type !== 'file' && !isFolder) {
        throw fail.WRONG_TYPE({ path, type: entry.type, wanted: 'file or folder' });
    }
    await filesystem(async () => {
        if (uid !== undefined || gid !== undefined) {
            await files.chown(path, uid ?? entry.uid, gid ?? entry.gid);
        }
        if (bits !== undefined) {
            await files.chmod(path, bits | (isFolder ? entry.mode & setGroup : 0));
        }
    });
}

/**
 * Changes a folder and everything below it. Links get the owner themselves, but no bits. What vanishes meanwhile is passed over.
 *
 * Resolves with how many entries were changed.
 */
export async function changeTree(
    files: Files,
    path: string,
    change: PermissionChange,
    { signal, step }: { readonly signal: AbortSignal; step(changed: number): void }
): Promise<number> {
    // Of folders with mode alone, reading implies entering: else what is below could no longer be reached.
    const { mode, folderMode = mode === undefined ? undefined : mode | ((mode & 0o444) >> 2) } = change;
    const whole = { ...change, folderMode };
    const withoutBits = { uid: change.uid, gid: change.gid };
    const top = await filesystem(() => files.stat(path));
    const folders = [{ path, entry: top }];
    let changed = 0;
    const apply = async (at: string, entry: FileEntry): Promise<void> => {
        const hasBits = entry.type === 'file' || entry.type === 'folder';
        if (!hasBits && change.uid === undefined && change.gid === undefined) {
            return;
        }
        try {
            await changePermissions(files, at, entry, hasBits ? whole : withoutBits);
            changed += 1;
            step(changed);
        } catch (error) {
            if (!isMissing(error)) {
                throw error;
            }
        }
    };
    if (top.type !== 'folder') {
        await changePermissions(files, path, top, whole);
        return 1;
    }
    for await (const found of walk(files, path, signal)) {
        if (found.entry.type === 'folder') {
            folders.push(found);
        } else {
            await apply(found.path, found.entry);
        }
    }
    // The deepest first, because a folder may be closed by its new bits.
    for (const folder of folders.reverse()) {
        signal.throwIfAborted();
        await apply(folder.path, folder.entry);
    }
    return changed;
}
