/** Answers as they go over the wire: the panel's envelope and headers. */
import { allowedHeaders } from '../boundary/answer-headers.ts';
import type { JsonAnswer } from '../boundary/protocol.ts';
import { createFailure, type Failure, type FailureError, isFailure } from '../errors.ts';
import { nextCursorHeader } from '../reply.ts';

const jsonType = 'application/json; charset=utf-8';

/** Headers of every answer below a plugin's path. */
export const commonHeaders = {
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cross-origin-resource-policy': 'same-origin'
} as const;

/** One answer before it becomes a response. */
export interface Wire {
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string;
}

/** What the panel itself fails with, where a plugin is asked. */
export const panelFailure = {
    badRequest: (message: string): FailureError =>
        createFailure({ code: 40000, reason: 'BAD_REQUEST', message, data: null }),
    unauthenticated: (): FailureError =>
        createFailure({
            code: 40100,
            reason: 'UNAUTHENTICATED',
            message: 'A bearer token is required',
            data: null
        }),
    tokenInvalid: (): FailureError =>
        createFailure({
            code: 40101,
            reason: 'TOKEN_INVALID',
            message: 'The token is not one of ours',
            data: null
        }),
    forbidden: (permission: string, message = `The permission ${permission} is required`): FailureError =>
        createFailure({ code: 40300, reason: 'FORBIDDEN', message, data: { permission } }),
    stepUp: (): FailureError =>
        createFailure({
            code: 40301,
            reason: 'STEP_UP_REQUIRED',
            message: 'This action needs the password or the second factor again',
            data: null
        }),
    disabled: (plugin: string): FailureError =>
        createFailure({
            code: 40411,
            reason: 'PLUGIN_DISABLED',
            message: `The plugin ${plugin} is not running`,
            data: { plugin }
        }),
    notFound: (): FailureError =>
        createFailure({
            code: 40400,
            reason: 'NOT_FOUND',
            message: 'There is nothing of that name here',
            data: null
        }),
    mismatch: (): FailureError =>
        createFailure({
            code: 40902,
            reason: 'IDEMPOTENCY_MISMATCH',
            message: 'The Idempotency-Key was used with another request',
            data: null
        }),
    unresolved: (): FailureError =>
        createFailure({
            code: 40903,
            reason: 'IDEMPOTENCY_UNRESOLVED',
            message: 'The first request with this Idempotency-Key has no known end',
            data: null
        }),
    /** `null`: it said so itself, before anything was read. */
    tooLarge: (limit: number | null): FailureError =>
        createFailure({
            code: 41300,
            reason: 'PAYLOAD_TOO_LARGE',
            message: limit === null ? 'The body is too large' : `The body is larger than ${limit} bytes`,
            data: limit === null ? null : { limit }
        }),
    mediaType: (accepts: string): FailureError =>
        createFailure({
            code: 41500,
            reason: 'UNSUPPORTED_MEDIA_TYPE',
            message: `The body must be ${accepts}`,
            data: { accepts }
        }),
    tooSlow: (): FailureError =>
        createFailure({ code: 50300, reason: 'NOT_READY', message: 'The answer took too long', data: null })
};

/** A handler's answer in the envelope. `url` is the request's own path and query, which a next page's `Link` is made of. */
export function wireOf({ status, message, headers, json }: JsonAnswer, url: string): Wire {
    const { [nextCursorHeader]: next, ...rest } = allowedHeaders(headers);
    return {
        status,
        headers: next === undefined ? rest : { ...rest, link: `<${withCursor(url, next)}>; rel="next"` },
        body: `{"code":0,"message":${JSON.stringify(message)},"data":${json}}`
    };
}

/** A failure in the envelope. What is no failure of a table is an internal error. */
export function failureWire(thrown: unknown): Wire & { readonly code: number } {
    const failure: Failure = isFailure(thrown)
        ? thrown
        : {
              code: 50000,
              reason: 'INTERNAL',
              message: 'Something went wrong; the log has it under the request id',
              data: null
          };
    const { code, reason, data } = failure;
    const retryAfter = data?.['retryAfterSeconds'];
    return {
        code,
        status: Math.floor(code / 100),
        headers: {
            ...(typeof retryAfter === 'number'
                ? { 'retry-after': String(Math.max(1, Math.ceil(retryAfter))) }
                : {}),
            ...(Math.floor(code / 100) === 401 ? { 'www-authenticate': 'Bearer' } : {})
        },
        body: JSON.stringify({ code, message: messageOf(failure), data: { reason, ...data } })
    };
}

/** Turns an answer into a response. */
export function responseOf({ status, headers, body }: Wire): Response {
    return new Response(body, { status, headers: { ...headers, 'content-type': jsonType } });
}

/** Who shows only the message still learns the first thing that is wrong. */
function messageOf({ reason, message, data }: Failure): string {
    const errors = reason === 'VALIDATION_FAILED' ? data?.['errors'] : undefined;
    if (!Array.isArray(errors) || errors.length === 0) {
        return message;
    }
    return `${message}: ${(errors[0] as { message: string }).message}${errors.length === 1 ? '' : `, and ${errors.length - 1} more`}`;
}

function withCursor(url: string, cursor: string): string {
    const [path = '', query] = url.split('?', 2);
    const parameters = new URLSearchParams(query);
    parameters.set('cursor', cursor);
    return `${path}?${parameters}`;
}
