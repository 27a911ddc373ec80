/** Empties a folder, however deep, without following a link. */
import { randomUUID } from 'node:crypto';
import { constants, type PathLike } from 'node:fs';
import { type FileHandle, open, readdir, rename, rmdir, unlink } from 'node:fs/promises';

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants;

/** How many levels of folders are open at the same time. */
const mostLevels = 32;

/**
 * Removes everything in a folder. Each folder is opened before it is emptied, so that a folder that was swapped for a link meanwhile is
 * not entered. Each level holds a descriptor, so folders deeper than `mostLevels` are moved up first: a deep tree cannot use up the
 * descriptors of the process.
 * @param refuse - throws for a folder that must stay
 */
export async function emptyFolder(
    folder: PathLike,
    refuse: (handle: FileHandle) => Promise<void>,
    level = 1,
    lift: ((deep: PathLike) => Promise<void>) | null = null
): Promise<void> {
    const handle = await open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    try {
        await refuse(handle);
        const at = `/proc/self/fd/${handle.fd}`;
        let lifted = 0;
        const up =
            lift ??
            (async (deep: PathLike) => {
                await rename(deep, `${at}/.${randomUUID()}`);
                lifted += 1;
            });
        do {
            lifted = 0;
            for (const entry of await readdir(at, { withFileTypes: true, encoding: 'buffer' })) {
                const path = Buffer.concat([Buffer.from(`${at}/`), entry.name]);
                if (!entry.isDirectory()) {
                    await unlink(path);
                } else if (level === mostLevels) {
                    await up(path);
                } else {
                    await emptyFolder(path, refuse, level + 1, up);
                    await rmdir(path);
                }
            }
        } while (lifted > 0);
    } finally {
        await handle.close();
    }
}
