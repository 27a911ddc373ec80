/** What came with a request, checked against the route's schemas and put on the call. */
import type { Request } from '@hapi/hapi';
import { validate } from '@portico/sdk/host';

import { fail } from '../../../../platform/errors.ts';
import { type Route, takesChange } from '../../route.ts';
import type { HttpCall } from '../http-call.ts';
import { parseJson } from './json.ts';
import { knownQuery } from './known-queries.ts';

const mebibyte = 1024 * 1024;

/** Path and query. @throws NOT_FOUND, VALIDATION_FAILED */
export function readAddress(route: Route, call: HttpCall, request: Request): void {
    checkPath(route, request);
    call.params = validate(route.validate?.params, request.params, 'params', route.method);
    call.query = knownQuery(route, request.raw.req.url ?? '', () =>
        validate(route.validate?.query, request.query, 'query', route.method)
    );
}

/** A digit that is encoded, as no client does (RFC 3986, section 2.3): `%31` is not the id 1. */
const encodedDigit = /%3\d/;

/**
 * Keeps text out of parameters that a handler could take for another path: a slash where the route has no `{name*}`, a backslash, `.` and `..`.
 * A schema whose parameter has `meta({ anyText: true })` asks for them.
 */
function checkPath(route: Route, request: Request): void {
    const params = request.params as Readonly<Record<string, unknown>>;
    for (const name in params) {
        const text = params[name];
        if (
            typeof text === 'string' &&
            (/[/\\]/.test(text) || text === '.' || text === '..') &&
            !(takesPath(route, name) && !/\\|(?:^|\/)\.{1,2}(?:\/|$)/.test(text)) &&
            !asksForAnyText(route, name)
        ) {
            throw fail.NOT_FOUND();
        }
    }
    if (encodedDigit.test((request.raw.req.url ?? '').split('?', 1)[0] ?? '')) {
        throw fail.NOT_FOUND();
    }
}

function takesPath({ path }: Route, name: string): boolean {
    return path.includes(`{${name}*`);
}

function asksForAnyText({ validate: schemas }: Route, name: string): boolean {
    // The SDK's type of a schema hides this method of joi, which every schema has.
    const params = schemas?.params as { describe?(): object } | undefined;
    const { keys } = (params?.describe?.() ?? {}) as {
        readonly keys?: Readonly<
            Record<string, { readonly metas?: readonly { readonly anyText?: unknown }[] }>
        >;
    };
    return keys?.[name]?.metas?.some(({ anyText }) => anyText === true) === true;
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
    const body = parseJson(bytes, route.maxBytes ?? mebibyte);
    if (typeof body !== 'object' || body === null || Array.isArray(body)) {
        throw fail.BAD_REQUEST(null, { message: 'The body must be a JSON object' });
    }
    call.payload = validate(route.validate?.payload, body, 'payload', method);
}
