/** Renames a file without ever replacing another one. */
import { constants, type PathLike } from 'node:fs';
import { link, open, rename, unlink } from 'node:fs/promises';

import { codeOf } from './failure.ts';

const { O_CREAT, O_EXCL, O_WRONLY } = constants;

/**
 * Claims the new name first, so that no other file is replaced: by a hard link, or by an empty file where the file system has no hard links.
 * @throws a system error, `EEXIST` when the new name is taken
 */
export async function renameFile(old: PathLike, wanted: PathLike): Promise<void> {
    try {
        await link(old, wanted);
    } catch (error) {
        if (!['EPERM', 'EMLINK', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].includes(codeOf(error))) {
            throw error;
        }
        await (await open(wanted, O_WRONLY | O_CREAT | O_EXCL, 0o600)).close();
        await rename(old, wanted).catch(async (failure: unknown) => {
            await unlink(wanted).catch(() => undefined);
            throw failure;
        });
        return;
    }
    await unlink(old).catch(async (error: unknown) => {
        await unlink(wanted).catch(() => undefined);
        throw error;
    });
}
