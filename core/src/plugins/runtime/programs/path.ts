/** Finds programs in a fixed list of folders, independent of the panel's own environment. */
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** The `PATH` of every program that a plugin starts. */
export const fixedPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Absolute path of a program; null when there is none. A relative path with a slash finds nothing. */
export async function findProgram(file: string): Promise<string | null> {
    const candidates = file.startsWith('/')
        ? [file]
        : file.includes('/') || file === ''
          ? []
          : fixedPath.split(':').map((folder) => join(folder, file));
    for (const candidate of candidates) {
        try {
            await access(candidate, constants.X_OK);
            if ((await stat(candidate)).isFile()) {
                return candidate;
            }
        } catch {
            // The next folder may have it.
        }
    }
    return null;
}
