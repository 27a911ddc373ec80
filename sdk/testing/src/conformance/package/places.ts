/** Routes that find no place on the page that the panel makes of them: a user would see their method and path, and nothing else. */
import { fullPath, type Manifest, templateOf } from '@portico/core/plugin-runtime';
import type { RouteDocument } from '@portico/sdk/host';
import { modelOf, type PlacedOperation } from '@portico/sdk/page/model';

import { type Finding, warningOf } from '../finding.ts';

/** The part of joi's `describe()` that is read here. */
interface Described {
    readonly type?: string;
    readonly flags?: { readonly presence?: string; readonly only?: boolean };
    readonly keys?: Readonly<Record<string, Described>>;
    readonly items?: readonly Described[];
    readonly metas?: readonly { readonly ui?: { readonly ref?: string } }[];
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
    return modelOf(operations).others.map((each) =>
        warningOf(
            'places',
            each.where,
            'No list, card or action of the generated page shows it: no list leads to what its path names',
            `${remedyFor(each)}; where a page of the plugin's own or only other programs call it, ui: { role: 'hidden' }`
        )
    );
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
    const params = Object.entries((schemas.params as Described | undefined)?.keys ?? {});
    const returns = schemas.returns as Described | undefined;
    const method = methods[0] ?? 'GET';
    return {
        id,
        where: `${methods.join('|')} ${path} (${id})`,
        method,
        path: template,
        kind: kind === 'socket' || kind === 'http' ? 'other' : kind,
        params: parameters.map((each) => each.name),
        choices: params.filter(([, each]) => isChoice(each)).map(([name]) => name),
        query: query.map(({ flags }) => ({ isRequired: flags?.presence === 'required' })),
        isList: returns?.type === 'array',
        rowKeys: Object.keys(returns?.items?.[0]?.keys ?? {}),
        ui: ui ?? {}
    };
}

const isChoice = ({ flags, metas = [] }: Described): boolean =>
    flags?.only === true || metas.some(({ ui }) => ui?.ref !== undefined);

function remedyFor({ path }: RouteOperation): string {
    const [first = '', ...rest] = path.replace(/^\/api\/plugins\/[^/]+/, '').split('/{');
    return rest.length > 1
        ? `Add lists that lead to it: GET ${first || '/'} with \`returns\` an array, and one below its rows for each further parameter`
        : `Add a list, GET ${first || '/'} with \`returns\` an array, whose rows it works on`;
}
