/** Numbers. */
import {
    allOf,
    demandsOf,
    type Description,
    type JsonSchema,
    numberOf,
    type Rule,
    type Use
} from './description.ts';

type Reader = (rule: Rule, path: readonly string[]) => JsonSchema;

const largestPort = 65_535;

const rules: Readonly<Record<string, Reader>> = {
    integer: () => ({ type: 'integer' }),
    min: (rule, path) => ({ minimum: numberOf(rule, 'limit', path) }),
    max: (rule, path) => ({ maximum: numberOf(rule, 'limit', path) }),
    greater: (rule, path) => ({ exclusiveMinimum: numberOf(rule, 'limit', path) }),
    less: (rule, path) => ({ exclusiveMaximum: numberOf(rule, 'limit', path) }),
    multiple: (rule, path) => ({ multipleOf: numberOf(rule, 'base', path) }),
    precision: (rule, path) => ({ multipleOf: Number(`1e-${numberOf(rule, 'limit', path)}`) }),
    port: () => ({ type: 'integer', minimum: 0, maximum: largestPort }),
    sign: (rule) => (rule.args?.['sign'] === 'positive' ? { exclusiveMinimum: 0 } : { exclusiveMaximum: 0 }),
    custom: () => ({})
};

/** The JSON Schema of a joi number. */
export function numberSchema(description: Description, use: Use, path: readonly string[]): JsonSchema {
    const demands = demandsOf(description, rules, path);
    const type = demands.some((demand) => demand['type'] === 'integer') ? 'integer' : 'number';
    const said = demands
        .map(({ type: _type, ...demand }) => demand)
        .filter((demand) => Object.keys(demand).length > 0);
    return allOf({ type }, [
        ...said,
        ...(use.side === 'answer' || description.flags?.['unsafe'] === true ? [] : safe(said))
    ]);
}

/** joi refuses what a double cannot count exactly. */
function safe(said: readonly JsonSchema[]): JsonSchema[] {
    const bounded = (...keywords: readonly string[]): boolean =>
        said.some((demand) => keywords.some((keyword) => keyword in demand));
    return [
        ...(bounded('minimum', 'exclusiveMinimum') ? [] : [{ minimum: Number.MIN_SAFE_INTEGER }]),
        ...(bounded('maximum', 'exclusiveMaximum') ? [] : [{ maximum: Number.MAX_SAFE_INTEGER }])
    ];
}
