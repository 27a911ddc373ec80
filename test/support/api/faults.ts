/** Makes requests that every operation must refuse from the OpenAPI document: wrong addresses, headers and bodies. */
import fc from 'fast-check';

import type { OpenApiDocument } from '../../../core/src/server/http/openapi/document.ts';
import type { Operation } from '../../../core/src/server/http/openapi/operation.ts';
import { at, createValidator } from './contract.ts';

type Json = Readonly<Record<string, unknown>>;

/** One operation, and what a call of it needs. */
export interface Target {
    readonly method: string;
    readonly path: string;
    readonly operation: Operation;
    /** The path with a value for every parameter: well-formed, and of nothing that exists unless `known` gives it. */
    url(known?: Readonly<Record<string, string>>): string;
    /** The schema of a JSON body; null where the operation takes none. */
    readonly body: Json | null;
    readonly query: readonly { readonly name: string; readonly schema: Json }[];
    readonly params: readonly { readonly name: string; readonly schema: Json }[];
}

/** A request that must be refused. */
export interface Fault {
    readonly name: string;
    readonly url: string;
    readonly body?: string | Buffer;
    readonly headers?: Readonly<Record<string, string>>;
    /** The codes of which the answer must have one. */
    readonly codes: readonly number[];
}

const absent = 987_654_321;
const json = { 'content-type': 'application/json' };
const mebibyte = 1024 * 1024;

/** Lists the operations of a document. */
export function targetsOf(document: OpenApiDocument): Target[] {
    return Object.entries(document.paths).flatMap(([path, item]) =>
        Object.entries(item).map(([method, operation]) => targetOf(document, path, method, operation))
    );
}

function targetOf(document: OpenApiDocument, path: string, method: string, operation: Operation): Target {
    const resolve = (value: Json): Json =>
        typeof value['$ref'] === 'string' ? at(document, value['$ref']) : value;
    const parameters = operation.parameters.map(resolve);
    const place = (where: string): { name: string; schema: Json }[] =>
        parameters
            .filter((each) => each['in'] === where)
            .map((each) => ({ name: each['name'] as string, schema: each['schema'] as Json }));
    const params = place('path');
    const media = (operation.requestBody?.['content'] as Readonly<Record<string, Json>> | undefined)?.[
        'application/json'
    ];
    return {
        method: method.toUpperCase(),
        path,
        operation,
        params,
        query: place('query'),
        body: media === undefined ? null : resolve(media['schema'] as Json),
        url: (known = {}) =>
            params.reduce(
                (url, { name, schema }) =>
                    url.replace(`{${name}}`, encodeURIComponent(known[name] ?? sampleOf(schema))),
                path
            )
    };
}

function sampleOf(schema: Json): string {
    return schema['type'] === 'integer' || schema['type'] === 'number'
        ? String(absent)
        : ((schema['enum'] as string[] | undefined)?.[0] ?? 'absent');
}

/** Whether the operation reads a JSON body. */
export function readsJson({ method, operation }: Target): boolean {
    return (
        (operation['x-door'] === 'json' && method !== 'GET') ||
        (operation['x-door'] === 'stream' && method === 'POST')
    );
}

/** A query that no operation knows. It is refused right after the access check, so nothing is done. Null where every query is accepted. */
export function strayQuery({ query, operation, url }: Target): string | null {
    return query.some(({ name, schema }) => name === 'parameters' && schema['type'] === 'object') ||
        operation['x-door'] === 'http'
        ? null
        : `${url()}?zz-stray=1`;
}

