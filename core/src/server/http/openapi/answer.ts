/** What a route answers: success by its kind, and every failure that it can have. */
import { statusOf } from '@portico/sdk';
import type { Schema } from 'joi';

import type { Reason } from '../../../platform/errors.ts';
import type { JsonSchema } from '../json-schema/description.ts';
import { jsonSchemaOf } from '../json-schema/json-schema.ts';
import type { Route } from '../route.ts';
import { anyData, envelopeOf, failureData } from './envelope.ts';
import { failureName, failures } from './failures.ts';
import { at } from './input.ts';

/** Puts a schema among the components and gives the reference; `isItem` says that it is one row of a list. */
export type Name = (schema: JsonSchema, isItem: boolean) => JsonSchema;

/** What the description of an answer needs to know. */
export interface AnswerContext {
    readonly name: Name;
    /** Puts the data of a stream's event (null: the union of its events) among the components and gives the reference. */
    readonly nameEvent: (schema: JsonSchema, event: string | null) => JsonSchema;
    /** Statuses of success of a JSON route. */
    readonly statuses: readonly number[];
    readonly reasons: readonly Reason[];
    readonly isPlugin: boolean;
    /** Puts a response among the components under a name and gives the reference. */
    readonly share: (name: string, response: JsonSchema) => JsonSchema;
}

const requestId = { 'X-Request-Id': { $ref: '#/components/headers/RequestId' } };
const headerRef = (name: string): JsonSchema => ({ $ref: `#/components/headers/${name}` });
const any = ['object', 'array', 'null'];

/** @throws TypeError that says what cannot be expressed */
export function responsesOf(route: Route, context: AnswerContext): Record<string, JsonSchema> {
    return { ...successes(route, context), ...refusals(context, route.kind === 'http') };
}

function successes(
    route: Route,
    { name, nameEvent, statuses, isPlugin }: AnswerContext
): Record<string, JsonSchema> {
    const unchanged = { 304: { $ref: '#/components/responses/NotModified' } };
    switch (route.kind) {
        case 'json':
        case 'upload': {
            const data = dataOf(route, name);
            const all = Object.fromEntries(
                statuses.map((status) => [status, success(route, status, data, isPlugin)])
            );
            return route.method === 'GET' ? { ...all, ...unchanged } : all;
        }
        case 'stream':
            return {
                200: {
                    description: 'Server-sent events; a comment every 15 s keeps the connection open',
                    headers: requestId,
                    content: { 'text/event-stream': eventsOf(route, nameEvent) }
                }
            };
        case 'socket':
            return { 101: { description: 'The connection is a WebSocket from here on' } };
        case 'download': {
            const headers = {
                ...requestId,
                ETag: headerRef('ETag'),
                'Content-Disposition': headerRef('ContentDisposition'),
                'Accept-Ranges': headerRef('AcceptRanges')
            };
            return {
                200: { description: 'The whole content', headers, content: { '*/*': {} } },
                206: {
                    description: 'The part that was asked for',
                    headers: { ...headers, 'Content-Range': headerRef('ContentRange') },
                    content: { '*/*': {} }
                },
                ...unchanged,
                416: {
                    description: 'The content does not reach that far',
                    headers: { ...requestId, 'Content-Range': headerRef('ContentRange') }
                }
            };
        }
        case 'http':
            return { default: { description: route.raw, headers: requestId, content: { '*/*': {} } } };
    }
}

/** The event that the panel sends itself when the handler of a stream fails. */
const failedEvent = {
    type: 'object',
    properties: {
        code: { type: 'integer', minimum: 40_000, maximum: 59_999 },
        reason: { type: 'string', pattern: '^[A-Z][A-Z0-9_]*$' },
        message: { type: 'string' }
    },
    required: ['code', 'reason']
};

/**
 * The events of a stream, in the words of OpenAPI 3.2: `itemSchema` describes one event as it was parsed (HTML Standard, server-sent
 * events). `data` is a text, `contentSchema` says what it holds, and an event without a name is a `message`. OpenAPI 3.1 can only say
 * that the whole text is a list of them.
 */
function eventsOf(
    { events }: Extract<Route, { kind: 'stream' }>,
    name: AnswerContext['nameEvent']
): JsonSchema {
    if (events === undefined) {
        return { schema: { type: 'string' } };
    }
    const item = (event: string, contentSchema: JsonSchema): JsonSchema => ({
        type: 'object',
        properties: {
            event: { type: 'string', const: event },
            id: { type: 'string' },
            data: { type: 'string', contentMediaType: 'application/json', contentSchema }
        },
        required: ['event', 'data']
    });
    const items = Object.entries(events).map(([event, schema]) =>
        item(
            event,
            at(`events: ${event}`, () =>
                name(jsonSchemaOf(schema, { side: 'answer', defaults: false }), event)
            )
        )
    );
    const one = name({ oneOf: [...items, item('error', failedEvent)] }, null);
    return {
        schema: {
            type: 'string',
            contentMediaType: 'text/event-stream',
            contentSchema: { type: 'array', items: one }
        },
        'x-itemSchema': one
    };
}

