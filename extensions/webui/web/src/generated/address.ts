/** Addresses of lists and of their items on a generated page: which list, which item, and which items lead to them. */
import type { Collection } from '@portico/sdk/page/model';

import type { Operation, Params } from './operations.ts';

/** Lists that lead to each other, the outermost first. */
export type Trail = readonly Collection<Operation>[];

/** The lists that lead to one, and itself last; null when there is no such list. */
export function trailTo(collections: Trail, listId: string | null): Trail | null {
    for (const each of collections) {
        const below = each.list.id === listId ? [] : trailTo(each.item?.related ?? [], listId);
        if (below !== null) {
            return [each, ...below];
        }
    }
    return null;
}

/** Address of a list. `within` are the ids of the items that it lies below, the outermost first. */
export function listAddress(
    tag: string,
    { list }: Collection<Operation>,
    within: readonly string[] = []
): string {
    const outer = within.map((id) => `&in=${encodeURIComponent(id)}`);
    return `/p/${tag}?list=${encodeURIComponent(list.id)}${outer.join('')}`;
}

/** Address of an item of a list. Its ids are as many as its path has parameters of its own. */
export function itemAddress(
    tag: string,
    collection: Collection<Operation>,
    within: readonly string[],
    ids: readonly string[]
): string {
    const own = ids.map((id) => `&id=${encodeURIComponent(id)}`);
    return listAddress(tag, collection, within) + own.join('');
}

/** Values of the path's parameters below items. `ids` are those of the items of the trail, one after the other. */
export function paramsOf(trail: Trail, ids: readonly string[]): Params {
    let params: Params = {};
    let at = 0;
    for (const { list, item } of trail) {
        const names = item?.params ?? [];
        const own = Object.fromEntries(names.map((name, index) => [name, ids[at + index] ?? '']));
        at += names.length;
        // An item that stands alone has a path without the items that its list lies below.
        params = item?.path.startsWith(`${list.path}/`) === true ? { ...params, ...own } : own;
    }
    return params;
}

/** Where an item's page leads back to: its list, or the item that the list lies below. */
export function backOf(tag: string, trail: Trail, within: readonly string[]): string {
    const parent = trail.at(-2);
    if (parent?.item) {
        const above = within.slice(0, -parent.item.params.length);
        return itemAddress(tag, parent, above, within.slice(above.length));
    }
    const [list] = trail;
    return list === undefined ? `/p/${tag}` : listAddress(tag, list);
}
