/** Rows as the dump tools of MySQL and MariaDB write them: INSERT statements of many rows each. */
import { fail } from '../errors.ts';
import { chunkRows, type CloneRows, pause, type RowFormat, type TableRows } from './change.ts';

const name = '`((?:[^`]|``)+)`';
const head = new RegExp(`^insert into ${name} \\(((?:${name}(?:, ?)?)+)\\) values\\s*`, 'i');
const escapes: Readonly<Record<string, string>> = { 0: '\0', b: '\b', n: '\n', r: '\r', t: '\t', Z: '\x1a' };
const empty = 'NULL';

const format: RowFormat = {
    read: (raw) =>
        raw === empty
            ? null
            : raw.startsWith("'")
              ? raw
                    .slice(1, -1)
                    .replace(/\\(.)|''/gs, (_, letter?: string) =>
                        letter === undefined ? "'" : (escapes[letter] ?? letter)
                    )
              : raw,
    write: (value) =>
        value === null
            ? empty
            : `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\0', '\\0')}'`
};

/** Changes the INSERT statements of a dump. Rows of the table before may have waited for others. */
export class InsertRows {
    readonly #rows: CloneRows;
    readonly #schema: string;
    #current: { readonly start: string; readonly rows: TableRows } | null = null;

    constructor(rows: CloneRows, schema: string) {
        this.#rows = rows;
        this.#schema = schema;
    }

    /** What runs in place of a statement. @throws SQL_FAILED 42250 for an INSERT that the dump tools do not write */
    async change(sql: string): Promise<readonly string[]> {
        if (!/^insert\b/i.test(sql)) {
            return [...this.end(), sql];
        }
        const found = head.exec(sql);
        const [start = '', table = '', columns = ''] = found ?? [];
        if (found === null) {
            throw fail.SQL_FAILED({
                sqlState: null,
                message: 'the dump holds rows in a form that is not known'
            });
        }
        if (this.#rows.isPlain(this.#schema, plain(table))) {
            return [...this.end(), sql];
        }
        const before = this.#current?.start === start ? [] : this.end();
        const names = [...columns.matchAll(new RegExp(name, 'g'))].map(([, each = '']) => plain(each));
        this.#current ??= { start, rows: this.#rows.of(format, this.#schema, plain(table), names) };
        const ready: (readonly string[])[] = [];
        const rows = rowsOf(sql, start.length);
        for (let at = 0; at < rows.length; at += chunkRows) {
            ready.push(...this.#current.rows.take(rows.slice(at, at + chunkRows)));
            await pause();
        }
        return [...before, ...insert(start, ready)];
    }

    /** The rows that waited for others. */
    end(): readonly string[] {
        const ready = this.#current === null ? [] : insert(this.#current.start, this.#current.rows.end());
        this.#current = null;
        return ready;
    }
}

function insert(start: string, rows: readonly (readonly string[])[]): readonly string[] {
    return rows.length === 0 ? [] : [start + rows.map((row) => `(${row.join(',')})`).join(',\n')];
}

function plain(quoted: string): string {
    return quoted.replaceAll('``', '`');
}

/** The values of all rows of a statement, as they are written. */
function rowsOf(sql: string, from: number): string[][] {
    const rows: string[][] = [];
    let row: string[] = [];
    let start = from;
    const ends = /[',()]/g;
    for (let at = from; ;) {
        ends.lastIndex = at;
        const found = ends.exec(sql);
        if (found === null) {
            return rows;
        }
        at = found.index + 1;
        if (found[0] === "'") {
            at = endOfText(sql, at);
        } else if (found[0] === '(') {
            start = at;
        } else {
            if (start >= 0) {
                row.push(sql.slice(start, found.index).trim());
            }
            start = found[0] === ')' ? -1 : start < 0 ? -1 : at;
            if (found[0] === ')') {
                rows.push(row);
                row = [];
            }
        }
    }
}

function endOfText(sql: string, from: number): number {
    const ends = /['\\]/g;
    for (let at = from; ;) {
        ends.lastIndex = at;
        const found = ends.exec(sql);
        if (found === null) {
            return sql.length;
        }
        if (found[0] === "'") {
            return found.index + 1; // A doubled quote begins the next part of the same text.
        }
        at = found.index + 2;
    }
}
