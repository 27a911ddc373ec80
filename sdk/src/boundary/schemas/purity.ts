/** Tells whether a schema gives the same result for the same text every time, so that the result can be kept. */
import type { AnySchema } from '../../joi.ts';
import { describeSchema } from './describe.ts';

const known = new WeakMap<AnySchema, boolean>();

/** False when the result also depends on code of the author (a computed default, a custom rule) or on the clock. */
export function isPure(schema: AnySchema): boolean {
    let pure = known.get(schema);
    if (pure === undefined) {
        pure = isSteady(describeSchema(schema));
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
