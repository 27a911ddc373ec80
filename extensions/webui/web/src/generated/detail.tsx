/** One item: its facts, its actions, and what lies below it. */
import type { CardModel, Collection as CollectionModel, Item } from '@portico/sdk/page/model';
import { useState } from 'preact/hooks';
import { Link } from 'wouter-preact';

import { useMay, useRead } from '../api/queries.ts';
import { Button } from '../kit/button.tsx';
import { writeOrAsk } from '../kit/conflict.tsx';
import { Dialog } from '../kit/dialog.tsx';
import { Page, Waiting } from '../kit/page.tsx';
import { changed, initialValue } from '../schema/changes.ts';
import { SchemaForm } from '../schema/form.tsx';
import { t } from '../words/t.ts';
import { Actions } from './actions.tsx';
import { itemAddress } from './address.ts';
import { Collection } from './collection.tsx';
import { labelOf } from './columns.ts';
import { Facts } from './facts.tsx';
import { Live } from './live.tsx';
import type { Operation, Params } from './operations.ts';
import { pathOf, run } from './run.ts';

type Row = Readonly<Record<string, unknown>>;

/** The page of an item. An item that cannot be read alone is taken from its list. */
export function ItemPage({
    tag,
    collection,
    item,
    id,
    within,
    back
}: {
    readonly tag: string;
    readonly collection: CollectionModel<Operation>;
    readonly item: Item<Operation>;
    readonly id: string;
    /** The items that its list lies below, by the parameter of the path. */
    readonly within: Params;
    /** Address of the list, or of the item that the list lies below. */
    readonly back: string;
}) {
    const params: Params = { ...within, [item.param]: id };
    const { data, error } = useRead<Row | readonly Row[]>(pathOf(item.read ?? collection.list, params));
    const row = (
        Array.isArray(data)
            ? data.find((each: Row) =>
                  [each[item.param], each['id'], each['name']].some((value) => String(value) === id)
              )
            : data
    ) as Row | undefined;
    const schema = item.read?.answer ?? collection.list.answer.items ?? {};
    const label = labelOf(schema, collection.list.ui.label);
    const title = row === undefined || label === undefined ? id : String(row[label]);
    return (
        <Page
            title={title}
            lead={<Link href={back}>← {collection.list.title}</Link>}
            actions={
                row === undefined ? null : <ItemActions item={item} params={params} row={row} name={title} />
            }
        >
            {row === undefined ? (
                <Waiting error={error} />
            ) : (
                <>
                    <section class="card">
                        <Facts row={row} schema={schema} />
                    </section>
                    <Below tag={tag} item={item} params={params} />
                </>
            )}
        </Page>
    );
}

function ItemActions({
    item,
    params,
    row,
    name
}: {
    readonly item: Item<Operation>;
    readonly params: Params;
    readonly row: Row;
    readonly name: string;
}) {
    const version = typeof row['version'] === 'number' ? row['version'] : undefined;
    return (
        <>
            {item.edit === null ? null : <Edit operation={item.edit} params={params} row={row} />}
            <Actions
                name={name}
                operations={[
                    ...item.actions,
                    ...item.downloads,
                    ...(item.remove === null ? [] : [item.remove])
                ]}
                params={params}
                version={version}
            />
        </>
    );
}

/** What lies below an item: objects, lists and streams of its own. */
function Below({
    tag,
    item,
    params
}: {
    readonly tag: string;
    readonly item: Item<Operation>;
    readonly params: Params;
}) {
    return (
        <>
            {item.cards.map((each) => (
                <Card key={each.read.id} card={each} params={params} />
            ))}
            {item.related.map((each) => (
                <section key={each.list.id}>
                    <h2>{each.list.title}</h2>
                    <Collection
                        collection={each}
                        params={params}
                        linkTo={(id) => (each.item === null ? null : itemAddress(tag, each, params, id))}
                    />
                </section>
            ))}
            {item.streams.map((each) => (
                <LiveOnDemand key={each.id} operation={each} params={params} />
            ))}
        </>
    );
}

/** An object that is read alone, with its change. That it is not there yet is no failure. */
export function Card({
    card: { read, edit },
    params = {}
}: {
    readonly card: CardModel<Operation>;
    readonly params?: Params;
}) {
    const { data, error } = useRead<unknown>(pathOf(read, params));
    // What is missing on the machine is said at the list; each card says it in one quiet line.
    const isAbsent = data === null || error?.status === 404 || error?.status === 503;
    return (
        <section class="card">
            <header class="row spread">
                <h2>{read.title}</h2>
                {edit === null || data === undefined || data === null ? null : (
                    <Edit operation={edit} params={params} row={data as Row} />
                )}
            </header>
            {isAbsent ? (
                <p class="dim">{error?.message ?? t('Nothing here yet')}</p>
            ) : data === undefined ? (
                <Waiting error={error} />
            ) : (
                <Facts row={data as Row} schema={read.answer} />
            )}
        </section>
    );
}

/** A stream is opened when the user wants it: a browser has few connections. */
export function LiveOnDemand({
    operation,
    params = {}
}: {
    readonly operation: Operation;
    readonly params?: Params;
}) {
    const [isOpen, setOpen] = useState(false);
    return isOpen ? (
        <Live operation={operation} params={params} />
    ) : (
        <section class="row">
            <Button onPress={() => setOpen(true)}>{t('Follow: {what}', { what: operation.title })}</Button>
        </section>
    );
}

function Edit({
    operation,
    params,
    row
}: {
    readonly operation: Operation;
    readonly params: Params;
    readonly row: Row;
}) {
    const may = useMay();
    const [isOpen, setOpen] = useState(false);
    const schema = operation.body ?? {};
    return !may(operation.permission) ? null : (
        <>
            <Button look="primary" onPress={() => setOpen(true)}>
                {t('Change')}
            </Button>
            {isOpen ? (
                <Dialog title={operation.title} onClose={() => setOpen(false)} isWide>
                    <SchemaForm
                        schema={schema}
                        initial={initialValue(schema, row)}
                        action={t('Save')}
                        onCancel={() => setOpen(false)}
                        onSend={async (value) => {
                            const body = changed(schema, row, value);
                            await writeOrAsk({
                                path: pathOf(operation, params),
                                body,
                                version: typeof row['version'] === 'number' ? row['version'] : undefined,
                                save: (version) => run(operation, params, { body, version })
                            });
                            setOpen(false);
                        }}
                    />
                </Dialog>
            ) : null}
        </>
    );
}
