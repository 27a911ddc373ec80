/** What the failures of the driver mean. */
import { errors, type FailureError, isFailure } from '@portico/sdk';

import { fail } from '../errors.ts';

/** The part of a driver's error that is read here. */
interface DriverError {
    readonly message?: string;
    readonly errno?: number;
    readonly code?: string;
    readonly sqlState?: string;
}

const wrongLogin = new Set([1045, 1698, 1130, 1251, 1862, 3118, 4151]);
const stopped = new Set([1317, 1969, 3024]);
const leaving = new Set([1053, 1077, 1079, 1152, 1159, 1160, 1161, 1184, 1927, 3169]);
const denied = new Set([1044, 1142, 1143, 1227, 1370, 1698]);
const unknownDatabase = 1049;

/** The failure that a client is told. */
export function failureOf(error: unknown): FailureError {
    const inner = (error as { cause?: unknown } | null)?.cause;
    if (isFailure(error)) {
        return error;
    }
    if (isFailure(inner)) {
        return inner;
    }
    const { message = 'unknown failure', errno = 0, code = '', sqlState } = (error ?? {}) as DriverError;
    if (wrongLogin.has(errno)) {
        return fail.LOGIN_FAILED({ message }, { cause: error });
    }
    if (errno === unknownDatabase) {
        return errors.notFound('There is no such database on the server');
    }
    if (stopped.has(errno)) {
        return fail.CANCELLED(null, { cause: error });
    }
    // What the server itself says has a state; what happens on the way to it has none.
    return errno > 0 && (sqlState !== undefined || code.startsWith('ER_')) && !leaving.has(errno)
        ? fail.SQL_FAILED({ sqlState: sqlState ?? null, errno, message }, { cause: error })
        : fail.SERVER_OFFLINE({ message: code === '' ? message : code }, { cause: error });
}

/** Whether the server says that the account lacks a right. */
export function isDenied(error: unknown): boolean {
    return isFailure(error) && denied.has(Number(error.data?.['errno']));
}
