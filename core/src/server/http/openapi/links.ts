/**
 * OpenAPI links: the ways from an answer to other operations. Those between a list, its items and what lies below an item follow from the
 * paths; a route names the others by `ui.links`. OpenAPI has no expression for "each row of a list", so a link of a list names the
 * field in the first row, and holds for every row.
 */
import type { RouteLink } from '@portico/sdk';

import type { JsonSchema } from '../json-schema/description.ts';
import type { Operation } from './operation.ts';

type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>;
type Links = Record<string, JsonSchema>;

/** The data of a success, as far as links are concerned. */
interface Data {
    readonly isList: boolean;
    /** The fields of the object or of each row; null where the description leaves them open. */
    readonly fields: readonly string[] | null;
}

/** Adds its links to each operation that has some. @param schemas - the components that the operations refer to */
export function withLinks(paths: Paths, schemas: Readonly<Record<string, JsonSchema>>): Paths {
    const byId = new Map(
        Object.values(paths).flatMap((item) =>
            Object.values(item).map((operation) => [operation.operationId, operation] as const)
        )
    );
    const linked = (path: string, method: string, operation: Operation): Operation => {
        const { links: named, ...ui } = (operation['x-ui'] ?? {}) as {
            readonly links?: Readonly<Record<string, RouteLink>>;
        };
        const status = ['201', '200'].find((each) => each in operation.responses) ?? '';
        const data = dataOf(operation.responses[status], schemas);
        const links = data === null ? {} : { ...linksOfPath(path, method, data, paths, schemas) };
        for (const [name, { operationId, parameters }] of Object.entries(named ?? {})) {
            if (data !== null && byId.has(operationId)) {
                links[name] = { operationId, parameters: fieldsOf(parameters, data) };
            }
        }
        const { 'x-ui': _ui, ...rest } = operation;
        const described = Object.keys(ui).length === 0 ? rest : { ...rest, 'x-ui': ui };
        return Object.keys(links).length === 0
            ? described
            : {
                  ...described,
                  responses: { ...operation.responses, [status]: { ...operation.responses[status], links } }
              };
    };
    return mapOperations(paths, (operation, path, method) => linked(path, method, operation));
}

/** Names operations that are not in these paths by the place of their description in the whole document, as OpenAPI wants it of another document. */
export function withForeignLinks(paths: Paths, whole: Paths): Paths {
    const own = new Set(
        Object.values(paths).flatMap((item) => Object.values(item).map(({ operationId }) => operationId))
    );
    const places = new Map(
        Object.entries(whole).flatMap(([path, item]) =>
            Object.entries(item).map(([method, { operationId }]) => [
                operationId,
                `/api/openapi.json#/paths/${encodeURIComponent(path.replaceAll('/', '~1'))}/${method}`
            ])
        )
    );
    const told = (link: JsonSchema): JsonSchema => {
        const { operationId, ...rest } = link as { readonly operationId: string };
        return own.has(operationId) ? link : { operationRef: places.get(operationId), ...rest };
    };
    return mapOperations(paths, (operation) => ({
        ...operation,
        responses: mapValues(operation.responses, (response) =>
            response['links'] === undefined
                ? response
                : { ...response, links: mapValues(response['links'] as Links, told) }
        )
    }));
}

/** The links that the paths say. */
function linksOfPath(
    path: string,
    method: string,
    data: Data,
    paths: Paths,
    schemas: Readonly<Record<string, JsonSchema>>
): Links {
    const kept = Object.fromEntries(
        [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => [name, `$request.path.${name}`])
    );
    const to = (target: string, parameters: Readonly<Record<string, string>>): JsonSchema => ({
        operationId: paths[target]?.['get']?.operationId,
        ...(Object.keys(parameters).length === 0 ? {} : { parameters })
    });
    const below = Object.keys(paths).filter(
        (each) => each.startsWith(`${path}/`) && paths[each]?.['get'] !== undefined
    );
    const isMade = method === 'post' && !data.isList;
    if ((method === 'get' && data.isList) || isMade) {
        const item = below.find((each) => /^\/\{\w+\}$/.test(each.slice(path.length)));
        const name = item?.slice(path.length + 2, -1) ?? '';
        return item === undefined || data.fields?.includes(name) !== true
            ? {}
            : { item: to(item, { ...kept, ...fieldsOf({ [name]: name }, data) }) };
    }
    const [, list = '', last = ''] = /^(.*)\/\{(\w+)\}$/.exec(path) ?? [];
    if (method !== 'get' || last === '') {
        return {};
    }
    const links: Links = {};
    const answersOfList = paths[list]?.['get']?.responses['200'];
    if (dataOf(answersOfList, schemas)?.isList === true) {
        const { [last]: _own, ...others } = kept;
        links['list'] = to(list, others);
    }
    for (const each of below) {
        const rest = each.slice(path.length + 1);
        if (!rest.includes('{')) {
            links[rest.replaceAll('/', '.')] = to(each, kept);
        }
    }
    return links;
}

/** Fields of the answer as runtime expressions (OpenAPI 3.1, 4.8.20.4). */
function fieldsOf(fields: Readonly<Record<string, string>>, { isList }: Data): Record<string, string> {
    const pointer = isList ? '/data/0' : '/data';
    return Object.fromEntries(
        Object.entries(fields).map(([parameter, field]) => [
            parameter,
            `$response.body#${pointer}/${field.replaceAll('~', '~0').replaceAll('/', '~1')}`
        ])
    );
}

/** What a JSON answer has as its data; null for another answer, and for one that tells nothing of it. */
function dataOf(
    response: JsonSchema | undefined,
    schemas: Readonly<Record<string, JsonSchema>>
): Data | null {
    const { 'application/json': json } = (response?.['content'] ?? {}) as Record<string, JsonSchema>;
    const envelope = (json?.['schema'] ?? {}) as { readonly properties?: Record<string, JsonSchema> };
    const data = resolved(envelope.properties?.['data'], schemas);
    if (data === null) {
        return null;
    }
    const isList = data['type'] === 'array';
    const row = isList ? resolved(data['items'] as JsonSchema | undefined, schemas) : data;
    const properties = row?.['properties'] as JsonSchema | undefined;
    return { isList, fields: properties === undefined ? null : Object.keys(properties) };
}

function resolved(
    schema: JsonSchema | undefined,
    schemas: Readonly<Record<string, JsonSchema>>
): JsonSchema | null {
    const name = /^#\/components\/schemas\/(.+)$/.exec(String(schema?.['$ref']))?.[1];
    return (name === undefined ? schema : schemas[name]) ?? null;
}

function mapOperations(
    paths: Paths,
    change: (operation: Operation, path: string, method: string) => Operation
): Paths {
    return mapValues(paths, (item, path) =>
        mapValues(item, (operation, method) => change(operation, path, method))
    );
}

function mapValues<T>(
    record: Readonly<Record<string, T>>,
    change: (value: T, key: string) => T
): Record<string, T> {
    return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value, key)]));
}
