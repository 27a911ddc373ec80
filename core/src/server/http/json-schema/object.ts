/** Objects: keys, patterns, and what one key asks of another. */
import {
    allOf,
    type Branch,
    type Description,
    Inexpressible,
    type JsonSchema,
    numberOf,
    type Use,
    type Walk,
    type When
} from './description.ts';
import { patternOf } from './pattern.ts';

/** The JSON Schema of a joi object. */
export function objectSchema(
    description: Description,
    use: Use,
    path: readonly string[],
    walk: Walk
): JsonSchema {
    const { keys, patterns, flags = {} } = description;
    if (description.renames !== undefined) {
        throw new Inexpressible(path, 'a renamed key');
    }
    const open = flags['unknown'] === true || (keys === undefined && patterns === undefined);
    const properties: Record<string, JsonSchema | false> = {};
    const required: string[] = [];
    const demands: JsonSchema[] = [];
    for (const [name, key] of Object.entries(keys ?? {})) {
        if (key.flags?.presence === 'forbidden' && key.whens === undefined) {
            if (open) {
                properties[name] = false;
            }
            continue;
        }
        const { whens = [], ...bare } = key;
        const siblings = whens.filter((when) => isSibling(when, keys));
        const others = whens.filter((when) => !siblings.includes(when));
        properties[name] = walk(others.length === 0 ? bare : { ...bare, whens: others }, use, [
            ...path,
            name
        ]);
        if (key.flags?.presence === 'required' && whens.length === 0) {
            required.push(name);
        }
        demands.push(...siblings.map((when) => conditionOf(name, when, key, keys ?? {}, use, path, walk)));
    }
    const { additional, patternProperties, names } = patternsOf(description, open, use, path, walk);
    return allOf(
        {
            type: 'object',
            ...(Object.keys(properties).length === 0 ? {} : { properties }),
            ...(required.length === 0 ? {} : { required }),
            ...(patternProperties === null ? {} : { patternProperties }),
            ...(additional === true ? {} : { additionalProperties: additional }),
            ...(names === null ? {} : { propertyNames: names })
        },
        [...rulesOf(description, path), ...dependenciesOf(description, path), ...demands]
    );
}

function patternsOf(
    description: Description,
    open: boolean,
    use: Use,
    path: readonly string[],
    walk: Walk
): {
    additional: JsonSchema | boolean;
    patternProperties: Record<string, JsonSchema> | null;
    names: JsonSchema | null;
} {
    const patterns = description.patterns ?? [];
    if (patterns.some((pattern) => pattern.matches !== undefined)) {
        throw new Inexpressible(path, 'a demand on the names that matched a pattern');
    }
    const byName = patterns.filter((pattern) => pattern.schema !== undefined);
    const byExpression = patterns.filter((pattern) => pattern.regex !== undefined);
    if (
        byName.length > 1 ||
        (byName.length === 1 &&
            (open ||
                byExpression.length > 0 ||
                (description.keys !== undefined && byName[0]?.schema?.rules !== undefined)))
    ) {
        throw new Inexpressible(path, 'several patterns of names of which one is a schema');
    }
    const patternProperties =
        byExpression.length === 0
            ? null
            : Object.fromEntries(
                  byExpression.map((pattern) => [
                      patternOf(pattern.regex, path),
                      walk(pattern.rule, use, [...path, '*'])
                  ])
              );
    const [named] = byName;
    if (named === undefined) {
        return { additional: open, patternProperties, names: null };
    }
    const names = named.schema as Description;
    const free =
        names.type === 'any' ||
        (names.type === 'string' && names.rules === undefined && names.flags?.['only'] !== true);
    return {
        additional: walk(named.rule, use, [...path, '*']),
        patternProperties,
        names: free ? null : walk(names, { side: 'body', defaults: false }, path)
    };
}

