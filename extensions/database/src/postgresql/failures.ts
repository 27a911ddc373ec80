/** What the failures of the driver mean. */
import { errors, type FailureError, isFailure } from '@portico/sdk';

import { fail } from '../errors.ts';

/** The part of a driver's error that is read here. */
interface DriverError {
    readonly message?: string;
    readonly code?: string;
    readonly severity?: string;
    readonly routine?: string;
    readonly detail?: string;
    readonly hint?: string;
    readonly position?: string;
}

const queryCancelled = '57014';
const timedOut = 'statement timeout';

/** The failure that a client is told. */
export function failureOf(error: unknown): FailureError {
    const inner = (error as { cause?: unknown } | null)?.cause;
    if (isFailure(error)) {
        return error;
    }
    if (isFailure(inner)) {
        return inner;
    }
    const {
        message = 'unknown failure',
        code = '',
        severity,
        detail,
        hint,
        position
    } = (error ?? {}) as DriverError;
    const isServers = severity !== undefined && /^[0-9A-Z]{5}$/.test(code);
    if (!isServers) {
        // SCRAM fails in the driver when the server asks for a password and there is none.
        return /password/i.test(message)
            ? fail.LOGIN_FAILED({ message }, { cause: error })
            : fail.SERVER_OFFLINE({ message: code === '' ? message : code }, { cause: error });
    }
    if (code.startsWith('28')) {
        return fail.LOGIN_FAILED({ message }, { cause: error });
    }
    if (code === '3D000') {
        return errors.notFound('There is no such database on the server');
    }
    if (code === queryCancelled) {
        return fail.CANCELLED({ timedOut: message.includes(timedOut) }, { cause: error });
    }
    // The server is going down, starting up, or has no connection left.
    return code.startsWith('57P') || code.startsWith('08') || code === '53300'
        ? fail.SERVER_OFFLINE({ message }, { cause: error })
        : fail.SQL_FAILED(
              {
                  sqlState: code,
                  message,
                  ...(detail === undefined ? {} : { detail }),
                  ...(hint === undefined ? {} : { hint }),
                  ...(position === undefined ? {} : { position: Number(position) })
              },
              { cause: error }
          );
}

/** Whether the server says that the account lacks a right. */
export function isDenied(error: unknown): boolean {
    return isFailure(error) && error.data?.['sqlState'] === '42501';
}
