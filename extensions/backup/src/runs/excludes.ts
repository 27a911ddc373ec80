/** What a folder that is backed up may hold and no snapshot takes: the folders of panel and engine, which hold their keys. */
import type { Ctx } from '../settings.ts';
import type { StagedSource } from './sources.ts';

/**
 * Patterns of restic that leave the folders of panel and engine out of the folders around them, but not the stage in them.
 *
 * @param note - the file of the stage that is backed up; absolute
 */
export async function excludesOf(
    ctx: Ctx,
    note: string,
    staged: readonly StagedSource[]
): Promise<readonly string[]> {
    const sources = staged
        .filter(({ source }) => source.type === 'folder')
        .map(({ source }) => source.path ?? '');
    const stage = note.slice(0, note.lastIndexOf('/'));
    return (await ctx.panel.folders())
        .filter((closed) => sources.some((source) => closed.startsWith(`${source}/`)))
        .flatMap((closed) =>
            stage.startsWith(`${closed}/`) ? patternsAround(closed, stage) : [escapePattern(closed)]
        );
}

/** A folder on the way to the stage is left out but for the next folder on the way. */
function patternsAround(closed: string, stage: string): readonly string[] {
    const steps = stage.slice(closed.length + 1).split('/');
    return steps.flatMap((_step, index) => {
        const parent = [closed, ...steps.slice(0, index)].join('/');
        return [`${escapePattern(parent)}/*`, `!${escapePattern([parent, steps[index]].join('/'))}`];
    });
}

/** A path as a pattern that matches it alone. */
export function escapePattern(path: string): string {
    return path.replaceAll(/[\\*?[\]$]/g, '\\$&');
}
