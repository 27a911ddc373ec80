/** The content of files: read in ranges, and replaced in one step. */
import type { FileHandle } from 'node:fs/promises';

import {
    createFailure,
    type Download,
    errors,
    type FileEntry,
    type Files,
    type KeyedMutex
} from '@portico/sdk';
import { lookup } from 'mrmime';

import { pluginErrors } from '../errors.ts';
import { join, nameOf, parentOf } from '../roots/path.ts';
import type { Root } from '../roots/roots.ts';
import type { Scratch } from '../roots/scratch.ts';
import { bytesOf, received, writeFrom } from './bytes.ts';
import { filesystem, isMissing } from './filesystem.ts';
import { changeFileOwner, ownerOf } from './owner.ts';

/** How often a file that changes while it is opened is opened again. */
const maxAttempts = 5;

/** An open file and its entry. */
export interface Opened {
    readonly handle: FileHandle;
    readonly entry: FileEntry;
}

/** Opens a regular file. The entry describes exactly the file that the handle reads. @throws WRONG_TYPE 40950, NOT_FOUND 40400, CHANGED_MEANWHILE 40954 */
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
            if (attempt === maxAttempts) {
                throw pluginErrors.CHANGED_MEANWHILE({ path });
            }
        } catch (error) {
            await handle.close();
            throw error;
        }
        await handle.close();
    }
}

/** Opens a file for a download route. @throws as {@link openFile} */
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

/** Conditions on the existing file. */
export interface WriteConditions {
    /** The version that the file must have; `*` for any; null for no condition. */
    readonly ifMatch: string | null;
    /** Whether the file must not exist. */
    readonly onlyNew: boolean;
}

/** The new content of a file. */
export interface NewContent extends WriteConditions {
    readonly body: AsyncIterable<Uint8Array>;
    /** The announced number of bytes; null without one. */
    readonly length: number | null;
    readonly signal: AbortSignal;
}

/** Replaces files in one step. */
export class FileWriter {
    readonly #scratch: Scratch;
    readonly #mutex: KeyedMutex;

    constructor(scratch: Scratch, mutex: KeyedMutex) {
        this.#scratch = scratch;
        this.#mutex = mutex;
    }

    /**
     * Writes to a temporary file and renames it: a reader sees the old bytes or the new ones. Owner and permission bits stay. Resolves
     * with whether the file is new.
     *
     * @throws VERSION_STALE 41200, WRONG_TYPE 40950, NOT_FOUND 40400, PARTIAL_BODY 40050, STORAGE_FULL 50700
     */
    async replace(root: Root, path: string, content: NewContent): Promise<{ readonly made: boolean }> {
        const { files } = root;
        checkConditions(await findEntry(files, path), path, content);
        return this.#scratch.beside(root, path, async (temporary) => {
            await filesystem(() => writeBody(files, path, temporary, content));
            // Receiving the body may have taken an hour, so the conditions are checked again.
            return this.#mutex.run(join(root.folder, path), async () => {
                const now = await findEntry(files, path);
                checkConditions(now, path, content);
                await filesystem(async () => {
                    await copyAttributes(files, temporary, path, now);
                    await files.move(temporary, path, { replace: now !== null });
                });
                return { made: now === null };
            });
        });
    }
}

/** Writes the body to the temporary file. @throws PARTIAL_BODY 40050 */
async function writeBody(
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
        throw pluginErrors.PARTIAL_BODY({ expected: length, received: bytes });
    }
    await handle.sync();
}

/** Gives the new file the bits and the owner of the file that it replaces, or those of a new file in that folder. */
async function copyAttributes(
    files: Files,
    temporary: string,
    path: string,
    old: FileEntry | null
): Promise<void> {
    await using closing = new AsyncDisposableStack();
    const handle = closing.adopt(await files.open(temporary, 'r+'), (one) => one.close());
    await changeFileOwner(handle, old ?? (await ownerOf(files, parentOf(path))));
    // Set-user-id and set-group-id were given to the old bytes, not to the new ones.
    await handle.chmod(old === null ? 0o640 : old.mode & 0o777);
}

async function findEntry(files: Files, path: string): Promise<FileEntry | null> {
    try {
        return await files.stat(path);
    } catch (error) {
        if (isMissing(error)) {
            return null;
        }
        return filesystem(() => Promise.reject(error as Error));
    }
}

/** @throws VERSION_STALE 41200, WRONG_TYPE 40950, NOT_FOUND 40400 */
function checkConditions(now: FileEntry | null, path: string, { ifMatch, onlyNew }: WriteConditions): void {
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

/** Checks the `If-Match` of a request. @throws VERSION_STALE 41200 */
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
        throw pluginErrors.WRONG_TYPE({ path, type, wanted: 'file' });
    }
}

function mediaType(path: string): string {
    return lookup(nameOf(path)) ?? 'application/octet-stream';
}
