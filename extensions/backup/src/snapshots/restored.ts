/** Counts what restic wrote. */
import type { Files } from '@portico/sdk';

/** Files at paths below a folder, and below them; null when there is nothing at any of them. @param paths - absolute in the snapshot */
export async function countRestored(files: Files, paths: readonly string[]): Promise<number | null> {
    const counts = await Promise.all(paths.map((path) => countAt(files, path.slice(1))));
    const found = counts.filter((count) => count !== null);
    return found.length === 0 ? null : sum(found);
}

async function countAt(files: Files, path: string): Promise<number | null> {
    const entry = await files.stat(path).catch(() => null);
    if (entry?.type === 'folder') {
        return countBelow(files, path);
    }
    return entry === null ? null : entry.type === 'file' ? 1 : 0;
}

async function countBelow(files: Files, folder: string): Promise<number> {
    const names = await files.names(folder).catch(() => []);
    const folders = names.filter(({ type }) => type === 'folder');
    const below = await Promise.all(folders.map(({ name }) => countBelow(files, `${folder}/${name}`)));
    return names.filter(({ type }) => type === 'file').length + sum(below);
}

function sum(counts: readonly number[]): number {
    return counts.reduce((all, count) => all + count, 0);
}
