/** Copies and moves entries: within a root, between roots, and to names that may be taken. */
import { type Actor, errors, type FileEntry, type KeyedMutex } from '@portico/sdk';

import { fail } from '../errors.ts';
import { ownerOf } from '../files/attributes/owner.ts';
import { filesystem, isMissing, isTaken } from '../files/filesystem.ts';
import { isOtherDevice, move } from '../files/move.ts';
import { measure, type TreeEntry } from '../files/tree.ts';
import { isWithin, join, nameOf, parentOf } from '../roots/path.ts';
import type { Quotas } from '../roots/quotas.ts';
import { absolute, type Place, refuseReadOnly } from '../roots/roots.ts';
import type { Scratch } from '../roots/scratch.ts';
import type { Trash } from '../trash/trash.ts';
import type { Versions } from '../versions/versions.ts';
import { type Copied, copyTree } from './copying.ts';

/** What happens when the name is taken. */
export type OnConflict = 'fail' | 'skip' | 'rename' | 'replace';

/** How an entry is copied or moved. */
export interface MoveOptions {
    readonly actor: Actor;
    readonly onConflict: OnConflict;
    readonly signal: AbortSignal;
    /** A free path of the target's root where a copy is made; default: a temporary name of its own. What stays there the caller removes. */
    readonly staging?: string;
    /** Called after each entry of a copy. */
    step?(found: TreeEntry): void;
}

/** What became of it. */
export interface Moved {
    /** The path that it has now; null when it was skipped. */
    readonly path: string | null;
    /** Links and special files that a copy left out. */
    readonly skipped: number;
}

/** What a mover needs. */
export interface MoverParts {
    readonly scratch: Scratch;
    readonly mutex: KeyedMutex;
    readonly quotas: Quotas;
    readonly versions: Versions;
    readonly trash: Trash;
}

/** Names that are tried for `rename`. */
const mostNames = 10_000;

/** Copies and moves entries. */
export class Mover {
    readonly #parts: MoverParts;

    constructor(parts: MoverParts) {
        this.#parts = parts;
    }

    /**
     * Copies to a name that appears once the copy is whole. Links and special files are left out and counted.
     *
     * @throws CONFLICT 40900 for a taken name with `fail`; INSIDE_ITSELF 40952, WRONG_TYPE 40950, NOT_FOUND 40400, QUOTA_EXCEEDED 50750
     */
    async copy(from: Place, to: Place, options: MoveOptions): Promise<Moved> {
        const top = await filesystem(() => from.root.files.stat(from.path));
        if (top.type !== 'file' && top.type !== 'folder') {
            throw fail.WRONG_TYPE({ path: from.path, type: top.type, wanted: 'file or folder' });
        }
        return this.#copy(from, to, top, { ...options, moves: false });
    }

    /**
     * Moves in one step within a file system of a root; else copies, verifies the copy, and removes the source.
     *
     * @param acrossDevices - false: between two file systems of one root nothing is moved
     * @throws OTHER_DEVICE 40951, CHECKSUM_MISMATCH 42253, CHANGED_MEANWHILE 40954, LINK_OUTSIDE 40956, and as `copy`
     */
    async move(
        from: Place,
        to: Place,
        options: MoveOptions,
        { acrossDevices = true }: { readonly acrossDevices?: boolean } = {}
    ): Promise<Moved> {
        refuseReadOnly(from.root);
        const top = await filesystem(() => from.root.files.stat(from.path));
        if (from.root.folder === to.root.folder) {
            try {
                return await this.#rename(from, to, top, options);
            } catch (error) {
                if (!acrossDevices || !isOtherDevice(error)) {
                    throw error;
                }
            }
        }
        return this.#copy(from, to, top, { ...options, moves: true });
    }

