/** Paths relative to a granted folder: how they are split into steps, and how a step is named for the kernel. */
import type { PathLike } from 'node:fs';

import { errors } from '@portico/sdk';

import { bytesOf } from './file-name.ts';

const longestPath = 4096;
const longestName = 255;

/** Splits a relative path into its steps. @throws NOT_FOUND 40400 for a path that no entry can have */
export function stepsOf(path: string): string[] {
    if (
        typeof path !== 'string' ||
        path.length > longestPath ||
        path.includes('\0') ||
        path.startsWith('/')
    ) {
        throw errors.notFound('There is nothing at that path');
    }
    const names = path.split('/').filter((name) => name !== '');
    if (
        names.some(
            (name) =>
                name === '.' || name === '..' || (bytesOf(name)?.length ?? longestName + 1) > longestName
        )
    ) {
        throw errors.notFound('There is nothing at that path');
    }
    return names;
}

/** The path of an entry, in the bytes of its name, below the path of its folder. */
export function pathOf(at: string, name: string): PathLike {
    const bytes = bytesOf(name);
    return bytes === null ? `${at}/${name}` : Buffer.concat([Buffer.from(`${at}/`), bytes]);
}

/** Whether a path is the folder itself or lies below it. Both are absolute and without links. */
export function within(path: string, folder: string): boolean {
    return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}
