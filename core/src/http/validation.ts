/** Input against its schema. Bodies are taken as they are (no coercion); path and query are text, and become what the schema says. */
import type { AnySchema } from '@portico/sdk';
import type Joi from 'joi';
import { fail, type Invalid } from '../errors.ts';

/** joi's own would repeat the value, which may be a secret, and show a regular expression to people. */
const messages = { 'string.pattern.base': '{{#label}} is not of the documented form', 'string.pattern.name': '{{#label}} is not a valid {{#name}}' };
const bodyOptions: Joi.ValidationOptions = { abortEarly: false, convert: false, errors: { wrap: { label: false } }, messages };
const textOptions: Joi.ValidationOptions = { abortEarly: false, convert: true, errors: { wrap: { label: false } }, messages };

/** Where the input stood. */
export type Place = 'params' | 'query' | 'payload';

/** @throws VALIDATION_FAILED 40001 with every fault; NOT_FOUND 40400 when the path itself cannot name anything */
export function validate(schema: AnySchema | undefined, value: unknown, place: Place, method: string): unknown {
    if (schema === undefined) {
        return place === 'payload' ? refuseBody(value) : refuseUnknown(value, place);
    }
    const options = place === 'payload' ? { ...bodyOptions, noDefaults: method === 'PUT' } : textOptions;
    const { error, value: valid } = (schema as unknown as Joi.Schema).validate(place === 'payload' ? value ?? {} : value, options) as { error?: Joi.ValidationError; value: unknown };
    if (error === undefined) {
        return valid;
    }
    if (place === 'params') {
        throw fail.NOT_FOUND();
    }
    throw fail.VALIDATION_FAILED({ errors: faultsOf(error) });
}

/** A value outside a list is also of the wrong type where it is none at all; what may be written says more. */
function faultsOf({ details }: Joi.ValidationError): Invalid[] {
    const listed = new Set(details.filter(({ type }) => type === 'any.only').map(({ path }) => path.join('.')));
    return details.map((detail) => ({ path: detail.path.join('.'), message: spelledOut(detail), type: detail.type })).filter(({ path, type }) => !(type.endsWith('.base') && listed.has(path))).map(({ path, message }) => ({ path, message }));
}

/** None of several forms fits: what each of them misses says which was meant. */
function spelledOut({ message, context }: Joi.ValidationErrorItem): string {
    const inner: unknown = context?.['details'];
    return Array.isArray(inner) && inner.length > 0 ? `${message}: ${[...new Set(inner.map((detail: { readonly message?: unknown }) => String(detail.message)))].join(', ')}` : message;
}

function refuseBody(value: unknown): undefined {
    if (value !== null && value !== undefined && Object.keys(value).length > 0) {
        throw fail.VALIDATION_FAILED({ errors: Object.keys(value).map((path): Invalid => ({ path, message: `${path} is not allowed` })) });
    }
    return undefined;
}

function refuseUnknown(value: unknown, place: Place): unknown {
    const names = Object.keys(value ?? {});
    if (place === 'query' && names.length > 0) {
        throw fail.VALIDATION_FAILED({ errors: names.map((path): Invalid => ({ path, message: `${path} is not allowed` })) });
    }
    return value;
}
