/** Counts what restic wrote. */
import type { Files } from '@portico/sdk';

/** Files at paths below a folder, and below them; null when there is nothing at any of them. @param paths - absolute in the snapshot */
export async function countRestored(files: Files, paths: readonly string[]): Promise<number | null> {
    const counts = await Promise.all(paths.map((path) => countAt(files, path.slice(1))));
    const found = counts.filter((count) => count !== null);
    return found.length === 0 ? null : found.reduce((all, count) => all + count, 0);
}

async function countAt(files: Files, path: string): Promise<number | null> {
    const entry = await files.stat(path).catch(() => null);
    if (entry?.type === 'folder') {
        return countBelow(files, path);
    }
    return entry === null ? null : entry.type === 'file' ? 1 : 0;
}

async function countBelow(files: Files, folder: string): Promise<number> {
    let found = 0;
    // One folder after the other: a snapshot may have hundreds of thousands.
    for (const { name, type } of await files.names(folder).catch(() => [])) {
        found += type === 'folder' ? await countBelow(files, `${folder}/${name}`) : type === 'file' ? 1 : 0;
    }
    return found;
}
