/**
 * Finds entries in the order of their numbers. A page costs the same wherever it is in the list. What no index answers is read in windows
 * of a few thousand entries with a pause between them, so that the search for a rare match never blocks the event loop.
 */
import { setImmediate as breathe } from 'node:timers/promises';

import type { Database, Statement } from '../../../platform/database/database.ts';
import { type EntryRow, resourceIdOf } from '../entry/row.ts';
import { blockSize, type Indexer } from './indexer.ts';

/** What an entry must match; all given fields must hold. */
export interface AuditFilter {
    readonly action?: string | undefined;
    readonly resource?: string | undefined;
    readonly resourceId?: string | undefined;
    /** A user name in any case; digits are a user's id. */
    readonly actor?: string | undefined;
    readonly outcome?: 'success' | 'failure' | undefined;
    /** Milliseconds since 1970, both included. */
    readonly from?: number | undefined;
    readonly to?: number | undefined;
    /** Text anywhere in the entry; ASCII letters match in any case. */
    readonly q?: string | undefined;
}

/** Which of the matching entries are wanted. */
export interface Slice {
    readonly limit: number;
    readonly order: 'newest' | 'oldest';
    /** Only entries after this one, in that order; null from the start. */
    readonly after: number | null;
    readonly signal?: AbortSignal;
}

interface Window {
    readonly low: number;
    readonly high: number;
    /** Every entry of the window has facets. */
    readonly indexed: boolean;
}

interface Conditions {
    /** Conditions on the table `e`. */
    readonly direct: readonly string[];
    readonly directValues: readonly unknown[];
    /** Columns of `audit_facets` with their values, the most selective first. */
    readonly facets: readonly (readonly [string, unknown])[];
    readonly times: readonly string[];
    readonly timeValues: readonly unknown[];
}

const firstWindow = 2_000;
const largestWindow = 4_000_000;
/** After a window that took longer, the next is smaller, and the event loop gets a turn. */
const fastMs = 1;
/** Blocks that are looked up at once: few at first, since a common word is in every block. */
const firstBlocks = 2;
const mostBlocks = 64;
/** How many trigrams one look-up joins. They only rule blocks out; the entries decide. */
const mostTrigrams = 6;
const searched = [
    'username',
    'action',
    'resource',
    'resource_id',
    'ip',
    'request_id',
    'user_agent',
    'changes'
];

