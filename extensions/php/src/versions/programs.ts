/** Programs of the machine, by the folders that the panel looks in. */
import type { Ctx } from '../settings.ts';

/** The folders that programs are looked for in, as the panel does. */
export const programFolders = [
    '/usr/local/sbin',
    '/usr/local/bin',
    '/usr/sbin',
    '/usr/bin',
    '/sbin',
    '/bin'
] as const;

/** Absolute path of a program; null when there is none. */
export async function findProgram(ctx: Ctx, name: string): Promise<string | null> {
    for (const folder of programFolders) {
        const entry = await ctx
            .files(folder)
            .stat(name)
            .catch(() => null);
        if (entry !== null && entry.type !== 'folder') {
            return `${folder}/${name}`;
        }
    }
    return null;
}
