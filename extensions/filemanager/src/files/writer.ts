/** Replaces files in one step. */
import { type Actor, createFailure, errors, type FileEntry, type Files, type KeyedMutex } from '@portico/sdk';

import { fail } from '../errors.ts';
import { join, parentOf } from '../roots/path.ts';
import type { Quotas, Reservation } from '../roots/quotas.ts';
import type { Root } from '../roots/roots.ts';
import type { Scratch } from '../roots/scratch.ts';
import type { Versions } from '../versions/versions.ts';
import { changeFileOwner, ownerOf } from './attributes/owner.ts';
import { received, writeFrom } from './content/bytes.ts';
import { requireFile } from './content/content.ts';
import { filesystem, isMissing } from './filesystem.ts';

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

/** What every change of content goes through. */
export interface WriterParts {
    readonly scratch: Scratch;
    /** One change of a path at a time. */
    readonly mutex: KeyedMutex;
    readonly quotas: Quotas;
    readonly versions: Versions;
}

/** Replaces files in one step. */
export class FileWriter {
    readonly #parts: WriterParts;

    constructor(parts: WriterParts) {
        this.#parts = parts;
    }

    /**
     * Writes to a temporary file and renames it: a reader sees the old bytes or the new ones. Owner and permission bits stay. Resolves
     * with whether the file is new.
     *
     * @throws VERSION_STALE 41200, WRONG_TYPE 40950, NOT_FOUND 40400, PARTIAL_BODY 40050, QUOTA_EXCEEDED 50750, STORAGE_FULL 50700
     */
    async replace(
        root: Root,
        path: string,
        actor: Actor,
        content: NewContent
    ): Promise<{ readonly made: boolean }> {
        const { scratch, mutex, quotas, versions } = this.#parts;
        const { files } = root;
        checkConditions(await findEntry(files, path), path, content);
        using reserved = await quotas.reserve(root, content.length ?? 0);
        return await scratch.beside(root, path, async (temporary) => {
            await filesystem(() => writeBody(files, path, temporary, content, reserved));
            // Receiving the body may have taken an hour, so the conditions are checked again.
            return mutex.run(join(root.folder, path), async () => {
                const now = await findEntry(files, path);
                checkConditions(now, path, content);
                if (now !== null) {
                    await versions.keep(root, path, actor);
                    quotas.freed(root);
                }
                await filesystem(async () => {
                    await copyAttributes(files, temporary, path, now);
                    await files.move(temporary, path, { replace: now !== null });
                });
                reserved.keep();
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
    { body, length, signal }: NewContent,
    reserved: Reservation
): Promise<void> {
    await ownerOf(files, parentOf(path));
    await using closing = new AsyncDisposableStack();
    const handle = closing.adopt(await files.open(temporary, 'wx', 0o600), (one) => one.close());
    let isBroken = false;
    const bytes = await writeFrom(
        handle,
        metered(
            received(body, () => {
                isBroken = true;
            }),
            length ?? 0,
            reserved
        )
    );
    if (isBroken || signal.aborted || (length !== null && length !== bytes)) {
        throw fail.PARTIAL_BODY({ expected: length, received: bytes });
    }
    await handle.sync();
}

/** Yields the chunks of a source. Those behind the bytes that are reserved already are reserved first. @throws QUOTA_EXCEEDED 50750 */
export async function* metered(
    source: AsyncIterable<Uint8Array>,
    already: number,
    reserved: Reservation
): AsyncGenerator<Uint8Array> {
    let bytes = 0;
    for await (const chunk of source) {
        bytes += chunk.byteLength;
        const more = Math.min(chunk.byteLength, bytes - already);
        if (more > 0) {
            await reserved.grow(more);
        }
        yield chunk;
    }
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
    requireFile(now, path);
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