/** Reads entries by filter. */
export class Search {
    readonly #db: Database;
    readonly #indexer: Indexer;
    readonly #head: () => number;
    readonly #statements = new Map<string, Statement<readonly unknown[], EntryRow>>();
    readonly #names: Readonly<Record<'action' | 'resource', Statement<[number], { name: string }>>>;
    readonly #first: Statement<[], { id: number | null }>;
    readonly #from: Statement<[number], { id: number; at: number }>;
    readonly #late: Statement<[number], { late: number }>;
    readonly #words: {
        readonly newest: Statement<[string, number, number, number], { block: number }>;
        readonly oldest: Statement<[string, number, number, number], { block: number }>;
    };

    constructor(db: Database, indexer: Indexer, head: () => number) {
        this.#db = db;
        this.#indexer = indexer;
        this.#head = head;
        // One step in the index for each name, however many entries there are; and the few entries that are not indexed yet.
        const names = (column: string) =>
            db.prepare<[number], { name: string }>(`with recursive names(name) as (
                select min(${column}) from audit_facets
                union all select (select min(${column}) from audit_facets where ${column} > name) from names where name is not null
            ) select name from names where name is not null union select ${column} from audit_entries where id > ? order by 1`);
        this.#names = { action: names('action'), resource: names('resource') };
        this.#first = db.prepare('select min(id) as id from audit_entries');
        this.#from = db.prepare('select id, at from audit_entries where id >= ? order by id limit 1');
        this.#late = db.prepare(
            'select exists (select 1 from audit_facets where late = 1) or exists (select 1 from audit_entries where id > ? and late = 1) as late'
        );
        const words = (direction: string): string =>
            `select rowid as block from audit_words where audit_words match ? and rowid >= ? and rowid <= ? order by rowid ${direction} limit ?`;
        this.#words = { newest: db.prepare(words('desc')), oldest: db.prepare(words('asc')) };
    }

    /** The number of the oldest entry that is still there. */
    first(): number {
        return this.#first.get()?.id ?? this.#head() + 1;
    }

    /** Every action and every resource that entries name, sorted. */
    names(): { readonly actions: string[]; readonly resources: string[] } {
        const of = (column: 'action' | 'resource'): string[] =>
            this.#names[column].all(this.#indexer.facets).map(({ name }) => name);
        return { actions: of('action'), resources: of('resource') };
    }

    /** The entries that match, at most `limit`, in the order of the slice. */
    async find(filter: AuditFilter, slice: Slice): Promise<EntryRow[]> {
        const conditions = conditionsOf(filter);
        const bounds = this.#bounds(filter, slice);
        const rows: EntryRow[] = [];
        const found = (window: Window): number => {
            const began = performance.now();
            rows.push(...this.#read(window, conditions, slice.order, slice.limit - rows.length));
            return performance.now() - began;
        };
        let busy = 0;
        let size = firstWindow;
        for (const windows = this.#windows(bounds, filter, slice.order); rows.length < slice.limit;) {
            const next = windows.next(size);
            if (next.done === true) {
                break;
            }
            const took = found(next.value);
            busy += took;
            size =
                took < fastMs
                    ? Math.min(size * (took < fastMs / 4 ? 4 : 2), largestWindow)
                    : Math.max(firstWindow, Math.floor(size / 2));
            if (busy >= fastMs) {
                busy = 0;
                await breathe();
                slice.signal?.throwIfAborted();
            }
        }
        return rows;
    }

    /** The first and last entry that can match. Entries are in the order of their time, unless the clock was once set back. */
    #bounds(filter: AuditFilter, slice: Slice): { readonly low: number; readonly high: number } {
        let low = this.first();
        let high = this.#head();
        if (
            (filter.from !== undefined || filter.to !== undefined) &&
            this.#late.get(this.#indexer.facets)?.late === 0
        ) {
            const [first, last] = [low, high];
            low = filter.from === undefined ? low : this.#firstSince(filter.from, first, last);
            high = filter.to === undefined ? high : this.#firstSince(filter.to + 1, first, last) - 1;
        }
        if (slice.after !== null) {
            return slice.order === 'newest'
                ? { low, high: Math.min(high, slice.after - 1) }
                : { low: Math.max(low, slice.after + 1), high };
        }
        return { low, high };
    }

    #firstSince(time: number, first: number, last: number): number {
        let [low, high] = [first, last + 1];
        while (low < high) {
            const middle = Math.floor((low + high) / 2);
            const row = this.#from.get(middle);
            if (row === undefined || row.at >= time) {
                high = middle;
            } else {
                low = row.id + 1;
            }
        }
        return low;
    }

    *#windows(
        { low, high }: { readonly low: number; readonly high: number },
        filter: AuditFilter,
        order: Slice['order']
    ): Generator<Window, void, number> {
        const match = filter.q === undefined ? null : trigramsOf(filter.q);
        const known = match === null ? this.#indexer.facets : this.#indexer.blocks * blockSize;
        const old = { low, high: Math.min(high, known) };
        const fresh = { low: Math.max(low, known + 1), high };
        if (order === 'newest') {
            yield* plainWindows(fresh, order, false);
        }
        if (match === null) {
            yield* plainWindows(old, order, true);
        } else {
            yield* this.#wordWindows(old, match, order);
        }
        if (order === 'oldest') {
            yield* plainWindows(fresh, order, false);
        }
    }

    *#wordWindows(
        { low, high }: { readonly low: number; readonly high: number },
        match: string,
        order: Slice['order']
    ): Generator<Window, void, number> {
        let [from, to] = [blockOf(low), blockOf(high)];
        for (let count = firstBlocks; low <= high && from <= to; count = Math.min(count * 4, mostBlocks)) {
            const blocks = this.#words[order].all(match, from, to, count);
            for (const { block } of blocks) {
                yield {
                    low: Math.max(low, block * blockSize + 1),
                    high: Math.min(high, (block + 1) * blockSize),
                    indexed: false
                };
            }
            const last = blocks.at(-1)?.block;
            if (last === undefined || blocks.length < count) {
                return;
            }
            [from, to] = order === 'newest' ? [from, last - 1] : [last + 1, to];
        }
    }

    #read(window: Window, conditions: Conditions, order: Slice['order'], limit: number): EntryRow[] {
        const direction = order === 'newest' ? 'desc' : 'asc';
        const [selective, ...others] = conditions.facets;
        if (!window.indexed || selective === undefined) {
            const where = ['e.id between ? and ?', ...conditions.direct, ...conditions.times].join(' and ');
            return this.#all(
                `select e.* from audit_entries e where ${where} order by e.id ${direction} limit ?`,
                [window.low, window.high, ...conditions.directValues, ...conditions.timeValues, limit]
            );
        }
        const where = [
            'f.id between ? and ?',
            `f.${selective[0]} = ?`,
            ...others.map(([column]) => `+f.${column} = ?`),
            ...conditions.times
        ].join(' and ');
        const sql = `select e.* from audit_facets f indexed by audit_facets_${selective[0]} cross join audit_entries e on e.id = f.id where ${where} order by f.id ${direction} limit ?`;
        return this.#all(sql, [
            window.low,
            window.high,
            selective[1],
            ...others.map(([, value]) => value),
            ...conditions.timeValues,
            limit
        ]);
    }

    #all(sql: string, values: readonly unknown[]): EntryRow[] {
        let statement = this.#statements.get(sql);
        if (statement === undefined) {
            statement = this.#db.prepare<readonly unknown[], EntryRow>(sql);
            this.#statements.set(sql, statement);
        }
        return statement.all(...values);
    }
}

