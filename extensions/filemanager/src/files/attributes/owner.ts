/** The owner of new files: that of the folder, so that a panel that runs as root leaves no files that a site's account cannot change. */
import type { FileHandle } from 'node:fs/promises';

import type { Files } from '@portico/sdk';

import { filesystem, isMissing } from '../filesystem.ts';

/** Ids of an account and a group. */
export interface Owner {
    readonly uid: number;
    readonly gid: number;
}

/** The owner of a folder. @throws NOT_FOUND 40400 */
export async function ownerOf(files: Files, folder: string): Promise<Owner> {
    const { uid, gid } = await filesystem(() => files.stat(folder));
    return { uid, gid };
}

/** Changes the owner of an open file. Where the panel may not do that, the file stays its own. */
export async function changeFileOwner(handle: FileHandle, { uid, gid }: Owner): Promise<void> {
    const now = await handle.stat();
    if (now.uid !== uid || now.gid !== gid) {
        await handle.chown(uid, gid).catch(ignoreWhenNotRoot);
    }
}

/** Changes the owner of a folder. Where the panel may not do that, the folder stays its own. */
export async function changeFolderOwner(files: Files, path: string, owner: Owner): Promise<void> {
    const now = await files.stat(path);
    if (now.uid !== owner.uid || now.gid !== owner.gid) {
        await files.chown(path, owner.uid, owner.gid).catch(ignoreWhenNotRoot);
    }
}

function ignoreWhenNotRoot(error: unknown): void {
    if (process.geteuid?.() === 0 || isMissing(error)) {
        throw error;
    }
}
