/** A list: filters, pages, rows with their actions, and what makes a new row. */
import type { Collection as CollectionModel } from '@portico/sdk/page/model';
import { Link } from 'wouter-preact';

import { useRows } from '../../api/rows.ts';
import { Button } from '../../kit/button.tsx';
import { Table } from '../../kit/display/table.tsx';
import { Value } from '../../kit/display/value.tsx';
import { Waiting } from '../../kit/page.tsx';
import { t } from '../../words/t.ts';
import { Action } from '../call/action.tsx';
import type { Operation, Params } from '../operations.ts';
import { pathOf } from '../run.ts';
import { columnsOf, idOf, itemSchema, labelOf } from './columns.ts';
import { Filters, useFilters } from './filters.tsx';

type Row = Readonly<Record<string, unknown>>;

/** Shows a collection. @param linkTo - address of an item's page; null when it has none */
export function Collection({
    collection,
    params = {},
    linkTo
}: {
    readonly collection: CollectionModel<Operation>;
    readonly params?: Params;
    readonly linkTo: (ids: readonly string[]) => string | null;
}) {
    const { list, create, item } = collection;
    const { rows, error, isPending, more } = useRows<Row>(pathOf(list, params), useFilters(list));
    const schema = itemSchema(list.answer, rows);
    const label = labelOf(schema, list.ui.label);
    const idKeys = (item?.params ?? ['id']).map((name) => [name, idOf(schema, name)] as const);
    const idsOf = (row: Row): readonly string[] => idKeys.map(([, key]) => String(row[key]));
    const isKnown = (row: Row): boolean => idKeys.every(([, key]) => row[key] !== undefined);
    const shownColumns = columnsOf(schema);
    // The name leads to the item; where it is no column, the first one does.
    const leading = (shownColumns.find(({ key }) => key === label) ?? shownColumns[0])?.key;
    const columns = shownColumns.map(({ key, title, schema: each }) => ({
        key,
        title,
        cell: (row: Row) => {
            const target = key === leading ? linkTo(idsOf(row)) : null;
            const shown = <Value name={key} value={row[key]} schema={each} />;
            return target === null ? shown : <Link href={target}>{shown}</Link>;
        }
    }));
    return (
        <section>
            <div class="row spread">
                <Filters list={list} />
                {create === null ? null : <Action operation={create} params={params} look="primary" />}
            </div>
            {isPending || error !== null ? (
                <Waiting error={error} />
            ) : (
                <Table
                    caption={list.title}
                    columns={columns}
                    rows={rows}
                    keyOf={(row) => (isKnown(row) ? idsOf(row).join('/') : JSON.stringify(row))}
                    {...(list.ui.empty === undefined ? {} : { empty: list.ui.empty })}
                    {...(item === null
                        ? {}
                        : {
                              actions: (row: Row) => (
                                  <RowActions
                                      item={item}
                                      params={{
                                          ...params,
                                          ...Object.fromEntries(
                                              idKeys.map(([name, key]) => [name, String(row[key])])
                                          )
                                      }}
                                      row={row}
                                  />
                              )
                          })}
                />
            )}
            {more === null ? null : <Button onPress={more}>{t('Show more')}</Button>}
        </section>
    );
}

/** In a row stand the actions that stand out; all others are on the item's page. */
function RowActions({
    item,
    params,
    row
}: {
    readonly item: NonNullable<CollectionModel<Operation>['item']>;
    readonly params: Params;
    readonly row: Row;
}) {
    const version = typeof row['version'] === 'number' ? row['version'] : undefined;
    const shown = item.actions
        .filter((each) => each.ui.primary === true || each.ui.role === 'action')
        .slice(0, 2);
    return (
        <div class="row">
            {shown.map((each) => (
                <Action key={each.id} operation={each} params={params} />
            ))}
            {item.remove === null ? null : (
                <Action operation={item.remove} params={params} version={version} />
            )}
        </div>
    );
}
