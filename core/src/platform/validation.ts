/** Holds values that did not come with a request (settings, documents) against typed schemas. */
import type { AnySchema } from '@portico/sdk';
import type Joi from 'joi';

import type { Invalid } from './errors.ts';

/** A typed schema with the methods of joi. */
export function joiOf(schema: AnySchema | Joi.Schema): Joi.Schema {
    return schema as Joi.Schema; // a typed schema is joi's own at run time
}

/** Every fault of a value. Their paths start with `path`, if it is not empty; nothing is converted, and a missing value is a fault. */
export function faultsOf(schema: AnySchema | Joi.Schema, value: unknown, path = ''): Invalid[] {
    const { error } = joiOf(schema)
        .required()
        .validate(value, { abortEarly: false, convert: false, errors: { wrap: { label: false } } });
    return (error?.details ?? []).map((detail) => ({
        path: [...(path === '' ? [] : [path]), ...detail.path].join('.'),
        message: detail.message
    }));
}
