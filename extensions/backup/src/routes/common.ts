/** What several groups of routes share. */
import { errors, joi } from '@portico/sdk';

/** A number in a path. */
export const idSchema = joi.number().integer().min(1).required().label('Number');
/** Path parameters of one resource. */
export const idParams = joi.object({ id: idSchema });

/** The version that a change was made from: that of the body goes before the header. */
export function versionOf(ifMatch: string | null, version: number | undefined): string | null {
    return version === undefined ? ifMatch : String(version);
}

/** A time as text; null stays. */
export function timeOf(at: number | null): string | null {
    return at === null ? null : new Date(at).toISOString();
}

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

/** Query parameters that bound a time. */
export const period = {
    from: joi.string().isoDate().label('From'),
    to: joi.string().isoDate().label('Until')
};

/** The number in a cursor; null without one. @throws VALIDATION_FAILED 40001 for a cursor that no list gave */
export function placeIn(cursor: string | undefined): number | null {
    if (cursor === undefined) {
        return null;
    }
    const [, place] = /^at:(\d{1,15})$/.exec(Buffer.from(cursor, 'base64url').toString('latin1')) ?? [];
    if (place === undefined) {
        throw errors.invalid([{ path: 'cursor', message: 'cursor was not given by a list' }]);
    }
    return Number(place);
}

/** The first `limit` rows, and the cursor of the next page; null when there are no more rows. */
export function pageOf<T>(
    rows: readonly T[],
    limit: number,
    place: (row: T) => number
): { readonly rows: readonly T[]; readonly next: string | null } {
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    return {
        rows: page,
        next:
            rows.length > limit && last !== undefined
                ? Buffer.from(`at:${place(last)}`).toString('base64url')
                : null
    };
}
