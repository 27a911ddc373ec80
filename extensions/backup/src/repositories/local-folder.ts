/** Folders of this machine that become repositories. The files of the panel let no plugin reach its own folders, so asking them refuses those. */
import { errors } from '@portico/sdk';

import { fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';

/** Makes the folder unless it is there and empty. @throws VALIDATION_FAILED 40001 */
export async function requireEmpty(ctx: Ctx, path: string): Promise<void> {
    const root = ctx.files('/');
    const refuse = (message: string): Error => errors.invalid([{ path: 'path', message }]);
    const found = await root.stat(path.slice(1)).catch(() => null);
    if (found === null) {
        await root
            .createFolder(path.slice(1), { mode: 0o700 })
            .catch(() =>
                Promise.reject(refuse('path cannot be made: its folder must be there, and open to plugins'))
            );
    } else if (found.type !== 'folder' || (await root.list(path.slice(1))).length > 0) {
        throw refuse('path has files in it: name an empty folder, or open what is there');
    }
}

/** @throws NOT_A_REPOSITORY 42251 unless there is a folder that plugins may open */
export async function requireFolder(ctx: Ctx, path: string): Promise<void> {
    const found = await ctx
        .files('/')
        .stat(path.slice(1))
        .catch(() => null);
    if (found?.type !== 'folder') {
        throw fail.NOT_A_REPOSITORY();
    }
}