/** The shape of `data`; null where the route does not say. */
function dataOf(route: Route, name: Name): JsonSchema | null {
    const { returns } = route;
    if (returns === undefined) {
        return null;
    }
    const schema = at('returns', () => jsonSchemaOf(returns, { side: 'answer', defaults: false }));
    const types = [schema['type'] ?? any].flat() as string[];
    if ('const' in schema || 'enum' in schema || types.some((type) => !any.includes(type))) {
        throw new TypeError('returns: data is an object, an array or null');
    }
    return types.includes('array') && typeof schema['items'] === 'object' && schema['items'] !== null
        ? { ...schema, items: name(schema['items'] as JsonSchema, true) }
        : name(schema, false);
}

/** Whether a schema is one of several, of which a task is one. */
const isChoice = (schema: unknown): boolean =>
    (schema as Schema | undefined)?.describe().type === 'alternatives';

function success(route: Route, status: number, data: JsonSchema | null, isPlugin: boolean): JsonSchema {
    const long = status === 202;
    // A route that always begins long work may say what it is followed by, and so may one of a plugin that answers in one shape; else it is a task.
    const isOwn =
        data !== null &&
        (route.answers?.length === 1 ||
            (isPlugin && route.answers !== undefined && !isChoice(route.returns)));
    const shape = long && !isOwn ? { $ref: '#/components/schemas/Task' } : data;
    const isList = shape !== null && [shape['type']].flat().includes('array');
    const reads = route.method === 'GET';
    return {
        description: { 200: 'Done', 201: 'Made', 202: 'Begun: the task tells how it goes' }[status] ?? 'Done',
        headers: {
            ...requestId,
            ...(long ? {} : { ETag: headerRef('ETag') }),
            ...(status === 201 ? { Location: headerRef('Location') } : {}),
            ...(isList && reads ? { Link: headerRef('Link'), 'X-Total-Count': headerRef('TotalCount') } : {}),
            ...(route.fails?.includes('ENGINE_REJECTED') === true && !reads
                ? { 'X-Engine-Reload': headerRef('EngineReload') }
                : {})
        },
        content: {
            'application/json': {
                schema: envelopeOf({ type: 'integer', const: 0 }, shape ?? anyData)
            }
        }
    };
}

/** @param isRaw - the route's own protocol may answer with the same statuses in its own form */
function refusals({ reasons, isPlugin, share }: AnswerContext, isRaw: boolean): Record<string, JsonSchema> {
    const byStatus = Map.groupBy(reasons, (reason) => statusOf(failures.get(reason)?.code ?? 0));
    const known = [...byStatus].map(([status, some]) => {
        const own = isPlugin
            ? [
                  envelopeOf(
                      { type: 'integer', minimum: status * 100 + 50, maximum: status * 100 + 99 },
                      failureData
                  )
              ]
            : [];
        const schemas = [
            ...some.map((reason) => ({ $ref: `#/components/schemas/${failureName(reason)}` })),
            ...own
        ];
        const name = `Error${status}.${some.map((reason) => String((failures.get(reason)?.code ?? 0) % 100).padStart(2, '0')).join('.')}${own.length > 0 ? '.plugin' : ''}${isRaw ? '.raw' : ''}`;
        const response = {
            description: `${some.join(', ')}${isRaw ? '; or what the protocol answers' : ''}`,
            headers: {
                ...requestId,
                ...(status === 429 ? { 'Retry-After': headerRef('RetryAfter') } : {}),
                ...(status === 401 ? { 'WWW-Authenticate': headerRef('Authenticate') } : {})
            },
            content: {
                'application/json': { schema: schemas.length === 1 ? schemas[0] : { anyOf: schemas } },
                ...(isRaw ? { '*/*': {} } : {})
            }
        };
        return [String(status), share(name, response)] as const;
    });
    const other =
        isPlugin && !isRaw
            ? {
                  default: share('PluginError', {
                      description: "A failure of the plugin's own",
                      headers: requestId,
                      content: { 'application/json': { schema: { $ref: '#/components/schemas/Failure' } } }
                  })
              }
            : {};
    return { ...Object.fromEntries(known), ...other };
}
