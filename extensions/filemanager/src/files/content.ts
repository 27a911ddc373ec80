/** What is in a file: read in ranges, and replaced in one step. */
import type { FileHandle } from 'node:fs/promises';

import { createFailure, type Download, errors, type FileEntry, type Files } from '@portico/sdk';
import { lookup } from 'mrmime';

import { failures, filesystem, isMissing } from '../errors.ts';
import type { Locks } from '../locks.ts';
import { join, nameOf, parentOf } from '../roots/path.ts';
import type { Root } from '../roots/roots.ts';
import type { Scratch } from '../roots/scratch.ts';
import { bytesOf, received, writeFrom } from './bytes.ts';
import { giveFile, ownerOf } from './owner.ts';

/** How often a file that is being replaced while it is opened is tried again. */
const attempts = 5;

/** A file that is open, and the entry that it is. */
export interface Opened {
    readonly handle: FileHandle;
    readonly entry: FileEntry;
}

/** Opens a regular file whose entry belongs to the very bytes that the handle reads. @throws WRONG_TYPE 40950, NOT_FOUND 40400 */
export async function openFile(files: Files, path: string): Promise<Opened> {
    for (let attempt = 1; ; attempt += 1) {
        const before = await filesystem(() => files.stat(path));
        refuseOther(before, path);
        const handle = await filesystem(() => files.open(path, 'r'));
        try {
            const [opened, after] = await Promise.all([handle.stat(), filesystem(() => files.stat(path))]);
            if (opened.isFile() && before.version === after.version && opened.size === before.size) {
                return { handle, entry: before };
            }
            if (attempt === attempts) {
                throw failures.CHANGED_MEANWHILE({ path });
            }
        } catch (error) {
            await handle.close();
            throw error;
        }
        await handle.close();
    }
}

/** A file as the host's download door takes it. */
export async function download(files: Files, path: string, inline: boolean): Promise<Download> {
    const { handle, entry } = await openFile(files, path);
    return {
        size: entry.size,
        type: mediaType(path),
        name: nameOf(path),
        version: entry.version,
        modifiedAt: entry.modifiedAt,
        inline,
        open: ({ start, end }) => bytesOf(handle, start, end ?? entry.size),
        close: () => handle.close()
    };
}

/** What a writer says about the file that is there. */
export interface Guarded {
    /** The version that it must have; `*`: any. */
    readonly ifMatch: string | null;
    /** There must be none. */
    readonly onlyNew: boolean;
}

/** A new content for a file. */
export interface NewContent extends Guarded {
    readonly body: AsyncIterable<Uint8Array>;
    /** Bytes that were announced; null when none were. */
    readonly length: number | null;
    readonly signal: AbortSignal;
}

export class Writing {
    readonly #scratch: Scratch;
    readonly #locks: Locks;

    constructor(scratch: Scratch, locks: Locks) {
        this.#scratch = scratch;
        this.#locks = locks;
    }

    /**
     * Writes beside the file and puts it in its place by one rename: a reader sees the old bytes or the new ones. Owner and permission bits
     * stay. Resolves with whether the file is new.
     *
     * @throws VERSION_STALE 41200, WRONG_TYPE 40950, NOT_FOUND 40400, PARTIAL_BODY 40050, STORAGE_FULL 50700
     */
    async replace(root: Root, path: string, content: NewContent): Promise<{ readonly made: boolean }> {
        const { files } = root;
        check(await existing(files, path), path, content);
        return this.#scratch.beside(root, path, async (temporary) => {
            await filesystem(() => fill(files, path, temporary, content));
            // The body may have taken an hour: only what is there now counts.
            return this.#locks.hold(join(root.folder, path), async () => {
                const now = await existing(files, path);
                check(now, path, content);
                await filesystem(async () => {
                    await take(files, temporary, path, now);
                    await files.move(temporary, path, { replace: now !== null });
                });
                return { made: now === null };
            });
        });
    }
}

async function fill(
    files: Files,
    path: string,
    temporary: string,
    { body, length, signal }: NewContent
): Promise<void> {
    await ownerOf(files, parentOf(path));
    await using closing = new AsyncDisposableStack();
    const handle = closing.adopt(await files.open(temporary, 'wx', 0o600), (one) => one.close());
    let isBroken = false;
    const bytes = await writeFrom(
        handle,
        received(body, () => {
            isBroken = true;
        })
    );
    if (isBroken || signal.aborted || (length !== null && length !== bytes)) {
        throw failures.PARTIAL_BODY({ expected: length, received: bytes });
    }
    await handle.sync();
}

/** Gives the new file the bits and the owner of the one it replaces, or those of a new file in that folder. */
async function take(files: Files, temporary: string, path: string, old: FileEntry | null): Promise<void> {
    await using closing = new AsyncDisposableStack();
    const handle = closing.adopt(await files.open(temporary, 'r+'), (one) => one.close());
    await giveFile(handle, old ?? (await ownerOf(files, parentOf(path))));
    // Bits that lend an account's rights belonged to the old bytes.
    await handle.chmod(old === null ? 0o640 : old.mode & 0o777);
}

async function existing(files: Files, path: string): Promise<FileEntry | null> {
    try {
        return await files.stat(path);
    } catch (error) {
        if (isMissing(error)) {
            return null;
        }
        return filesystem(() => Promise.reject(error as Error));
    }
}

function check(now: FileEntry | null, path: string, { ifMatch, onlyNew }: Guarded): void {
    if (now === null) {
        if (ifMatch !== null) {
            throw stale(null);
        }
        return;
    }
    if (onlyNew || (ifMatch !== null && ifMatch !== '*' && ifMatch !== now.version)) {
        throw stale(now.version);
    }
    refuseOther(now, path);
}

/** @throws VERSION_STALE 41200 */
export function checkVersion(now: FileEntry, ifMatch: string | null): void {
    if (ifMatch !== null && ifMatch !== '*' && ifMatch !== now.version) {
        throw stale(now.version);
    }
}

function stale(version: string | null): Error {
    return version === null
        ? createFailure({
              code: 41200,
              reason: 'VERSION_STALE',
              message: 'The file is not there any more',
              data: { version }
          })
        : errors.stale(version);
}

function refuseOther({ type }: FileEntry, path: string): void {
    if (type === 'link') {
        throw errors.notFound('Links are not followed');
    }
    if (type !== 'file') {
        throw failures.WRONG_TYPE({ path, type, wanted: 'file' });
    }
}

function mediaType(path: string): string {
    return lookup(nameOf(path)) ?? 'application/octet-stream';
}
