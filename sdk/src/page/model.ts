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
    /** `other` is what has a protocol of its own, which a generated page does not speak: sockets and raw routes. */
    readonly kind: 'json' | 'stream' | 'upload' | 'download' | 'other';
    /** Names of the parameters of the path. */
    readonly params: readonly string[];
    /** Those of them whose values are known: a closed choice, or a reference to another list. */
    readonly choices: readonly string[];
    readonly query: readonly { readonly isRequired: boolean }[];
    /** It answers a list of objects. */
    readonly isList: boolean;
    /** Names of the fields of a row, where it answers a list. */
    readonly rowKeys: readonly string[];
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
    /** Its path, which is below its list, or stands alone where the list lies below another item: `/runs/{id}` of `/jobs/{id}/runs`. */
    readonly path: string;
    /** Names of the path's parameters that the item stands for; more than one where the rows name them all. */
    readonly params: readonly string[];
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

/** What lies at a path and below it, or, without one, all that needs no parameter or only such as can be chosen. */
function partOf<Operation extends PlacedOperation>(
    operations: readonly Operation[],
    path: string,
    used: Set<Operation>
): Omit<Item<Operation>, 'path' | 'params' | 'read' | 'edit' | 'remove'> {
    const depth = paramsOf(path).length;
    const below = operations.filter((each) => each.path === path || each.path.startsWith(`${path}/`));
    const here = below.filter((each) => each.params.length === depth);
    const take = (found: readonly Operation[]): readonly Operation[] => {
        found.forEach((each) => used.add(each));
        return [...found].sort(byOrder);
    };
    const isFree = (each: Operation): boolean => !used.has(each);
    const reads = here.filter((each) => isFree(each) && each.method === 'GET' && !isAsking(each));
    const related = take(reads.filter((each) => each.kind === 'json' && each.isList)).map((list) =>
        collectionOf(list, operations, used)
    );
    const cards = take(reads.filter((each) => isFree(each) && each.kind === 'json')).map((read) => ({
        read,
        edit: take(here.filter((each) => each.method === 'PUT' && each.path === read.path))[0] ?? null
    }));
    // The items of the lists took their own; what is left of deeper paths is asked for, if it can be chosen.
    const offered = below.filter(
        (each) =>
            isFree(each) &&
            each.kind !== 'other' &&
            each.params.slice(depth).every((name) => each.choices.includes(name))
    );
    return {
        related,
        cards,
        streams: take(offered.filter((each) => each.method === 'GET' && each.kind === 'stream')),
        downloads: take(reads.filter((each) => each.kind === 'download')),
        actions: take(offered.filter(isFree))
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
    const path = itemPathOf(list, list.path, operations) ?? aloneOf(list, operations);
    return { list, create, item: path === null ? null : itemOf(path, list, operations, used) };
}

/** The path of a list's items: that of the list, and the parameters that the rows name. Null where nothing lies below the list. */
function itemPathOf(
    { rowKeys }: PlacedOperation,
    base: string,
    operations: readonly PlacedOperation[]
): string | null {
    const runs = operations
        .filter(({ path }) => path.startsWith(`${base}/{`))
        .map(({ path }) => paramsOf(/^(?:\/\{[^/]+\})+/.exec(path.slice(base.length))?.[0] ?? ''));
    const [run] = runs.toSorted((left, right) => left.length - right.length);
    if (run === undefined) {
        return null;
    }
    const noun = base.split('/').pop();
    const isNamed = (name: string): boolean => rowKeys.includes(name) || `${name}s` === noun;
    const names = run.every(isNamed) ? run : run.slice(0, 1);
    return base + names.map((name) => `/{${name}}`).join('');
}

/** The path of items that stand alone, though their list lies below another item. */
function aloneOf(list: PlacedOperation, operations: readonly PlacedOperation[]): string | null {
    const base = list.path.replace(/\/[^/{}]+(?:\/\{[^/]+\})+/g, '');
    const isOwn = operations.some((each) => each.path === base && each.method === 'GET' && each.isList);
    return base === list.path || isOwn ? null : itemPathOf(list, base, operations);
}

function itemOf<Operation extends PlacedOperation>(
    path: string,
    list: Operation,
    operations: readonly Operation[],
    used: Set<Operation>
): Item<Operation> {
    const find = (method: string): Operation | null => {
        const found = operations.find(
            (each) => each.method === method && each.path === path && each.kind === 'json' && !isAsking(each)
        );
        if (found !== undefined) {
            used.add(found);
        }
        return found ?? null;
    };
    const names = paramsOf(path);
    return {
        path,
        params: path.startsWith(`${list.path}/`) ? names.slice(list.params.length) : names,
        read: find('GET'),
        edit: find('PUT'),
        remove: find('DELETE'),
        ...partOf(operations, path, used)
    };
}

const paramsOf = (path: string): readonly string[] =>
    [...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => String(name));
/** Whether it is a question: a read that cannot be asked without a value. */
const isAsking = ({ method, query }: PlacedOperation): boolean =>
    method === 'GET' && query.some(({ isRequired }) => isRequired);
const byOrder = (left: PlacedOperation, right: PlacedOperation): number =>
    (left.ui.order ?? 99) - (right.ui.order ?? 99) ||
    Number(right.ui.primary ?? false) - Number(left.ui.primary ?? false);
