/** Addresses of all pages that are made of the routes of plugins: each list, and the first item of each, as deep as they go. */
import { type Collection, modelOf } from '@portico/sdk/page/model';

import { itemAddress, listAddress, paramsOf } from '../../../extensions/webui/web/src/generated/address.ts';
import { idOf } from '../../../extensions/webui/web/src/generated/columns.ts';
import { type Operation, operationsOf } from '../../../extensions/webui/web/src/generated/operations.ts';
import type { Document } from '../../../extensions/webui/web/src/schema/document.ts';
import type { Client } from '../../support/panel/client.ts';

type Row = Readonly<Record<string, unknown>>;

/** Queries of lists whose first item may be gone at once: by its number, the first process is the one that runs as long as the machine. */
const lasting: Readonly<Record<string, string>> = { 'monitoring.processes': '?sort=pid' };

/** Reads the routes of a plugin, and answers with the addresses of its generated pages. */
export async function generatedScreens(client: Client, plugin: string): Promise<readonly string[]> {
    const document = JSON.parse((await client.get(`/api/openapi.json?tag=${plugin}`)).text) as Document;
    const { collections } = modelOf(operationsOf(document, plugin));
    const lists = await Promise.all(
        collections.map(async (each) => [
            listAddress(plugin, each),
            ...(await items(client, plugin, [each], []))
        ])
    );
    return lists.length === 0 ? [`/p/${plugin}`] : lists.flat();
}

/** Addresses of the first item of the last list of a trail, and of the first items below it. @param within - ids of the items that lead there */
async function items(
    client: Client,
    plugin: string,
    trail: readonly Collection<Operation>[],
    within: readonly string[]
): Promise<readonly string[]> {
    const collection = trail.at(-1);
    if (!collection?.item) {
        return [];
    }
    const { list, item } = collection;
    const params = paramsOf(trail.slice(0, -1), within);
    const path = list.path.replaceAll(/\{([^}]+)\}/g, (_whole, name: string) =>
        encodeURIComponent(params[name] ?? '')
    );
    const { data } = await client.get(`${path}${lasting[list.id] ?? ''}`);
    const row = (data as readonly Row[] | null)?.[0];
    const ids = item.params.map((param) => row?.[idOf(list.answer.items ?? {}, param)]);
    if (ids.some((id) => id === undefined || id === null)) {
        return [];
    }
    const own = ids.map(String);
    const related = await Promise.all(
        item.related.map((each) => items(client, plugin, [...trail, each], [...within, ...own]))
    );
    return [itemAddress(plugin, collection, within, own), ...related.flat()];
}
