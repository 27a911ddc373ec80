/** Walks, measures, copies and removes whole trees. Links are never followed. */
import type { FileEntry, Files } from '@portico/sdk';

import { isReserved, join } from '../roots/path.ts';
import { bytesOf, writeFrom } from './bytes.ts';
import { openFile } from './content.ts';
import { filesystem, isMissing } from './filesystem.ts';
import { changeFileOwner, changeFolderOwner, type Owner } from './owner.ts';

/** An entry and its path below the root. */
export interface TreeEntry {
    readonly path: string;
    readonly entry: FileEntry;
}

/** The size of a tree, counted up to a limit. */
export interface Measure {
    readonly entries: number;
    readonly bytes: number;
    /** Whether the tree is larger than the limit, and was not counted to its end. */
    readonly more: boolean;
}

/** What one request does at once. Larger work becomes a task. */
export const requestLimits = { entries: 500, bytes: 32 * 2 ** 20 } as const;

/** Yields everything below a folder, parents first. Holds one folder of each level in memory. Skips folders that vanish meanwhile. */
export async function* walk(files: Files, folder: string, signal?: AbortSignal): AsyncGenerator<TreeEntry> {
    const waiting = [folder];
    for (let current = waiting.pop(); current !== undefined; current = waiting.pop()) {
        signal?.throwIfAborted();
        const entries = await listSorted(files, current, current !== folder);
        const folders: string[] = [];
        for (const entry of entries) {
            if (isReserved(entry.name)) {
                continue;
            }
            const path = join(current, entry.name);
            yield { path, entry };
            if (entry.type === 'folder') {
                folders.push(path);
            }
        }
        waiting.push(...folders.reverse());
    }
}

async function listSorted(files: Files, folder: string, mayVanish: boolean): Promise<readonly FileEntry[]> {
    try {
        return byName(await files.list(folder));
    } catch (error) {
        if (mayVanish && isMissing(error)) {
            return [];
        }
        return filesystem(() => Promise.reject(error as Error));
    }
}

/** Sorts by name in the order of code units, which does not depend on the locale. */
export function byName(entries: readonly FileEntry[]): FileEntry[] {
    return [...entries].sort(({ name: a }, { name: b }) => (a < b ? -1 : a > b ? 1 : 0));
}

/** Measures what is at a path, up to a limit. @throws NOT_FOUND 40400 */
export async function measure(
    files: Files,
    path: string,
    limit: { readonly entries: number; readonly bytes: number } = requestLimits
): Promise<Measure> {
    const top = await filesystem(() => files.stat(path));
    let [entries, bytes] = [1, top.type === 'file' ? top.size : 0];
    if (top.type === 'folder') {
        for await (const { entry } of walk(files, path)) {
            entries += 1;
            bytes += entry.type === 'file' ? entry.size : 0;
            if (entries > limit.entries || bytes > limit.bytes) {
                return { entries, bytes, more: true };
            }
        }
    }
    return { entries, bytes, more: entries > limit.entries || bytes > limit.bytes };
}

/** Stops a long copy, and reports its progress. */
export interface Progress {
    readonly signal: AbortSignal;
    /** Called after each entry. */
    step(found: TreeEntry): void;
}

/** Copies a file or a folder to a free name. All copies belong to `owner`. Links and special files are left out and counted. */
export async function copyTree(
    files: Files,
    from: string,
    to: string,
    owner: Owner,
    progress: Progress
): Promise<{ readonly skipped: number }> {
    const top = await filesystem(() => files.stat(from));
    if (top.type === 'file') {
        await copyFile(files, from, to, top, owner, progress.signal);
        progress.step({ path: from, entry: top });
        return { skipped: 0 };
    }
    let skipped = 0;
    const folders: { readonly path: string; readonly mode: number }[] = [];
    const make = async (path: string, mode: number): Promise<void> => {
        await filesystem(() => files.createFolder(path, { mode: 0o700 }));
        folders.push({ path, mode: mode & 0o1777 });
    };
    await make(to, top.mode);
    for await (const found of walk(files, from, progress.signal)) {
        const target = `${to}${found.path.slice(from.length)}`;
        if (found.entry.type === 'folder') {
            await make(target, found.entry.mode);
        } else if (found.entry.type === 'file') {
            await copyFile(files, found.path, target, found.entry, owner, progress.signal);
        } else {
            skipped += 1;
        }
        progress.step(found);
    }
    // Last, because a read-only folder could not be filled.
    for (const { path, mode } of folders.reverse()) {
        await filesystem(async () => {
            await changeFolderOwner(files, path, owner);
            await files.chmod(path, mode);
        });
    }
    return { skipped };
}

async function copyFile(
    files: Files,
    from: string,
    to: string,
    { mode }: FileEntry,
    owner: Owner,
    signal: AbortSignal
): Promise<void> {
    await using closing = new AsyncDisposableStack();
    const { handle: source, entry } = await openFile(files, from);
    closing.defer(() => source.close());
    await filesystem(async () => {
        const target = closing.adopt(await files.open(to, 'wx', 0o600), (one) => one.close());
        await writeFrom(target, untilAborted(bytesOf(source, 0, entry.size), signal));
        await changeFileOwner(target, owner);
        await target.chmod(mode & 0o777);
    });
}

/** Yields a source's chunks, and throws when the signal aborts. */
export async function* untilAborted(
    source: AsyncIterable<Uint8Array>,
    signal: AbortSignal
): AsyncGenerator<Uint8Array> {
    for await (const chunk of source) {
        signal.throwIfAborted();
        yield chunk;
    }
}

/** Removes a file, or a folder with its content. Removes the children one by one, so that it can be cancelled in between. */
export async function removeTree(
    files: Files,
    path: string,
    progress: { readonly signal: AbortSignal; step(done: number, of: number): void }
): Promise<void> {
    const { type } = await filesystem(() => files.stat(path));
    if (type === 'folder') {
        const children = await filesystem(() => files.list(path));
        for (const [index, { name }] of children.entries()) {
            progress.signal.throwIfAborted();
            await filesystem(() => files.remove(join(path, name), { recursive: true })).catch(unlessMissing);
            progress.step(index + 1, children.length);
        }
    }
    await filesystem(() => files.remove(path, { recursive: true })).catch(unlessMissing);
}

function unlessMissing(error: unknown): void {
    if (!isMissing(error)) {
        throw error;
    }
}
