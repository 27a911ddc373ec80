/** Rows that a statement answered. */
import { Table } from '../../kit/display/table.tsx';
import { counted, quantity } from '../../words/format.ts';
import { t } from '../../words/t.ts';
import type { Result } from './database-view.ts';

/** A row; it has no name but its place. */
interface Row {
    readonly row: readonly unknown[];
    readonly index: number;
}

/** The table, how long it took, and whether there is more. */
export function ResultView({
    result: { columns, rows, affected, truncated, durationMs }
}: {
    readonly result: Result;
}) {
    const facts = [
        affected === undefined
            ? counted(rows.length, t('1 row'), t('{count} rows', { count: rows.length }))
            : counted(affected, t('1 row was changed'), t('{count} rows were changed', { count: affected })),
        quantity(durationMs, 'millisecond'),
        ...(truncated ? [t('There are more rows')] : [])
    ];
    return (
        <>
            <p class="dim">{facts.join(' · ')}</p>
            {columns.length === 0 ? null : (
                <Table
                    caption={t('Result')}
                    rows={rows.map((row, index): Row => ({ row, index }))}
                    keyOf={({ index }) => String(index)}
                    empty={t('No row')}
                    columns={columns.map(({ name }, at) => ({
                        key: String(at),
                        title: name,
                        cell: ({ row }: Row) => <Cell value={row[at]} />
                    }))}
                />
            )}
        </>
    );
}

function Cell({ value }: { readonly value: unknown }) {
    if (value === null) {
        return <span class="dim">null</span>;
    }
    return typeof value === 'object' ? <code>{JSON.stringify(value)}</code> : String(value);
}
