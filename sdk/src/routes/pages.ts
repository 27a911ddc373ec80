/** Pages of lists: the query parameters, and what goes into one answer. A cursor is opaque to clients, who get it in `Link`. */
import { joi } from '../joi.ts';
import { errors } from '../plugin-errors.ts';
import type { Page } from './reply.ts';

/** What a list was asked for. */
export interface PageQuery {
    readonly limit: number;
    readonly cursor?: string | undefined;
}

/** The rows of one page; `page` goes to `reply.list` beside them. */
export interface PageOf<T> {
    readonly rows: readonly T[];
    readonly page: Page;
}

/** Makes pages of lists. */
export const pages = {
    /**
     * The query parameters `limit` and `cursor`, for `joi.object({ ...pages.query() })`.
     *
     * @param limit - rows of a page when the client does not say
     * @param most - the largest `limit`
     */
    query(limit = 50, most = 500) {
        return {
            limit: joi
                .number()
                .integer()
                .min(1)
                .max(most)
                .default(limit)
                .label('Rows')
                .description('Most rows of one page'),
            cursor: joi.string().max(2_000).label('Page').description('From the `Link` of the page before')
        };
    },

    /** The cursor of the page that begins behind a key, for answers that `read`, `sorted` and `ordered` do not make. */
    cursor(key: string | number): string {
        return Buffer.from(`after:${key}`).toString('base64url');
    },

    /** The key that the page before ended with; null on the first page. @throws VALIDATION_FAILED 40001 for a cursor that no list gave */
    after({ cursor }: { readonly cursor?: string | undefined }): string | null {
        if (cursor === undefined) {
            return null;
        }
        const [, key] = /^after:(.*)$/s.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
        return key ?? refuse();
    },

    /** The same for a list that is sorted by a number, such as an id. @throws VALIDATION_FAILED 40001 */
    afterNumber(query: { readonly cursor?: string | undefined }): number | null {
        const key = pages.after(query);
        if (key !== null && !/^\d{1,15}$/.test(key)) {
            refuse();
        }
        return key === null ? null : Number(key);
    },

    /**
     * A page of rows that a database read in the order of their keys.
     *
     * @param rows - those behind `after`, one more than `limit` where there are as many
     * @param total - how many the whole list has, where that is known
     */
    read<T>(rows: readonly T[], limit: number, key: (row: T) => string | number, total?: number): PageOf<T> {
        const shown = rows.slice(0, limit);
        const last = shown.at(-1);
        const next = rows.length > limit && last !== undefined ? pages.cursor(key(last)) : null;
        return { rows: shown, page: { ...(total === undefined ? {} : { total }), next } };
    },

    /**
     * A page of a whole list in memory, sorted by a key that no two rows share. The next page begins behind that key, so rows that are added or
     * removed meanwhile are neither lost nor shown twice.
     *
     * @throws VALIDATION_FAILED 40001 for a cursor that no list gave
     */
    sorted<T, K extends string | number>(all: readonly T[], query: PageQuery, key: (row: T) => K): PageOf<T> {
        const entries = all
            .map((row) => ({ row, key: key(row) }))
            .sort((one, other) => (one.key < other.key ? -1 : one.key > other.key ? 1 : 0));
        const after = typeof entries[0]?.key === 'number' ? pages.afterNumber(query) : pages.after(query);
        const rows = after === null ? entries : entries.filter((entry) => entry.key > after);
        const { rows: shown, page } = pages.read(rows, query.limit, (entry) => entry.key, all.length);
        return { rows: shown.map(({ row }) => row), page };
    },

    /**
     * A page of a whole list in memory whose order has a meaning of its own, such as that of rules. The next page begins at a position.
     *
     * @throws VALIDATION_FAILED 40001 for a cursor that no list gave
     */
    ordered<T>(all: readonly T[], query: PageQuery): PageOf<T> {
        const start = pages.afterNumber(query) ?? 0;
        const end = start + query.limit;
        return {
            rows: all.slice(start, end),
            page: { total: all.length, next: end < all.length ? pages.cursor(end) : null }
        };
    }
};

function refuse(): never {
    throw errors.invalid([{ path: 'cursor', message: 'cursor must come from the Link of an earlier page' }]);
}
