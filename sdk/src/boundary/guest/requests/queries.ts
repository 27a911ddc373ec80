/** Keeps the queries that a plugin's schemas have read. The host gives the same frozen object for the same text, so the object serves as the key. */
import type { AnySchema } from '../../../joi.ts';
import { copyOf } from '../../hooks/snapshot.ts';
import { isPure } from '../../schemas/purity.ts';
import { validate } from '../../schemas/validation.ts';

/** The query strings of requests, parsed once each. */
export class GuestQueries {
    readonly #known = new WeakMap<AnySchema, WeakMap<object, unknown>>();

    /** The query as the schema reads it; each request gets its own copy. @throws VALIDATION_FAILED */
    read(schema: AnySchema | undefined, query: unknown, method: string): unknown {
        if (schema === undefined || typeof query !== 'object' || query === null) {
            return validate(schema, query, 'query', method);
        }
        let read = this.#known.get(schema);
        if (read?.has(query) === true) {
            return copyOf(read.get(query));
        }
        if (!Object.isFrozen(query) || !isPure(schema)) {
            return validate(schema, query, 'query', method);
        }
        if (read === undefined) {
            read = new WeakMap();
            this.#known.set(schema, read);
        }
        read.set(query, copyOf(validate(schema, query, 'query', method))); // joi's own objects are slow to copy
        return copyOf(read.get(query));
    }
}
