/** Errors of commands: what the command line prints, and its exit code. */
import { isFailure } from '@portico/sdk';

import { toPlainText } from './output.ts';

/** Exit codes: 0 done, 1 failed, 2 wrong use. */
export type ExitCode = 0 | 1 | 2;

/** An error that a person at the console can understand: only its message is shown. */
export class CommandError extends Error {
    override readonly name = 'CommandError';
    readonly exitCode: ExitCode;

    constructor(message: string, exitCode: ExitCode = 1, options?: ErrorOptions) {
        super(message, options);
        this.exitCode = exitCode;
    }
}

/** The panel, or its services on the data folder, refused a request. The message lists all invalid fields, or is the message of the API. */
export class RequestRefused extends CommandError {
    /** The reason of the API, such as `CONFLICT`; null when it gave none. */
    readonly reason: string | null;
    /** The data of the API's answer. */
    readonly data: Readonly<Record<string, unknown>>;

    constructor(message: string, data: unknown, options?: ErrorOptions) {
        const known =
            typeof data === 'object' && data !== null ? (data as Readonly<Record<string, unknown>>) : {};
        const problems = Array.isArray(known['errors'])
            ? known['errors']
                  .map((problem: { readonly message?: unknown }) => String(problem.message))
                  .join('; ')
            : '';
        super(toPlainText(problems === '' ? message : problems), 1, options);
        this.data = known;
        this.reason = typeof known['reason'] === 'string' ? known['reason'] : null;
    }
}

/** The error of a command that was used wrongly. */
export function usageError(message: string): CommandError {
    return new CommandError(message, 2);
}

/** Finds the code of SQLite or of the system in an error or its causes; null when there is none. */
export function systemCode(error: unknown): string | null {
    for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
        const { code } = cause as { code?: unknown };
        if (typeof code === 'string') {
            return code;
        }
    }
    return null;
}

/** Turns an error about files of the data folder into a CommandError that says what to do; returns any other error unchanged. */
export function explainFileError(error: unknown, dataDir: string, database: string): unknown {
    if (error instanceof CommandError) {
        return error;
    }
    if (isFailure(error) && error.reason !== 'STORAGE_FULL') {
        return new RequestRefused(error.message, { ...error.data, reason: error.reason }, { cause: error });
    }
    const code = systemCode(error);
    if (code === null) {
        return error;
    }
    const detail = toPlainText((error as Error).message.split('\n', 1)[0] ?? '');
    if (/^SQLITE_(CORRUPT|NOTADB)/.test(code)) {
        return new CommandError(
            `The database ${database} is damaged (${detail}). Stop the panel, keep a copy of the whole data folder, and put back a backup; \`portico doctor\` says more`,
            1,
            { cause: error }
        );
    }
    if (/^(EACCES|EPERM|EROFS|SQLITE_(READONLY|CANTOPEN|PERM|AUTH))/.test(code)) {
        return new CommandError(
            `Not permitted to use ${dataDir} (${detail}): run this as the user whom the panel runs as, or as root`,
            1,
            { cause: error }
        );
    }
    if (/^(ENOSPC|EDQUOT|SQLITE_FULL)/.test(code) || code === 'STORAGE_FULL') {
        return new CommandError(`The disk of ${dataDir} is full; nothing was changed`, 1, { cause: error });
    }
    if (/^SQLITE_BUSY/.test(code)) {
        return new CommandError(`Another process has locked ${database}; nothing was changed`, 1, {
            cause: error
        });
    }
    return error;
}
