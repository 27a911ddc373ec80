/**
 * Failures as branded plain data. A failure is an `Error` while it is thrown, and `{ code, reason, message, data }` wherever it crosses a
 * boundary; it is known by its brand and never by `instanceof`, so two copies of this module, a worker and a child process all agree.
 */

const brand = '~portico';

/** What a failure says, on the wire and across every boundary. */
export interface Failure {
    /** HTTP status × 100 plus a detail: 00–49 are the core's, 50–99 a plugin's. */
    readonly code: number;
    /** Upper snake case, stable. */
    readonly reason: string;
    readonly message: string;
    /** More for the client, plain data; null when there is nothing to add. */
    readonly data: Readonly<Record<string, unknown>> | null;
}

/** An error that carries the code and details of a failure. */
export type FailureError = Error & Failure;

/** One row of a table of failures: `message` may hold `{name}` places that are filled from the failure's data. */
export interface FailureRow {
    readonly code: number;
    readonly message: string;
}

/** How one failure differs from its row in the table. */
export interface FailureOptions {
    /** Said instead of the table's message. */
    readonly message?: string;
    /** What went wrong below; logged, never sent. */
    readonly cause?: unknown;
}

/** Makes one failure of a table: `data` goes to the client. */
export type FailureFactory = (
    data?: Readonly<Record<string, unknown>> | null,
    options?: FailureOptions
) => FailureError;

/**
 * Declares every way in which a package fails, as one table to read.
 *
 * @example `const fail = defineErrors({ DOMAIN_TAKEN: { code: 40950, message: 'Domain {domain} is taken' } }); throw fail.DOMAIN_TAKEN({ domain });`
 */
export function defineErrors<const T extends Readonly<Record<string, FailureRow>>>(
    table: T
): { readonly [K in keyof T]: FailureFactory } {
    const entries = Object.entries(table).map(([reason, row]) => {
        if (!/^[A-Z][A-Z0-9_]*$/.test(reason)) {
            throw new TypeError(`Failure ${reason} is not upper snake case`);
        }
        if (!Number.isInteger(row.code) || row.code < 40000 || row.code > 59999) {
            throw new TypeError(
                `Failure ${reason} has the code ${row.code}, which is not an HTTP error status × 100 plus a detail`
            );
        }
        const make: FailureFactory = (data = null, options = {}) =>
            createFailure(
                { code: row.code, reason, message: options.message ?? fill(row.message, data), data },
                options.cause
            );
        return [reason, make] as const;
    });
    return Object.fromEntries(entries) as { readonly [K in keyof T]: FailureFactory };
}

/** Makes a thrown failure of plain data, for instance of what came over a boundary. */
export function createFailure(failure: Failure, cause?: unknown): FailureError {
    const error = new Error(failure.message, cause === undefined ? undefined : { cause });
    error.name = failure.reason;
    return Object.assign(error, {
        code: failure.code,
        reason: failure.reason,
        data: failure.data,
        [brand]: 'failure'
    });
}

/** Tells whether a thrown thing is a failure of some table, and not a bug. */
export function isFailure(thrown: unknown): thrown is FailureError {
    return (
        typeof thrown === 'object' &&
        thrown !== null &&
        (thrown as Record<string, unknown>)[brand] === 'failure'
    );
}

/** The HTTP status of a failure's code. */
export function statusOf(code: number): number {
    return Math.floor(code / 100);
}

function fill(message: string, data: Readonly<Record<string, unknown>> | null): string {
    return message.replace(/\{(\w+)\}/g, (place, name: string) =>
        data !== null && name in data ? String(data[name]) : place
    );
}

/** The message of an error; of another value that was thrown, its text. */
export function messageOf(error: unknown): string {
    return error instanceof Error ? error.message : String(error);
}
