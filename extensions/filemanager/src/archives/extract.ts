/** Unpacks an archive to a temporary folder, checks all of it, and only then gives it the name of the target. */
import { errors, type Files } from '@portico/sdk';

import { changeFileOwner, changeFolderOwner, type Owner, ownerOf } from '../files/attributes/owner.ts';
import { writeFrom } from '../files/content/bytes.ts';
import { openFile } from '../files/content/content.ts';
import { filesystem } from '../files/filesystem.ts';
import { metered } from '../files/writer.ts';
import { isWithin, join, parentOf } from '../roots/path.ts';
import type { Quotas } from '../roots/quotas.ts';
import type { Root } from '../roots/roots.ts';
import type { Scratch } from '../roots/scratch.ts';
import type { Converter } from './converter.ts';
import { formatOf, type Limits } from './format.ts';
import { EntryNames } from './names.ts';
import { placeTree } from './placing.ts';
import { entriesOf } from './read.ts';

/** What was unpacked, and where. */
export interface Extracted {
    readonly root: string;
    readonly path: string;
    readonly entries: number;
    readonly bytes: number;
}

/** How an archive is unpacked. */
export interface ExtractOptions {
    readonly limits: Limits;
    readonly signal: AbortSignal;
    /** Names in the archive; of a folder with everything below it. Empty: all. */
    readonly only: readonly string[];
    progress(fraction: number): void;
}

/** What the unpacking of archives works with. */
export interface ExtractParts {
    readonly scratch: Scratch;
    readonly quotas: Quotas;
    readonly converter: Converter;
}

/** Unpacks a whole archive or nothing of it. @throws QUOTA_EXCEEDED 50750, ARCHIVE_REFUSED 42251, ARCHIVE_TOO_LARGE 42252, CONFLICT 40900 when a name of the archive exists already */
export async function extract(
    { scratch, quotas, converter }: ExtractParts,
    root: Root,
    path: string,
    to: string,
    { limits, signal, only, progress }: ExtractOptions
): Promise<Extracted> {
    const { files } = root;
    const format = formatOf(path);
    const parent = parentOf(to);
    const owner = await ownerOf(files, parent);
    await using closing = new AsyncDisposableStack();
    const { handle, entry } = await openFile(files, path);
    closing.defer(() => handle.close());
    using reserved = await quotas.reserve(root, 0);
    // All names are checked, also those that are not wanted.
    const names = new EntryNames(limits.entries);
    const placed = new EntryNames(limits.entries);
    let [entries, bytes] = [0, 0];
    await scratch.beside(root, to === '' ? 'unpacked' : to, async (staging) => {
        await filesystem(() => files.createFolder(staging, { mode: 0o700 }));
        const source = {
            handle,
            path,
            size: entry.size,
            signal,
            read: (done: number) => progress(entry.size === 0 ? 0 : done / entry.size)
        };
        for await (const one of entriesOf(converter, format, source, limits)) {
            signal.throwIfAborted();
            const kind = one.kind === 'folder' ? 'folder' : 'file';
            const name = names.accept(one.name, kind);
            if (name === null || !isWanted(name, only)) {
                continue;
            }
            placed.accept(name, kind);
            entries += 1;
            if (kind === 'folder') {
                await makeFolder(files, join(staging, name));
            } else {
                await makeFolder(files, join(staging, parentOf(name)));
                const body = metered(one.body, 0, reserved);
                bytes += await unpackFile(files, join(staging, name), body, one.mode, owner);
            }
        }
        if (entries === 0 && only.length > 0) {
            throw errors.notFound('The archive has none of these entries');
        }
        for (const folder of placed.folders().reverse()) {
            await finishFolder(files, join(staging, folder), owner);
        }
        signal.throwIfAborted();
        await placeTree(files, staging, to, owner);
        reserved.keep();
    });
    return { root: root.name, path: to, entries, bytes };
}

function isWanted(name: string, only: readonly string[]): boolean {
    return only.length === 0 || only.some((each) => isWithin(name, each));
}

async function makeFolder(files: Files, path: string): Promise<void> {
    try {
        if ((await files.stat(path)).type === 'folder') {
            return;
        }
    } catch {
        // It is created below, or refused there.
    }
    await filesystem(() => files.createFolder(path, { parents: true, mode: 0o700 }));
}

async function unpackFile(
    files: Files,
    path: string,
    body: AsyncIterable<Uint8Array>,
    mode: number | null,
    owner: Owner
): Promise<number> {
    return filesystem(async () => {
        await using closing = new AsyncDisposableStack();
        const handle = closing.adopt(await files.open(path, 'wx', 0o600), (one) => one.close());
        const bytes = await writeFrom(handle, body);
        await changeFileOwner(handle, owner);
        // The owner can always read and write the file. Others get no more than the archive says, and never set-user-id or set-group-id.
        await handle.chmod(mode === null ? 0o640 : (mode & 0o755) | 0o600);
        return bytes;
    });
}

async function finishFolder(files: Files, path: string, owner: Owner): Promise<void> {
    await filesystem(async () => {
        await changeFolderOwner(files, path, owner);
        await files.chmod(path, 0o750);
    });
}
