/** The list of hosts. Filters, order and pages are SQL; the JSON is put together from stored texts. */
import { createHash, randomBytes } from 'node:crypto';

import type { Engine } from '../../engine/change.ts';
import type { Database, Statement } from '../../platform/database/database.ts';
import { invalid } from '../../platform/errors.ts';
import type { HostQuery } from './schema/bodies.ts';
import type { DatabaseHostStore } from './store.ts';
import { viewText } from './view.ts';

interface Content {
    readonly total: number;
    readonly next: string | null;
    readonly json: string;
}

/** One page of the list. `tag` names its content; the rest is read on first use, because a client that has this tag needs none of it. */
export class HostPage {
    readonly tag: string;
    readonly #read: () => Content;
    #content: Content | null = null;

    constructor(tag: string, read: () => Content) {
        this.tag = tag;
        this.#read = read;
    }

    get total(): number {
        return this.#whole().total;
    }

    get next(): string | null {
        return this.#whole().next;
    }

    json(): string {
        return this.#whole().json;
    }

    #whole(): Content {
        return (this.#content ??= this.#read());
    }
}

type Parameter = string | number;
interface Line {
    readonly id: number;
    readonly document: string;
    readonly key: Parameter;
}
type Place = readonly [Parameter, number];
type Row = Statement<readonly Parameter[], Line>;

const columns = {
    id: 'id',
    domain: 'domain',
    type: 'type',
    createdAt: 'created_at',
    updatedAt: 'updated_at'
} as const;
type SortField = keyof typeof columns;

/** Enough for every combination of filters, orders, and first or further page. */
const mostStatements = 1024;
/** How many pages are cached until anything changes, and how many characters they have together: the whole list of some thousand hosts fits in. */
const mostPages = 64;
const mostCharacters = 4 * 1024 * 1024;

/** Reads pages of the list and caches them. The state of a row is what the engine says at that time. */
export class HostList {
    readonly #db: Database;
    readonly #store: Pick<DatabaseHostStore, 'changes'>;
    readonly #engine: Pick<Engine, 'draft' | 'pending' | 'process' | 'stateOf'>;
    readonly #boot = randomBytes(6).toString('base64url');
    readonly #statements = new Map<string, Row>();
    #cache = new PageCache('');
    readonly #counts = new Map<string, Statement<readonly Parameter[], { total: number }>>();
    #counted = { changes: -1, total: 0 };

    constructor(
        db: Database,
        store: Pick<DatabaseHostStore, 'changes'>,
        engine: Pick<Engine, 'draft' | 'pending' | 'process' | 'stateOf'>
    ) {
        this.#db = db;
        this.#store = store;
        this.#engine = engine;
    }

