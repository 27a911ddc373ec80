/** Routes that find no place on the page that the panel makes of them: a user would see their method and path, and nothing else. */
import { fullPath, type Manifest, templateOf } from '@portico/core/plugin-runtime';
import type { RouteDocument } from '@portico/sdk/host';
import { modelOf, type PlacedOperation } from '@portico/sdk/page/model';

import { type Finding, warningOf } from '../finding.ts';

/** The part of joi's `describe()` that is read here. */
interface Described {
    readonly type?: string;
    readonly flags?: { readonly presence?: string };
    readonly keys?: Readonly<Record<string, Described>>;
}

/**
 * One warning for each route that no list, card, live view or action of the generated page shows. A plugin that brings a page into the menu
 * or beside its lists gets none: that page may show any of its routes.
 */
export function checkPlaces(
    { name, contributes }: Manifest,
    routes: readonly RouteDocument[]
): readonly Finding[] {
    if (contributes?.pages?.some(({ place = 'nav' }) => place === 'nav' || place === 'tab')) {
        return [];
    }
    // Sockets and raw routes have protocols of their own: a page that the plugin brings speaks them.
    const operations = routes
        .filter(({ kind }) => kind !== 'socket' && kind !== 'http')
        .map((route) => toOperation(name, route));
    return modelOf(operations).others.map((each) => {
        const [reason, remedy] = explain(each);
        return warningOf(
            'places',
            each.where,
            `No list, card or action of the generated page shows it: ${reason}`,
            `${remedy}; where a page of the plugin's own or only other programs call it, ui: { role: 'hidden' }`
        );
    });
}

interface RouteOperation extends PlacedOperation {
    /** Method, path and id as the author wrote them. */
    readonly where: string;
}

function toOperation(
    plugin: string,
    { id, kind, methods, path, schemas, ui }: RouteDocument
): RouteOperation {
    const { template, parameters } = templateOf(fullPath(`/api/plugins/${plugin}`, path));
    const query = Object.values((schemas.query as Described | undefined)?.keys ?? {});
    const method = methods[0] ?? 'GET';
    return {
        id,
        where: `${methods.join('|')} ${path} (${id})`,
        method,
        path: template,
        kind: kind === 'json' || kind === 'stream' || kind === 'download' ? kind : 'other',
        params: parameters.map((each) => each.name),
        query: query.map(({ flags }) => ({ isRequired: flags?.presence === 'required' })),
        isList: (schemas.returns as Described | undefined)?.type === 'array',
        ui: ui ?? {}
    };
}

function explain({ kind, method, query, path }: RouteOperation): readonly [reason: string, remedy: string] {
    if (kind === 'other') {
        return [
            'such a page sends no files',
            'Bring a page that sends the file (docs/plugins/first-page.md)'
        ];
    }
    if (method === 'GET' && query.some(({ isRequired }) => isRequired)) {
        return [
            'its query has a field that is required',
            'Give the field a default, or make it a parameter of the path below a list'
        ];
    }
    if (kind === 'stream') {
        return [
            'it is a stream that is not read with GET',
            'Read it with GET, or bring a page that shows it (docs/plugins/first-page.md)'
        ];
    }
    const [first = '', ...rest] = path.replace(/^\/api\/plugins\/[^/]+/, '').split('/{');
    return [
        'no list leads to what its path names',
        rest.length > 1
            ? `Add lists that lead to it: GET ${first || '/'} with \`returns\` an array, and one below its rows for each further parameter`
            : `Add a list, GET ${first || '/'} with \`returns\` an array, whose rows it works on`
    ];
}
