/** Whose a new file is: that of the folder it lies in, so that a panel that runs as root does not leave files that a site's own account cannot touch. */
import type { FileHandle } from 'node:fs/promises';

import type { Files } from '@portico/sdk';

import { filesystem, isMissing } from '../errors.ts';

export interface Owner {
    readonly uid: number;
    readonly gid: number;
}

/** The owner of a folder. @throws NOT_FOUND 40400 */
export async function ownerOf(files: Files, folder: string): Promise<Owner> {
    const { uid, gid } = await filesystem(() => files.stat(folder));
    return { uid, gid };
}

/** Gives an open file to somebody. A panel that may not do that keeps it. */
export async function giveFile(handle: FileHandle, { uid, gid }: Owner): Promise<void> {
    const now = await handle.stat();
    if (now.uid !== uid || now.gid !== gid) {
        await handle.chown(uid, gid).catch(keepWhereRefused);
    }
}

/** Gives a folder to somebody. */
export async function giveFolder(files: Files, path: string, owner: Owner): Promise<void> {
    const now = await files.stat(path);
    if (now.uid !== owner.uid || now.gid !== owner.gid) {
        await files.chown(path, owner.uid, owner.gid).catch(keepWhereRefused);
    }
}

function keepWhereRefused(error: unknown): void {
    if (process.geteuid?.() === 0 || isMissing(error)) {
        throw error;
    }
}
