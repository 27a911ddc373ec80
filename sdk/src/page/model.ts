/**
 * Sorts operations into what a generated page shows: collections with their items, cards, live views and actions. The panel's pages and
 * `portico plugin validate` both ask it, so an operation without a place is the same one for both. It knows no plugin and imports nothing.
 */

/** What the place of an operation depends on. */
export interface PlacedOperation {
    readonly id: string;
    readonly method: string;
    /** Path with its parameters in braces. */
    readonly path: string;
    /** `other` is what a generated page cannot do: uploads, sockets and raw routes. */
    readonly kind: 'json' | 'stream' | 'download' | 'other';
    /** Names of the parameters of the path. */
    readonly params: readonly string[];
    readonly query: readonly { readonly isRequired: boolean }[];
    /** It answers a list of objects. */
    readonly isList: boolean;
    readonly ui: { readonly role?: string; readonly primary?: boolean; readonly order?: number };
}

/** A list, what can be made in it, and what each of its items is. */
export interface Collection<Operation extends PlacedOperation> {
    readonly list: Operation;
    readonly create: Operation | null;
    readonly item: Item<Operation> | null;
}

/** An object that is read alone, and what changes it. */
export interface CardModel<Operation extends PlacedOperation> {
    readonly read: Operation;
    readonly edit: Operation | null;
}

/** What one item of a collection can show and do. */
export interface Item<Operation extends PlacedOperation> {
    /** Name of the path's parameter that the item stands for. */
    readonly param: string;
    readonly read: Operation | null;
    readonly edit: Operation | null;
    readonly remove: Operation | null;
    readonly actions: readonly Operation[];
    readonly cards: readonly CardModel<Operation>[];
    readonly streams: readonly Operation[];
    readonly downloads: readonly Operation[];
    readonly related: readonly Collection<Operation>[];
}

/** All that one tag has. */
export interface Model<Operation extends PlacedOperation> {
    readonly collections: readonly Collection<Operation>[];
    readonly cards: readonly CardModel<Operation>[];
    readonly streams: readonly Operation[];
    readonly downloads: readonly Operation[];
    readonly actions: readonly Operation[];
    /** What found no place; it is listed with method and path. */
    readonly others: readonly Operation[];
}

/** Builds the model of one tag's operations. */
export function modelOf<Operation extends PlacedOperation>(
    operations: readonly Operation[]
): Model<Operation> {
    const seen = operations.filter(({ ui }) => ui.role !== 'hidden');
    const used = new Set<Operation>();
    const part = partOf(seen, '', used);
    return {
        collections: part.related,
        cards: part.cards,
        streams: part.streams,
        downloads: part.downloads,
        actions: part.actions,
        others: seen.filter((each) => !used.has(each))
    };
}

/** What lies below a path, or, without one, all that needs no parameter. */
function partOf<Operation extends PlacedOperation>(
    operations: readonly Operation[],
    base: string,
    used: Set<Operation>
): Omit<Item<Operation>, 'param' | 'read' | 'edit' | 'remove'> {
    const depth = base.split('{').length;
    const here = operations.filter(
        (each) => each.path.startsWith(base) && each.path !== base && each.params.length === depth - 1
    );
    const take = (found: readonly Operation[]): readonly Operation[] => {
        found.forEach((each) => used.add(each));
        return [...found].sort(byOrder);
    };
    const reads = here.filter(
        (each) => each.method === 'GET' && !each.query.some((query) => query.isRequired)
    );
    const related = take(reads.filter((each) => each.kind === 'json' && each.isList)).map((list) =>
        collectionOf(list, operations, used)
    );
    const isFree = (each: Operation): boolean => !used.has(each);
    const cards = take(reads.filter((each) => isFree(each) && each.kind === 'json')).map((read) => ({
        read,
        edit: take(here.filter((each) => each.method === 'PUT' && each.path === read.path))[0] ?? null
    }));
    return {
        related,
        cards,
        streams: take(reads.filter((each) => each.kind === 'stream')),
        downloads: take(reads.filter((each) => each.kind === 'download')),
        actions: take(here.filter((each) => isFree(each) && each.method !== 'GET' && each.kind === 'json'))
    };
}

function collectionOf<Operation extends PlacedOperation>(
    list: Operation,
    operations: readonly Operation[],
    used: Set<Operation>
): Collection<Operation> {
    used.add(list);
    const create =
        operations.find(
            (each) => each.method === 'POST' && each.path === list.path && each.kind === 'json'
        ) ?? null;
    if (create !== null) {
        used.add(create);
    }
    const below = new RegExp(`^${escape(list.path)}/\\{[^/}]+\\}`);
    const path = operations.map((each) => below.exec(each.path)?.[0]).find((each) => each !== undefined);
    return { list, create, item: path === undefined ? null : itemOf(path, operations, used) };
}

function itemOf<Operation extends PlacedOperation>(
    path: string,
    operations: readonly Operation[],
    used: Set<Operation>
): Item<Operation> {
    const find = (method: string): Operation | null => {
        const found = operations.find(
            (each) => each.method === method && each.path === path && each.kind === 'json'
        );
        if (found !== undefined) {
            used.add(found);
        }
        return found ?? null;
    };
    const param = /\{([^}]+)\}$/.exec(path)?.[1] ?? 'id';
    return {
        param,
        read: find('GET'),
        edit: find('PUT'),
        remove: find('DELETE'),
        ...partOf(operations, `${path}/`, used)
    };
}

const byOrder = (left: PlacedOperation, right: PlacedOperation): number =>
    (left.ui.order ?? 99) - (right.ui.order ?? 99) ||
    Number(right.ui.primary ?? false) - Number(left.ui.primary ?? false);
const escape = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
