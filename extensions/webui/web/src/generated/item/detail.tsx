/** One item: its facts, its actions, and what lies below it. */
import type { CardModel, Collection as CollectionModel, Item } from '@portico/sdk/page/model';
import { useState } from 'preact/hooks';
import { Link } from 'wouter-preact';

import { useMay, useRead } from '../../api/queries.ts';
import { Button } from '../../kit/button.tsx';
import { writeOrAsk } from '../../kit/dialogs/conflict.tsx';
import { Dialog } from '../../kit/dialogs/dialog.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { changed, initialValue } from '../../schema/changes.ts';
import { SchemaForm } from '../../schema/form.tsx';
import { t } from '../../words/t.ts';
import { backOf, itemAddress, paramsOf, type Trail } from '../address.ts';
import { Action } from '../call/action.tsx';
import { Actions } from '../call/actions.tsx';
import { hasFields } from '../call/input.ts';
import { Live } from '../call/live.tsx';
import { Collection } from '../list/collection.tsx';
import { idOf, labelOf } from '../list/columns.ts';
import type { Operation, Params } from '../operations.ts';
import { pathOf, run } from '../run.ts';
import { Facts } from './facts.tsx';

type Row = Readonly<Record<string, unknown>>;

/** The page of an item. An item that cannot be read alone is taken from its list. */
export function ItemPage({
    tag,
    trail,
    collection,
    item,
    within,
    ids,
    notice
}: {
    readonly tag: string;
    /** The lists that lead to it; the last is `collection`. */
    readonly trail: Trail;
    readonly collection: CollectionModel<Operation>;
    readonly item: Item<Operation>;
    /** Ids of the items that its list lies below, and its own. */
    readonly within: readonly string[];
    readonly ids: readonly string[];
    readonly notice: string | undefined;
}) {
    const params = paramsOf(trail, [...within, ...ids]);
    const inList = pathOf(collection.list, paramsOf(trail.slice(0, -1), within));
    const { data, error } = useRead<Row | readonly Row[]>(
        item.read === null ? inList : pathOf(item.read, params)
    );
    const listed = collection.list.answer.items ?? {};
    const isIt = (each: Row): boolean =>
        item.params.every((name, index) => String(each[idOf(listed, name)]) === ids[index]);
    const row = (Array.isArray(data) ? data.find(isIt) : data) as Row | undefined;
    const schema = item.read?.answer ?? listed;
    const label = labelOf(schema, collection.list.ui.label);
    const title = row === undefined || label === undefined ? ids.join(' ') : String(row[label]);
    return (
        <Page
            title={title}
            notice={notice}
            lead={<Link href={backOf(tag, trail, within)}>← {collection.list.title}</Link>}
            actions={
                row === undefined ? null : <ItemActions item={item} params={params} row={row} name={title} />
            }
        >
            {row === undefined && data !== undefined ? (
                <p class="empty">{t('It is not there any more.')}</p>
            ) : row === undefined ? (
                <Waiting error={error} />
            ) : (
                <>
                    <section class="card">
                        <Facts row={row} schema={schema} />
                    </section>
                    <Below tag={tag} item={item} params={params} ids={[...within, ...ids]} />
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
    params,
    ids
}: {
    readonly tag: string;
    readonly item: Item<Operation>;
    readonly params: Params;
    /** Of the items that lead here, and of this one. */
    readonly ids: readonly string[];
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
                        linkTo={(own) => (each.item === null ? null : itemAddress(tag, each, ids, own))}
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
    const title = t('Follow: {what}', { what: operation.title });
    return isOpen ? (
        <Live operation={operation} params={params} />
    ) : (
        <section class="row">
            {hasFields(operation, params) ? (
                <Action operation={operation} params={params} title={title} />
            ) : (
                <Button onPress={() => setOpen(true)}>{title}</Button>
            )}
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
