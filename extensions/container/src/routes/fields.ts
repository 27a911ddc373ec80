/** Parameters that routes share, and pages of lists. A cursor is an opaque text that the list before gave. */
import { errors, joi, type Reply, reply } from '@portico/sdk';

/** Path parameters of a container. */
export const containerParams = joi.object({
    id: joi
        .string()
        .max(128)
        .required()
        .label('Container')
        .description('Its id, or its name')
        .meta({ ui: { ref: 'container.containers' } })
});
/** A name for a container. */
export const containerName = joi
    .string()
    .pattern(/^[a-zA-Z0-9][a-zA-Z0-9_.-]{1,127}$/, 'letters, digits, _ . and -')
    .label('Name');
/** Labels by name. */
export const labelMap = joi.record(joi.string().allow('').max(10_000));

/** Query parameters of a list. */
export const paging = {
    q: joi.string().max(200).label('Search').description('Part of a name'),
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
    readonly q?: string | undefined;
    readonly limit: number;
    readonly cursor?: string | undefined;
}

/** One page of a whole list. The cursor is the key of the last row, so it stays valid while rows are added and removed. */
export function pageOf<T>(
    all: readonly T[],
    { q, limit, cursor }: Paging,
    keyOf: (row: T) => string
): Reply<T[]> {
    const after = textOf(cursor);
    const matching = all
        .map((row) => [keyOf(row), row] as const)
        .filter(([key]) => q === undefined || key.toLowerCase().includes(q.toLowerCase()));
    const rows = matching
        .sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0))
        .filter(([key]) => after === null || key > after);
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    return reply.list(
        page.map(([, row]) => row),
        { total: matching.length, next: rows.length > limit && last !== undefined ? cursorOf(last[0]) : null }
    );
}

function cursorOf(text: string): string {
    return Buffer.from(`after:${text}`).toString('base64url');
}

/** @throws VALIDATION_FAILED 40001 for a cursor that no list gave */
function textOf(cursor: string | undefined): string | null {
    if (cursor === undefined) {
        return null;
    }
    const [, text] = /^after:(.*)$/s.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
    if (text === undefined) {
        throw errors.invalid([{ path: 'cursor', message: 'cursor was not given by a list' }]);
    }
    return text;
}
