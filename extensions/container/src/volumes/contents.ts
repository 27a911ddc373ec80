/** Single files in volumes, read where the engine keeps them. No link is followed, so nothing outside is ever read. */
import { posix } from 'node:path';

import { type Download, errors, type FileEntry } from '@portico/sdk';

import type { Ctx } from '../settings.ts';
import type { VolumeArchives } from './archives.ts';

/** Lists folders of volumes, and reads files. */
export class VolumeContents {
    readonly #ctx: Ctx;
    readonly #archives: VolumeArchives;

    constructor(ctx: Ctx, archives: VolumeArchives) {
        this.#ctx = ctx;
        this.#archives = archives;
    }

    /** What a folder has. @throws NOT_FOUND 40400, ENGINE_LACKS 50150 for a volume whose content lies elsewhere */
    async list(volume: string, path: string): Promise<readonly FileEntry[]> {
        const { Mountpoint: mountpoint } = await this.#archives.plain(volume);
        return this.#ctx.files(mountpoint).list(below(path));
    }

    /** A file, whole or in ranges. @throws NOT_FOUND 40400, ENGINE_LACKS 50150 */
    async download(volume: string, path: string): Promise<Download> {
        const { Mountpoint: mountpoint } = await this.#archives.plain(volume);
        const files = this.#ctx.files(mountpoint);
        const entry = await files.stat(below(path));
        if (entry.type !== 'file') {
            throw errors.notFound('There is no such file');
        }
        const handle = await files.open(below(path));
        return {
            size: entry.size,
            type: 'application/octet-stream',
            name: posix.basename(path),
            version: entry.version,
            modifiedAt: entry.modifiedAt,
            open: ({ start, end }) =>
                handle.createReadStream({
                    start,
                    ...(end === null ? {} : { end: end - 1 }),
                    autoClose: false
                }) as AsyncIterable<Uint8Array>,
            close: () => handle.close()
        };
    }
}

/** A path relative to the volume. @throws NOT_FOUND 40400 for one that climbs out of it */
function below(path: string): string {
    const parts = path.split('/').filter((part) => part !== '' && part !== '.');
    if (parts.includes('..')) {
        throw errors.notFound('There is no such path in the volume');
    }
    return parts.join('/');
}
