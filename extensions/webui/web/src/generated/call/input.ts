/** What an operation asks for before it is called, as one form; and where each of its values goes. */
import { filled } from '../../schema/changes.ts';
import { isWritable, type Schema } from '../../schema/schema.ts';
import type { Operation, Params } from '../operations.ts';

/** The parts of a request. */
export interface Input {
    readonly params: Params;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: Readonly<Record<string, unknown>> | undefined;
}

/** The names that a page asks for by itself. */
const ofLists = new Set(['limit', 'cursor', 'sort']);

/**
 * The fields of an operation: parameters of the path that nothing leads to, those of the query, and the body. A download that needs none
 * of its query has no form.
 */
export function fieldsOf(operation: Operation, params: Params): Schema {
    const { method, places, query, body } = operation;
    const asked = query.filter(({ name }) => !ofLists.has(name) || method !== 'GET');
    const isAsked = method !== 'GET' || query.some(({ isRequired }) => isRequired);
    const missing = places.filter(({ name }) => params[name] === undefined);
    const known = [...missing, ...(isAsked ? asked : [])];
    return {
        type: 'object',
        properties: {
            ...Object.fromEntries(known.map(({ name, schema }) => [name, schema])),
            ...body?.properties
        },
        required: [
            ...missing.map(({ name }) => name),
            ...asked.filter(({ isRequired }) => isRequired).map(({ name }) => name),
            ...(body?.required ?? [])
        ]
    };
}

/** Whether an operation asks for something before it is called. */
export const hasFields = (operation: Operation, params: Params): boolean =>
    operation.file !== null || Object.values(fieldsOf(operation, params).properties ?? {}).some(isWritable);

/** Puts the values of the form where they belong. A name that the query and the body have in common goes to both. */
export function inputOf(
    operation: Operation,
    params: Params,
    values: Readonly<Record<string, unknown>>
): Input {
    const given = Object.entries(filled(values));
    const pick = (names: readonly string[]): Record<string, unknown> =>
        Object.fromEntries(given.filter(([name]) => names.includes(name)));
    const chosen = pick(operation.choices);
    return {
        params: {
            ...params,
            ...Object.fromEntries(Object.entries(chosen).map(([name, value]) => [name, String(value)]))
        },
        query: pick(operation.query.map(({ name }) => name)),
        body: operation.body === null ? undefined : pick(Object.keys(operation.body.properties ?? {}))
    };
}
