/** What came with a request, checked against the route's schemas and put on the call. */
import type { Request } from '@hapi/hapi';
import { validate } from '@portico/sdk/host';

import { fail } from '../../../platform/errors.ts';
import { type Route, takesChange } from '../route.ts';
import type { HttpCall } from './http-call.ts';
import { parseJson } from './json.ts';
import { knownQuery } from './known-queries.ts';

const mebibyte = 1024 * 1024;

/** Path and query. @throws NOT_FOUND, VALIDATION_FAILED */
export function readAddress(route: Route, call: HttpCall, request: Request): void {
    call.params = validate(route.validate?.params, request.params, 'params', route.method);
    call.query = knownQuery(route, request.raw.req.url ?? '', () =>
        validate(route.validate?.query, request.query, 'query', route.method)
    );
}

/** A JSON body. @throws UNSUPPORTED_MEDIA_TYPE, BAD_REQUEST, VALIDATION_FAILED */
export function readBody(route: Route, call: HttpCall, request: Request): void {
    const bytes = request.payload as Buffer | null;
    const method = takesChange(route) ? 'PUT' : route.method;
    if (bytes === null || bytes.length === 0) {
        call.payload = validate(route.validate?.payload, undefined, 'payload', method);
        return;
    }
    const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = request.raw.req.headers;
    if (
        route.bytes?.types.includes(type.split(';', 1)[0]?.trim().toLowerCase() ?? '') === true &&
        encoding === 'identity'
    ) {
        call.payload = bytes;
        return;
    }
    if (!/^application\/json\s*(;\s*charset="?utf-8"?\s*)?$/i.test(type) || encoding !== 'identity') {
        throw fail.UNSUPPORTED_MEDIA_TYPE({
            accepts: ['application/json', ...(route.bytes?.types ?? [])].join(' or ')
        });
    }
    if (bytes.length > (route.maxBytes ?? mebibyte)) {
        throw fail.PAYLOAD_TOO_LARGE({ limit: route.maxBytes ?? mebibyte });
    }
    const body = parseJson(bytes);
    if (typeof body !== 'object' || body === null || Array.isArray(body)) {
        throw fail.BAD_REQUEST(null, { message: 'The body must be a JSON object' });
    }
    call.payload = validate(route.validate?.payload, body, 'payload', method);
}
