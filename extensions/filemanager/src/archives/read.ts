/** Reads archives as a series of entries, whatever their format. An entry that is neither a file nor a folder refuses the archive. */
import type { FileHandle } from 'node:fs/promises';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createZstdDecompress } from 'node:zlib';

import tar from 'tar-stream';
import yauzl from 'yauzl';

import { fail } from '../errors.ts';
import { bytesOf } from '../files/content/bytes.ts';
import { nameOf } from '../roots/path.ts';
import { type Converter, told } from './converter.ts';
import { type Format, isPacked, type Limits, type PackedFormat } from './format.ts';
import type { EntryKind } from './names.ts';

/** Unpacked bytes that the ratio does not limit, because small texts pack very well. */
const freeBytes = 16 * 2 ** 20;

/** One entry. Its `body` must be read before the next entry is asked for. */
export interface ArchiveEntry {
    readonly name: string;
    /** `other` only where the caller asked for it. */
    readonly kind: EntryKind | 'other';
    /** Permission bits; null when the archive has none. */
    readonly mode: number | null;
    /** Bytes that it announces; null for one packed file, which announces none. */
    readonly size: number | null;
    readonly modifiedAt: Date | null;
    readonly body: AsyncIterable<Uint8Array>;
}

/** An archive that is open for reading. */
export interface Source {
    readonly handle: FileHandle;
    /** Its path, by which the content of one packed file is named. */
    readonly path: string;
    /** Bytes of the archive. */
    readonly size: number;
    readonly signal: AbortSignal;
    /** Is called with how many bytes of the archive were read so far. */
    read(bytes: number): void;
    /** Yields links and special files, too, for a list; default: they refuse the archive. */
    readonly withOthers?: boolean;
}

/** Yields the entries of an archive. @throws ARCHIVE_REFUSED 42251, ARCHIVE_TOO_LARGE 42252 */
export async function* entriesOf(
    converter: Converter,
    format: Format,
    source: Source,
    limits: Limits
): AsyncGenerator<ArchiveEntry> {
    const meter = new Meter(source.size, limits);
    try {
        if (format === 'zip') {
            yield* zipEntries(source, meter);
        } else if (isPacked(format)) {
            yield* packedEntries(converter, format, source, meter);
        } else if (format === 'tar' || format === 'tar.gz') {
            const input = told(bytesOf(source.handle, 0, source.size), source.read);
            yield* tarEntries(source, input, format === 'tar.gz', meter);
        } else {
            const input = converter.toPax(source, format === '7z' || format === 'rar');
            yield* tarEntries(source, input, false, meter);
        }
    } catch (error) {
        throw refusal(error);
    }
}

/** Counts unpacked bytes, and refuses more than the limits. */
class Meter {
    readonly #maxBytes: number;
    readonly #limits: Limits;
    #bytes = 0;

    constructor(size: number, limits: Limits) {
        this.#limits = limits;
        this.#maxBytes = Math.max(freeBytes, size * limits.ratio);
    }

