/** The folder `.portico` at the top of each root. Only the panel's account can open it, and it is on the same file system, so a move into it is one step. */
import type { Files } from '@portico/sdk';

import { fail } from '../errors.ts';
import { filesystem, isTaken } from '../files/filesystem.ts';
import { privateFolder } from './path.ts';

/** The parts of the private folder. */
export type PrivatePart = 'trash' | 'uploads' | 'versions';

/** The path of an entry in the private folder. */
export function privatePath(part: PrivatePart, key: string): string {
    return `${privateFolder}/${part}/${key}`;
}

/** Creates the private folder where it is missing. @throws PRIVATE_FOLDER_UNSAFE 40953 when it belongs to another account or is open to others */
export async function ensurePrivate(files: Files, part: PrivatePart): Promise<void> {
    for (const path of [privateFolder, `${privateFolder}/${part}`]) {
        await filesystem(() => files.createFolder(path, { mode: 0o700 })).catch((error: unknown) => {
            if (!isTaken(error)) {
                throw error;
            }
        });
        const { type, uid, mode } = await filesystem(() => files.stat(path));
        if (type !== 'folder' || uid !== process.geteuid?.() || (mode & 0o077) !== 0) {
            throw fail.PRIVATE_FOLDER_UNSAFE();
        }
    }
}
