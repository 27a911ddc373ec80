/** Rows as PostgreSQL writes them for COPY: a line each, values between tabs. */
import { fail } from '../errors.ts';
import { chunkRows, type CloneRows, pause, type RowFormat } from './change.ts';

const empty = '\\N';
const escapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' };
const escaped: Readonly<Record<string, string>> = {
    '\b': '\\b',
    '\f': '\\f',
    '\n': '\\n',
    '\r': '\\r',
    '\t': '\\t',
    '\v': '\\v',
    '\\': '\\\\'
};
const name = '("(?:[^"]|"")+"|[^\\s"(.]+)';
const head = new RegExp(`^copy ${name}\\.${name} \\((.*)\\) from stdin$`, 'is');

/** Lines are kept as one character a byte. */
const format: RowFormat = {
    read: (raw) =>
        raw === empty
            ? null
            : Buffer.from(
                  raw.replace(/\\(.)/gs, (_, letter: string) => escapes[letter] ?? letter),
                  'latin1'
              ).toString('utf8'),
    write: (value) =>
        value === null
            ? empty
            : Buffer.from(value.replace(/[\b\f\n\r\t\v\\]/g, (letter) => escaped[letter] ?? letter)).toString(
                  'latin1'
              )
};

/** The data of a COPY statement as the clone gets it. @throws SQL_FAILED 42250 for a statement that `pg_dump` does not write */
export async function* copyRows(
    rows: CloneRows,
    sql: string,
    data: AsyncIterable<Buffer>
): AsyncGenerator<Buffer> {
    const [, schema, table, columns] = head.exec(sql) ?? [];
    if (schema === undefined || table === undefined || columns === undefined) {
        throw fail.SQL_FAILED({ sqlState: null, message: 'the dump holds rows in a form that is not known' });
    }
    if (rows.isPlain(plain(schema), plain(table))) {
        yield* data;
        return;
    }
    const names = [...columns.matchAll(/"(?:[^"]|"")+"|[^\s",]+/g)].map(([each]) => plain(each));
    const own = rows.of(format, plain(schema), plain(table), names);
    const write = (lines: readonly (readonly string[])[]): Buffer =>
        Buffer.from(lines.map((line) => `${line.join('\t')}\n`).join(''), 'latin1');
    let rest = '';
    for await (const chunk of data) {
        const lines = (rest + chunk.toString('latin1')).split('\n');
        rest = lines.pop() ?? '';
        for (let at = 0; at < lines.length; at += chunkRows) {
            const ready = own.take(lines.slice(at, at + chunkRows).map((line) => line.split('\t')));
            if (ready.length > 0) {
                yield write(ready);
            }
            await pause();
        }
    }
    yield write(own.end());
}

function plain(quoted: string): string {
    return quoted.startsWith('"') ? quoted.slice(1, -1).replaceAll('""', '"') : quoted;
}