function rulesOf(description: Description, path: readonly string[]): JsonSchema[] {
    return (description.rules ?? [])
        .filter((rule) => rule.name !== 'custom')
        .map((rule) => {
            switch (rule.name) {
                case 'min':
                    return { minProperties: numberOf(rule, 'limit', path) };
                case 'max':
                    return { maxProperties: numberOf(rule, 'limit', path) };
                case 'length':
                    return {
                        minProperties: numberOf(rule, 'limit', path),
                        maxProperties: numberOf(rule, 'limit', path)
                    };
                default:
                    throw new Inexpressible(path, `object().${rule.name}()`);
            }
        });
}

function dependenciesOf(description: Description, path: readonly string[]): JsonSchema[] {
    return (description.dependencies ?? []).flatMap(({ rel, key, peers, options }): JsonSchema[] => {
        if (options !== undefined || [key ?? '', ...peers].some((name) => name.includes('.'))) {
            throw new Inexpressible(path, `${rel}() over more than the object's own keys`);
        }
        // Each alternative has the key that it requires: linters, and generators of types, look for it there.
        const each = peers.map((peer) => ({ required: [peer], properties: { [peer]: {} } }));
        switch (rel) {
            case 'or':
                return [{ anyOf: each }];
            case 'xor':
                return [{ oneOf: each }];
            case 'oxor':
                return [{ anyOf: [{ oneOf: each }, { not: { anyOf: each } }] }];
            case 'and':
                return [
                    {
                        dependentRequired: Object.fromEntries(
                            peers.map((peer) => [peer, peers.filter((other) => other !== peer)])
                        )
                    }
                ];
            case 'nand':
                return [{ not: { required: peers } }];
            case 'with':
                return [{ dependentRequired: { [key as string]: peers } }];
            case 'without':
                return peers.map((peer) => ({ not: { required: [key as string, peer] } }));
            default:
                throw new Inexpressible(path, `object().${rel}()`);
        }
    });
}

function isSibling(when: When, keys: Readonly<Record<string, Description>> | undefined): boolean {
    const name = when.ref?.path[0];
    return (
        when.ref?.path.length === 1 &&
        when.ref.type === undefined &&
        (when.ref.ancestor ?? 1) === 1 &&
        name !== undefined &&
        keys?.[name] !== undefined
    );
}

/** What one key must be when another key is something. */
function conditionOf(
    name: string,
    when: When,
    key: Description,
    keys: Readonly<Record<string, Description>>,
    use: Use,
    path: readonly string[],
    walk: Walk
): JsonSchema {
    const other = when.ref?.path[0] as string;
    const outcome = (description: Description | undefined): JsonSchema => {
        const presence = description?.flags?.presence ?? key.flags?.presence;
        if (presence === 'forbidden') {
            return { not: { required: [name] } };
        }
        const schema = description === undefined ? {} : walk(description, use, [...path, name]);
        return {
            ...(Object.keys(schema).length === 0 ? {} : { properties: { [name]: schema } }),
            ...(presence === 'required' ? { required: [name] } : {})
        };
    };
    const condition = ({ is, then, otherwise }: Branch, rest: JsonSchema): JsonSchema => {
        if (is === undefined) {
            throw new Inexpressible(path, 'a condition without what it compares with');
        }
        const fallback = use.defaults ? keys[other]?.flags?.['default'] : undefined;
        const holdsWhenAbsent = fallback !== undefined && (is.allow ?? []).includes(fallback);
        const needed = is.flags?.presence === 'required' && !holdsWhenAbsent;
        const no = otherwise === undefined ? rest : outcome(otherwise);
        const yes = outcome(then);
        return {
            if: {
                properties: { [other]: walk(is, { ...use, defaults: false }, path) },
                ...(needed ? { required: [other] } : {})
            },
            ...(Object.keys(yes).length === 0 ? {} : { then: yes }),
            ...(Object.keys(no).length === 0 ? {} : { else: no })
        };
    };
    const branches = when.switch ?? [when];
    return branches
        .toReversed()
        .reduce<JsonSchema>((rest, branch) => condition(branch, rest), outcome(undefined));
}