    async #rename(from: Place, to: Place, top: FileEntry, options: MoveOptions): Promise<Moved> {
        refuseReadOnly(to.root);
        if (from.path === to.path && (options.onConflict === 'skip' || options.onConflict === 'replace')) {
            return { path: null, skipped: 0 };
        }
        refuseInside(from, to, options.onConflict);
        const path = await this.#place({ root: from.root, path: from.path }, to, top, options);
        if (path !== null) {
            await this.#parts.versions.moved(from.root, from.path, path);
        }
        return { path, skipped: 0 };
    }

    async #copy(
        from: Place,
        to: Place,
        top: FileEntry,
        options: MoveOptions & { readonly moves: boolean }
    ): Promise<Moved> {
        const { quotas, scratch } = this.#parts;
        const { signal, moves, onConflict, step = () => undefined } = options;
        refuseReadOnly(to.root);
        refuseInside(from, to, onConflict);
        const owner = await ownerOf(to.root.files, parentOf(to.path));
        if (onConflict === 'fail' || onConflict === 'skip') {
            if ((await find(to)) !== null) {
                if (onConflict === 'fail') {
                    throw errors.conflict('to');
                }
                return { path: null, skipped: 0 };
            }
        }
        using reserved = await quotas.reserve(to.root, await bytesOf(from, to));
        const make = async (temporary: string): Promise<Moved> => {
            const copied = await copyTree(
                { files: from.root.files, folder: from.root.folder, path: from.path },
                { files: to.root.files, path: temporary },
                { owner, signal, moves, step }
            );
            if (moves) {
                await requireUnchanged(from, copied);
            }
            const path = await this.#place({ root: to.root, path: temporary }, to, top, options);
            if (path === null) {
                return { path, skipped: 0 };
            }
            reserved.keep();
            if (moves) {
                await removeCopied(from, copied);
                quotas.freed(from.root);
            }
            return { path, skipped: copied.skipped };
        };
        // Awaited here, because the reservation ends with this function.
        return await (options.staging === undefined
            ? scratch.beside(to.root, to.path, make)
            : make(options.staging));
    }

    /** Gives an entry of the same root its name. Resolves with the name; null when it is taken and was left as it is. */
    async #place(
        from: Place,
        to: Place,
        { type }: FileEntry,
        { actor, onConflict, signal }: MoveOptions
    ): Promise<string | null> {
        const { root } = to;
        let path = to.path;
        for (let attempt = 2; ;) {
            signal.throwIfAborted();
            const target = path;
            const outcome = await this.#parts.mutex.run(join(root.folder, target), async () => {
                const existing = await find({ root, path: target });
                if (existing === null) {
                    return this.#moveToFree(from, target);
                }
                if (onConflict === 'fail') {
                    throw errors.conflict('to');
                }
                if (onConflict === 'replace') {
                    await this.#replace(from, { root, path: target }, { type, existing, actor });
                    return 'placed';
                }
                return 'taken';
            });
            if (outcome === 'placed') {
                return target;
            }
            if (outcome === 'taken' && onConflict === 'skip') {
                return null;
            }
            if (outcome === 'taken' && onConflict === 'rename') {
                if (attempt > mostNames) {
                    throw errors.conflict('to');
                }
                path = numbered(to.path, attempt, type === 'folder');
                attempt += 1;
            }
        }
    }

    async #moveToFree(from: Place, path: string): Promise<'placed' | 'again'> {
        try {
            await move(from.root.files, from.path, path);
            return 'placed';
        } catch (error) {
            // Something else took the name since it was looked at.
            if (isTaken(error)) {
                return 'again';
            }
            throw error;
        }
    }

    /** A file gives way to a file in one step, and is kept as a version; all else goes to the trash first. */
    async #replace(
        from: Place,
        to: Place,
        given: { readonly type: FileEntry['type']; readonly existing: FileEntry; readonly actor: Actor }
    ): Promise<void> {
        const { trash, versions, quotas } = this.#parts;
        if (given.type === 'file' && given.existing.type === 'file') {
            await versions.keep(to.root, to.path, given.actor);
            await move(from.root.files, from.path, to.path, { replace: true });
            quotas.freed(to.root);
            return;
        }
        await trash.put(to.root, to.path, given.actor);
        await move(from.root.files, from.path, to.path);
    }
}

/** The entry at a place; null where nothing is. */
async function find({ root, path }: Place): Promise<FileEntry | null> {
    try {
        return await filesystem(() => root.files.stat(path));
    } catch (error) {
        if (isMissing(error)) {
            return null;
        }
        throw error;
    }
}

/** @throws INSIDE_ITSELF 40952 for a folder that would go into itself, or take the place of the folder that it lies in */
function refuseInside(from: Place, to: Place, onConflict: OnConflict): void {
    const [source, target] = [absolute(from), absolute(to)];
    if (
        source !== target &&
        (isWithin(target, source) || (onConflict === 'replace' && isWithin(source, target)))
    ) {
        throw fail.INSIDE_ITSELF({ path: to.path });
    }
    // A root may lie inside another one: the same entry then has two places.
    if (source === target && (from.root.folder !== to.root.folder || onConflict === 'replace')) {
        throw fail.INSIDE_ITSELF({ path: to.path });
    }
}

/** Counted only where a quota needs it. */
async function bytesOf(from: Place, to: Place): Promise<number> {
    if (to.root.quotaBytes === null) {
        return 0;
    }
    return (await measure(from.root.files, from.path, { entries: Infinity, bytes: Infinity })).bytes;
}

/** Checks a source once more before its copy gets its name. @throws CHANGED_MEANWHILE 40954 */
async function requireUnchanged({ root }: Place, { entries }: Copied): Promise<void> {
    for (const { path, entry } of entries) {
        const now = await find({ root, path });
        if (now === null || now.version !== entry.version) {
            throw fail.CHANGED_MEANWHILE({ path });
        }
    }
}

/** Removes what was copied, entry by entry: what was added or changed since then stays. @throws CHANGED_MEANWHILE 40954 when something stays */
async function removeCopied({ root }: Place, { entries }: Copied): Promise<void> {
    let stays: string | null = null;
    for (const { path, entry } of [...entries].reverse()) {
        const now = await find({ root, path });
        if (now === null) {
            continue;
        }
        if (entry.type !== 'folder' && now.version !== entry.version) {
            stays = path;
            continue;
        }
        try {
            await filesystem(() => root.files.remove(path));
        } catch (error) {
            if (!isTaken(error)) {
                throw error;
            }
            stays = path;
        }
    }
    if (stays !== null) {
        throw fail.CHANGED_MEANWHILE({ path: stays });
    }
}

/** `name (2).ext` for the second file of a name. */
export function numbered(path: string, number: number, isFolder: boolean): string {
    const name = nameOf(path);
    const dot = isFolder ? -1 : endOfStem(name);
    const [stem, end] = dot <= 0 ? [name, ''] : [name.slice(0, dot), name.slice(dot)];
    return join(parentOf(path), `${stem} (${number})${end}`);
}

/** Where the ending of a name begins; `.tar.gz` and its like are one ending. */
function endOfStem(name: string): number {
    const packed = /\.tar\.[a-z0-9]{2,4}$/i.exec(name);
    return packed === null ? name.lastIndexOf('.') : packed.index;
}
