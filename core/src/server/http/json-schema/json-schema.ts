/**
 * A joi schema as JSON Schema 2020-12: our own walk over `describe()`. What cannot be said in JSON Schema is an error and never left
 * out in silence, so a document made of it says what the server does.
 */
import type { AnySchema } from '@portico/sdk';
import { describeSchema, faultOfPropertyUi } from '@portico/sdk/host';

import { arraySchema } from './array.ts';
import { type Convert, type Description, Inexpressible, type JsonSchema, type Use } from './description.ts';
import { numberSchema } from './number.ts';
import { objectSchema } from './object.ts';
import { stringSchema } from './string.ts';
import { withValues } from './values.ts';

/** joi takes milliseconds to describe a large schema, and the same schema stands in several routes. */
const translated = new WeakMap<AnySchema, Map<string, JsonSchema>>();

/**
 * Translates a schema.
 *
 * @param use - where the schema stands: a JSON body, text of a path or query, or an answer; and whether its defaults hold
 * @throws TypeError that starts with the place of what cannot be expressed, as `size.unit: …`
 */
export function jsonSchemaOf(schema: AnySchema, use: Use): JsonSchema {
    const known = translated.get(schema) ?? new Map<string, JsonSchema>();
    translated.set(schema, known);
    const key = `${use.side} ${use.defaults} ${use.lenient === true}`;
    const found = known.get(key) ?? convert(describeSchema(schema) as Description, use, []);
    known.set(key, found);
    return found;
}

const readers: Readonly<Record<string, Convert>> = {
    any: () => ({}),
    string: stringSchema,
    number: numberSchema,
    boolean(description, _use, path) {
        if (description.truthy !== undefined || description.falsy !== undefined) {
            throw new Inexpressible(path, 'other words for true and false');
        }
        return { type: 'boolean' };
    },
    date(description, use, path) {
        if (use.side === 'body') {
            throw new Inexpressible(
                path,
                'a date in a JSON body, which nothing that is sent ever is: use string().isoDate()'
            );
        }
        if (description.rules !== undefined) {
            throw new Inexpressible(path, 'bounds of a date');
        }
        const { format } = description.flags ?? {};
        return format === 'javascript' || format === 'unix'
            ? { type: 'number' }
            : { type: 'string', format: 'date-time' };
    },
    binary(description, use, path) {
        if (use.side !== 'text' || description.rules !== undefined) {
            throw new Inexpressible(path, 'bytes in JSON: use string().base64()');
        }
        const encoding = description.flags?.['encoding'];
        return typeof encoding === 'string'
            ? { type: 'string', contentEncoding: encoding }
            : { type: 'string' };
    },
    array: (description, use, path) => arraySchema(description, use, path, convert),
    object: (description, use, path) => objectSchema(description, use, path, convert),
    alternatives: alternativesSchema
};

function convert(description: Description, use: Use, path: readonly string[]): JsonSchema {
    try {
        return convertWhole(description, use, path);
    } catch (error) {
        if (use.lenient !== true || !(error instanceof Inexpressible)) {
            throw error;
        }
        const { type } = description;
        return withAnnotations(description, plainTypes.has(type) ? { type } : {}, use, path);
    }
}

/** Types of joi that JSON Schema calls by the same name. */
const plainTypes = new Set(['string', 'number', 'boolean', 'object', 'array']);

function convertWhole(description: Description, use: Use, path: readonly string[]): JsonSchema {
    const reader = readers[description.type];
    if (reader === undefined) {
        throw new Inexpressible(path, `the type ${description.type}`);
    }
    if (description.externals !== undefined) {
        throw new Inexpressible(path, 'an external rule');
    }
    if (description.flags?.['failover'] !== undefined) {
        throw new Inexpressible(path, 'a failover value');
    }
    const preference = ['convert', 'presence', 'allowUnknown', 'stripUnknown', 'noDefaults'].find(
        (name) => name in (description.preferences ?? {})
    );
    if (preference !== undefined) {
        throw new Inexpressible(path, `the preference ${preference}`);
    }
    const schema = withValues(description, reader(description, use, path, convert), use, path, convert);
    return withAnnotations(description, withWhens(description, schema, use, path), use, path);
}

