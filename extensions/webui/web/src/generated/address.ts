/** Addresses of lists and of their items on a generated page: which list, which item, and which items lead to them. */
import type { Collection } from '@portico/sdk/page/model';

import type { Operation, Params } from './operations.ts';

const outer = 'in.';

/** The lists that lead to one, the outermost first, and itself last; null when there is no such list. */
export function trailTo(
    collections: readonly Collection<Operation>[],
    listId: string | null
): readonly Collection<Operation>[] | null {
    for (const each of collections) {
        const below = each.list.id === listId ? [] : trailTo(each.item?.related ?? [], listId);
        if (below !== null) {
            return [each, ...below];
        }
    }
    return null;
}

/** Address of a list. `params` names the items that it lies below. */
export function listAddress(tag: string, { list }: Collection<Operation>, params: Params = {}): string {
    const items = Object.entries(params).map(([name, id]) => `&${outer}${name}=${encodeURIComponent(id)}`);
    return `/p/${tag}?list=${encodeURIComponent(list.id)}${items.join('')}`;
}

/** Address of an item of a list. */
export const itemAddress = (
    tag: string,
    collection: Collection<Operation>,
    params: Params,
    id: string
): string => `${listAddress(tag, collection, params)}&id=${encodeURIComponent(id)}`;

/** Values of the path's parameters that an address names, without the item's own. */
export function paramsOf(search: URLSearchParams): Params {
    return Object.fromEntries(
        [...search].flatMap(([key, value]) =>
            key.startsWith(outer) ? [[key.slice(outer.length), value]] : []
        )
    );
}

/** Where an item's page leads back to: its list, or the item that the list lies below. */
export function backOf(tag: string, trail: readonly Collection<Operation>[], params: Params): string {
    const parent = trail.at(-2);
    if (parent?.item) {
        const { [parent.item.param]: id = '', ...above } = params;
        return itemAddress(tag, parent, above, id);
    }
    const [list] = trail;
    return list === undefined ? `/p/${tag}` : listAddress(tag, list);
}