    page(query: HostQuery): HostPage {
        const tag = `${this.#boot}.${this.#store.changes}.${this.#stateTag()}`;
        const after = query.cursor === undefined ? null : readCursor(query.cursor, query.sort ?? 'id');
        const key = JSON.stringify(query);
        if (this.#cache.tag !== tag) {
            this.#cache = new PageCache(tag);
        }
        const cache = this.#cache;
        return new HostPage(tag, () => cache.get(key, () => this.#read(query, after)));
    }

    #total(where: string, parameters: readonly Parameter[]): number {
        if (where === '' && this.#counted.changes === this.#store.changes) {
            return this.#counted.total;
        }
        const found =
            kept(this.#counts, where, () =>
                this.#db.prepare(`select count(*) as total from host${where}`)
            ).get(...parameters)?.total ?? 0;
        if (where === '') {
            this.#counted = { changes: this.#store.changes, total: found };
        }
        return found;
    }

    /** A text that changes whenever the state of any host can have changed. */
    #stateTag(): string {
        const { state, message } = this.#engine.process();
        const pending = this.#engine.pending();
        if (pending.size === 0 && message === null) {
            return state;
        }
        const ids = [...pending];
        const row = this.#engine.draft().hosts.get(ids[0] ?? 0);
        return createHash('sha1')
            .update(
                JSON.stringify([state, message, ids, row === undefined ? null : this.#engine.stateOf(row)])
            )
            .digest('base64url');
    }

    #idsIn(state: HostQuery['state']): string {
        return JSON.stringify(
            [...this.#engine.draft().hosts]
                .filter(([, row]) => this.#engine.stateOf(row).state === state)
                .map(([id]) => id)
        );
    }

    #read(query: HostQuery, after: Place | null): Content {
        const [where, parameters] = filter(query, (state) => this.#idsIn(state));
        const [field, descending] = order(query.sort ?? 'id');
        const column = columns[field];
        const direction = descending ? 'desc' : 'asc';
        const beyond =
            after === null
                ? ''
                : `${where === '' ? ' where' : ' and'} (${column}, id) ${descending ? '<' : '>'} (?, ?)`;
        const { limit } = query;
        const sql = `select id, document, ${column} as key from host${where}${beyond} order by ${column} ${direction}, id ${direction}${limit === undefined ? '' : ' limit ?'}`;
        const lines = kept(this.#statements, sql, () => this.#db.prepare(sql)).all(
            ...parameters,
            ...(after ?? []),
            ...(limit === undefined ? [] : [limit + 1])
        );
        const shown = limit === undefined || lines.length <= limit ? lines : lines.slice(0, limit);
        const last = shown.at(-1);
        const { hosts } = this.#engine.draft();
        const texts = shown.map(({ id, document }) => {
            const row = hosts.get(id);
            // A host whose removal is being committed is gone from the draft while the database still has it.
            return viewText(
                document,
                row === undefined ? { state: 'pending', message: null } : this.#engine.stateOf(row)
            );
        });
        return {
            total: this.#total(where, parameters),
            next:
                last === undefined || shown.length === lines.length
                    ? null
                    : writeCursor(query.sort ?? 'id', last),
            json: `[${texts.join(',')}]`
        };
    }
}

/** The pages that were read since something changed. */
class PageCache {
    readonly tag: string;
    readonly #pages = new Map<string, Content>();
    #characters = 0;

    constructor(tag: string) {
        this.tag = tag;
    }

    get(key: string, read: () => Content): Content {
        const known = this.#pages.get(key);
        if (known !== undefined) {
            return known;
        }
        const page = read();
        if (this.#pages.size >= mostPages || this.#characters + page.json.length > mostCharacters) {
            this.#pages.clear();
            this.#characters = 0;
        }
        if (page.json.length <= mostCharacters) {
            this.#pages.set(key, page);
            this.#characters += page.json.length;
        }
        return page;
    }
}

function kept<S>(statements: Map<string, S>, sql: string, make: () => S): S {
    let statement = statements.get(sql);
    if (statement === undefined) {
        if (statements.size >= mostStatements) {
            statements.clear();
        }
        statement = make();
        statements.set(sql, statement);
    }
    return statement;
}

function filter(
    query: HostQuery,
    idsIn: (state: HostQuery['state']) => string
): readonly [string, readonly Parameter[]] {
    const conditions: string[] = [];
    const parameters: Parameter[] = [];
    const add = (condition: string, parameter: Parameter): void => {
        conditions.push(condition);
        parameters.push(parameter);
    };
    if (query.q !== undefined) {
        add(
            'id in (select id from host indexed by host_search where instr(search, ?) > 0)',
            query.q.toLowerCase()
        );
    }
    if (query.tag !== undefined) {
        add(
            'id in (select host.id from host indexed by host_tags, json_each(host.tags) as tag where tag.value = ?)',
            query.tag
        );
    }
    if (query.type !== undefined) {
        add('type = ?', query.type);
    }
    if (query.enabled !== undefined) {
        add('enabled = ?', query.enabled ? 1 : 0);
    }
    if (query.state !== undefined) {
        add('id in (select value from json_each(?))', idsIn(query.state));
    }
    return [conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`, parameters];
}

function order(sort: string): readonly [SortField, boolean] {
    const descending = sort.startsWith('-');
    return [(descending ? sort.slice(1) : sort) as SortField, descending];
}

/** The place behind a row, as its sort key and id: rows that are added or removed do not shift it. */
function writeCursor(sort: string, { key, id }: Line): string {
    return Buffer.from(JSON.stringify([sort, key, id])).toString('base64url');
}

function readCursor(text: string, sort: string): Place {
    try {
        const [of, key, id] = JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as unknown[];
        const wanted = order(sort)[0] === 'id' ? 'number' : 'string';
        if (of === sort && typeof key === wanted && Number.isSafeInteger(id)) {
            return [key as Parameter, id as number];
        }
    } catch {
        // Not a cursor at all: refused below like a cursor of another order.
    }
    throw invalid({ path: 'cursor', message: 'cursor is not one of this list, or of another order' });
}
