/**
 * Stores uploads: rows in the database, bytes in the private folder of their root. The offset of an upload is the size of its file and is
 * stored nowhere else, so a crash cannot make the two differ.
 */
import { randomBytes } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';

import { type Actor, errors, type Files } from '@portico/sdk';

import { UploadEntity, type UploadRow } from '../entities.ts';
import { fail } from '../errors.ts';
import { changeFileOwner, ownerOf } from '../files/attributes/owner.ts';
import { bytesOf, received, untilAborted, writeAll, writeFrom } from '../files/content/bytes.ts';
import { allowMissing, filesystem, isMissing } from '../files/filesystem.ts';
import { isOtherDevice, move } from '../files/move.ts';
import type { WriterParts } from '../files/writer.ts';
import { join, parentOf, privateFolder } from '../roots/path.ts';
import { ensurePrivate, privatePath } from '../roots/private-folder.ts';
import { refuseReadOnly, type Root, type Roots } from '../roots/roots.ts';
import type { Ctx } from '../settings.ts';
import type { Checksum } from './headers.ts';

const hourMs = 3_600_000;
/** How long a new request waits for an older one to end that it aborted. */
const abortWaitMs = 5_000;
/** Bytes after which a write is made durable, so that a crash loses little. */
const syncBytes = 64 * 2 ** 20;

/** What an upload is created with. */
export interface NewUpload {
    readonly root: Root;
    readonly path: string;
    readonly length: number;
    readonly metadata: string;
    readonly replace: boolean;
}

/** An upload and its offset. */
export interface UploadState {
    readonly row: UploadRow;
    readonly offset: number;
}

/** Bytes that are added to an upload. */
export interface Chunk {
    readonly offset: number;
    readonly body: AsyncIterable<Uint8Array> | null;
    readonly checksum: Checksum | null;
    readonly signal: AbortSignal;
}

interface Writer {
    readonly abort: AbortController;
    readonly done: Promise<unknown>;
}

/** The uploads of all actors. */
export class Uploads {
    readonly #ctx: Ctx;
    readonly #roots: Roots;
    readonly #parts: WriterParts;
    readonly #writers = new Map<string, Writer>();

    constructor(ctx: Ctx, roots: Roots, parts: WriterParts) {
        this.#ctx = ctx;
        this.#roots = roots;
        this.#parts = parts;
    }

    /** Creates an upload. @throws UPLOAD_TOO_LARGE 41350, CONFLICT 40900 when the file exists and must not be replaced, NOT_FOUND 40400 without its folder */
    async create(actor: Actor, { root, path, length, metadata, replace }: NewUpload): Promise<UploadRow> {
        const { uploadBytes } = this.#ctx.settings;
        if (length > uploadBytes) {
            throw fail.UPLOAD_TOO_LARGE({ limit: uploadBytes });
        }
        refuseReadOnly(root);
        await ownerOf(root.files, parentOf(path));
        await this.#refuseTaken(root.files, path, replace);
        using _reserved = await this.#parts.quotas.reserve(root, length);
        await ensurePrivate(root.files, 'uploads');
        const row: UploadRow = {
            id: randomBytes(16).toString('hex'),
            folder: root.folder,
            root: root.name,
            path,
            length,
            actor: actor.key,
            metadata,
            replace,
            done: false,
            expires: this.#expiry()
        };
        // From here on the row itself counts, until the file has its name.
        await this.#ctx.db.write((em) => em.insert(UploadEntity, row));
        try {
            await filesystem(async () =>
                (await root.files.open(privatePath('uploads', row.id), 'wx', 0o600)).close()
            );
        } catch (error) {
            await this.#removeRow(row.id);
            throw error;
        }
        return row;
    }

    /** Finds an upload of the actor. @throws NOT_FOUND 40400 for an unknown upload, for one of another actor, and for a root that the actor may no longer reach; UPLOAD_GONE 41050 */
    async find(actor: Actor, id: string): Promise<UploadState> {
        const row = await this.#ctx.db.read((em) => em.findOne(UploadEntity, { id }));
        if (row === null || row.actor !== actor.key) {
            throw errors.notFound();
        }
        const root = this.#rootOf(actor, row);
        if (row.expires < Date.now()) {
            throw fail.UPLOAD_GONE();
        }
        return { row, offset: await offsetOf(root.files, row) };
    }

