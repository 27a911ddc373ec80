/** Pages of lists. A cursor is the last id of the page before, which stays valid while rows are added and removed. */
import { errors, joi } from '@portico/sdk';

/** Path parameters of one resource. */
export const idParams = joi.object({ id: joi.number().integer().min(1).required().label('Number') });

/** Query parameters of a list. */
export function paging(defaultLimit: number) {
    return {
        limit: joi
            .number()
            .integer()
            .min(1)
            .max(500)
            .default(defaultLimit)
            .label('Rows')
            .description('Most rows of one page'),
        cursor: joi.string().max(100).label('Page').description('From the `Link` of the page before')
    };
}

/** The id in a cursor; null without one. @throws VALIDATION_FAILED 40001 for a cursor that no list gave */
export function idOf(cursor: string | undefined): number | null {
    if (cursor === undefined) {
        return null;
    }
    const [, id] = /^id:(\d{1,15})$/.exec(Buffer.from(cursor, 'base64url').toString('latin1')) ?? [];
    if (id === undefined) {
        throw errors.invalid([{ path: 'cursor', message: 'cursor was not given by a list' }]);
    }
    return Number(id);
}

/** The first `limit` rows, and the cursor of the next page; null when there are no more rows. */
export function pageOf<T>(
    rows: readonly T[],
    limit: number,
    id: (row: T) => number
): { readonly rows: readonly T[]; readonly next: string | null } {
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    return {
        rows: page,
        next:
            rows.length > limit && last !== undefined
                ? Buffer.from(`id:${id(last)}`).toString('base64url')
                : null
    };
}
