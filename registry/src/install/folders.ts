/** The folders of installed versions: deleting them without leaving a half one where it could be loaded. */
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rename, rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import { stagingName } from './install.ts';

const version = /^\d[^/]*-[0-9a-f]{8}-\d+$/;

/** Every folder of a version below the folder of plugins, as the lock writes them. */
export async function versionFolders(root: string): Promise<readonly string[]> {
    const names = (await readdir(root, { withFileTypes: true }))
        .filter((entry) => entry.isDirectory() && /^[a-z]/.test(entry.name) && entry.name !== 'node_modules')
        .map((entry) => entry.name);
    const nested = await Promise.all(
        names.map(async (name) =>
            (await readdir(join(root, name)))
                .filter((each) => version.test(each))
                .map((each) => `${name}/${each}`)
        )
    );
    return nested.flat().sort();
}

/** Moves it out of the way in one step, then deletes it. */
export async function deleteFolder(root: string, folder: string): Promise<void> {
    const away = join(root, stagingName, randomUUID());
    await mkdir(join(root, stagingName), { recursive: true, mode: 0o700 });
    try {
        await rename(join(root, folder), away);
    } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
            throw error;
        }
        return;
    }
    await rm(away, { recursive: true, force: true, maxRetries: 3 });
    await rmdir(dirname(join(root, folder))).catch(() => undefined); // other versions are still there
}

/** Deletes what installs and deletions left that did not come to their end. */
export async function clearStaging(root: string): Promise<void> {
    for (const name of await readdir(join(root, stagingName)).catch(() => [])) {
        await rm(join(root, stagingName, name), { recursive: true, force: true, maxRetries: 3 });
    }
}
