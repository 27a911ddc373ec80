/** Pages of lists that are held in memory. A cursor is the place of the next row. */
import { errors, joi, type Page } from '@portico/sdk';

/** Path parameters of one object. */
export const idParams = joi.object({ id: joi.number().integer().min(1).required().label('Number') });

/** Query parameters of a list. */
export function paging(defaultLimit = 50, most = 500) {
    return {
        limit: joi
            .number()
            .integer()
            .min(1)
            .max(most)
            .default(defaultLimit)
            .label('Rows')
            .description('Most rows of one page'),
        cursor: joi.string().max(100).label('Page').description('From the `Link` of the page before')
    };
}

/** The rows of one page. @throws VALIDATION_FAILED 40001 for a cursor that no list gave */
export function pageOf<T>(
    rows: readonly T[],
    { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined }
): { readonly rows: readonly T[]; readonly page: Page } {
    const [, place] =
        cursor === undefined
            ? []
            : (/^at:(\d{1,9})$/.exec(Buffer.from(cursor, 'base64url').toString('latin1')) ?? []);
    if (cursor !== undefined && place === undefined) {
        throw errors.invalid([{ path: 'cursor', message: 'cursor was not given by a list' }]);
    }
    const start = Number(place ?? 0);
    const end = start + limit;
    return {
        rows: rows.slice(start, end),
        page: {
            total: rows.length,
            next: end < rows.length ? Buffer.from(`at:${end}`).toString('base64url') : null
        }
    };
}
