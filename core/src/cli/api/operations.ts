/** The panel's operations, as its OpenAPI document describes them, and requests that are made of arguments. */
import { usageError } from '../command/command-error.ts';

/** The part of a JSON schema that decides how a value is read. */
interface Schema {
    readonly type?: string | readonly string[];
    readonly enum?: readonly unknown[];
    readonly const?: unknown;
    readonly oneOf?: readonly Schema[];
    readonly anyOf?: readonly Schema[];
    readonly properties?: Readonly<Record<string, Schema>>;
    readonly required?: readonly string[];
    readonly writeOnly?: boolean;
    readonly readOnly?: boolean;
}

interface Parameter {
    readonly name?: string;
    readonly in?: string;
    readonly required?: boolean;
    readonly schema?: Schema;
}

/** One operation of the panel. */
export interface Operation {
    /** As typed: `list`. */
    readonly action: string;
    readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
    readonly path: string;
    readonly summary: string;
    readonly parameters: readonly Parameter[];
    /** Null for an operation without a body. */
    readonly body: Schema | null;
}

/** The part of an OpenAPI document that is read. */
export interface ApiDocument {
    readonly paths: Readonly<
        Record<
            string,
            Readonly<
                Record<
                    string,
                    {
                        readonly operationId?: string;
                        readonly summary?: string;
                        readonly parameters?: readonly Parameter[];
                        readonly requestBody?: {
                            readonly content?: Readonly<Record<string, { readonly schema?: Schema }>>;
                        };
                        readonly 'x-door'?: string;
                    }
                >
            >
        >
    >;
}

/** A request, ready to be sent. */
export interface ApiRequest {
    readonly path: string;
    readonly body: Readonly<Record<string, unknown>> | undefined;
}

/** The operations of a group that take and answer JSON, in the order of the document. */
export function operationsOf({ paths }: ApiDocument, prefix: string): readonly Operation[] {
    return Object.entries(paths).flatMap(([path, methods]) =>
        Object.entries(methods).flatMap(([method, operation]): Operation[] =>
            operation.operationId?.startsWith(`${prefix}.`) === true && operation['x-door'] === 'json'
                ? [
                      {
                          action: operation.operationId.slice(prefix.length + 1),
                          method: method.toUpperCase() as Operation['method'],
                          path,
                          summary: operation.summary ?? '',
                          parameters: operation.parameters ?? [],
                          body: operation.requestBody?.content?.['application/json']?.schema ?? null
                      }
                  ]
                : []
        )
    );
}

/** What an operation takes, as a person types it: `<id> domain= [upstream=]`. */
export function argumentsOf({ parameters, body }: Operation): string {
    const query = named(parameters, 'query').map(({ name, required }) => [name, required === true] as const);
    const fields = Object.entries(body?.properties ?? {})
        .filter(([, { readOnly }]) => readOnly !== true)
        .map(([name]) => [name, body?.required?.includes(name) === true] as const);
    return [
        ...named(parameters, 'path').map(({ name }) => `<${name}>`),
        ...[...query, ...fields].map(([name, isRequired]) => (isRequired ? `${name}=` : `[${name}=]`))
    ].join(' ');
}

/**
 * Makes a request of `3 enabled=false`: first the parameters of the path, then fields of the query or the body.
 *
 * @param given - fields of the body that were not typed
 * @throws CommandError of wrong use
 */
export function requestOf(
    operation: Operation,
    typed: readonly string[],
    given: Readonly<Record<string, unknown>>
): ApiRequest {
    const places = named(operation.parameters, 'path');
    const ids = typed.slice(0, places.length);
    const missing = places[ids.length];
    if (missing !== undefined) {
        throw usageError(`<${missing.name}> is missing`);
    }
    const path = places.reduce(
        (text, { name }, index) => text.replace(`{${name}}`, encodeURIComponent(ids[index] ?? '')),
        operation.path
    );
    const query = new URLSearchParams();
    const body: Record<string, unknown> = { ...given };
    for (const argument of typed.slice(places.length)) {
        const [, name = '', text = ''] = /^([\w.-]+)=([\s\S]*)$/.exec(argument) ?? [];
        if (name === '') {
            throw usageError(`${JSON.stringify(argument)} is not of the form field=value`);
        }
        if (named(operation.parameters, 'query').some((parameter) => parameter.name === name)) {
            query.set(name, text);
        } else {
            body[name] = valueOf(name, text, operation.body);
        }
    }
    const search = query.size === 0 ? '' : `?${query}`;
    return { path: `${path}${search}`, body: operation.body === null ? undefined : body };
}

function named(
    parameters: readonly Parameter[],
    place: string
): readonly (Parameter & { readonly name: string })[] {
    return parameters.flatMap((parameter) =>
        parameter.in === place && parameter.name !== undefined ? [{ ...parameter, name: parameter.name }] : []
    );
}

function valueOf(name: string, text: string, body: Schema | null): unknown {
    if (body === null) {
        throw usageError(`there is no field ${name}`);
    }
    const schema = body.properties?.[name];
    if (schema?.writeOnly === true) {
        throw usageError(
            `${name} is secret, and every process of the machine could read it here: give it by --input`
        );
    }
    const types = schema === undefined ? new Set<string>() : typesOf(schema);
    const parsed = parse(text);
    if (parsed === undefined || types.has(typeOf(parsed)) || !types.has('string')) {
        return parsed === undefined ? text : parsed;
    }
    return text;
}

function parse(text: string): unknown {
    try {
        return JSON.parse(text) as unknown;
    } catch {
        return undefined; // no JSON: a text
    }
}

function typesOf({ type, enum: words, const: word, oneOf = [], anyOf = [] }: Schema): ReadonlySet<string> {
    const own = typeof type === 'string' ? [type] : (type ?? []);
    const values = [...(words ?? []), ...(word === undefined ? [] : [word])].map(typeOf);
    return new Set([
        ...own.map((each) => (each === 'integer' ? 'number' : each)),
        ...values,
        ...[...oneOf, ...anyOf].flatMap((each) => [...typesOf(each)])
    ]);
}

function typeOf(value: unknown): string {
    return value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
}
