/** Every way in which the file manager fails, and what the system's own failures become. */
import { defineErrors, errors, isFailure } from '@portico/sdk';

export const failures = defineErrors({
    PARTIAL_BODY: { code: 40050, message: 'The body ended before its announced length; nothing was changed' },
    OUTSIDE_ROOT: { code: 40350, message: 'A path names what lies below its root, without ..' },
    NOT_PERMITTED: { code: 40351, message: 'The system does not let the panel do this: {why}' },
    WRONG_TYPE: { code: 40950, message: '{path} is a {type}, and a {wanted} is needed' },
    OTHER_DEVICE: {
        code: 40951,
        message: 'Between two file systems nothing is moved in one step: copy it, or remove it permanently'
    },
    INSIDE_ITSELF: { code: 40952, message: '{path} lies inside what is moved or copied' },
    PRIVATE_FOLDER_UNSAFE: {
        code: 40953,
        message:
            'The folder .portico of this root belongs to somebody else or is open to others; remove it or close it'
    },
    CHANGED_MEANWHILE: { code: 40954, message: '{path} changed while it was read' },
    ARCHIVE_UNKNOWN: { code: 42250, message: '{path} is no .tar, .tar.gz, .tgz or .zip' },
    ARCHIVE_REFUSED: { code: 42251, message: 'The archive was refused, and nothing of it kept: {why}' },
    ARCHIVE_TOO_LARGE: {
        code: 42252,
        message: 'The archive was refused, and nothing of it kept: it has more than {limit} {unit}'
    },
    TOO_MANY_TERMINALS: { code: 42950, message: '{limit} terminals are open, and no more are allowed' }
});

/** What a failed system call becomes for the client; null for what is a defect of ours. */
function translated(code: string): Error | null {
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
            return failures.NOT_PERMITTED({ why: code });
        default:
            return null;
    }
}

/** Does file work, and says its failures in the words of the API. */
export async function filesystem<T>(work: () => Promise<T>): Promise<T> {
    try {
        return await work();
    } catch (error) {
        const code = isFailure(error) ? undefined : (error as NodeJS.ErrnoException | null)?.code;
        throw (typeof code === 'string' ? translated(code) : null) ?? error;
    }
}

/** Tells whether something failed because nothing of that name is there. */
export function isMissing(error: unknown): boolean {
    return isFailure(error)
        ? error.code === 40400
        : ['ENOENT', 'ENOTDIR'].includes(String((error as NodeJS.ErrnoException | null)?.code));
}

/** Tells whether something failed because the name is taken. */
export function isTaken(error: unknown): boolean {
    return isFailure(error)
        ? error.code === 40900
        : (error as NodeJS.ErrnoException | null)?.code === 'EEXIST';
}
