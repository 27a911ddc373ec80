/** Arrays. */
import {
    allOf,
    demandsOf,
    type Description,
    Inexpressible,
    type JsonSchema,
    numberOf,
    type Rule,
    type Use,
    type Walk
} from './description.ts';

type Reader = (rule: Rule, path: readonly string[], use: Use, walk: Walk) => JsonSchema;

const rules: Readonly<Record<string, Reader>> = {
    min: (rule, path) => ({ minItems: numberOf(rule, 'limit', path) }),
    max: (rule, path) => ({ maxItems: numberOf(rule, 'limit', path) }),
    length: (rule, path) => ({
        minItems: numberOf(rule, 'limit', path),
        maxItems: numberOf(rule, 'limit', path)
    }),
    unique(rule, path) {
        const { comparator } = rule.args ?? {};
        if (typeof comparator === 'function') {
            throw new Inexpressible(path, 'items that are unique by a function');
        }
        return comparator === undefined ? { uniqueItems: true } : { 'x-unique-by': comparator };
    },
    has: (rule, path, use, walk) => ({
        contains: walk(rule.args?.['schema'] as Description, use, [...path, '*'])
    }),
    custom: () => ({})
};

/** The JSON Schema of a joi array. */
export function arraySchema(
    description: Description,
    use: Use,
    path: readonly string[],
    walk: Walk
): JsonSchema {
    const item = (each: Description): JsonSchema => walk(each, use, [...path, '*']);
    const presence = (each: Description): string => each.flags?.presence ?? 'optional';
    const items = description.items ?? [];
    const allowed = items.filter((each) => presence(each) !== 'forbidden').map(item);
    const demands = demandsOf(description, rules, path, use, walk);
    const ordered = description.ordered ?? [];
    const rest =
        allowed.length === 0 ? {} : { items: allowed.length === 1 ? allowed[0] : { anyOf: allowed } };
    const array = allOf(
        {
            type: 'array',
            ...(ordered.length === 0
                ? {}
                : { prefixItems: ordered.map(item), ...(items.length === 0 ? { items: false } : {}) }),
            ...rest
        },
        [
            ...demands.filter((demand) => Object.keys(demand).length > 0),
            ...(ordered.some((each) => presence(each) === 'required')
                ? [{ minItems: ordered.findLastIndex((each) => presence(each) === 'required') + 1 }]
                : []),
            ...items
                .filter((each) => presence(each) === 'required')
                .map((each) => ({ contains: item(each) })),
            ...items
                .filter((each) => presence(each) === 'forbidden')
                .map((each) => ({ not: { contains: item(each) } }))
        ]
    );
    // In a query one value and a list of one look the same.
    return description.flags?.['single'] === true && use.side === 'body' && allowed.length > 0
        ? { anyOf: [array, ...allowed] }
        : array;
}
