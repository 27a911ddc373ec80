/** What an operation answered. */
import { useRows } from '../../api/rows.ts';
import { Button } from '../../kit/button.tsx';
import { Table } from '../../kit/display/table.tsx';
import { Json, Value } from '../../kit/display/value.tsx';
import { Waiting } from '../../kit/page.tsx';
import type { Schema } from '../../schema/schema.ts';
import { t } from '../../words/t.ts';
import { columnsOf } from '../list/columns.ts';
import type { Operation } from '../operations.ts';
import { pathOf } from '../run.ts';
import type { Input } from './input.ts';

type Row = Readonly<Record<string, unknown>>;

/** Shows an answer; a list that was read goes on page by page. */
export function AnswerView({
    operation,
    input,
    answer
}: {
    readonly operation: Operation;
    readonly input: Input;
    readonly answer: unknown;
}) {
    const schema = operation.answer;
    const isOfRows = columnsOf(schema.items ?? {}).length > 0;
    if (operation.method === 'GET' && operation.isList && isOfRows) {
        return <Found operation={operation} input={input} schema={schema.items ?? {}} />;
    }
    return typeof answer === 'object' ? <Value value={answer} schema={schema} /> : <Json value={answer} />;
}

/** The rows that were found. They were asked for already, see `ask`, and come from the cache. */
function Found({
    operation,
    input: { params, query },
    schema
}: {
    readonly operation: Operation;
    readonly input: Input;
    readonly schema: Schema;
}) {
    const { rows, error, isPending, more } = useRows<Row>(pathOf(operation, params), query);
    if (isPending || error !== null) {
        return <Waiting error={error} />;
    }
    return (
        <>
            <Table
                caption={operation.title}
                columns={columnsOf(schema).map(({ key, title, schema: each }) => ({
                    key,
                    title,
                    cell: (row: Row) => <Value name={key} value={row[key]} schema={each} />
                }))}
                rows={rows}
                keyOf={(row) => JSON.stringify(row)}
                empty={operation.ui.empty ?? t('Nothing was found')}
            />
            {more === null ? null : <Button onPress={more}>{t('Show more')}</Button>}
        </>
    );
}
