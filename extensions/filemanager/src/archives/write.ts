/** Packs files and folders into an archive, which appears complete or not at all. Links and special files are left out and counted. */
import type { FileHandle } from 'node:fs/promises';

import { fail } from '../errors.ts';
import { changeFileOwner, ownerOf } from '../files/attributes/owner.ts';
import { bytesOf, writeFrom } from '../files/content/bytes.ts';
import { openFile } from '../files/content/content.ts';
import { filesystem, isMissing } from '../files/filesystem.ts';
import { measure, type TreeEntry, untilAborted, walk } from '../files/tree.ts';
import { metered } from '../files/writer.ts';
import { isWithin, nameOf, parentOf } from '../roots/path.ts';
import type { Root } from '../roots/roots.ts';
import type { Converter } from './converter.ts';
import type { ExtractParts } from './extract.ts';
import { type Limits, type WrittenFormat, writtenFormatOf } from './format.ts';
import { createPacker, type Packer } from './packers.ts';

/** What was packed, and where. */
export interface Packed {
    readonly root: string;
    readonly path: string;
    readonly entries: number;
    readonly bytes: number;
    /** Links, special files, and what vanished or cannot be named in this format. */
    readonly skipped: number;
}

/** How an archive is made. */
export interface PackOptions {
    readonly limits: Limits;
    readonly signal: AbortSignal;
    progress(fraction: number): void;
}

/** Makes an archive at `to`. @throws CONFLICT 40900 when `to` is taken, ARCHIVE_TOO_LARGE 42252 */
export async function pack(
    { scratch, quotas, converter }: ExtractParts,
    root: Root,
    paths: readonly string[],
    to: string,
    { limits, signal, progress }: PackOptions
): Promise<Packed> {
    const { files } = root;
    const format = writtenFormatOf(to);
    const owner = await ownerOf(files, parentOf(to));
    const tops = outermost(paths);
    const base = commonFolder(tops);
    const total = await measureAll(root, tops, limits);
    using reserved = await quotas.reserve(root, 0);
    return await scratch.beside(root, to, async (temporary) => {
        await using closing = new AsyncDisposableStack();
        const handle = closing.adopt(await filesystem(() => files.open(temporary, 'wx', 0o600)), (one) =>
            one.close()
        );
        const counts = { entries: 0, bytes: 0, skipped: 0 };
        const packer = createPacker(format, converter, signal);
        const produced = fill({ root, packer, signal, counts }, tops, base, () =>
            progress(total === 0 ? 0 : Math.min(1, counts.bytes / total))
        );
        // When the output fails the packer is destroyed with it, and the producer's next step with that.
        await filesystem(() =>
            runBoth(writeFrom(handle, metered(packer.output, 0, reserved)), produced, packer)
        );
        await filesystem(async () => {
            await handle.sync();
            await changeFileOwner(handle, owner);
            await handle.chmod(0o640);
            signal.throwIfAborted();
            await files.move(temporary, to);
        });
        reserved.keep();
        return { root: root.name, path: to, ...counts };
    });
}

/**
 * Yields a folder as an archive. Nothing is put down on the way.
 *
 * @throws NOT_FOUND 40400
 */
export async function* streamFolder(
    converter: Converter,
    root: Root,
    path: string,
    { format, signal }: { readonly format: WrittenFormat; readonly signal: AbortSignal }
): AsyncGenerator<Uint8Array> {
    const ended = new AbortController();
    const either = AbortSignal.any([signal, ended.signal]);
    const packer = createPacker(format, converter, either);
    const counts = { entries: 0, bytes: 0, skipped: 0 };
    const produced = fill(
        { root, packer, signal: either, counts },
        [path],
        commonFolder([path]),
        () => undefined
    );
    produced.catch(() => undefined);
    try {
        yield* packer.output;
        await produced;
    } finally {
        // The reader may have left before the end.
        ended.abort();
        packer.destroy(new Error('The download has ended'));
        await produced.catch(() => undefined);
    }
}

/** The bytes of what goes into an archive. @throws ARCHIVE_TOO_LARGE 42252, NOT_FOUND 40400 */
export async function measureAll(root: Root, tops: readonly string[], limits: Limits): Promise<number> {
    let total = 0;
    for (const top of tops) {
        const { entries, bytes } = await measure(root.files, top, {
            entries: limits.entries,
            bytes: limits.bytes
        });
        total += bytes;
        if (entries > limits.entries || total > limits.bytes) {
            throw entries > limits.entries
                ? fail.ARCHIVE_TOO_LARGE({ limit: limits.entries, unit: 'entries' })
                : fail.ARCHIVE_TOO_LARGE({ limit: limits.bytes, unit: 'bytes' });
        }
    }
    return total;
}

