/** Input against its schema, in the realm that owns the schema. Bodies are taken as they are (no coercion); path and query are text, and become what the schema says. */
import type Joi from 'joi';

import type { AnySchema } from '../joi.ts';
import { errors } from '../plugin-errors.ts';

/** Where the input stood. */
export type Place = 'params' | 'query' | 'payload';

interface Fault {
    readonly path: string;
    readonly message: string;
}

/** joi's own would repeat the value, which may be a secret, and show a regular expression to people. */
const messages = {
    'string.pattern.base': '{{#label}} is not of the documented form',
    'string.pattern.name': '{{#label}} is not a valid {{#name}}'
};
/** For a body, and for settings. */
export const bodyOptions: Joi.ValidationOptions = {
    abortEarly: false,
    convert: false,
    errors: { wrap: { label: false } },
    messages
};
const changeOptions: Joi.ValidationOptions = { ...bodyOptions, noDefaults: true };
const textOptions: Joi.ValidationOptions = {
    abortEarly: false,
    convert: true,
    errors: { wrap: { label: false } },
    messages
};

/** Of a body of more values than this, only the faults at its beginning are told: a mebibyte of small mistakes would cost seconds, and an answer larger than the request. */
const mostValues = 1_000;
/** Members of one list or object, at its beginning. */
const mostFaults = 100;

/** A schema that finds every fault, and one that ends with the first. */
interface Ready {
    readonly whole: Joi.Schema;
    readonly early: Joi.Schema;
}

const readySchemas = new WeakMap<AnySchema, Map<Joi.ValidationOptions, Ready>>();

/** The schema with its options in it: handed over with each call, joi would read their messages anew each time, which takes longer than the check. */
function readySchema(schema: AnySchema, options: Joi.ValidationOptions): Ready {
    const known = readySchemas.get(schema) ?? new Map<Joi.ValidationOptions, Ready>();
    let ready = known.get(options);
    if (ready === undefined) {
        const whole = (schema as unknown as Joi.Schema).prefs(options);
        ready = { whole, early: whole.prefs({ abortEarly: true }) };
        readySchemas.set(schema, known.set(options, ready));
    }
    return ready;
}

/** @throws VALIDATION_FAILED 40001 with every fault, or with the first text that has a NUL; NOT_FOUND 40400 when the path itself cannot name anything */
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
    const { error, value: valid }: { error?: Joi.ValidationError | undefined; value: unknown } = (
        vast ? early : whole
    ).validate(given);
    if (error === undefined) {
        return valid;
    }
    if (place === 'params') {
        throw errors.notFound();
    }
    throw errors.invalid(faultsOf(vast ? (whole.validate(beginningOf(given)).error ?? error) : error));
}

/** Everything that is wrong, without the values. A value outside a list is also of the wrong type where it is none at all; what may be written says more. */
export function faultsOf({ details }: Joi.ValidationError): Fault[] {
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
    const names = Object.keys(value ?? {});
    if (place === 'query' && names.length > 0) {
        throw errors.invalid(names.map((path): Fault => ({ path, message: `${path} is not allowed` })));
    }
    return value;
}

/** No text of a request has a NUL: programs, file names and statements of a database end at one. */
function refuseNul(value: unknown, place: Place): void {
    const path = nulPath(value);
    if (path !== null) {
        throw place === 'params'
            ? errors.notFound()
            : errors.invalid([{ path, message: `${path} has a NUL character` }]);
    }
}

/** The path of the first text with a NUL in plain data, without NULs of its own; null when there is none. */
export function nulPath(value: unknown, path = ''): string | null {
    if (typeof value === 'string') {
        return value.includes('\0') ? path : null;
    }
    if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) {
        return null;
    }
    for (const [key, item] of Object.entries(value)) {
        const own = path === '' ? key : `${path}.${key}`;
        const found = key.includes('\0') ? own.replaceAll('\0', '\\0') : nulPath(item, own);
        if (found !== null) {
            return found;
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
            const inner = Object.values(value);
            seen += inner.length;
            if (seen > mostValues) {
                return true;
            }
            waiting.push(...inner);
        }
    }
    return false;
}

function beginningOf(value: unknown, budget = { left: mostValues }): unknown {
    if (typeof value !== 'object' || value === null) {
        return value;
    }
    const entries = Object.entries(value).slice(0, Math.min(mostFaults, Math.max(0, budget.left)));
    budget.left -= entries.length;
    const inner = entries.map(([key, item]) => [key, beginningOf(item, budget)] as const);
    return Array.isArray(value) ? inner.map(([, item]) => item) : Object.fromEntries(inner);
}
