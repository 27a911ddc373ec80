/** Whether a schema says the same of the same text every time: then what it said can be kept. */
import type Joi from 'joi';

import type { AnySchema } from '../joi.ts';

const known = new WeakMap<AnySchema, boolean>();

/** False where code of the author's has a word in it (a default that is made, a custom rule), or the clock. */
export function isPure(schema: AnySchema): boolean {
    let pure = known.get(schema);
    if (pure === undefined) {
        pure = isSteady((schema as unknown as Joi.Schema).describe());
        known.set(schema, pure);
    }
    return pure;
}

function isSteady(description: unknown): boolean {
    if (typeof description === 'function' || description === 'now') {
        return false;
    }
    return (
        typeof description !== 'object' || description === null || Object.values(description).every(isSteady)
    );
}
