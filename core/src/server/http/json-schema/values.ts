/** Single values that a schema adds, insists on or refuses: `valid`, `allow`, `invalid` and `empty`. */
import {
    allOf,
    type Description,
    Inexpressible,
    type JsonSchema,
    type Use,
    type Walk
} from './description.ts';

/** Adds the single values that a joi schema allows or refuses to its JSON Schema. */
export function withValues(
    description: Description,
    base: JsonSchema,
    use: Use,
    path: readonly string[],
    walk: Walk
): JsonSchema {
    const { flags = {} } = description;
    const values = plain(description.allow ?? [], path);
    const refused = plain(description.invalid ?? [], path);
    let schema: JsonSchema;
    if (flags['only'] === true) {
        if (
            flags['insensitive'] === true &&
            values.some((value) => typeof value === 'string' && value.toLowerCase() !== value.toUpperCase())
        ) {
            throw new Inexpressible(path, 'values in any letter case');
        }
        const words = (description.metas ?? []).find((meta) => isWords(meta['choice']))?.['choice'];
        schema =
            description.type === 'array' || description.type === 'object'
                ? base
                : words === undefined
                  ? enumOf(values)
                  : choiceOf(values, words as Words);
    } else {
        schema = values.reduce<JsonSchema>((all, value) => withValue(all, value), base);
    }
    if (refused.length > 0) {
        schema = allOf(schema, [{ not: { enum: refused } }]);
    }
    if (flags['empty'] !== undefined) {
        schema = { anyOf: [schema, walk(flags['empty'] as Description, use, path)] };
    }
    return schema;
}

/** Exactly these values, with their types named for readers that look there first. */
function enumOf(values: readonly unknown[]): JsonSchema {
    const types = [...new Set(values.map(typeOf))];
    const type = types.length === 1 ? { type: types[0] } : { type: types };
    return values.length === 1
        ? values[0] === null
            ? type
            : { ...type, const: values[0] }
        : { ...type, enum: values };
}

type Words = Readonly<Record<string, string>>;

function isWords(value: unknown): value is Words {
    return typeof value === 'object' && value !== null;
}

/** The same, each value with the text that users choose it by. */
function choiceOf(values: readonly unknown[], words: Words): JsonSchema {
    const choices = values.map((value) => ({
        ...enumOf([value]),
        ...(typeof value === 'string' && Object.hasOwn(words, value) ? { title: words[value] } : {})
    }));
    const [first] = choices;
    // Linters refuse a choice among one.
    return choices.length === 1 && first !== undefined ? first : { oneOf: choices };
}

function withValue(schema: JsonSchema, value: unknown): JsonSchema {
    const { type, minLength, ...rest } = schema;
    if (type === undefined && Object.keys(schema).length === 0) {
        return schema;
    }
    if (
        value === '' &&
        minLength === 1 &&
        !('pattern' in rest) &&
        !('format' in rest) &&
        !('not' in rest) &&
        !('allOf' in rest) &&
        !('anyOf' in rest)
    ) {
        return { type, ...rest };
    }
    const free =
        !('const' in schema) &&
        !('enum' in schema) &&
        !('anyOf' in schema) &&
        !('oneOf' in schema) &&
        !('allOf' in schema) &&
        !('not' in schema) &&
        !('if' in schema);
    if (value === null && type !== undefined && free) {
        return { ...schema, type: [...(Array.isArray(type) ? (type as unknown[]) : [type]), 'null'] };
    }
    const single = value === null ? { type: 'null' } : { const: value };
    return Object.keys(schema).length === 1 && Array.isArray(schema['anyOf'])
        ? { anyOf: [...(schema['anyOf'] as JsonSchema[]), single] }
        : { anyOf: [schema, single] };
}

function plain(values: readonly unknown[], path: readonly string[]): unknown[] {
    return values
        .filter((value) => !(typeof value === 'object' && value !== null && 'override' in value))
        .map((value) => {
            if (value instanceof Date) {
                return value.toISOString();
            }
            if (typeof value === 'object' && value !== null) {
                throw new Inexpressible(
                    path,
                    'a value that stands in another field, or an object as one of the values'
                );
            }
            if (typeof value === 'number' && !Number.isFinite(value)) {
                throw new Inexpressible(path, 'a number that JSON does not have');
            }
            return value;
        });
}

function typeOf(value: unknown): string {
    return value === null ? 'null' : typeof value;
}
