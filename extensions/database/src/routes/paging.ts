/** Parameters that routes share, and pages of lists. A cursor is an opaque text that the list before gave. */
import { errors, joi, type Reply, reply } from '@portico/sdk';

/** The number of a server in a path. */
export const serverId = joi
    .number()
    .integer()
    .min(1)
    .required()
    .label('Server')
    .meta({ ui: { ref: 'database.servers' } });
/** Path parameters of a server. */
export const serverParams = joi.object({ id: serverId });
/** A name on a server: it is data, so it may hold anything but a zero byte. */
export const existingName = () =>
    joi
        .string()
        .max(255)
        .pattern(/^[^\0]+$/, 'a name');
/** A name in a path: it is only ever sent to the server as data, so slashes and backslashes are letters as others. */
export const nameInPath = () => existingName().required().meta({ anyText: true });
/** A name for what is made: 1 to 63 bytes, no slash, no control characters. */
export const newName = () =>
    joi.typed<string>(
        joi
            .string()
            .pattern(/^[^\p{C}/]+$/u, 'no slash and no control characters')
            .custom(
                (value: string, helpers) =>
                    Buffer.byteLength(value) <= 63 ? value : helpers.error('string.max', { limit: 63 }),
                'At most 63 bytes'
            )
            .required()
            .label('Name')
    );
/** Path parameters of a database. */
export const databaseParams = joi.object({ id: serverId, db: nameInPath().label('Database') });
/** Path parameters of a table. */
export const tableParams = databaseParams.keys({ table: nameInPath().label('Table') });

/** Query parameters of a list. */
export const paging = {
    limit: joi
        .number()
        .integer()
        .min(1)
        .max(500)
        .default(50)
        .label('Rows')
        .description('Most rows of one page'),
    cursor: joi.string().max(2_000).label('Page').description('From the `Link` of the page before')
};
/** What a list is asked for. */
export interface Paging {
    readonly limit: number;
    readonly cursor?: string | undefined;
}

/** The cursor that holds a text. */
export function cursorOf(text: string): string {
    return Buffer.from(`after:${text}`).toString('base64url');
}

/** The text in a cursor; null without one. @throws VALIDATION_FAILED 40001 for a cursor that no list gave */
export function textOf(cursor: string | undefined): string | null {
    if (cursor === undefined) {
        return null;
    }
    const [, text] = /^after:(.*)$/s.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
    if (text === undefined) {
        throw errors.invalid([{ path: 'cursor', message: 'cursor was not given by a list' }]);
    }
    return text;
}

/** The number in a cursor; null without one. @throws VALIDATION_FAILED 40001 */
export function numberOf(cursor: string | undefined): number | null {
    const text = textOf(cursor);
    if (text !== null && !/^\d{1,15}$/.test(text)) {
        throw errors.invalid([{ path: 'cursor', message: 'cursor was not given by a list' }]);
    }
    return text === null ? null : Number(text);
}

/** One page of a whole list. The cursor is the key of the last row, so it stays valid while rows are added and removed. */
export function pageOf<T>(
    all: readonly T[],
    { limit, cursor }: Paging,
    keyOf: (row: T) => string
): Reply<T[]> {
    const after = textOf(cursor);
    const rows = all
        .map((row) => [keyOf(row), row] as const)
        .sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0))
        .filter(([key]) => after === null || key > after);
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    return reply.list(
        page.map(([, row]) => row),
        { total: all.length, next: rows.length > limit && last !== undefined ? cursorOf(last[0]) : null }
    );
}
