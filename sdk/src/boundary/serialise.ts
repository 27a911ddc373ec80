/** A handler's answer as text, made where the answer lives. */
import type Joi from 'joi';

import type { AnySchema } from '../joi.ts';
import { isReply } from '../reply.ts';
import type { JsonAnswer } from './protocol.ts';

/** @throws TypeError when `returns` is given and the data does not fit it */
export function serialise(answer: unknown, returns: AnySchema | null, route: string): JsonAnswer {
    const reply = isReply(answer) ? answer : { status: 200, message: 'ok', headers: {}, data: answer };
    const json = JSON.stringify(reply.data) ?? 'null';
    if (returns !== null) {
        const { error } = (returns as unknown as Joi.Schema).validate(JSON.parse(json), {
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
