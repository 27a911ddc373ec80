/** Errors of the file system as plugins see them. */
import { errors } from '@portico/sdk';

/** The code of a system error, such as `ENOENT`; empty when it has none. */
export function codeOf(error: unknown): string {
    return (error as NodeJS.ErrnoException).code ?? '';
}

/** The Portico error for a system error at a path; any other error comes back unchanged. */
export function failureOf(error: unknown, path: string): unknown {
    switch (codeOf(error)) {
        case 'ENOENT':
        case 'ENOTDIR':
        case 'ELOOP':
        case 'EINVAL':
        case 'ENAMETOOLONG':
        case 'ENXIO':
            return errors.notFound(`There is nothing at ${path === '' ? 'that path' : path}`);
        case 'EEXIST':
        case 'ENOTEMPTY':
            return errors.conflict('path');
        case 'EACCES':
        case 'EPERM':
        case 'EROFS':
            return errors.forbidden('file');
        case 'EISDIR':
            return errors.notFound(`${path} is a folder`);
        case 'ENOSPC':
        case 'EDQUOT':
            return errors.storageFull();
        default:
            return error;
    }
}
