/** Rows of a file into a table: all of them, or none. */
import { errors } from '@portico/sdk';

import type { Access, Cell, Kind, TableName } from '../kinds/kind.ts';

type Values = Readonly<Record<string, Cell>>;

const mostRows = 5_000;
const batchBytes = 4 * 1024 * 1024;
/** The task writes down what it says. */
const toldRows = 50_000;

/** Inserts all rows in one transaction; `replace` removes those that were there in the same one. @throws SQL_FAILED 42250, VALIDATION_FAILED 40001 */
export async function importRows(
    kind: Kind,
    access: Access,
    table: TableName,
    options: {
        readonly rows: AsyncIterable<Values>;
        readonly mode: 'append' | 'replace';
        readonly signal: AbortSignal;
        readonly progress: (rows: number) => void;
    }
): Promise<{ readonly rows: number }> {
    return access.use(table.database, async (session) => {
        const place = kind.structure.quoteTable(table);
        const { columns } = await kind.structure.table(session, table);
        const known = new Set(columns.map(({ name }) => name));
        let names: readonly string[] = [];
        let batch: Cell[][] = [];
        let bytes = 0;
        let rows = 0;
        // The server inserts while the next rows are read.
        let inserting: Promise<void> = Promise.resolve();
        const flush = async (): Promise<void> => {
            if (batch.length > 0) {
                await inserting;
                inserting = kind.structure.insert(session, table, { names, rows: batch });
                // The next flush tells of a failure.
                inserting.catch(() => undefined);
                if (Math.floor((rows + batch.length) / toldRows) > Math.floor(rows / toldRows)) {
                    options.progress(rows + batch.length);
                }
                rows += batch.length;
                batch = [];
                bytes = 0;
            }
        };
        await session.run('begin');
        if (options.mode === 'replace') {
            await session.run(`delete from ${place}`);
        }
        for await (const row of options.rows) {
            options.signal.throwIfAborted();
            const own = Object.keys(row);
            if (own.length !== names.length || own.some((name, index) => name !== names[index])) {
                await flush();
                names = own;
                const unknown = own.find((name) => !known.has(name));
                if (unknown !== undefined || own.length === 0) {
                    throw errors.invalid([{ path: 'file', message: `There is no column ${unknown ?? ''}` }]);
                }
            }
            const cells = names.map((name) => row[name] ?? null);
            batch.push(cells);
            bytes += lengthOf(cells);
            if (batch.length >= mostRows || bytes > batchBytes) {
                await flush();
            }
        }
        await flush();
        await inserting;
        await session.run('commit');
        return { rows };
    });
}

function lengthOf(cells: readonly Cell[]): number {
    return cells.reduce<number>(
        (sum, cell) => sum + (typeof cell === 'string' ? cell : JSON.stringify(cell)).length,
        0
    );
}
