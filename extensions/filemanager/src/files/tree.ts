/** Walks, measures and removes whole trees. Links are never followed. */
import type { FileEntry, FileName, Files } from '@portico/sdk';

import { isReserved, join, nameOf } from '../roots/path.ts';
import { filesystem, isMissing } from './filesystem.ts';

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

/** A name and its path below the root. */
export interface TreeName {
    readonly path: string;
    readonly entry: FileName;
}

/** Folders that are read before their turn. */
const readAhead = 8;

/** Yields everything below a folder, parents first. Holds some folders of each level in memory. Skips folders that vanish meanwhile. */
export function walk(
    files: Files,
    folder: string,
    signal?: AbortSignal,
    includes: (path: string) => boolean = isNotReserved
): AsyncGenerator<TreeEntry> {
    return descend((path) => files.list(path), folder, signal, includes);
}

/** As `walk`, without a look at each entry: many times faster. */
export function walkNames(files: Files, folder: string, signal?: AbortSignal): AsyncGenerator<TreeName> {
    return descend((path) => files.names(path), folder, signal, isNotReserved);
}

function isNotReserved(path: string): boolean {
    return !isReserved(nameOf(path));
}

async function* descend<Named extends FileName>(
    read: (folder: string) => Promise<readonly Named[]>,
    top: string,
    signal: AbortSignal | undefined,
    includes: (path: string) => boolean
): AsyncGenerator<{ readonly path: string; readonly entry: Named }> {
    const waiting = [top];
    const reading = new Map<string, Promise<readonly Named[]>>();
    for (let current = waiting.pop(); current !== undefined; current = waiting.pop()) {
        signal?.throwIfAborted();
        for (const folder of [current, ...waiting.slice(-readAhead)]) {
            if (!reading.has(folder)) {
                const entries = readSorted(read, folder, folder !== top);
                // A failure is met when it is the folder's turn; until then it must not count as unhandled.
                entries.catch(() => undefined);
                reading.set(folder, entries);
            }
        }
        const folders: string[] = [];
        for (const entry of (await reading.get(current)) ?? []) {
            const path = join(current, entry.name);
            if (!includes(path)) {
                continue;
            }
            yield { path, entry };
            if (entry.type === 'folder') {
                folders.push(path);
            }
        }
        reading.delete(current);
        waiting.push(...folders.reverse());
    }
}

async function readSorted<Named extends FileName>(
    read: (folder: string) => Promise<readonly Named[]>,
    folder: string,
    mayVanish: boolean
): Promise<readonly Named[]> {
    try {
        return byName(await read(folder));
    } catch (error) {
        if (mayVanish && isMissing(error)) {
            return [];
        }
        return filesystem(() => Promise.reject(error as Error));
    }
}

/** Sorts by name in the order of code units, which does not depend on the locale. */
export function byName<Named extends FileName>(entries: readonly Named[]): Named[] {
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
