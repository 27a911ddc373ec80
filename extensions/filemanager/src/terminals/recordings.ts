/**
 * Recordings of terminals, as asciicast v2: what a shell shows, never what is typed. Each piece is in the file before it is shown, so that
 * no terminal goes on that is not recorded.
 */
import { mkdir, open, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

import { type Download, errors, joi, type Value } from '@portico/sdk';

import { RecordingEntity, type RecordingRow } from '../entities.ts';
import { fail } from '../errors.ts';
import { bytesOf } from '../files/content/bytes.ts';
import { allowMissing, filesystem } from '../files/filesystem.ts';
import type { Ctx } from '../settings.ts';

const dayMs = 86_400_000;
const folderName = 'recordings';

/** The schema of a recording in a list. */
export const recordingSchema = joi.object({
    id: joi
        .number()
        .integer()
        .required()
        .label('Number')
        .meta({ ui: { column: 1 } }),
    username: joi
        .string()
        .allow('')
        .required()
        .label('User')
        .meta({ ui: { column: 2 } }),
    startedAt: joi
        .string()
        .isoDate()
        .required()
        .label('Began')
        .meta({ ui: { column: 3 } }),
    endedAt: joi
        .string()
        .isoDate()
        .allow(null)
        .required()
        .label('Ended')
        .description('Null while the terminal is open')
        .meta({ ui: { column: 4 } }),
    bytes: joi
        .number()
        .integer()
        .required()
        .label('Size')
        .unit('byte')
        .meta({ ui: { column: 5 } })
});

/** One recording that goes on. */
export interface Recorder {
    readonly id: number;
    /** Puts down what is shown. @throws STORAGE_FULL 50700, RECORDING_FULL 50751 */
    shown(bytes: Uint8Array): Promise<void>;
    /** Puts down a new size. @throws STORAGE_FULL 50700, RECORDING_FULL 50751 */
    resized(columns: number, rows: number): Promise<void>;
    /** Ends the recording. Never rejects. */
    end(): Promise<void>;
}

/** The recordings of all terminals. */
export class Recordings {
    readonly #ctx: Ctx;
    /** Bytes of all recordings, also of those that go on. */
    #stored = 0;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** Begins a recording. @throws STORAGE_FULL 50700, RECORDING_FULL 50751 */
    async begin(
        username: string,
        { columns, rows }: { readonly columns: number; readonly rows: number }
    ): Promise<Recorder> {
        const started = Date.now();
        this.#refuseOverLimit(0, 0);
        const decoder = new TextDecoder();
        let bytes = 0;
        await filesystem(() => mkdir(join(this.#ctx.dataDir, folderName), { recursive: true, mode: 0o700 }));
        const id = await this.#ctx.db.write((em) =>
            em.insert(RecordingEntity, { username, started, ended: null, bytes: 0 })
        );
        const handle = await filesystem(() => open(this.#fileOf(id), 'wx', 0o600)).catch(
            async (error: unknown) => {
                await this.#ctx.db.write((em) => em.nativeDelete(RecordingEntity, { id }));
                throw error;
            }
        );
        const add = async (line: unknown): Promise<void> => {
            const text = Buffer.from(`${JSON.stringify(line)}\n`);
            this.#refuseOverLimit(bytes, text.byteLength);
            bytes += text.byteLength;
            this.#stored += text.byteLength;
            await filesystem(() => handle.appendFile(text));
        };
        const event = (code: string, text: string) => add([(Date.now() - started) / 1_000, code, text]);
        const end = async (): Promise<void> => {
            try {
                await handle.close();
                await this.#ctx.db.write((em) =>
                    em.nativeUpdate(RecordingEntity, { id }, { ended: Date.now(), bytes })
                );
            } catch (error) {
                // The next start says from the file when it ended.
                this.#ctx.log.warn('The end of a recording could not be stored', {
                    id,
                    error: String(error)
                });
            }
        };
        try {
            await add({
                version: 2,
                width: columns,
                height: rows,
                timestamp: Math.floor(started / 1_000),
                env: { TERM: 'xterm-256color' }
            });
        } catch (error) {
            await end();
            throw error;
        }
        return {
            id,
            shown: async (chunk) => {
                const text = decoder.decode(chunk, { stream: true });
                if (text !== '') {
                    await event('o', text);
                }
            },
            resized: (width, height) => event('r', `${width}x${height}`),
            end
        };
    }

    /** Newest first. */
    async list(limit: number, after: number | null): Promise<readonly RecordingRow[]> {
        return this.#ctx.db.read((em) =>
            em.find(RecordingEntity, after === null ? {} : { id: { $lt: after } }, {
                orderBy: { id: 'desc' },
                limit: limit + 1
            })
        );
    }

    /** A row as a list shows it. */
    view({ id, username, started, ended, bytes }: RecordingRow): Value<typeof recordingSchema> {
        return {
            id,
            username,
            startedAt: new Date(started).toISOString(),
            endedAt: ended === null || ended === undefined ? null : new Date(ended).toISOString(),
            bytes
        };
    }

    /** One for download, up to what it has now. @throws NOT_FOUND 40400 */
    async open(id: number): Promise<Download> {
        const { started } = await this.#one(id);
        const handle = await filesystem(() => open(this.#fileOf(id), 'r'));
        const { size } = await handle.stat();
        return {
            size,
            type: 'application/x-asciicast',
            name: `terminal-${id}-${new Date(started).toISOString().slice(0, 10)}.cast`,
            open: ({ start, end }) => bytesOf(handle, start, end ?? size),
            close: () => handle.close()
        };
    }

    /** Removes one. @throws NOT_FOUND 40400, IN_USE 40901 while it goes on */
    async remove(id: number): Promise<RecordingRow> {
        const row = await this.#one(id);
        if (row.ended === null || row.ended === undefined) {
            throw errors.inUse('an open terminal');
        }
        await this.#discard(row);
        return row;
    }

    /** Removes those that were kept long enough. */
    async expire(signal: AbortSignal): Promise<void> {
        const before = Date.now() - this.#ctx.settings.recordingDays * dayMs;
        const rows = await this.#ctx.db.read((em) => em.find(RecordingEntity, { ended: { $lt: before } }));
        for (const row of rows) {
            signal.throwIfAborted();
            await this.#discard(row);
        }
    }

    /** Ends the rows of recordings that a crash cut off, and counts the bytes of all. Call it before the first terminal opens. */
    async endRemains(): Promise<void> {
        const rows = await this.#ctx.db.read((em) => em.find(RecordingEntity, { ended: null }));
        for (const { id, started } of rows) {
            const file = await stat(this.#fileOf(id)).catch(allowMissing);
            const found = { ended: file?.mtimeMs ?? started, bytes: file?.size ?? 0 };
            await this.#ctx.db.write((em) =>
                em.nativeUpdate(RecordingEntity, { id }, { ...found, ended: Math.round(found.ended) })
            );
        }
        const all = await this.#ctx.db.read((em) => em.find(RecordingEntity, {}));
        this.#stored = all.reduce((sum, { bytes }) => sum + bytes, 0);
    }

    /** @throws RECORDING_FULL 50751 */
    #refuseOverLimit(bytes: number, more: number): void {
        const { recordingBytes, recordingsBytes } = this.#ctx.settings;
        if (bytes + more > recordingBytes) {
            throw fail.RECORDING_FULL({ what: 'its recording', limit: recordingBytes });
        }
        if (this.#stored + more > recordingsBytes) {
            throw fail.RECORDING_FULL({ what: 'all recordings', limit: recordingsBytes });
        }
    }

    async #one(id: number): Promise<RecordingRow> {
        const row = await this.#ctx.db.read((em) => em.findOne(RecordingEntity, { id }));
        if (row === null) {
            throw errors.notFound();
        }
        return row;
    }

    async #discard({ id, bytes }: RecordingRow): Promise<void> {
        await rm(this.#fileOf(id), { force: true });
        const removed = await this.#ctx.db.write((em) => em.nativeDelete(RecordingEntity, { id }));
        this.#stored -= removed === 1 ? bytes : 0;
    }

    #fileOf(id: number): string {
        return join(this.#ctx.dataDir, folderName, `${id}.cast`);
    }
}
