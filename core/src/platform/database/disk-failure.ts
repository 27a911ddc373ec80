/** Tells a disk that takes no more from other errors. */
import { isFailure } from '@portico/sdk';

import { fail } from '../errors.ts';

/**
 * The code of an error, or of a cause of it, that says that the disk is full, a quota is used up, or the disk cannot be written; null for other
 * errors. SQLite reports only ENOSPC as SQLITE_FULL; a quota, a limit or a broken disk is one of SQLITE_IOERR.
 */
export function diskFailureOf(error: unknown): string | null {
    for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
        const { code } = cause as { code?: unknown };
        if (typeof code === 'string' && /^(ENOSPC|EDQUOT|SQLITE_FULL|SQLITE_IOERR)/.test(code)) {
            return code;
        }
    }
    return null;
}

/** Turns such an error into STORAGE_FULL 50700. Other errors stay, and so do failures that have a code of the API already. */
export function translateDiskFailure(error: unknown): unknown {
    const code = isFailure(error) ? null : diskFailureOf(error);
    if (code === null) {
        return error;
    }
    const message = code.startsWith('SQLITE_IOERR')
        ? { message: `The disk cannot be written (${code}); nothing was changed` }
        : {};
    return fail.STORAGE_FULL(null, { ...message, cause: error });
}
