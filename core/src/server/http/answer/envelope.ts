/** The one translation between what the panel says and what goes over the wire: `{ code, message, data }`, on success and on every failure. */
import { isBoom } from '@hapi/boom';
import { type Failure, isFailure, isReply, nextCursorHeader } from '@portico/sdk';

import { fail, type Invalid } from '../../../platform/errors.ts';
import { isSerialised } from './serialised.ts';

/** The media type of every envelope. */
export const jsonType = 'application/json; charset=utf-8';

/** Headers of every answer. */
export const commonHeaders = {
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'cross-origin-resource-policy': 'same-origin'
} as const;

/** An answer, ready for the wire. */
export interface Wire {
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string;
}

/** Wraps what a handler returned. `url` is the request's own path and query, which a next page's `Link` is made of. */
export function wireOf(answer: unknown, url: string): Wire {
    if (isSerialised(answer)) {
        return {
            status: answer.status,
            headers: linked(answer.headers, url),
            body: envelopeOf(answer.json, answer.message)
        };
    }
    if (!isReply(answer)) {
        const version = (answer as { version?: unknown } | null | undefined)?.version;
        return {
            status: 200,
            headers: typeof version === 'number' ? { etag: `"${version}"` } : {},
            body: envelopeOf(JSON.stringify(answer) ?? 'null')
        };
    }
    return {
        status: answer.status,
        headers: linked(answer.headers, url),
        body: envelope(0, answer.message, answer.data)
    };
}

/** The headers of a reply, with the next page as a `Link`. */
export function linked(
    headers: Readonly<Record<string, string>>,
    url: string
): Readonly<Record<string, string>> {
    if (headers[nextCursorHeader] === undefined) {
        return headers;
    }
    const { [nextCursorHeader]: next, ...others } = headers;
    return { ...others, link: `<${withCursor(url, next)}>; rel="next"` };
}

/** The envelope of a success whose data is JSON already. */
export function envelopeOf(json: string, message = 'ok'): string {
    return `{"code":0,"message":${message === 'ok' ? '"ok"' : JSON.stringify(message)},"data":${json}}`;
}

/** The envelope as text. */
export function envelope(code: number, message: string, data: unknown): string {
    return `{"code":${code},"message":${JSON.stringify(message)},"data":${JSON.stringify(data) ?? 'null'}}`;
}

/** The envelope of a failure as text; `data` always has the reason. */
export function failureEnvelope(failure: Failure): string {
    return envelope(failure.code, messageOf(failure), { reason: failure.reason, ...failure.data });
}

/** Who shows only the message still learns the first thing that is wrong. */
function messageOf({ reason, message, data }: Failure): string {
    const errors = reason === 'VALIDATION_FAILED' ? data?.['errors'] : undefined;
    if (!Array.isArray(errors) || errors.length === 0) {
        return message;
    }
    return `${message}: ${(errors[0] as Invalid).message}${errors.length === 1 ? '' : `, and ${errors.length - 1} more`}`;
}

/** What anything thrown means to the client: a failure of a table as it is, hapi's own refusals by status, all else an internal error. */
export function failureOf(thrown: unknown): Failure {
    if (isFailure(thrown)) {
        return thrown;
    }
    if (isBoom(thrown)) {
        switch (thrown.output.statusCode) {
            case 400:
                return fail.BAD_REQUEST();
            case 404:
                return fail.NOT_FOUND();
            case 408:
                return fail.REQUEST_TIMEOUT(null, { message: 'The body did not arrive in time' });
            case 413:
                return fail.PAYLOAD_TOO_LARGE(null, { message: 'The body is too large' });
            case 415:
                return fail.UNSUPPORTED_MEDIA_TYPE({ accepts: 'application/json' });
            case 503:
                return fail.NOT_READY(null, { message: 'The answer took too long' });
        }
    }
    return fail.INTERNAL();
}

/** Headers that belong to a failure. */
export function failureHeaders(failure: Failure): Record<string, string> {
    const retryAfter = failure.data?.['retryAfterSeconds'];
    return {
        ...(typeof retryAfter === 'number'
            ? { 'retry-after': String(Math.max(1, Math.ceil(retryAfter))) }
            : {}),
        ...(Math.floor(failure.code / 100) === 401 ? { 'www-authenticate': 'Bearer' } : {}),
        // The rest of the request must not be taken for the next one (RFC 9110, section 15.5.9).
        ...(failure.reason === 'REQUEST_TIMEOUT' ? { connection: 'close' } : {})
    };
}

/** Queries of nothing but letters that need no escape. */
const simpleQuery = /^[\w.~=&-]+$/;

function withCursor(url: string, cursor: string): string {
    const [path, query] = url.split('?', 2);
    if (
        query !== undefined &&
        simpleQuery.test(query) &&
        simpleQuery.test(cursor) &&
        !query.includes('cursor=')
    ) {
        return `${url}&cursor=${cursor}`;
    }
    const parameters = new URLSearchParams(query);
    parameters.set('cursor', cursor);
    return `${path}?${parameters}`;
}
