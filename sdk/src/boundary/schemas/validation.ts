/** Checks input against its schema, where the schema is declared. Bodies are not converted; path and query are text, and are converted to the types of the schema. */
import type Joi from 'joi';

import { type AnySchema, joiSchemaOf } from '../../joi.ts';
import { errors } from '../../plugin-errors.ts';

/** The part of the request that the input comes from. */
export type Place = 'params' | 'query' | 'payload';

interface Fault {
    readonly path: string;
    readonly message: string;
}

/** joi's own messages would repeat the value, which may be a secret, and show a regular expression to users. */
const messages = {
    'string.pattern.base': '{{#label}} is not of the documented form',
    'string.pattern.name': '{{#label}} has a wrong form; expected: {{#name}}'
};
/** joi's options for a body, and for settings. */
export const bodyOptions: Joi.ValidationOptions = {
    abortEarly: false,
    convert: false,
    errors: { wrap: { label: false } },
    messages
};
/** joi's options for the body of a change: a field that it does not name keeps its value. */
const changeOptions: Joi.ValidationOptions = { ...bodyOptions };
const textOptions: Joi.ValidationOptions = {
    abortEarly: false,
    convert: true,
    errors: { wrap: { label: false } },
    messages
};

/** In a body with more values than this, only the faults at its beginning are reported: a mebibyte of small mistakes would take seconds, and the answer would be larger than the request. */
const mostValues = 1_000;
/** How many members at the beginning of one list or object are checked in such a body. */
const mostFaults = 100;

/** A schema that finds every fault, and one that ends with the first. */
interface Ready {
    readonly whole: Joi.Schema;
    readonly early: Joi.Schema;
}

const readySchemas = new WeakMap<AnySchema, Map<Joi.ValidationOptions, Ready>>();

/** The schema with its options in it. If the options were passed with each call, joi would read their messages each time, which takes longer than the check. */
function readySchema(schema: AnySchema, options: Joi.ValidationOptions): Ready {
    const known = readySchemas.get(schema) ?? new Map<Joi.ValidationOptions, Ready>();
    let ready = known.get(options);
    if (ready === undefined) {
        const given = joiSchemaOf(schema);
        const whole = (options === changeOptions ? withoutOwnDefaults(given) : given).prefs(options);
        ready = { whole, early: whole.prefs({ abortEarly: true }) };
        readySchemas.set(schema, known.set(options, ready));
    }
    return ready;
}

/**
 * The schema of a change, whose own fields have no defaults. What such a field holds is replaced whole, so it has its defaults. Of a schema that is
 * no object, such as a choice of objects, which fields are its own cannot be told: it has none at any depth.
 */
function withoutOwnDefaults(schema: Joi.Schema): Joi.Schema {
    if (schema.type !== 'object') {
        return schema.prefs({ noDefaults: true });
    }
    const fields = (schema.$_terms['keys'] ?? []) as { key: string }[];
    return fields.length === 0
        ? schema
        : (schema as Joi.ObjectSchema).fork(
              fields.map(({ key }) => [key]),
              (field) => field.$_setFlag('default', undefined) as unknown as Joi.Schema // joi calls it void
          );
}

/** Returns the input as its schema reads it. @throws VALIDATION_FAILED 40001 with every fault, or with the first text that has a NUL; NOT_FOUND 40400 when the path itself cannot name anything */
export function validate(
    schema: AnySchema | undefined,
    value: unknown,
    place: Place,
    method: string
): unknown {
    if (schema === undefined) {
        return place === 'payload' ? refuseBody(value) : refuseUnknown(value, place);
    }
    const { whole, early } = readySchema(
        schema,
        place !== 'payload' ? textOptions : method === 'PUT' ? changeOptions : bodyOptions
    );
    const given = place === 'payload' ? (value ?? {}) : value;
    refuseNul(given, place);
    const vast = isVast(given);
    const begun = vast ? partOf(whole.validate(beginningOf(given)).error) : [];
    if (begun.some(({ type, path }) => type === 'object.unknown' && path.length === 1)) {
        // That is a fault whatever else is in the body, so the rest need not be checked.
        throw errors.invalid(faultsOf({ details: begun }));
    }
    const { error, value: valid }: { error?: Joi.ValidationError | undefined; value: unknown } = (
        vast ? early : whole
    ).validate(given);
    if (error === undefined) {
        if (place === 'params' && !isPlain(given, valid)) {
            throw errors.notFound();
        }
        return valid;
    }
    if (place === 'params') {
        throw errors.notFound();
    }
    // Where the beginning has no fault of its own, the first one of the whole body is told.
    throw errors.invalid(faultsOf(begun.length > 0 ? { details: begun } : error));
}

