/** Routes of a foreign protocol: WHATWG Request in, Response out. Headers that would let the answer act beyond itself are removed on both sides. */
import { Readable } from 'node:stream';
import type { ReadableStream as WebStream } from 'node:stream/web';

import type { Lifecycle, Request, ResponseToolkit } from '@hapi/hapi';
import type { Bytes } from '@portico/sdk';

import { fail } from '../../../platform/errors.ts';
import type { HttpPorts } from '../ports.ts';
import type { HttpCall } from '../request/http-call.ts';
import { readAddress } from '../request/input/input.ts';
import { effectOf, type Route } from '../route.ts';
import { limited } from './upload.ts';

type HttpRoute = Extract<Route, { kind: 'http' }>;

const stripped = new Set([
    'set-cookie',
    'service-worker-allowed',
    'clear-site-data',
    'refresh',
    'content-length',
    'transfer-encoding',
    'connection'
]);

/** Answers a route of a foreign protocol. */
export async function answerHttp(
    route: HttpRoute,
    call: HttpCall,
    request: Request,
    h: ResponseToolkit,
    ports: HttpPorts
): Promise<Lifecycle.ReturnValue> {
    const method = request.raw.req.method ?? 'GET';
    if (!route.methods.some((declared) => declared === method)) {
        throw fail.NOT_FOUND();
    }
    readAddress(route, call, request);
    const hasBody = method !== 'GET' && method !== 'HEAD';
    const address = new URL(request.raw.req.url ?? request.path, 'http://panel.invalid');
    const asked = new globalThis.Request(address, {
        method,
        headers: call.headers,
        signal: AbortSignal.any([call.signal, call.ending]),
        ...(hasBody
            ? {
                  body: Readable.toWeb(limited(request, call, route.maxBytes)) as Bytes,
                  duplex: 'half'
              }
            : {})
    });
    const answer = await route.handler(asked, call);
    if (effectOf(route) !== 'read' && route.audit !== false && hasBody && !call.completed) {
        await ports.recorder.recordAlone(call.entry(answer.status, 0));
    }
    const body = answer.body === null ? null : Readable.fromWeb(answer.body as WebStream);
    if (body !== null) {
        // The answer of a revoked caller ends here, also when the handler does not look at the signal.
        call.signal.addEventListener('abort', () => body.destroy(), { once: true });
    }
    // A client that waits for a quiet stream sees that it is open. When the body begins to flow, the head is set.
    body?.once('resume', () => request.raw.res.flushHeaders());
    const response = (body === null ? h.response() : h.response(body)).code(answer.status);
    answer.headers.forEach((value, name) => {
        if (!stripped.has(name) && !name.startsWith('access-control-')) {
            response.headers[name] = value;
        }
    });
    return response;
}
