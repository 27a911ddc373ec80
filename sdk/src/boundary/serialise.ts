/** Turns a handler's answer into JSON text, in the guest runtime that holds the answer. */
import { type AnySchema, joiSchemaOf } from '../joi.ts';
import { isReply } from '../reply.ts';
import type { JsonAnswer } from './protocol.ts';

/** Turns an answer or a reply into JSON text. @throws TypeError when `returns` is given and the data does not fit it */
export function serialise(answer: unknown, returns: AnySchema | null, route: string): JsonAnswer {
    const reply = isReply(answer) ? answer : { status: 200, message: 'ok', headers: {}, data: answer };
    const json = JSON.stringify(reply.data) ?? 'null';
    if (returns !== null) {
        const { error } = joiSchemaOf(returns).validate(JSON.parse(json), {
            convert: false,
            abortEarly: false
        });
        if (error !== undefined) {
            throw new TypeError(`${route} answers what its schema does not say: ${error.message}`);
        }
    }
    const version = isReply(answer)
        ? undefined
        : (answer as { version?: unknown } | null | undefined)?.version;
    const headers = typeof version === 'number' ? { etag: `"${version}"` } : reply.headers;
    return { status: Number(reply.status), message: String(reply.message), headers, json };
}