    count(bytes: number): void {
        this.#bytes += bytes;
        if (this.#bytes > this.#limits.bytes) {
            throw fail.ARCHIVE_TOO_LARGE({ limit: this.#limits.bytes, unit: 'bytes' });
        }
        if (this.#bytes > this.#maxBytes) {
            throw fail.ARCHIVE_TOO_LARGE({ limit: this.#limits.ratio, unit: 'times its own size' });
        }
    }
}

async function* tarEntries(
    { signal, withOthers = false }: Source,
    bytes: AsyncIterable<Uint8Array>,
    packed: boolean,
    meter: Meter
): AsyncGenerator<ArchiveEntry> {
    const extract = tar.extract();
    // Headers count too: a bomb may be made of nothing else.
    const counted = new Transform({
        transform(chunk: Buffer, _encoding, done) {
            try {
                meter.count(chunk.byteLength);
                done(null, chunk);
            } catch (error) {
                done(error as Error);
            }
        }
    });
    const input = Readable.from(bytes);
    const stages = packed ? [input, createGunzip(), counted, extract] : [input, counted, extract];
    const ended = pipeline(stages as [Readable, Transform], { signal });
    ended.catch(() => undefined);
    try {
        for await (const entry of extract) {
            const { name, type, mode = null, size = 0, mtime = null } = entry.header;
            const kind =
                type === 'directory'
                    ? 'folder'
                    : type === 'file' || type === 'contiguous-file'
                      ? 'file'
                      : 'other';
            if (kind === 'other' && !withOthers) {
                throw fail.ARCHIVE_REFUSED({
                    why: 'it has links or special files',
                    entry: name.slice(0, 300)
                });
            }
            entry.on('error', ignoreError);
            const body = bodyOf(entry as AsyncIterable<Uint8Array>, () => undefined);
            yield { name, kind, mode, size, modifiedAt: mtime ?? null, body };
            entry.resume();
        }
        await ended;
    } finally {
        input.destroy();
        extract.destroy();
        await ended.catch(() => undefined);
    }
}

/** The content of one packed file, under its name without the ending. Its beginning is unpacked at once: garbage has no entry. */
async function* packedEntries(
    converter: Converter,
    format: PackedFormat,
    source: Source,
    meter: Meter
): AsyncGenerator<ArchiveEntry> {
    const chunks = unpacked(converter, format, source);
    try {
        const first = await chunks.next();
        const body = (async function* () {
            for (let next = first; next.done !== true; next = await chunks.next()) {
                yield next.value;
            }
        })();
        yield {
            name: nameOf(source.path).slice(0, -format.length - 1),
            kind: 'file',
            mode: null,
            size: null,
            modifiedAt: null,
            body: bodyOf(body, (bytes) => meter.count(bytes))
        };
    } finally {
        await chunks.return(undefined);
    }
}

async function* unpacked(
    converter: Converter,
    format: PackedFormat,
    source: Source
): AsyncGenerator<Uint8Array> {
    if (format === 'xz' || format === 'bz2') {
        yield* converter.unpack(format, source);
        return;
    }
    const input = Readable.from(told(bytesOf(source.handle, 0, source.size), source.read));
    const unpacker = format === 'gz' ? createGunzip() : createZstdDecompress();
    const ended = pipeline(input, unpacker, { signal: source.signal });
    ended.catch(() => undefined);
    try {
        yield* unpacker;
        await ended;
    } finally {
        input.destroy();
        unpacker.destroy();
        await ended.catch(() => undefined);
    }
}

/** Type bits of a Unix mode. */
const typeBits = 0o170000;
const fileType = 0o100000;
const folderType = 0o040000;
/** Who made the entry, in the upper byte of `versionMadeBy`. */
const madeByUnix = 3;

/** Reads by the handle's own descriptor, and leaves it open. */
class HandleReader extends yauzl.RandomAccessReader {
    readonly #handle: FileHandle;

    constructor(handle: FileHandle) {
        super();
        this.#handle = handle;
    }

    override _readStreamForRange(start: number, end: number): Readable {
        return Readable.from(bytesOf(this.#handle, start, end), { objectMode: false });
    }
}

async function* zipEntries(
    { handle, size, signal, read, withOthers = false }: Source,
    meter: Meter
): AsyncGenerator<ArchiveEntry> {
    const zip = await yauzl.fromRandomAccessReaderPromise(new HandleReader(handle), size, {
        lazyEntries: true,
        autoClose: false,
        strictFileNames: true,
        validateEntrySizes: true
    });
    let packed = 0;
    try {
        for await (const entry of zip.eachEntry()) {
            signal.throwIfAborted();
            const unix = entry.versionMadeBy >>> 8 === madeByUnix ? entry.externalFileAttributes >>> 16 : 0;
            const type = unix & typeBits;
            const named = entry.fileName.endsWith('/') ? 'folder' : 'file';
            const isPlain = type === 0 || type === (named === 'folder' ? folderType : fileType);
            if ((!isPlain || entry.isEncrypted()) && !withOthers) {
                throw fail.ARCHIVE_REFUSED({
                    why: isPlain ? 'it is encrypted' : 'it has links or special files',
                    entry: entry.fileName.slice(0, 300)
                });
            }
            yield {
                name: entry.fileName,
                kind: isPlain ? named : 'other',
                mode: unix === 0 ? null : unix & 0o777,
                size: entry.uncompressedSize,
                modifiedAt: entry.getLastModDate(),
                body: named === 'folder' ? Readable.from([]) : zipBody(zip, entry, meter)
            };
            packed += entry.compressedSize;
            read(Math.min(packed, size));
        }
    } finally {
        zip.close();
    }
}

/** Unpacks an entry once it is asked for. */
async function* zipBody(zip: yauzl.ZipFile, entry: yauzl.Entry, meter: Meter): AsyncGenerator<Uint8Array> {
    const stream = await zip.openReadStreamPromise(entry);
    stream.on('error', ignoreError);
    try {
        yield* bodyOf(stream, (bytes) => meter.count(bytes));
    } finally {
        stream.destroy();
    }
}

/** The body of an entry. Counts its bytes, and turns its errors into a refusal of the archive. */
async function* bodyOf(
    source: AsyncIterable<Uint8Array>,
    count: (bytes: number) => void
): AsyncGenerator<Uint8Array> {
    try {
        for await (const chunk of source) {
            count(chunk.byteLength);
            yield chunk;
        }
    } catch (error) {
        throw refusal(error);
    }
}

/** A listener for `error` on a stream that may fail before it is read: without one, Node ends the process. The reader still gets the error. */
function ignoreError(): void {
    // Nothing to do.
}

/** Turns an error of the archive libraries into a refusal of the archive. Errors of the system stay as they are. */
function refusal(error: unknown): unknown {
    const { name, code, syscall } = error as { name?: unknown; code?: unknown; syscall?: unknown };
    if (
        typeof code === 'number' ||
        typeof syscall === 'string' ||
        name === 'AbortError' ||
        !(error instanceof Error)
    ) {
        return error;
    }
    return fail.ARCHIVE_REFUSED({ why: error.message.slice(0, 300) }, { cause: error });
}
