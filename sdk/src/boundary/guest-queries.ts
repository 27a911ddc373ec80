/** Queries that a plugin's schemas have read before. The host hands out the same frozen object for the same text, and by that it is known again. */
import type { AnySchema } from '../joi.ts';
import { isPure } from './purity.ts';
import { copyOf } from './snapshot.ts';
import { validate } from './validation.ts';

/** The query strings of requests, parsed once each. */
export class GuestQueries {
    readonly #known = new WeakMap<AnySchema, WeakMap<object, unknown>>();

    /** The query as the schema reads it; each request gets one of its own. @throws VALIDATION_FAILED */
    read(schema: AnySchema | undefined, query: unknown, method: string): unknown {
        if (
            schema === undefined ||
            typeof query !== 'object' ||
            query === null ||
            !Object.isFrozen(query) ||
            !isPure(schema)
        ) {
            return validate(schema, query, 'query', method);
        }
        let read = this.#known.get(schema);
        if (read === undefined) {
            read = new WeakMap();
            this.#known.set(schema, read);
        }
        if (!read.has(query)) {
            read.set(query, copyOf(validate(schema, query, 'query', method))); // joi's own objects are slow to copy
        }
        return copyOf(read.get(query));
    }
}
