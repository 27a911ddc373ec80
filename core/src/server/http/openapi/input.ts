/** What a route takes: parameters of path, query and headers, and the body. */
import type { AnySchema } from '@portico/sdk';
import { describeSchema } from '@portico/sdk/host';
import type Joi from 'joi';

import type { JsonSchema } from '../json-schema/description.ts';
import { jsonSchemaOf } from '../json-schema/json-schema.ts';
import { type Route, takesChange } from '../route.ts';
import { hasJsonBody, isConditional, isRepeatable } from './failures.ts';
import { templateOf } from './path.ts';

const header = (name: string): JsonSchema => ({ $ref: `#/components/parameters/${name}` });

/** Parameters of an operation. @throws TypeError that says what cannot be expressed */
export function parametersOf(route: Route, path: string): JsonSchema[] {
    return [...pathParameters(route, path), ...queryParameters(route), ...headerParameters(route, path)];
}

/**
 * The body of an operation; undefined where it takes none. Its schema stands in the operation itself and not among the components:
 * client generators take a field with a default as always present everywhere else.
 */
export function bodyOf(route: Route): JsonSchema | undefined {
    if (route.kind === 'upload') {
        return {
            required: true,
            description: `At most ${route.maxBytes} bytes`,
            content: Object.fromEntries(route.accepts.map((type) => [type, {}])),
            'x-max-bytes': route.maxBytes
        };
    }
    if (route.kind === 'http') {
        return { content: { '*/*': {} }, 'x-max-bytes': route.maxBytes };
    }
    const schema = route.validate?.payload;
    if (!hasJsonBody(route) || schema === undefined) {
        return undefined;
    }
    const json = at('payload', () => jsonSchemaOf(schema, { side: 'body', defaults: !takesChange(route) }));
    // A plugin's schema checks input in the plugin's guest runtime; here only its description is known.
    const required =
        (schema as unknown as Joi.Schema).validate({}, { convert: false }).error !== undefined ||
        ((json['required'] ?? []) as readonly string[]).length > 0;
    return {
        required,
        content: {
            'application/json': { schema: json },
            ...Object.fromEntries((route.bytes?.types ?? []).map((type) => [type, {}]))
        },
        ...(route.maxBytes === undefined ? {} : { 'x-max-bytes': route.maxBytes })
    };
}

function pathParameters(route: Route, path: string): JsonSchema[] {
    const { parameters } = templateOf(path);
    const schema = textObject(route.validate?.params, 'params');
    const known = parameters.map(({ name }) => name);
    const stray =
        schema === null ? undefined : Object.keys(schema.properties).find((name) => !known.includes(name));
    if (stray !== undefined) {
        throw new TypeError(`params: ${stray} does not stand in the path`);
    }
    return parameters.map(({ name, multi }) => {
        if (schema !== null && !(name in schema.properties) && !schema.open) {
            throw new TypeError(
                `params: ${name} stands in the path, but not in the schema, which would refuse it`
            );
        }
        const { description, ...rest } = schema?.properties[name] ?? { type: 'string' };
        return {
            name,
            in: 'path',
            required: true,
            ...(description === undefined ? {} : { description }),
            schema: rest,
            ...(multi ? { 'x-multi-segment': true } : {})
        };
    });
}

function queryParameters(route: Route): JsonSchema[] {
    const schema = textObject(route.validate?.query, 'query');
    if (schema === null) {
        return [];
    }
    const parameters = Object.entries(schema.properties).map(([name, property]) => {
        const { description, ...rest } = property;
        return {
            name,
            in: 'query',
            ...(schema.required.includes(name) ? { required: true } : {}),
            ...(description === undefined ? {} : { description }),
            schema: rest
        };
    });
    return schema.open
        ? [
              ...parameters,
              {
                  name: 'parameters',
                  in: 'query',
                  description: 'Any other parameter',
                  style: 'form',
                  explode: true,
                  schema: { type: 'object' }
              }
          ]
        : parameters;
}

function headerParameters(route: Route, path: string): JsonSchema[] {
    const json = route.kind === 'json' && route.method === 'GET';
    return [
        ...(isConditional(route) ? [header('IfMatch')] : []),
        ...(isRepeatable(route, path) ? [header('IdempotencyKey')] : []),
        ...(json || route.kind === 'download' ? [header('IfNoneMatch')] : []),
        ...(route.kind === 'download' ? [header('Range'), header('IfRange')] : []),
        ...(route.kind === 'stream' ? [header('LastEventId')] : []),
        header('RequestId')
    ];
}

interface TextObject {
    readonly properties: Readonly<Record<string, JsonSchema>>;
    readonly required: readonly string[];
    readonly open: boolean;
}

/** Parameters are an object of single values; what they ask of each other has no place in OpenAPI. */
function textObject(schema: AnySchema | undefined, place: string): TextObject | null {
    if (schema === undefined) {
        return null;
    }
    const {
        type,
        properties = {},
        required = [],
        additionalProperties = true,
        description: _described,
        ...other
    } = at(place, () => jsonSchemaOf(schema, { side: 'text', defaults: true })) as JsonSchema & {
        properties?: Record<string, JsonSchema>;
        required?: string[];
    };
    const rule = Object.keys(other)[0];
    if (
        type !== 'object' ||
        rule !== undefined ||
        (additionalProperties !== true && additionalProperties !== false)
    ) {
        throw new TypeError(
            `${place}: OpenAPI cannot express ${rule === undefined ? 'parameters that are not an object with keys' : `${rule} over parameters`}`
        );
    }
    for (const [name, property] of Object.entries(properties)) {
        if (property['type'] === 'object') {
            throw new TypeError(`${place}: ${name} is an object, which no address holds`);
        }
        if (property['type'] === 'array' && !isSingle(schema, name)) {
            throw new TypeError(
                `${place}: ${name} is a list that refuses a single value, which looks the same in an address: add .single()`
            );
        }
    }
    return { properties, required, open: additionalProperties };
}

function isSingle(schema: AnySchema, name: string): boolean {
    const { keys } = describeSchema(schema) as {
        readonly keys?: Readonly<Record<string, { readonly flags?: { readonly single?: boolean } }>>;
    };
    return keys?.[name]?.flags?.single === true;
}

/** Says in which of a route's schemas something is wrong. */
export function at<T>(place: string, read: () => T): T {
    try {
        return read();
    } catch (error) {
        throw new TypeError(`${place}: ${(error as Error).message}`, { cause: error });
    }
}
