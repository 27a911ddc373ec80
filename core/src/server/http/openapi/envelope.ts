/** The envelope of every JSON answer as a schema of its own: client generators make poor types of `allOf`. */
import type { JsonSchema } from '../json-schema/description.ts';

/** `data` where the route does not say what it holds. */
export const anyData: JsonSchema = { type: ['object', 'array', 'null'] };

/** `data` of every failure. */
export const failureData: JsonSchema = {
    type: 'object',
    properties: { reason: { type: 'string', pattern: '^[A-Z][A-Z0-9_]*$', description: 'Stable' } },
    required: ['reason']
};

/** An envelope with these schemas of `code` and `data`. */
export function envelopeOf(code: JsonSchema, data: JsonSchema): JsonSchema {
    return {
        type: 'object',
        properties: {
            code: { description: '0, or the HTTP status × 100 plus a detail', ...code },
            message: { type: 'string', description: 'For people; it may change' },
            data
        },
        required: ['code', 'message', 'data'],
        additionalProperties: false
    };
}
