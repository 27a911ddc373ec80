/** The rows of a table as a download. */
import type { Access, Cell, Kind, TableName } from '../kinds/kind.ts';
import { csvLine } from './csv.ts';
import { Queue } from './queue.ts';

/** How rows are written. */
export type RowFormat = 'csv' | 'jsonl' | 'sql';

const statementRows = 100;

/** The bytes of a table, read as they are asked for. */
export function exportRows(kind: Kind, access: Access, table: TableName, format: RowFormat): AsyncIterable<Uint8Array> {
    // A session lasts as long as the work that uses it; the download takes what that work puts into the queue.
    const queue = new Queue<string>();
    const work = access.use(table.database, async (session) => {
        await kind.console.begin(session, { seconds: 3_600, readOnly: true });
        const { columns, batches } = await session.stream(`select * from ${kind.structure.quoteTable(table)}`, [], {
            write: false
        });
        const names = columns.map(({ name }) => name);
        if (format === 'csv') {
            await queue.put(csvLine(names));
        }
        for await (const batch of batches) {
            if (!(await queue.put(written(kind, table, { names, format, batch })))) {
                // The client has left: the rest of the result is not wanted.
                session.destroy();
                return;
            }
        }
    });
    work.then(
        () => queue.end(),
        (error: Error) => queue.end(error)
    );
    return encode(queue);
}

async function* encode(queue: Queue<string>): AsyncGenerator<Uint8Array> {
    const encoder = new TextEncoder();
    try {
        for (let text = await queue.take(); text !== null; text = await queue.take()) {
            yield encoder.encode(text);
        }
    } finally {
        queue.leave();
    }
}

function written(
    kind: Kind,
    table: TableName,
    { names, format, batch }: { names: readonly string[]; format: RowFormat; batch: readonly (readonly Cell[])[] }
): string {
    if (format === 'csv') {
        return batch.map(csvLine).join('');
    }
    if (format === 'jsonl') {
        return batch
            .map((row) => `${JSON.stringify(Object.fromEntries(names.map((name, index) => [name, row[index] ?? null])))}\n`)
            .join('');
    }
    const place = kind.name === 'mysql' ? kind.quote(table.table) : kind.structure.quoteTable(table);
    const head = `insert into ${place} (${names.map((name) => kind.quote(name)).join(', ')}) values\n`;
    const parts: string[] = [];
    for (let at = 0; at < batch.length; at += statementRows) {
        const rows = batch
            .slice(at, at + statementRows)
            .map((row) => `(${row.map((value) => kind.structure.literal(value)).join(', ')})`);
        parts.push(`${head}${rows.join(',\n')};\n`);
    }
    return parts.join('');
}
