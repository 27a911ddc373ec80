/** Input against its schema. Bodies are taken as they are (no coercion); path and query are text, and become what the schema says. */
import type { AnySchema } from '@portico/sdk';
import type Joi from 'joi';
import { fail, type Invalid } from '../errors.ts';

const bodyOptions: Joi.ValidationOptions = { abortEarly: false, convert: false, errors: { wrap: { label: false } } };
const textOptions: Joi.ValidationOptions = { abortEarly: false, convert: true, errors: { wrap: { label: false } } };

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
    throw fail.VALIDATION_FAILED({ errors: error.details.map((detail): Invalid => ({ path: detail.path.join('.'), message: detail.message })) });
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