/** Whether each number in a path has its one spelling: `01`, `+1` and `1e0` are no ids, or one thing would have many addresses. */
function isPlain(given: unknown, valid: unknown): boolean {
    const texts = (given ?? {}) as Readonly<Record<string, unknown>>;
    return Object.entries((valid ?? {}) as object).every(
        ([name, value]) =>
            typeof value !== 'number' || typeof texts[name] !== 'string' || String(value) === texts[name]
    );
}

/** All faults, without the values. When a value is outside a list and also of the wrong type, only the fault that names the list is kept. */
export function faultsOf({ details }: Pick<Joi.ValidationError, 'details'>): Fault[] {
    const listed = new Set(
        details.filter(({ type }) => type === 'any.only').map(({ path }) => path.join('.'))
    );
    return details
        .map(({ path, message, type }) => ({ path: path.join('.'), message, type }))
        .filter(({ path, type }) => !(type.endsWith('.base') && listed.has(path)))
        .map(({ path, message }) => ({ path, message }));
}

function refuseBody(value: unknown): undefined {
    if (value !== null && value !== undefined && Object.keys(value).length > 0) {
        throw errors.invalid(
            Object.keys(value)
                .slice(0, mostFaults)
                .map((path): Fault => ({ path, message: `${path} is not allowed` }))
        );
    }
    return undefined;
}

function refuseUnknown(value: unknown, place: Place): unknown {
    if (place !== 'query' || isEmpty(value)) {
        return value;
    }
    throw errors.invalid(
        Object.keys(value ?? {}).map((path): Fault => ({ path, message: `${path} is not allowed` }))
    );
}

/** Whether an object has no members. Most queries have none, and a list of their names for each request costs more. */
function isEmpty(value: unknown): boolean {
    for (const name in value as object | null) {
        if (Object.hasOwn(value as object, name)) {
            return false;
        }
    }
    return true;
}

/** Refuses a NUL in any text of a request: programs, file names and database statements end at one. */
function refuseNul(value: unknown, place: Place): void {
    const path = nulPath(value);
    if (path !== null) {
        throw place === 'params'
            ? errors.notFound()
            : errors.invalid([{ path, message: `${path} has a NUL character` }]);
    }
}

/** The path of the first text with a NUL in plain data, without NULs of its own; null when there is none. */
export function nulPath(value: unknown): string | null {
    if (typeof value === 'string') {
        return value.includes('\0') ? '' : null;
    }
    if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) {
        return null;
    }
    for (const key in value) {
        if (key.includes('\0')) {
            return key.replaceAll('\0', '\\0');
        }
        const inner = nulPath((value as Readonly<Record<string, unknown>>)[key]);
        if (inner !== null) {
            return inner === '' ? key : `${key}.${inner}`;
        }
    }
    return null;
}

function isVast(body: unknown): boolean {
    const waiting: unknown[] = [body];
    let seen = 0;
    while (waiting.length > 0) {
        const value = waiting.pop();
        if (typeof value === 'object' && value !== null) {
            const keys = Object.keys(value);
            seen += keys.length;
            if (seen > mostValues) {
                return true;
            }
            waiting.push(...keys.map((key) => (value as Readonly<Record<string, unknown>>)[key]));
        }
    }
    return false;
}

/** Faults that a body may have only because its rest was cut away. */
const ofCutting =
    /^(?:any\.required|(?:array|object)\.(?:and|hasUnknown|includesRequired\w+|length|min|missing|with))$/;

/** The faults of a body's beginning that the whole body has, too. */
function partOf(error: Joi.ValidationError | undefined): Joi.ValidationErrorItem[] {
    return (error?.details ?? []).filter(({ type }) => !ofCutting.test(type));
}

function beginningOf(value: unknown, budget = { left: mostValues }): unknown {
    if (typeof value !== 'object' || value === null) {
        return value;
    }
    const keys = Object.keys(value).slice(0, Math.min(mostFaults, Math.max(0, budget.left)));
    budget.left -= keys.length;
    const inner = keys.map(
        (key) => [key, beginningOf((value as Readonly<Record<string, unknown>>)[key], budget)] as const
    );
    return Array.isArray(value) ? inner.map(([, item]) => item) : Object.fromEntries(inner);
}
