/** The content of files, read in ranges. */
import type { FileHandle } from 'node:fs/promises';

import { type Download, errors, type FileEntry, type Files } from '@portico/sdk';
import { lookup } from 'mrmime';

import { fail } from '../../errors.ts';
import { nameOf } from '../../roots/path.ts';
import { filesystem } from '../filesystem.ts';
import { bytesOf } from './bytes.ts';

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
        requireFile(before, path);
        const handle = await filesystem(() => files.open(path, 'r'));
        try {
            const [opened, after] = await Promise.all([handle.stat(), filesystem(() => files.stat(path))]);
            if (opened.isFile() && before.version === after.version && opened.size === before.size) {
                return { handle, entry: before };
            }
            if (attempt === maxAttempts) {
                throw fail.CHANGED_MEANWHILE({ path });
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

/** Refuses an entry that is no regular file. @throws NOT_FOUND 40400 for a link, WRONG_TYPE 40950 */
export function requireFile({ type }: FileEntry, path: string): void {
    if (type === 'link') {
        throw errors.notFound('Links are not followed');
    }
    if (type !== 'file') {
        throw fail.WRONG_TYPE({ path, type, wanted: 'file' });
    }
}

/** The media type of a name. */
export function mediaType(path: string): string {
    return lookup(nameOf(path)) ?? 'application/octet-stream';
}
