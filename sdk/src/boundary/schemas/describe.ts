import type Joi from 'joi';

import { type AnySchema, joiSchemaOf } from '../../joi.ts';

/** The part of joi that a description is checked with. */
interface Root {
    assert: (value: unknown, schema: unknown) => void;
}

/**
 * What joi says of a schema. For every part of it, joi checks that the description could be built into a schema again. That takes nine tenths
 * of the time, and no description is built here, so it is left out.
 */
export function describeSchema(schema: AnySchema): Joi.Description {
    const described = joiSchemaOf(schema);
    // joi has no type for it. What stands for a schema of a plugin keeps its description, and has no root.
    const root = (described as { readonly $_root?: Root }).$_root;
    if (root === undefined) {
        return described.describe();
    }
    const { assert } = root;
    root.assert = () => undefined;
    try {
        return described.describe();
    } finally {
        root.assert = assert;
    }
}
