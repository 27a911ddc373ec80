/**
 * Paths as clients write them. Nothing here keeps anybody inside a root: that is done by the descriptor walk of `ctx.files`. This only
 * gives one spelling to each path, and hides the file manager's own folders.
 */
import { errors, joi } from '@portico/sdk';

import { failures } from '../errors.ts';

/** The private folder at the top of a root: trash and unfinished uploads. */
export const privateFolder = '.portico';

/** What a client may send as a path; an empty one is the root. */
export const pathSchema = joi.string().allow('').max(4096);
/** Where something is: a root by its name, and a path below it. */
export const where = joi.object({ root: joi.string().max(64).required(), path: pathSchema.required() });

/**
 * One spelling of a path: no empty and no `.` segments.
 *
 * @throws OUTSIDE_ROOT 40350 for `..`; NOT_FOUND 40400 for the file manager's own folders
 */
export function parsePath(text: string, field = 'path'): string {
    if (text.includes('\0')) {
        throw errors.invalid([{ path: field, message: `${field} has a NUL character` }]);
    }
    const segments = text.split('/').filter((segment) => segment !== '' && segment !== '.');
    if (segments.includes('..')) {
        throw failures.OUTSIDE_ROOT({ field });
    }
    if (segments.some(isReserved)) {
        throw errors.notFound();
    }
    return segments.join('/');
}

/** A path that is not the root itself. @throws VALIDATION_FAILED 40001 */
export function parseInner(text: string, field = 'path'): string {
    const path = parsePath(text, field);
    if (path === '') {
        throw errors.invalid([{ path: field, message: `${field} must not be the root itself` }]);
    }
    return path;
}

/** Names that belong to the file manager at every depth, since a root may lie inside another. */
export function isReserved(name: string): boolean {
    return name === privateFolder || name.startsWith(`${privateFolder}-`);
}

export function join(folder: string, name: string): string {
    return folder === '' ? name : `${folder}/${name}`;
}

export function parentOf(path: string): string {
    return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}

export function nameOf(path: string): string {
    return path.slice(path.lastIndexOf('/') + 1);
}

/** Tells whether a path is a folder itself or lies below it. */
export function isWithin(path: string, folder: string): boolean {
    return folder === '' || path === folder || path.startsWith(`${folder}/`);
}