    /**
     * Writes a chunk. What arrived before a connection broke is kept, unless the chunk has a checksum. An older request that still writes
     * is aborted, because its client has come back. After the last byte the file gets its name.
     *
     * @throws OFFSET_MISMATCH 40957, UPLOAD_BUSY 42350, UPLOAD_TOO_LARGE 41350, CHUNK_MISMATCH 46050, CONFLICT 40900
     */
    async append(actor: Actor, id: string, chunk: Chunk): Promise<UploadState> {
        await this.#abortWriter(id);
        const abort = new AbortController();
        const work = this.#write(actor, id, {
            ...chunk,
            signal: AbortSignal.any([chunk.signal, abort.signal, this.#ctx.signal])
        });
        const writer = { abort, done: work.catch(() => undefined) };
        this.#writers.set(id, writer);
        try {
            return await work;
        } finally {
            if (this.#writers.get(id) === writer) {
                this.#writers.delete(id);
            }
        }
    }

    /** Removes an upload and its bytes. @throws as `find` */
    async remove(actor: Actor, id: string): Promise<void> {
        const { row } = await this.find(actor, id);
        refuseReadOnly(this.#rootOf(actor, row));
        await this.#abortWriter(id);
        await this.#discard(row);
    }

    /** Removes expired uploads that no request writes to. */
    async expire(signal: AbortSignal): Promise<void> {
        const rows = await this.#ctx.db.read((em) => em.find(UploadEntity, { expires: { $lt: Date.now() } }));
        for (const row of rows.filter(({ id }) => !this.#writers.has(id))) {
            signal.throwIfAborted();
            if (this.#roots.formerRoot(row.folder).readOnly) {
                continue;
            }
            await this.#discard(row).catch((error: unknown) =>
                this.#ctx.log.warn('An expired upload could not be removed', {
                    folder: row.folder,
                    path: row.path,
                    error: String(error)
                })
            );
        }
    }

    async #write(actor: Actor, id: string, { offset, body, checksum, signal }: Chunk): Promise<UploadState> {
        const { row, offset: now } = await this.find(actor, id);
        if (now !== offset) {
            throw fail.OFFSET_MISMATCH({ offset: now });
        }
        const root = this.#rootOf(actor, row);
        refuseReadOnly(root);
        if (row.done) {
            return { row, offset: now };
        }
        const reached = await filesystem(async () => {
            await using closing = new AsyncDisposableStack();
            const handle = closing.adopt(await root.files.open(privatePath('uploads', id), 'r+'), (one) =>
                one.close()
            );
            try {
                return await writeChunk(handle, row.length, { offset, body, checksum, signal });
            } finally {
                await handle.datasync();
            }
        });
        const renewed = { ...row, expires: this.#expiry() };
        await this.#ctx.db.write((em) => em.nativeUpdate(UploadEntity, { id }, { expires: renewed.expires }));
        if (reached === row.length) {
            await this.#finish(root, renewed, actor);
            return { row: { ...renewed, done: true }, offset: reached };
        }
        return { row: renewed, offset: reached };
    }

    /** Gives the complete file its name. The row stays until it expires, so that a client that missed the answer learns of the success. */
    async #finish(root: Root, row: UploadRow, actor: Actor): Promise<void> {
        const { files } = root;
        const { mutex, quotas, versions } = this.#parts;
        const from = privatePath('uploads', row.id);
        await filesystem(async () => {
            await using closing = new AsyncDisposableStack();
            const handle = closing.adopt(await files.open(from, 'r+'), (one) => one.close());
            await changeFileOwner(handle, await ownerOf(files, parentOf(row.path)));
            await handle.chmod(0o640);
        });
        await mutex.run(join(root.folder, row.path), async () => {
            if (await this.#refuseTaken(files, row.path, row.replace)) {
                await versions.keep(root, row.path, actor);
                quotas.freed(root);
            }
            try {
                await move(files, from, row.path, { replace: row.replace });
            } catch (error) {
                if (!isOtherDevice(error)) {
                    throw error;
                }
                await filesystem(() => this.#copyOver(root, row));
            }
        });
        // The row, which counts the announced length until now, gives way to the file itself.
        quotas.placed(root, row.length);
        await this.#ctx.db.write((em) => em.nativeUpdate(UploadEntity, { id: row.id }, { done: true }));
    }

    /** Copies the file to its place, for a folder that is a file system of its own. */
    async #copyOver(root: Root, row: UploadRow): Promise<void> {
        const { files } = root;
        await this.#parts.scratch.beside(root, row.path, async (temporary) => {
            await using closing = new AsyncDisposableStack();
            const source = closing.adopt(await files.open(privatePath('uploads', row.id), 'r'), (one) =>
                one.close()
            );
            const target = closing.adopt(await files.open(temporary, 'wx', 0o600), (one) => one.close());
            await writeFrom(target, bytesOf(source, 0, row.length));
            await target.sync();
            await changeFileOwner(target, await ownerOf(files, parentOf(row.path)));
            await target.chmod(0o640);
            await files.move(temporary, row.path, { replace: row.replace });
        });
        await files.remove(privatePath('uploads', row.id));
    }

    /** Resolves with whether there is a file to replace. @throws CONFLICT 40900, WRONG_TYPE 40950 */
    async #refuseTaken(files: Files, path: string, replace: boolean): Promise<boolean> {
        try {
            const { type } = await files.stat(path);
            if (!replace) {
                throw errors.conflict('path');
            }
            if (type !== 'file') {
                throw fail.WRONG_TYPE({ path, type, wanted: 'file' });
            }
            return true;
        } catch (error) {
            if (!isMissing(error)) {
                throw error;
            }
            return false;
        }
    }

    async #abortWriter(id: string): Promise<void> {
        const writer = this.#writers.get(id);
        if (writer === undefined) {
            return;
        }
        writer.abort.abort(fail.UPLOAD_BUSY());
        const timeout = Promise.withResolvers<boolean>();
        const timer = setTimeout(() => timeout.resolve(false), abortWaitMs);
        try {
            if (!(await Promise.race([writer.done.then(() => true), timeout.promise]))) {
                throw fail.UPLOAD_BUSY();
            }
        } finally {
            clearTimeout(timer);
        }
    }

    async #discard(row: UploadRow): Promise<void> {
        if (!row.done) {
            await this.#roots
                .formerRoot(row.folder)
                .files.remove(`${privateFolder}/uploads/${row.id}`)
                .catch(allowMissing);
        }
        await this.#removeRow(row.id);
    }

    /** The root of an upload, if the actor may still reach it under its old name and it is still the same folder. */
    #rootOf(actor: Actor, row: UploadRow): Root {
        const root = this.#roots.of(actor, row.root);
        if (root.folder !== row.folder) {
            throw errors.notFound();
        }
        return root;
    }

    #expiry(): number {
        return Date.now() + this.#ctx.settings.uploadHours * hourMs;
    }

    async #removeRow(id: string): Promise<void> {
        await this.#ctx.db.write((em) => em.nativeDelete(UploadEntity, { id }));
    }
}

