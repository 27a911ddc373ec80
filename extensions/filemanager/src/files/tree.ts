/** Whole trees: walked, measured, copied, removed. Links are entries like others and never followed. */
import type { FileEntry, Files } from '@portico/sdk';

import { filesystem, isMissing } from '../errors.ts';
import { isReserved, join } from '../roots/path.ts';
import { bytesOf, writeFrom } from './bytes.ts';
import { openFile } from './content.ts';
import { giveFile, giveFolder, type Owner } from './owner.ts';

export interface Found {
    readonly path: string;
    readonly entry: FileEntry;
}

/** A tree is smaller than a limit, or at least as large. */
export interface Measure {
    readonly entries: number;
    readonly bytes: number;
    /** The walk stopped before the end. */
    readonly more: boolean;
}

/** What one request may do at once; what is more becomes a task. */
export const small = { entries: 500, bytes: 32 * 2 ** 20 } as const;

/** Everything below a folder, parents first, one folder in memory at a time for each level. Folders that vanish meanwhile are passed over. */
export async function* walk(files: Files, folder: string, signal?: AbortSignal): AsyncGenerator<Found> {
    const waiting = [folder];
    for (let current = waiting.pop(); current !== undefined; current = waiting.pop()) {
        signal?.throwIfAborted();
        const entries = await listed(files, current, current !== folder);
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

async function listed(files: Files, folder: string, mayVanish: boolean): Promise<readonly FileEntry[]> {
    try {
        return byName(await files.list(folder));
    } catch (error) {
        if (mayVanish && isMissing(error)) {
            return [];
        }
        return filesystem(() => Promise.reject(error as Error));
    }
}

/** In the order of code units, which no locale changes. */
export function byName(entries: readonly FileEntry[]): FileEntry[] {
    return [...entries].sort(({ name: a }, { name: b }) => (a < b ? -1 : a > b ? 1 : 0));
}

/** How much there is at a path, counted up to a limit. @throws NOT_FOUND 40400 */
export async function measure(
    files: Files,
    path: string,
    limit: { readonly entries: number; readonly bytes: number } = small
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

/** How a long copy tells how far it is. */
export interface Progress {
    readonly signal: AbortSignal;
    /** Called after each entry. */
    step(found: Found): void;
}

/** Copies a file or a folder to a free name; everything new belongs to `owner`. Links and special files are left out and counted. */
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
    // Last, since a folder that may not be written to could not be filled.
    for (const { path, mode } of folders.reverse()) {
        await filesystem(async () => {
            await giveFolder(files, path, owner);
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
        await giveFile(target, owner);
        await target.chmod(mode & 0o777);
    });
}

/** Ends a source by throwing once the signal aborts. */
export async function* untilAborted(
    source: AsyncIterable<Uint8Array>,
    signal: AbortSignal
): AsyncGenerator<Uint8Array> {
    for await (const chunk of source) {
        signal.throwIfAborted();
        yield chunk;
    }
}

/** Removes a file or a folder with all that is in it, one child of its top after the other, so that it can be cancelled in between. */
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
