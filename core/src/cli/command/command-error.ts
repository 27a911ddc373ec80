/** What the command line says when it cannot do what it was asked, and how it exits then. */
import { isFailure } from '@portico/sdk';

import { plain } from './output.ts';

/** Exit codes: 0 done, 1 failed, 2 called wrongly. */
export type ExitCode = 0 | 1 | 2;

/** A failure that whoever sits at the console can understand: its message is all that is shown. */
export class Complaint extends Error {
    override readonly name = 'Complaint';
    readonly exitCode: ExitCode;

    constructor(message: string, exitCode: ExitCode = 1, options?: ErrorOptions) {
        super(message, options);
        this.exitCode = exitCode;
    }
}

/** The panel, or its services on the folder, refused: every fault that was found in what was given, else the message of the API. */
export class Refusal extends Complaint {
    /** As in the API, such as `CONFLICT`; null: it gave none. */
    readonly reason: string | null;
    readonly data: Readonly<Record<string, unknown>>;

    constructor(message: string, data: unknown, options?: ErrorOptions) {
        const known =
            typeof data === 'object' && data !== null ? (data as Readonly<Record<string, unknown>>) : {};
        const faults = Array.isArray(known['errors'])
            ? known['errors'].map((fault: { readonly message?: unknown }) => String(fault.message)).join('; ')
            : '';
        super(plain(faults === '' ? message : faults), 1, options);
        this.data = known;
        this.reason = typeof known['reason'] === 'string' ? known['reason'] : null;
    }
}

/** The command was called wrongly. */
export function misuse(message: string): Complaint {
    return new Complaint(message, 2);
}

/** SQLite's or the system's code of an error, however deep a library wrapped it. */
export function codeOf(error: unknown): string | null {
    for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
        const { code } = cause as { code?: unknown };
        if (typeof code === 'string') {
            return code;
        }
    }
    return null;
}

/** Puts what went wrong with a file of the data folder into words; anything else is handed back as it is. */
export function explain(error: unknown, dataDir: string, database: string): unknown {
    if (error instanceof Complaint) {
        return error;
    }
    if (isFailure(error) && error.reason !== 'STORAGE_FULL') {
        return new Refusal(error.message, { ...error.data, reason: error.reason }, { cause: error });
    }
    const code = codeOf(error);
    if (code === null) {
        return error;
    }
    const detail = plain((error as Error).message.split('\n', 1)[0] ?? '');
    if (/^SQLITE_(CORRUPT|NOTADB)/.test(code)) {
        return new Complaint(
            `The database ${database} is damaged (${detail}). Stop the panel, keep a copy of the whole data folder, and put back a backup; \`portico doctor\` says more`,
            1,
            { cause: error }
        );
    }
    if (/^(EACCES|EPERM|EROFS|SQLITE_(READONLY|CANTOPEN|PERM|AUTH))/.test(code)) {
        return new Complaint(
            `Not permitted to use ${dataDir} (${detail}): run this as the user whom the panel runs as, or as root`,
            1,
            { cause: error }
        );
    }
    if (/^(ENOSPC|EDQUOT|SQLITE_FULL)/.test(code) || code === 'STORAGE_FULL') {
        return new Complaint(`The disk of ${dataDir} is full; nothing was changed`, 1, { cause: error });
    }
    if (/^SQLITE_BUSY/.test(code)) {
        return new Complaint(
            `Another process works on ${database}, and does not let go of it; nothing was changed`,
            1,
            { cause: error }
        );
    }
    return error;
}