/** Writes the bytes of a chunk, and resolves with the offset behind them. Keeps nothing of a chunk whose checksum was announced and does not hold. */
async function writeChunk(
    handle: FileHandle,
    length: number,
    { offset, body, checksum, signal }: Chunk
): Promise<number> {
    let at = offset;
    let synced = offset;
    try {
        const parts = body === null ? [] : received(untilAborted(body, signal), () => undefined);
        for await (const part of parts) {
            signal.throwIfAborted();
            if (at + part.byteLength > length) {
                throw fail.UPLOAD_TOO_LARGE({ limit: length });
            }
            await writeAll(handle, part, at);
            checksum?.hash.update(part);
            at += part.byteLength;
            if (at - synced >= syncBytes) {
                await handle.datasync();
                synced = at;
            }
        }
        signal.throwIfAborted();
        if (checksum !== null && !checksum.hash.digest().equals(checksum.expected)) {
            throw fail.CHUNK_MISMATCH();
        }
    } catch (error) {
        if (checksum !== null) {
            await handle.truncate(offset);
        }
        throw error;
    }
    return at;
}

/** The offset of an upload. @throws UPLOAD_GONE 41050 */
async function offsetOf(files: Files, row: UploadRow): Promise<number> {
    if (row.done) {
        return row.length;
    }
    try {
        return (await files.stat(privatePath('uploads', row.id))).size;
    } catch (error) {
        if (!isMissing(error)) {
            throw error;
        }
        // A crash between the rename and the write of the row leaves a finished upload whose row does not say so.
        const finished = await files.stat(row.path).catch(() => null);
        if (finished?.type === 'file' && finished.size === row.length) {
            return row.length;
        }
        throw fail.UPLOAD_GONE();
    }
}
