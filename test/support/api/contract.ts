/** Compares real answers with the OpenAPI document. Every answer must match the document. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';

import type { OpenApiDocument } from '../../../core/src/server/http/openapi/document.ts';
import { envelopeOf, failureData } from '../../../core/src/server/http/openapi/envelope.ts';

type Headers = Readonly<Record<string, string | string[] | number | undefined>>;
/** Throws when an answer does not match the document. `body` is the text that was sent; empty for none. */
export type ContractCheck = (
    method: string,
    url: string,
    status: number,
    headers: Headers,
    body: string
) => void;
type Json = Readonly<Record<string, unknown>>;

/** The operation of one request. */
export interface FoundOperation {
    readonly path: string;
    readonly method: string;
    readonly operation: Json;
}

const root = 'portico:document';
const dateTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;

/** Makes a validator of the JSON Schema dialect of OpenAPI 3.1 that knows the whole document. */
export function createValidator(document: OpenApiDocument): Ajv2020 {
    const ajv = new Ajv2020({
        strict: false,
        allErrors: true,
        validateFormats: true,
        multipleOfPrecision: 6,
        formats: {
            'date-time': dateTime,
            uuid: true,
            email: true,
            uri: true,
            'uri-reference': true,
            hostname: true,
            ipv4: true,
            ipv6: true,
            password: true,
            duration: true
        }
    });
    ajv.addSchema({ $id: root, ...(JSON.parse(JSON.stringify(document)) as object) });
    return ajv;
}

/** Finds operations as the router does: it prefers a plain segment to a parameter, and a parameter to one that takes slashes. */
export function createFinder(
    document: OpenApiDocument
): (method: string, url: string) => FoundOperation | null {
    const paths = Object.entries(document.paths)
        .map(([path, item]) => {
            const multi = Object.values(item)
                .flatMap((operation) => operation.parameters)
                .filter((each) => each['x-multi-segment'] === true)
                .map((each) => each['name'] as string);
            const source = path
                .split(/(\{\w+\})/)
                .map((part) => {
                    const name = /^\{(\w+)\}$/.exec(part)?.[1];
                    return name === undefined
                        ? part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
                        : multi.includes(name)
                          ? '.*'
                          : '[^/]+';
                })
                .join('');
            return {
                path,
                item: item as Readonly<Record<string, unknown>>,
                expression: new RegExp(`^${source}$`),
                rank: path
                    .split('/')
                    .map((part) =>
                        /^\{.*\}$/.test(part)
                            ? multi.includes(part.slice(1, -1))
                                ? '3'
                                : '2'
                            : part.includes('{')
                              ? '1'
                              : '0'
                    )
                    .join('')
            };
        })
        .sort((a, b) => (a.rank < b.rank ? -1 : 1));
    return (method, url) => {
        const [path = ''] = url.split(/[?#]/, 1);
        const wanted = method.toLowerCase() === 'head' ? 'get' : method.toLowerCase();
        const found = paths.find(({ expression, item }) => wanted in item && expression.test(path));
        return found === undefined
            ? null
            : { path: found.path, method: wanted, operation: found.item[wanted] as Json };
    };
}

/** Builds a check. It compiles a schema at its first use, so every call of a suite can be checked. */
export function contractCheck(document: OpenApiDocument): ContractCheck {
    const ajv = createValidator(document);
    const find = createFinder(document);
    const compiled = new Map<string, ValidateFunction>();
    const validatorOf = (pointer: string): ValidateFunction => {
        let validate = compiled.get(pointer);
        if (validate === undefined) {
            validate = ajv.compile({ $ref: `${root}${pointer}` });
            compiled.set(pointer, validate);
        }
        return validate;
    };
    // A document without plugins has no reference to it.
    const isFailure = ajv.compile(
        envelopeOf({ type: 'integer', minimum: 40_000, maximum: 59_999 }, failureData)
    );
    const resolve = (value: Json, pointer: string): { value: Json; pointer: string } =>
        typeof value['$ref'] === 'string'
            ? { value: at(document, value['$ref']), pointer: value['$ref'] }
            : { value, pointer };

    return (method, url, status, headers, body) => {
        const wrong = (what: string): never => {
            throw new Error(`${method} ${url} answered ${status}, and ${what}: ${body.slice(0, 500)}`);
        };
        if (method === 'OPTIONS') {
            return;
        }
        const found = find(method, url);
        const type = String(headers['content-type'] ?? '').split(';', 1)[0] ?? '';
        if (found === null) {
            if (
                (url.startsWith('/api/') || url === '/api') &&
                status !== 404 &&
                status !== 400 &&
                status !== 503
            ) {
                wrong('the document has no such operation');
            }
            if (
                url.startsWith('/api/') &&
                method !== 'HEAD' &&
                (type !== 'application/json' || !isFailure(JSON.parse(body)))
            ) {
                wrong('the body is not the envelope of a failure');
            }
            return;
        }
        const { operation } = found;
        const responses = operation['responses'] as Readonly<Record<string, Json>>;
        const place = `#/paths/${escape(found.path)}/${found.method}/responses`;
        const key = String(status) in responses ? String(status) : 'default';
        const declared = responses[key];
        if (declared === undefined) {
            return wrong(
                `only ${Object.keys(responses).join(', ')} are documented for ${String(operation['operationId'])}`
            );
        }
        const { value: response, pointer } = resolve(declared, `${place}/${key}`);
        for (const [name, header] of Object.entries(
            (response['headers'] ?? {}) as Readonly<Record<string, Json>>
        )) {
            if (resolve(header, '').value['required'] === true && headers[name.toLowerCase()] === undefined) {
                wrong(`the header ${name} is missing`);
            }
        }
        const content = response['content'] as Readonly<Record<string, Json>> | undefined;
        if (method === 'HEAD' || content === undefined || '*/*' in content) {
            return content === undefined && body !== ''
                ? wrong('there is a body where none is documented')
                : undefined;
        }
        const media = content[type];
        if (media === undefined) {
            return wrong(`its type ${type || '(none)'} is not documented`);
        }
        if (type === 'application/json') {
            const validate = validatorOf(`${pointer}/content/application~1json/schema`);
            if (!validate(JSON.parse(body))) {
                wrong(
                    `the body is not what ${String(operation['operationId'])} documents: ${ajv.errorsText(validate.errors, { dataVar: '' })}`
                );
            }
        }
    };
}

/** Resolves a local reference. @throws Error when it points nowhere */
export function at(document: object, reference: string): Json {
    const found = reference
        .replace(/^#\//, '')
        .split('/')
        .reduce<unknown>(
            (value, part) => (value as Json | undefined)?.[part.replaceAll('~1', '/').replaceAll('~0', '~')],
            document
        );
    if (found === undefined) {
        throw new Error(`${reference} points nowhere`);
    }
    return found as Json;
}

function escape(part: string): string {
    return encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'));
}
