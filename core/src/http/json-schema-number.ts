/** Numbers. */
import { allOf, Inexpressible, numberOf, type Description, type JsonSchema, type Rule, type Use } from './json-schema-description.ts';

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

export function numberSchema(description: Description, _use: Use, path: readonly string[]): JsonSchema {
    const demands = (description.rules ?? []).map((rule) => {
        const reader = rules[rule.name];
        if (reader === undefined) {
            throw new Inexpressible(path, `number().${rule.name}()`);
        }
        return reader(rule, path);
    });
    const type = demands.some((demand) => demand['type'] === 'integer') ? 'integer' : 'number';
    return allOf({ type }, demands.map(({ type: _type, ...demand }) => demand).filter((demand) => Object.keys(demand).length > 0));
}
