/** `.portico` at the top of each root: closed to everybody else, and on the same file system, so that moving into it is one step. */
import type { Files } from '@portico/sdk';

import { failures, filesystem, isTaken } from '../errors.ts';
import { privateFolder } from './path.ts';

/** What it holds. */
export type PrivatePart = 'trash' | 'uploads';

/** Where something private lies. */
export function privatePath(part: PrivatePart, key: string): string {
    return `${privateFolder}/${part}/${key}`;
}

/** Makes the private folder where there is none. @throws PRIVATE_FOLDER_UNSAFE 40953 when others could look into it or had prepared it */
export async function ensurePrivate(files: Files, part: PrivatePart): Promise<void> {
    for (const path of [privateFolder, `${privateFolder}/${part}`]) {
        await filesystem(() => files.createFolder(path, { mode: 0o700 })).catch((error: unknown) => {
            if (!isTaken(error)) {
                throw error;
            }
        });
        const { type, uid, mode } = await filesystem(() => files.stat(path));
        if (type !== 'folder' || uid !== process.geteuid?.() || (mode & 0o077) !== 0) {
            throw failures.PRIVATE_FOLDER_UNSAFE();
        }
    }
}
