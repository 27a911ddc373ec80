/** What a folder that is backed up may hold and no snapshot takes: the data folder of the panel. */
import { isFailure } from '@portico/sdk';

import type { Ctx } from '../settings.ts';
import type { StagedSource } from './sources.ts';

/**
 * Patterns of restic that leave the panel's data folder out of the folders around it, but not the stage in it.
 *
 * @param note - the file of the stage that is backed up; absolute
 */
export async function excludesOf(
    ctx: Ctx,
    note: string,
    staged: readonly StagedSource[]
): Promise<readonly string[]> {
    const folders = staged
        .filter(({ source }) => source.type === 'folder')
        .map(({ source }) => source.path ?? '');
    const root = await closedFolder(ctx);
    if (!folders.some((folder) => root.startsWith(`${folder}/`))) {
        return [];
    }
    const stage = note.slice(0, note.lastIndexOf('/'));
    if (!stage.startsWith(`${root}/`)) {
        return [escapePattern(root)];
    }
    // A folder on the way to the stage is left out but for the next folder on the way.
    const steps = stage.slice(root.length + 1).split('/');
    return steps.flatMap((_step, index) => {
        const parent = [root, ...steps.slice(0, index)].join('/');
        return [`${escapePattern(parent)}/*`, `!${escapePattern([parent, steps[index]].join('/'))}`];
    });
}

/** The topmost folder around the plugin's own that no plugin may open: the panel's. */
async function closedFolder(ctx: Ctx): Promise<string> {
    const names = ctx.dataDir.slice(1).split('/');
    for (let count = 1; count < names.length; count += 1) {
        const path = names.slice(0, count).join('/');
        const isClosed = await ctx
            .files('/')
            .stat(path)
            .then(
                () => false,
                (error: unknown) => isFailure(error) && error.reason !== 'NOT_FOUND'
            );
        if (isClosed) {
            return `/${path}`;
        }
    }
    return ctx.dataDir;
}

/** A path as a pattern that matches it alone. */
export function escapePattern(path: string): string {
    return path.replaceAll(/[\\*?[\]$]/g, '\\$&');
}
