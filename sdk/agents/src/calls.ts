/** The arguments of a tool: checked, hashed, and masked for show. */
import { errors, hashOf, type JsonSchema, type RouteInfo } from '@portico/sdk';

/** What a tool is called with; the parts of a request. */
export interface ToolArguments {
    readonly params?: object;
    readonly query?: object;
    readonly payload?: unknown;
}

type Fields = Readonly<Record<string, unknown>>;

const mask = '[secret]';
/** Names of fields whose value is a secret, also where no schema says so: the names that the audit log masks. */
const secretKey =
    /pass(?:word|phrase|wd)?$|secret|tokens?$|keys?$|credential|totp|otp$|recovery|authorization|cookie|salt$|pin$|bearer|signature/i;
const userInfo = /(\b[a-z][a-z0-9+.-]*:\/\/)[^/@\s"]*:[^/@\s"]*@/gi;
const deepest = 32;

/**
 * Reads the arguments of a tool. Parts without members count as absent, so one call has one form.
 *
 * @throws VALIDATION_FAILED 40001 for another member than `params`, `query` and `payload`, and for a part that is no object
 */
export function argumentsOf(value: unknown): ToolArguments {
    if (value === undefined || value === null) {
        return {};
    }
    if (!isFields(value)) {
        throw errors.invalid([{ path: '', message: 'arguments must be an object' }]);
    }
    const faults = Object.keys(value)
        .filter((name) => !['params', 'query', 'payload'].includes(name))
        .map((name) => ({
            path: name.slice(0, 100),
            message: 'is not allowed: use params, query and payload'
        }));
    const { params, query, payload } = value;
    for (const [path, part] of Object.entries({ params, query })) {
        if (part !== undefined && part !== null && !isFields(part)) {
            faults.push({ path, message: 'must be an object' });
        }
    }
    if (faults.length > 0) {
        throw errors.invalid(faults);
    }
    return {
        ...(isFields(params) && Object.keys(params).length > 0 ? { params } : {}),
        ...(isFields(query) && Object.keys(query).length > 0 ? { query } : {}),
        ...(payload === undefined ? {} : { payload })
    };
}

/** SHA-256 of the canonical call (RFC 8785): the same for the same route and the same arguments, whatever their order. */
export function callHash(routeId: string, { params, query, payload }: ToolArguments): string {
    return hashOf({ id: routeId, params, query, payload });
}

/** The arguments as people may see them: what the route's schemas or the names of the fields call a secret reads `[secret]`. */
export function maskArguments(
    info: Pick<RouteInfo, 'params' | 'query' | 'payload'>,
    given: ToolArguments
): ToolArguments {
    return Object.fromEntries(
        Object.entries(given).map(([part, value]) => [
            part,
            hide(value, [info[part as keyof ToolArguments] ?? {}], 0)
        ])
    );
}

function hide(value: unknown, schemas: readonly JsonSchema[], depth: number): unknown {
    if (value === null || value === undefined || value === '') {
        return value;
    }
    const all = schemas.flatMap(alternatives);
    if (
        depth > deepest ||
        all.some((schema) => schema['writeOnly'] === true || schema['format'] === 'password')
    ) {
        return mask;
    }
    if (Array.isArray(value)) {
        const items = all.flatMap((schema) => asSchemas(schema['items']));
        return value.map((item) => hide(item, items, depth + 1));
    }
    if (isFields(value)) {
        return Object.fromEntries(
            Object.entries(value).map(([key, item]) => [
                key,
                isSecret(key, item, value)
                    ? mask
                    : hide(
                          item,
                          all.flatMap((schema) => member(schema, key)),
                          depth + 1
                      )
            ])
        );
    }
    return typeof value === 'string' ? value.replace(userInfo, `$1${mask}@`) : value;
}

/** By the field's own name, or as the value of a pair such as `{ name: 'Authorization', value: '…' }`. */
function isSecret(key: string, item: unknown, { name }: Fields): boolean {
    if (item === null || item === undefined || item === '' || typeof item === 'boolean') {
        return false;
    }
    return secretKey.test(key) || (key === 'value' && typeof name === 'string' && secretKey.test(name));
}

function alternatives(schema: JsonSchema): readonly JsonSchema[] {
    const below = ['oneOf', 'anyOf', 'allOf'].flatMap((name) => asSchemas(schema[name]));
    return [schema, ...below.flatMap(alternatives)];
}

function member(schema: JsonSchema, key: string): readonly JsonSchema[] {
    const { properties, additionalProperties, patternProperties } = schema;
    return [
        ...asSchemas(isFields(properties) && Object.hasOwn(properties, key) ? properties[key] : undefined),
        ...asSchemas(additionalProperties),
        ...(isFields(patternProperties) ? Object.values(patternProperties).flatMap(asSchemas) : [])
    ];
}

function asSchemas(value: unknown): readonly JsonSchema[] {
    return (Array.isArray(value) ? value : [value]).filter(isFields);
}

function isFields(value: unknown): value is Fields {
    return typeof value === 'object' && value !== null && !Array.isArray(value);
}
