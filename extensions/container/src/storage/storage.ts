/** Large things that wait on the disk: contexts of builds, archives on their way in, and snapshots. They lie beside the folders of stacks. */
import { randomBytes } from 'node:crypto';

import { errors, type Files, isFailure } from '@portico/sdk';

import type { Ctx } from '../settings.ts';

/** Names of folders; no stack has a name that begins with a dot. */
export const storageFolders = ['.builds', '.uploads', '.snapshots'] as const;
/** One of {@link storageFolders}. */
export type StorageFolder = (typeof storageFolders)[number];

/** Room that writing leaves free. */
const reserveBytes = 64 * 1024 * 1024;
/** How often the room is looked at, in bytes. */
const lookBytes = 32 * 1024 * 1024;

/** Files below the folder of stacks that no container can have. */
export class Storage {
    readonly #ctx: Ctx;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** A path for a new file or folder, which is not made. */
    newPath(folder: StorageFolder): string {
        return `${folder}/${randomBytes(9).toString('hex')}`;
    }

    /**
     * Writes all that comes to the end of a file.
     *
     * @param mostBytes - the most that the file may have
     * @throws STORAGE_FULL 50700; VALIDATION_FAILED 40001 for more than `mostBytes`
     */
    async append(path: string, source: AsyncIterable<Uint8Array>, mostBytes: number): Promise<number> {
        const files = await this.#ensure(path);
        const handle = await files.open(path, 'a', 0o600);
        try {
            let { size } = await handle.stat();
            let looked = -1;
            for await (const chunk of source) {
                if (looked < 0 || size - looked >= lookBytes) {
                    looked = size;
                    if ((await files.space()).available < reserveBytes) {
                        throw errors.storageFull();
                    }
                }
                size += chunk.byteLength;
                if (size > mostBytes) {
                    throw errors.invalid([{ path: '', message: `More than ${mostBytes} bytes` }]);
                }
                await handle.writeFile(chunk);
            }
            return size;
        } catch (error) {
            throw (error as NodeJS.ErrnoException).code === 'ENOSPC' ? errors.storageFull() : error;
        } finally {
            await handle.close();
        }
    }

    /** The bytes of a file. @throws NOT_FOUND 40400 */
    async *read(path: string): AsyncGenerator<Uint8Array> {
        const handle = await this.#files().open(path, 'r');
        try {
            for await (const chunk of handle.createReadStream({ autoClose: false })) {
                yield chunk as Buffer;
            }
        } finally {
            await handle.close();
        }
    }

    /** Removes a file, or a folder with all that is in it; what is gone already is no fault. */
    async remove(path: string): Promise<void> {
        await this.#files()
            .remove(path, { recursive: true })
            .catch((error: unknown) => {
                if (!isFailure(error) || error.code !== 40400) {
                    throw error;
                }
            });
    }

    /** Names of what a folder has. */
    async list(folder: StorageFolder): Promise<readonly string[]> {
        try {
            return (await this.#files().list(folder)).map(({ name }) => name);
        } catch (error) {
            if (isFailure(error) && error.code === 40400) {
                return [];
            }
            throw error;
        }
    }

    #files(): Files {
        return this.#ctx.files(this.#ctx.settings.stackFolder);
    }

    async #ensure(path: string): Promise<Files> {
        const { stackFolder } = this.#ctx.settings;
        await this.#ctx
            .files('/')
            .createFolder(stackFolder.replace(/^\/+/, ''), { parents: true, mode: 0o711 });
        const files = this.#files();
        await files.createFolder(path.split('/').slice(0, -1).join('/'), { parents: true, mode: 0o700 });
        return files;
    }
}