/** Conditions that the object around did not take care of: any of their outcomes may hold. */
function withWhens(
    description: Description,
    schema: JsonSchema,
    use: Use,
    path: readonly string[]
): JsonSchema {
    const conditions = (description.whens ?? [])
        .map((when) => {
            const branches = when.switch ?? [when];
            const outcomes = branches
                .flatMap(({ then, otherwise }) => [then, otherwise])
                .filter((each) => each !== undefined);
            const exhaustive =
                branches.at(-1)?.otherwise !== undefined && branches.every(({ then }) => then !== undefined);
            const schemas = outcomes
                .filter((each) => each.flags?.presence !== 'forbidden')
                .map((each) => convert(each, use, path));
            return exhaustive && schemas.length > 0 && schemas.every((each) => Object.keys(each).length > 0)
                ? { anyOf: schemas }
                : {};
        })
        .filter((condition) => Object.keys(condition).length > 0);
    return conditions.length === 0 ? schema : { allOf: [schema, ...conditions] };
}

function alternativesSchema(description: Description, use: Use, path: readonly string[]): JsonSchema {
    const schemas = (description.matches ?? [])
        .flatMap((match) => {
            if (match.schema !== undefined) {
                return [match.schema];
            }
            return (match.switch ?? [match])
                .flatMap(({ then, otherwise }) => [then, otherwise])
                .filter((each) => each !== undefined);
        })
        .map((each) => convert(each, use, path));
    if (schemas.length === 0) {
        return {};
    }
    const { match = 'any' } = (description.flags ?? {}) as { match?: 'any' | 'one' | 'all' };
    return { [{ any: 'anyOf', one: 'oneOf', all: 'allOf' }[match]]: schemas };
}

function withAnnotations(
    description: Description,
    schema: JsonSchema,
    use: Use,
    path: readonly string[]
): JsonSchema {
    const { flags = {}, examples } = description;
    const meta = Object.assign({}, ...(description.metas ?? [])) as Readonly<Record<string, unknown>>;
    const text = textOf(description, use, path);
    const value = use.defaults ? jsonOf(flags.default) : undefined;
    const isReadOnly = meta['readOnly'] === true || (flags.result === 'strip' && use.side !== 'answer');
    return {
        ...schema,
        ...(typeof flags.label === 'string' ? { title: flags.label } : {}),
        ...(text === '' ? {} : { description: text }),
        ...(typeof flags.unit === 'string' ? { 'x-unit': flags.unit } : {}),
        ...(value === undefined ? {} : { default: value }),
        ...(examples === undefined ? {} : { examples }),
        ...(typeof meta['media'] === 'string' ? { contentMediaType: meta['media'] } : {}),
        ...(meta['secret'] === true
            ? { format: 'password', ...(use.side === 'answer' ? {} : { writeOnly: true }) }
            : {}),
        ...(isReadOnly ? { readOnly: true } : {}),
        ...(meta['ui'] === undefined ? {} : { 'x-ui': uiOf(meta['ui'], path) })
    };
}

/** The description of a schema with the words of its custom rules. */
function textOf(
    { flags = {}, rules = [] }: Description,
    { lenient = false }: Use,
    path: readonly string[]
): string {
    const said = rules
        .filter((rule) => rule.name === 'custom')
        .map((rule) => rule.args?.['description'])
        .filter((words) => {
            if (typeof words !== 'string' && !lenient) {
                throw new Inexpressible(
                    path,
                    'a custom rule that does not say in words what it asks: give custom() its second argument'
                );
            }
            return typeof words === 'string';
        })
        .map((words) => sentence(words as string));
    return [
        ...(typeof flags.description === 'string'
            ? [said.length === 0 ? flags.description : sentence(flags.description)]
            : []),
        ...said
    ].join(' ');
}

/** @throws TypeError for a word that is not in the vocabulary */
function uiOf(ui: unknown, path: readonly string[]): unknown {
    const fault = faultOfPropertyUi(ui);
    if (fault !== null) {
        throw new TypeError(`${path.length === 0 ? '' : `${path.join('.')}: `}${fault}`);
    }
    return ui;
}

function sentence(text: string): string {
    return /[.!?]$/.test(text) ? text : `${text}.`;
}

/** A default that is plain data; what is computed or copied from elsewhere has no value to show. */
function jsonOf(value: unknown): unknown {
    if (
        value === undefined ||
        typeof value === 'function' ||
        (typeof value === 'object' && value !== null && ('special' in value || 'ref' in value))
    ) {
        return undefined;
    }
    return JSON.parse(JSON.stringify(value)) as unknown;
}
