/** Failures of file operations. */
import { errors, isFailure } from '@portico/sdk';

import { fail } from '../errors.ts';

/** The error of the API for a failed system call; null when the failure is a defect of the plugin. */
function translate(code: string): Error | null {
    switch (code) {
        case 'ENOENT':
        case 'ENOTDIR':
        case 'ELOOP':
        case 'ENAMETOOLONG':
        case 'ESTALE':
            return errors.notFound();
        case 'EEXIST':
        case 'ENOTEMPTY':
            return errors.conflict('path');
        case 'ENOSPC':
        case 'EDQUOT':
            return errors.storageFull();
        case 'EACCES':
        case 'EPERM':
        case 'EROFS':
        case 'ETXTBSY':
        case 'EBUSY':
        case 'EFBIG':
            return fail.NOT_PERMITTED({ why: code });
        default:
            return null;
    }
}

/** Does work on files, and turns failures of the system into errors of the API. */
export async function filesystem<T>(work: () => Promise<T>): Promise<T> {
    try {
        return await work();
    } catch (error) {
        const code = isFailure(error) ? undefined : (error as NodeJS.ErrnoException | null)?.code;
        throw (typeof code === 'string' ? translate(code) : null) ?? error;
    }
}

/** Tells whether an operation failed because the name does not exist. */
export function isMissing(error: unknown): boolean {
    return isFailure(error)
        ? error.code === 40400
        : ['ENOENT', 'ENOTDIR'].includes(String((error as NodeJS.ErrnoException | null)?.code));
}

/** For `catch` of a removal: what is gone already is no error. @throws every other error */
export function allowMissing(error: unknown): void {
    if (!isMissing(error)) {
        throw error;
    }
}

/** Tells whether an operation failed because the name is taken. */
export function isTaken(error: unknown): boolean {
    return isFailure(error)
        ? error.code === 40900
        : (error as NodeJS.ErrnoException | null)?.code === 'EEXIST';
}
