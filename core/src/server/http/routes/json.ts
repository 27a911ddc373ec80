/** JSON routes: input, idempotency, the handler, the record, the envelope. */
import { createHash } from 'node:crypto';

import type { Lifecycle, Request, ResponseToolkit } from '@hapi/hapi';
import { isFailure, isReply, nextCursorHeader } from '@portico/sdk';
import type Joi from 'joi';

import { fail } from '../../../platform/errors.ts';
import { envelopeOf, failureEnvelope, jsonType, linked, type Wire, wireOf } from '../answer/envelope.ts';
import { isPrepared, type PreparedList } from '../answer/prepared.ts';
import { isSerialised } from '../answer/serialised.ts';
import type { HttpPorts } from '../ports.ts';
import type { HttpCall } from '../request/http-call.ts';
import { readAddress, readBody } from '../request/input/input.ts';
import type { RequestState } from '../request/state.ts';
import { effectOf, type Route } from '../route.ts';
import { rehearse } from './rehearse.ts';

type JsonRoute = Extract<Route, { kind: 'json' }>;

const visible = /^[\x21-\x7e]{1,128}$/;

/** Answers a JSON route. */
export function answerJson(
    route: JsonRoute,
    call: HttpCall,
    request: Request,
    h: ResponseToolkit,
    ports: HttpPorts
): Promise<Lifecycle.ReturnValue> {
    readAddress(route, call, request);
    if (route.method !== 'GET') {
        readBody(route, call, request);
    }
    const { rehearsal } = request.app as RequestState;
    if (rehearsal !== undefined) {
        return rehearse(route, call, rehearsal, h);
    }
    return (route.method === 'GET' ? runHandler : answerChange)(route, call, request, h, ports);
}

async function answerChange(
    route: JsonRoute,
    call: HttpCall,
    request: Request,
    h: ResponseToolkit,
    ports: HttpPorts
): Promise<Lifecycle.ReturnValue> {
    if (call.idempotencyKey !== null && route.method === 'POST') {
        await route.prepare?.(call);
    }
    const claimed = await claimKey(route, call, request, ports);
    if (claimed !== null && 'replay' in claimed) {
        return respond(h, claimed.replay);
    }
    try {
        return await runHandler(route, call, request, h, ports);
    } finally {
        claimed?.first.end();
    }
}

/** Runs the handler, and puts its change and its answer on record. */
async function runHandler(
    route: JsonRoute,
    call: HttpCall,
    request: Request,
    h: ResponseToolkit,
    ports: HttpPorts
): Promise<Lifecycle.ReturnValue> {
    const url = request.raw.req.url ?? request.path;
    let answer: unknown;
    try {
        answer = await route.handler(call);
    } catch (error) {
        await keepFailure(call, error);
        throw error;
    }
    if (isPrepared(answer)) {
        return respondPrepared(h, request, answer.list, url);
    }
    if (ports.checkReturns && route.returns !== undefined && !isSerialised(answer)) {
        checkAnswer(route, isReply(answer) ? answer.data : answer);
    }
    const wire = wireOf(answer, url);
    if (route.method !== 'GET') {
        await recordSuccess(route, call, wire, ports);
    }
    return route.method === 'GET'
        ? respondTagged(
              h,
              request,
              wire,
              isSerialised(answer)
                  ? answer.json.startsWith('[')
                  : Array.isArray(isReply(answer) ? answer.data : answer)
          )
        : respond(h, wire);
}

/** Turns ready text into a response. */
function respond(h: ResponseToolkit, wire: Wire): Lifecycle.ReturnValue {
    const response = h.response(wire.body).code(wire.status).type(jsonType);
    Object.assign(response.headers, wire.headers);
    return response;
}

/** A list carries a tag of its content; a single object its version. Either is revalidated. */
function respondTagged(
    h: ResponseToolkit,
    request: Request,
    wire: Wire,
    isList: boolean
): Lifecycle.ReturnValue {
    const tag =
        wire.headers['etag'] ??
        (isList ? `"${createHash('sha1').update(wire.body).digest('base64url')}"` : undefined);
    if (tag === undefined) {
        return respond(h, wire);
    }
    if (matches(request.raw.req.headers['if-none-match'], tag)) {
        return h.response().code(304).header('etag', tag);
    }
    return respond(h, { ...wire, headers: { ...wire.headers, etag: tag } });
}

function respondPrepared(
    h: ResponseToolkit,
    request: Request,
    list: PreparedList,
    url: string
): Lifecycle.ReturnValue {
    const tag = `"${list.tag}"`;
    if (matches(request.raw.req.headers['if-none-match'], tag)) {
        return h.response().code(304).header('etag', tag);
    }
    const { total, next } = list;
    const headers: Record<string, string> = { etag: tag };
    if (total !== undefined) {
        headers['x-total-count'] = String(total);
    }
    if (next !== undefined && next !== null) {
        headers[nextCursorHeader] = next;
    }
    return respond(h, { status: 200, headers: linked(headers, url), body: envelopeOf(list.json()) });
}

function matches(header: string | undefined, tag: string): boolean {
    return (
        header !== undefined &&
        header.split(',').some((candidate) => candidate.trim().replace(/^W\//, '') === tag)
    );
}

/** A retry gets the first answer; the first request with a key may keep its own. Null for a request without a key. */
async function claimKey(
    route: JsonRoute,
    call: HttpCall,
    request: Request,
    ports: HttpPorts
): Promise<Awaited<ReturnType<HttpPorts['idempotency']['claim']>> | null> {
    const key = call.idempotencyKey;
    if (
        key === null ||
        route.method !== 'POST' ||
        call.actor.id === null ||
        request.path.startsWith('/api/auth/')
    ) {
        return null;
    }
    if (!visible.test(key)) {
        throw fail.BAD_REQUEST(null, {
            message: 'Idempotency-Key must be 1 to 128 visible ASCII characters'
        });
    }
    const body = (request.payload as Buffer | null) ?? Buffer.alloc(0);
    const fingerprint = createHash('sha256')
        .update(`${route.method} ${request.raw.req.url ?? request.path}\n`)
        .update(body)
        .digest('base64url');
    const claimed = await ports.idempotency.claim(call.actor, key, fingerprint, call);
    if ('first' in claimed && route.stepUp !== true && route.secret !== true) {
        call.key = claimed.first;
    }
    return claimed;
}

async function keepFailure(call: HttpCall, error: unknown): Promise<void> {
    if (isFailure(error) && error.code < 50000 && Math.floor(error.code / 100) !== 429) {
        await call.key?.keepAlone({
            status: Math.floor(error.code / 100),
            headers: {},
            body: failureEnvelope(error)
        });
    }
}

/** A change that did not put itself on record is recorded before it is answered. */
async function recordSuccess(route: JsonRoute, call: HttpCall, wire: Wire, ports: HttpPorts): Promise<void> {
    if (call.completed) {
        return;
    }
    if (effectOf(route) !== 'read' && route.audit !== false) {
        await ports.recorder.recordAlone(call.entry(wire.status, 0));
    }
    await call.key?.keepAlone(wire);
}

function checkAnswer(route: JsonRoute, data: unknown): void {
    const plain: unknown = data === undefined ? null : JSON.parse(JSON.stringify(data));
    // A schema of the SDK is a joi schema; its type says so to the compiler only.
    const { error } = (route.returns as unknown as Joi.Schema).validate(plain, {
        convert: false,
        abortEarly: false
    });
    if (error !== undefined) {
        throw new TypeError(`${route.id} answers what its schema does not say: ${error.message}`);
    }
}