/** Bodies that are wrong for every operation. */
export function bodyFaults(target: Target): Fault[] {
    if (!readsJson(target)) {
        return [];
    }
    const url = target.url();
    const deep = `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`;
    const limit = (target.operation.requestBody?.['x-max-bytes'] as number | undefined) ?? mebibyte;
    const wrong = (
        name: string,
        body: string | Buffer,
        codes: readonly number[] = [40000],
        headers: Readonly<Record<string, string>> = json
    ): Fault => ({ name, url, body, codes, headers });
    return [
        wrong('an open brace', '{'),
        wrong('a list', '[]'),
        wrong('a number', '1'),
        wrong('a text', '"x"'),
        wrong('true', 'true'),
        wrong('NaN', '{"a":NaN}'),
        wrong('a comment', '{}//'),
        wrong('two documents', '{}{}'),
        wrong('a blank', ' '),
        wrong('a single quote', "{'a':1}"),
        wrong('a deep body', deep),
        wrong('deep lists', `{"a":${'['.repeat(10_000)}${']'.repeat(10_000)}}`),
        wrong('a key twice', '{"a":1,"a":2}'),
        wrong('a key twice in disguise', '{"a":1,"\\u0061":2}'),
        wrong('a prototype', '{"__proto__":{"a":1}}'),
        wrong('a byte order mark', '\ufeff{}'),
        wrong('invalid UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])),
        wrong('UTF-16', Buffer.from('{}', 'utf16le')),
        wrong('a NUL', '{}\0'),
        wrong('an unknown key', '{"zz-stray":1}', [40001]),
        wrong('a constructor', '{"constructor":1}', [40001]),
        wrong('an empty key', '{"":1}', [40001]),
        wrong('another type', '{"zz-stray":1}', [41500], { 'content-type': 'text/plain' }),
        wrong('a form', 'zz-stray=1', [41500], { 'content-type': 'application/x-www-form-urlencoded' }),
        wrong('another charset', '{"zz-stray":1}', [41500], {
            'content-type': 'application/json; charset=latin1'
        }),
        wrong('no type', '{"zz-stray":1}', [41500], {}),
        wrong('a compressed body', '{"zz-stray":1}', [41500], { ...json, 'content-encoding': 'gzip' }),
        ...(limit <= 2 * mebibyte
            ? [wrong('an oversize body', `{"zz-stray":"${'x'.repeat(limit)}"}`, [41300])]
            : [])
    ];
}

/** Addresses and headers that are wrong for every operation. */
export function addressFaults(target: Target): Fault[] {
    const stray = strayQuery(target);
    const reads = target.operation['x-door'] !== 'http';
    const faults: Fault[] =
        stray === null ? [] : [{ name: 'an unknown parameter', url: stray, codes: [40001] }];
    for (const { name, schema } of target.query) {
        const type = schema['type'];
        const values =
            type === 'integer'
                ? ['x', '', '1.5', '1e999', '9007199254740993', '0x1']
                : type === 'boolean'
                  ? ['maybe', '', '2']
                  : 'enum' in schema
                    ? ['zz-stray', '']
                    : [];
        faults.push(
            ...values.map((value) => ({
                name: `${name}=${value}`,
                url: `${target.url()}?${encodeURIComponent(name)}=${value}`,
                codes: [40001]
            }))
        );
    }
    for (const { name, schema } of target.params) {
        const values =
            schema['type'] === 'integer'
                ? [
                      '0',
                      '-1',
                      'x',
                      '1.5',
                      '9007199254740993',
                      '1e999',
                      'null',
                      '%20',
                      '%00',
                      '%E2%80%AE',
                      '1%2f2',
                      'a'.repeat(4000)
                  ]
                : [];
        faults.push(
            ...values.map((value) => ({
                name: `${name} is ${value.slice(0, 20)}`,
                url: target.path.replace(`{${name}}`, value).replace(/\{\w+\}/g, 'absent'),
                codes: [40400, 40000]
            }))
        );
        faults.push({
            name: `${name} is no UTF-8`,
            url: target.path.replace(`{${name}}`, '%ff').replace(/\{\w+\}/g, 'absent'),
            codes: [40000, 40400]
        });
    }
    if (
        reads &&
        target.operation.parameters.some((each) => each['$ref'] === '#/components/parameters/IdempotencyKey')
    ) {
        const body = '{"zz-stray":1}';
        faults.push(
            ...['a b', 'x'.repeat(129)].map((key) => ({
                name: `the key ${key.slice(0, 5)}`,
                url: target.url(),
                body,
                headers: { ...json, 'idempotency-key': key },
                codes: [40000, 40001]
            }))
        );
    }
    return faults;
}

/** Unusual values, as JSON texts. */
const oddities = [
    'null',
    'true',
    '0',
    '-0',
    '-1',
    '1e308',
    '9007199254740993',
    '0.5',
    '""',
    '" "',
    '"\\u0000"',
    '"\\ud800"',
    '"../.."',
    '"{env.HOME}"',
    '"{file./etc/passwd}"',
    '"a\\r\\nb"',
    '"\\u202ea"',
    '"xn--"',
    '"*."',
    '"*.*.example"',
    '"%00"',
    '"https://[::1"',
    '"unix//"',
    '"a:99999"',
    '"true"',
    '"1"',
    `"${'x'.repeat(70_000)}"`,
    '[]',
    '[null]',
    '[[]]',
    '[{}]',
    '{}',
    '{"zz-stray":1}',
    '{"toString":1}',
    `[${'0,'.repeat(5000)}0]`,
    '["a","a"]'
];

/** Bodies of which one member breaks its schema: one body for each member, down to the second level. */
export function memberFaults(
    document: OpenApiDocument,
    target: Target
): fc.Arbitrary<{ readonly path: string; readonly text: string }> | null {
    const properties = (target.body?.['properties'] ?? {}) as Readonly<Record<string, Json | boolean>>;
    const ajv = createValidator(document);
    const places = Object.entries(properties)
        .flatMap(([name, schema]) => placesOf(name, schema as Json))
        .filter(({ schema }) =>
            Object.keys(schema).some((keyword) => keyword !== 'description' && keyword !== 'readOnly')
        );
    const faults = places.flatMap(({ path, schema, wrap }) => {
        const valid = ajv.compile(withoutFormats(schema));
        const own = oddities.filter((text) => !valid(JSON.parse(text)));
        const random = fc
            .json({ maxDepth: 2 })
            .filter((text) => text !== '' && !text.includes('__proto__') && !valid(JSON.parse(text)));
        return own.length === 0
            ? []
            : [
                  fc
                      .oneof(
                          { arbitrary: fc.constantFrom(...own), weight: 3 },
                          { arbitrary: random, weight: 1 }
                      )
                      .map((text) => ({ path, text: wrap(text) }))
              ];
    });
    return faults.length === 0 ? null : fc.oneof(...faults);
}

/** Bodies of which one member has an unusual value that its schema allows, together with all required members. */
export function oddBodies(document: OpenApiDocument, target: Target): string[] {
    const properties = (target.body?.['properties'] ?? {}) as Readonly<Record<string, Json>>;
    const ajv = createValidator(document);
    const required = (target.body?.['required'] ?? []) as readonly string[];
    return Object.entries(properties).flatMap(([name, schema]) => {
        const valid = ajv.compile(withoutFormats(schema));
        const others = required
            .filter((each) => each !== name)
            .map((each) => `${JSON.stringify(each)}:${plainValue(properties[each] ?? {})},`)
            .join('');
        return oddities
            .filter((text) => text.length < 1000 && valid(JSON.parse(text)))
            .map((text) => `{${others}${JSON.stringify(name)}:${text}}`);
    });
}

function plainValue(schema: Json): string {
    const type = [schema['type']].flat()[0];
    if ('const' in schema || 'enum' in schema) {
        return JSON.stringify(schema['const'] ?? (schema['enum'] as unknown[])[0]);
    }
    return type === 'integer' || type === 'number'
        ? '1'
        : type === 'boolean'
          ? 'true'
          : type === 'array'
            ? '[1]'
            : type === 'object'
              ? '{}'
              : '"odd.example"';
}

function placesOf(
    name: string,
    schema: Json
): { path: string; schema: Json; wrap: (text: string) => string }[] {
    const key = JSON.stringify(name);
    const own = { path: name, schema, wrap: (text: string) => `{${key}:${text}}` };
    const isObject = [schema['type']].flat().includes('object');
    const inner = isObject
        ? Object.entries((schema['properties'] ?? {}) as Readonly<Record<string, Json>>)
        : [];
    return [
        own,
        ...inner.map(([child, each]) => ({
            path: `${name}.${child}`,
            schema: each,
            wrap: (text: string) => `{${key}:{${JSON.stringify(child)}:${text}}}`
        }))
    ];
}

/** Formats are described in words only; the server may accept more. */
function withoutFormats(schema: unknown): Json {
    return JSON.parse(
        JSON.stringify(schema, (key, value: unknown) =>
            key === 'format' && typeof value === 'string' ? undefined : value
        )
    ) as Json;
}
