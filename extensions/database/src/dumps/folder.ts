/** The plugin's own folder on the disk: dumps, uploads and managed servers. */
import type { FileHandle } from 'node:fs/promises';

import { errors, type FileEntry, type Files, isFailure } from '@portico/sdk';

import type { Ctx } from '../settings.ts';

/** Room that writing leaves free. */
const reserveBytes = 64 * 1024 * 1024;

/** Files below the folder of the settings. */
export class DataFolder {
    readonly #ctx: Ctx;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** Absolute. */
    get path(): string {
        return this.#ctx.settings.dataFolder;
    }

    /** Makes a folder below it, and the folders above that are missing. */
    async ensure(name: string, mode = 0o700): Promise<Files> {
        const below = this.path.replace(/^\/+/, '');
        await this.#ctx.files('/').createFolder(below, { parents: true, mode: 0o711 });
        const files = this.#ctx.files(this.path);
        await files.createFolder(name, { parents: true, mode });
        return files;
    }

    /** The files below it. */
    files(): Files {
        return this.#ctx.files(this.path);
    }

    /** Writes all that comes to a new file, and removes it when that fails. @throws STORAGE_FULL 50700 */
    async write(
        path: string,
        source: AsyncIterable<Uint8Array>,
        seen: (chunk: Uint8Array) => void = () => undefined
    ): Promise<number> {
        const files = await this.ensure(path.split('/').slice(0, -1).join('/'));
        const handle = await files.open(path, 'wx', 0o600);
        try {
            const bytes = await this.#pour(files, handle, source, seen);
            await handle.sync();
            await handle.close();
            return bytes;
        } catch (error) {
            await handle.close();
            await files.remove(path);
            throw (error as NodeJS.ErrnoException).code === 'ENOSPC' ? errors.storageFull() : error;
        }
    }

    async #pour(
        files: Files,
        handle: FileHandle,
        source: AsyncIterable<Uint8Array>,
        seen: (chunk: Uint8Array) => void
    ): Promise<number> {
        let bytes = 0;
        let checked = 0;
        for await (const chunk of source) {
            if (bytes >= checked) {
                checked = bytes + reserveBytes / 2;
                if ((await files.space()).available < reserveBytes) {
                    throw errors.storageFull();
                }
            }
            seen(chunk);
            bytes += chunk.byteLength;
            await handle.writeFile(chunk);
        }
        return bytes;
    }

    /** Bytes of all files below a folder; none where there is no such folder. */
    async size(path: string): Promise<number> {
        let bytes = 0;
        for (const entry of await this.entries(path)) {
            bytes += entry.type === 'folder' ? await this.size(`${path}/${entry.name}`) : entry.size;
        }
        return bytes;
    }

    /** Names below a folder that lead out of it: links, and the files in which InnoDB keeps the place of a table that lies elsewhere. */
    async waysOut(path: string): Promise<readonly string[]> {
        const found: string[] = [];
        for (const { name, type } of await this.entries(path)) {
            if (type === 'folder') {
                found.push(...(await this.waysOut(`${path}/${name}`)).map((each) => `${name}/${each}`));
            } else if (type === 'link' || name.endsWith('.isl')) {
                found.push(name);
            }
        }
        return found;
    }

    /** What is in a folder; nothing where there is no such folder. */
    async entries(path: string): Promise<readonly FileEntry[]> {
        return this.files()
            .list(path)
            .catch((error: unknown) => {
                if (isFailure(error) && error.reason === 'NOT_FOUND') {
                    return [];
                }
                throw error;
            });
    }

    /** @throws STORAGE_FULL 50700 where so many bytes more have no room */
    async requireSpace(bytes: number): Promise<void> {
        if ((await this.files().space()).available < bytes + reserveBytes) {
            throw errors.storageFull();
        }
    }

    /** Removes a file that may be gone already. */
    async remove(path: string): Promise<void> {
        await this.files()
            .remove(path, { recursive: true })
            .catch((error: unknown) => {
                if ((error as { code?: unknown }).code !== 40400) {
                    throw error;
                }
            });
    }
}
