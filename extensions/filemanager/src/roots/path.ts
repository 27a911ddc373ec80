/**
 * Paths as clients write them. This file only gives each path one spelling and hides the file manager's own folders. What keeps a
 * request inside its root is `ctx.files`, which opens each folder of a path relative to the one before.
 */
import { errors, joi } from '@portico/sdk';

import { fail } from '../errors.ts';

/** The private folder at the top of a root: trash and unfinished uploads. */
export const privateFolder = '.portico';

/** The schema of a root's name. */
export const rootName = joi
    .string()
    .max(64)
    .label('Root')
    .meta({ ui: { ref: 'filemanager.roots' } });
/** The schema of a path; an empty one is the root. */
export const pathSchema = joi
    .string()
    .allow('')
    .max(4096)
    .label('Path')
    .description('Below the root; empty: the root itself');
/** The schema of a place: the name of a root, and a path below it. */
export const location = joi.object({ root: rootName.required(), path: pathSchema.required() });

/**
 * Parses a path into its one spelling, without empty and `.` segments.
 *
 * @throws OUTSIDE_ROOT 40350 for `..`; NOT_FOUND 40400 for the file manager's own folders
 */
export function parsePath(text: string, field = 'path'): string {
    if (text.includes('\0')) {
        throw errors.invalid([{ path: field, message: `${field} has a NUL character` }]);
    }
    const segments = text.split('/').filter((segment) => segment !== '' && segment !== '.');
    if (segments.includes('..')) {
        throw fail.OUTSIDE_ROOT({ field });
    }
    if (segments.some(isReserved)) {
        throw errors.notFound();
    }
    return segments.join('/');
}

/** Parses a path that must not be the root itself. @throws VALIDATION_FAILED 40001, and as {@link parsePath} */
export function parseInner(text: string, field = 'path'): string {
    const path = parsePath(text, field);
    if (path === '') {
        throw errors.invalid([{ path: field, message: `${field} must not be the root itself` }]);
    }
    return path;
}

/** Tells whether a name belongs to the file manager. This holds at every depth, because a root may lie inside another one. */
export function isReserved(name: string): boolean {
    return name === privateFolder || name.startsWith(`${privateFolder}-`);
}

/** Joins a folder and a name. */
export function join(folder: string, name: string): string {
    return folder === '' ? name : `${folder}/${name}`;
}

/** The folder that a path lies in; empty for the root. */
export function parentOf(path: string): string {
    return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}

/** The last segment of a path. */
export function nameOf(path: string): string {
    return path.slice(path.lastIndexOf('/') + 1);
}

/** Tells whether a path is a folder itself or lies below it. */
export function isWithin(path: string, folder: string): boolean {
    return folder === '' || path === folder || path.startsWith(`${folder}/`);
}