async function fill(
    packing: Packing,
    tops: readonly string[],
    base: string,
    step: () => void
): Promise<void> {
    const { root, packer, signal } = packing;
    try {
        for (const top of tops) {
            for await (const found of withTop(root, top, signal)) {
                signal.throwIfAborted();
                await add(packing, found, relativeTo(base, found.path), step);
            }
        }
        packer.end();
    } catch (error) {
        packer.destroy(error as Error);
        throw error;
    }
}

/** An archive in progress. */
interface Packing {
    readonly root: Root;
    readonly packer: Packer;
    readonly signal: AbortSignal;
    readonly counts: { entries: number; bytes: number; skipped: number };
}

async function runBoth(output: Promise<unknown>, produced: Promise<void>, packer: Packer): Promise<void> {
    output.catch((error: unknown) => packer.destroy(error as Error));
    const [first, second] = await Promise.allSettled([produced, output]);
    const failed = [second, first].find((one) => one.status === 'rejected');
    if (failed !== undefined) {
        throw (first.status === 'rejected' && isAborted(second) ? first.reason : failed.reason) as Error;
    }
}

/** Tells whether a stream failed only because another one was destroyed, whose error says why. */
function isAborted(settled: PromiseSettledResult<unknown>): boolean {
    return (
        settled.status === 'rejected' &&
        ['ERR_STREAM_PREMATURE_CLOSE', 'ABORT_ERR'].includes(
            String((settled.reason as { code?: unknown }).code)
        )
    );
}

async function add(
    { root, packer, signal, counts }: Packing,
    found: TreeEntry,
    name: string,
    step: () => void
): Promise<void> {
    const { type } = found.entry;
    if (name === '') {
        return;
    }
    if (type === 'folder') {
        await packer.folder(name, found);
        counts.entries += 1;
        return;
    }
    if (type !== 'file' || !isPackable(name)) {
        counts.skipped += 1;
        return;
    }
    try {
        const { handle, entry } = await openFile(root.files, found.path);
        try {
            await packer.file(
                name,
                { path: found.path, entry },
                untilAborted(exactly(handle, entry.size), signal)
            );
        } finally {
            await handle.close();
        }
        counts.entries += 1;
        counts.bytes += entry.size;
        step();
    } catch (error) {
        if (!isMissing(error)) {
            throw error;
        }
        counts.skipped += 1;
    }
}

/** Leaves out names that extraction would refuse. */
function isPackable(name: string): boolean {
    return !name.includes('\\') && !name.includes('\uFFFD');
}

async function* withTop({ files }: Root, top: string, signal: AbortSignal): AsyncGenerator<TreeEntry> {
    const entry = await filesystem(() => files.stat(top));
    yield { path: top, entry };
    if (entry.type === 'folder') {
        yield* walk(files, top, signal);
    }
}

/** Yields exactly `size` bytes. A file that became shorter meanwhile is filled with zeros, as tar does. */
async function* exactly(handle: FileHandle, size: number): AsyncGenerator<Uint8Array> {
    let done = 0;
    for await (const chunk of bytesOf(handle, 0, size)) {
        done += chunk.byteLength;
        yield chunk;
    }
    for (const zeros = Buffer.alloc(64 * 1024); done < size;) {
        const chunk = zeros.subarray(0, Math.min(zeros.byteLength, size - done));
        done += chunk.byteLength;
        yield chunk;
    }
}

/** Leaves out paths that lie inside another one. */
function outermost(paths: readonly string[]): string[] {
    const unique = [...new Set(paths)];
    return unique.filter((path) => !unique.some((other) => other !== path && isWithin(path, other)));
}

/** The deepest folder that holds all of them; names in the archive are relative to it. */
function commonFolder(paths: readonly string[]): string {
    const [first = '', ...others] = paths.map((path) => (path === '' ? '' : parentOf(path)));
    return others.reduce((folder, other) => {
        let common = folder;
        while (!isWithin(other, common)) {
            common = parentOf(common);
        }
        return common;
    }, first);
}

function relativeTo(base: string, path: string): string {
    return base === '' ? path : path === base ? nameOf(path) : path.slice(base.length + 1);
}
