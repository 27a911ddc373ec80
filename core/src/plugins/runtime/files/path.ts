/** Paths relative to a granted folder, as plugins write them. */
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

/**
 * The text of a symbolic link, in bytes. It is resolved from the folder of the link, and by its words alone it stays below the root.
 *
 * @throws VALIDATION_FAILED 40001 for any other text
 */
export function linkTarget(path: string, target: string): PathLike {
    const bytes = typeof target === 'string' ? bytesOf(target) : null;
    let depth = stepsOf(path).length - 1;
    const stays = (part: string): boolean => {
        depth += part === '..' ? -1 : part === '' || part === '.' ? 0 : 1;
        return depth >= 0;
    };
    if (
        bytes === null ||
        bytes.length === 0 ||
        bytes.length >= longestPath ||
        target.includes('\0') ||
        target.startsWith('/') ||
        !target.split('/').every(stays)
    ) {
        throw errors.invalid([
            { path: 'target', message: 'target is a relative path that stays below the root' }
        ]);
    }
    return bytes;
}