function conditionsOf(filter: AuditFilter): Conditions {
    const byId = filter.actor !== undefined && /^[1-9]\d{0,14}$/.test(filter.actor);
    const candidates: readonly (readonly [string, unknown])[] = [
        ['resource_id', filter.resourceId === undefined ? undefined : resourceIdOf(filter.resourceId)],
        ['actor_id', byId ? Number(filter.actor) : undefined],
        ['username', byId ? undefined : filter.actor],
        ['action', filter.action],
        ['resource', filter.resource],
        ['outcome', filter.outcome]
    ];
    const facets = candidates.filter(([, value]) => value !== undefined);
    const times = [
        ...(filter.from === undefined ? [] : ['e.at >= ?']),
        ...(filter.to === undefined ? [] : ['e.at <= ?'])
    ];
    const like =
        filter.q === undefined
            ? []
            : [`(${searched.map((column) => `e.${column} like ? escape '\\'`).join(' or ')})`];
    return {
        direct: [
            ...facets.map(([column]) =>
                column === 'username' ? 'e.username = ? collate nocase' : `e.${column} = ?`
            ),
            ...like
        ],
        directValues: [
            ...facets.map(([, value]) => value),
            ...(filter.q === undefined
                ? []
                : searched.map(() => `%${(filter.q ?? '').replace(/[\\%_]/g, '\\$&')}%`))
        ],
        // A search for text has small windows and reads the entries anyway.
        facets: filter.q === undefined ? facets : [],
        times,
        timeValues: [filter.from, filter.to].filter((value) => value !== undefined)
    };
}

function* plainWindows(
    { low, high }: { readonly low: number; readonly high: number },
    order: Slice['order'],
    indexed: boolean
): Generator<Window, void, number> {
    let size = firstWindow;
    let [from, to] = [low, high];
    while (from <= to) {
        const window =
            order === 'newest'
                ? { low: Math.max(from, to - size + 1), high: to, indexed }
                : { low: from, high: Math.min(to, from + size - 1), indexed };
        [from, to] = order === 'newest' ? [from, window.low - 1] : [window.high + 1, to];
        size = yield window;
    }
}

/** The trigrams that a block must have, evenly spread over the text; null for a text of fewer than three characters. */
function trigramsOf(text: string): string | null {
    const chars = [...text];
    if (chars.length < 3) {
        return null;
    }
    const last = chars.length - 3;
    const step = Math.max(1, Math.ceil(last / mostTrigrams));
    const starts = new Set([last]);
    for (let at = 0; at < last; at += step) {
        starts.add(at);
    }
    return [...starts]
        .map(
            (at) =>
                `"${chars
                    .slice(at, at + 3)
                    .join('')
                    .replaceAll('"', '""')}"`
        )
        .join(' AND ');
}

function blockOf(id: number): number {
    return Math.floor((id - 1) / blockSize);
}
