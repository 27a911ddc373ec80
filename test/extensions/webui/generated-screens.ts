/** All pages that are made of the routes of plugins: each list, and the first item of each, as deep as they go; and the forms that each page offers. */
import { type CardModel, type Collection, modelOf } from '@portico/sdk/page/model';

import { itemAddress, listAddress, paramsOf } from '../../../extensions/webui/web/src/generated/address.ts';
import { hasFields } from '../../../extensions/webui/web/src/generated/call/input.ts';
import { idOf } from '../../../extensions/webui/web/src/generated/list/columns.ts';
import {
    type Operation,
    operationsOf,
    type Params
} from '../../../extensions/webui/web/src/generated/operations.ts';
import type { Document } from '../../../extensions/webui/web/src/schema/document.ts';
import type { Client } from '../../support/panel/client.ts';

type Row = Readonly<Record<string, unknown>>;

/** A page, and the buttons in its content that stand out, in their order. */
export interface GeneratedScreen {
    readonly address: string;
    readonly buttons: readonly FormButton[];
}

/** A button that makes or changes. */
export interface FormButton {
    /** Id of the operation. */
    readonly id: string;
    readonly title: string;
    /** Whether it opens a form; else it asks for nothing, and is done at once. */
    readonly hasForm: boolean;
}

/** Queries of lists whose first item may be gone at once: by its number, the first process is the one that runs as long as the machine. */
const lasting: Readonly<Record<string, string>> = { 'monitoring.processes': '?sort=pid' };

/** Reads the routes of a plugin, and answers with its generated pages. */
export async function generatedScreens(client: Client, plugin: string): Promise<readonly GeneratedScreen[]> {
    const document = JSON.parse((await client.get(`/api/openapi.json?tag=${plugin}`)).text) as Document;
    const { collections, cards } = modelOf(operationsOf(document, plugin));
    const ofCards = await edits(client, cards, {});
    const lists = await Promise.all(
        collections.map(async (each, index) => [
            {
                address: listAddress(plugin, each),
                buttons: [...creates([each], {}), ...(index === 0 ? ofCards : [])]
            },
            ...(await items(client, plugin, [each], []))
        ])
    );
    return lists.length === 0 ? [{ address: `/p/${plugin}`, buttons: ofCards }] : lists.flat();
}

/** The first item of the last list of a trail, and the first items below it. @param within - ids of the items that lead there */
async function items(
    client: Client,
    plugin: string,
    trail: readonly Collection<Operation>[],
    within: readonly string[]
): Promise<readonly GeneratedScreen[]> {
    const collection = trail.at(-1);
    if (!collection?.item) {
        return [];
    }
    const { list, item } = collection;
    const path = filledIn(list, paramsOf(trail.slice(0, -1), within));
    const { data } = await client.get(`${path}${lasting[list.id] ?? ''}`);
    const row = (data as readonly Row[] | null)?.[0];
    const ids = item.params.map((param) => row?.[idOf(list.answer.items ?? {}, param)]);
    if (ids.some((id) => id === undefined || id === null)) {
        return [];
    }
    const own = ids.map(String);
    const params = paramsOf(trail, [...within, ...own]);
    const buttons = [...(await edits(client, item.cards, params)), ...creates(item.related, params)];
    const related = await Promise.all(
        item.related.map((each) => items(client, plugin, [...trail, each], [...within, ...own]))
    );
    return [{ address: itemAddress(plugin, collection, within, own), buttons }, ...related.flat()];
}

const creates = (lists: readonly Collection<Operation>[], params: Params): readonly FormButton[] =>
    lists.flatMap(({ create }) =>
        create === null ? [] : [{ id: create.id, title: create.title, hasForm: hasFields(create, params) }]
    );

/** Only what is there can be changed. */
async function edits(
    client: Client,
    cards: readonly CardModel<Operation>[],
    params: Params
): Promise<readonly FormButton[]> {
    const all = await Promise.all(
        cards.map(async ({ read, edit }) => {
            const { status, data } = await client.get(filledIn(read, params));
            return edit !== null && status === 200 && data !== null
                ? [{ id: edit.id, title: 'Change', hasForm: true }]
                : [];
        })
    );
    return all.flat();
}

const filledIn = ({ path }: Operation, params: Params): string =>
    path.replaceAll(/\{([^}]+)\}/g, (_whole, name: string) => encodeURIComponent(params[name] ?? ''));
