/** Cursors of lists: the id that the page before ended with, which stays right while rows come and go. */
import { errors, joi } from '@portico/sdk';

export const idParams = joi.object({ id: joi.number().integer().min(1).required() });

/** What pages a list. */
export const paging = (usual: number) => ({
    limit: joi.number().integer().min(1).max(500).default(usual),
    cursor: joi.string().max(100)
});

/** @throws VALIDATION_FAILED 40001 for what no list gave */
export function idOf(cursor: string | undefined): number | null {
    if (cursor === undefined) {
        return null;
    }
    const [, id] = /^id:(\d{1,15})$/.exec(Buffer.from(cursor, 'base64url').toString('latin1')) ?? [];
    if (id === undefined) {
        throw errors.invalid([{ path: 'cursor', message: 'cursor is none that a list gave' }]);
    }
    return Number(id);
}

/** The first `limit` of the rows, and where the next page begins when there are more. */
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
