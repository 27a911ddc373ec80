/** Queries that a route has taken before. Clients ask for the same few again and again, and to read one with joi takes a tenth of a small request. */
import { deepFreeze, isPure } from '@portico/sdk/host';

import type { Route } from '../../route.ts';

/** Of each route; the longest that is remembered, characters. */
const mostQueries = 64;
const longestQuery = 256;

const known = new WeakMap<Route, Map<string, unknown>>();

/**
 * What `read` makes of a query, or made of the same text before; frozen, so that it can be handed out again.
 *
 * @param url - path with query, as it was sent
 * @throws as `read`; what it refuses is read again each time
 */
export function knownQuery(route: Route, url: string, read: () => unknown): unknown {
    const at = url.indexOf('?');
    const text = at < 0 ? '' : url.slice(at + 1);
    const schema = route.validate?.query;
    if (text.length > longestQuery || (schema !== undefined && !isPure(schema))) {
        return read();
    }
    let queries = known.get(route);
    if (queries === undefined) {
        queries = new Map();
        known.set(route, queries);
    }
    const before = queries.get(text);
    if (before !== undefined || queries.has(text)) {
        return before;
    }
    const value = deepFreeze(read());
    if (queries.size >= mostQueries) {
        queries.clear();
    }
    queries.set(text, value);
    return value;
}
