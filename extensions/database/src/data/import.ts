/** Rows of a file into a table: all of them, or none. */
import { errors } from '@portico/sdk';

import type { Access, Cell, Kind, TableName } from '../kinds/kind.ts';

type Values = Readonly<Record<string, Cell>>;

/** Both servers take 65,535 parameters at most. */
const mostParameters = 30_000;
const mostRows = 500;
const batchBytes = 4 * 1024 * 1024;

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
        let batch: Values[] = [];
        let bytes = 0;
        let rows = 0;
        const flush = async (): Promise<void> => {
            if (batch.length > 0) {
                const parameters: unknown[] = [];
                const lines = batch.map(
                    (row) => `(${names.map((name) => kind.placeholder(parameters.push(row[name] ?? null))).join(', ')})`
                );
                const head = names.map((name) => kind.quote(name)).join(', ');
                await session.run(`insert into ${place} (${head}) values ${lines.join(', ')}`, parameters);
                rows += batch.length;
                options.progress(rows);
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
            batch.push(row);
            bytes += JSON.stringify(row).length;
            if (batch.length >= Math.min(mostRows, Math.floor(mostParameters / names.length)) || bytes > batchBytes) {
                await flush();
            }
        }
        await flush();
        await session.run('commit');
        return { rows };
    });
}
