/** Uploads: the body goes to the handler as it arrives, counted on its way. */
import { Readable, Transform } from 'node:stream';

import type { Lifecycle, Request, ResponseToolkit } from '@hapi/hapi';
import type { Bytes } from '@portico/sdk';

import { fail } from '../../../platform/errors.ts';
import { jsonType, wireOf } from '../answer/envelope.ts';
import type { HttpPorts } from '../ports.ts';
import type { HttpCall } from '../request/http-call.ts';
import { readAddress } from '../request/input/input.ts';
import type { Route } from '../route.ts';

type UploadRoute = Extract<Route, { kind: 'upload' }>;

/** Answers one request of an upload route; the handler reads the body as a stream. */
export async function answerUpload(
    route: UploadRoute,
    call: HttpCall,
    request: Request,
    h: ResponseToolkit,
    ports: HttpPorts
): Promise<Lifecycle.ReturnValue> {
    readAddress(route, call, request);
    const {
        'content-type': sent = '',
        'content-length': length,
        'content-encoding': encoding = 'identity'
    } = request.raw.req.headers;
    const type = sent.split(';', 1)[0]?.trim().toLowerCase() ?? '';
    if ((!route.accepts.includes(type) && !route.accepts.includes('*/*')) || encoding !== 'identity') {
        throw fail.UNSUPPORTED_MEDIA_TYPE({ accepts: route.accepts.join(' or ') });
    }
    const body = limited(request, call, route.maxBytes);
    try {
        const answer = await route.handler(
            Object.assign(call, {
                body: Readable.toWeb(body) as Bytes,
                type,
                length: length === undefined ? null : Number(length)
            })
        );
        const wire = wireOf(answer, request.raw.req.url ?? request.path);
        if (!call.completed) {
            await ports.recorder.recordAlone(call.entry(wire.status, 0));
        }
        const response = h.response(wire.body).code(wire.status).type(jsonType);
        Object.assign(response.headers, wire.headers);
        return response;
    } catch (error) {
        throw body.errored ?? error;
    } finally {
        body.destroy();
    }
}

/**
 * The body of a request: passes bytes on until there are too many, or until the caller may not go on.
 *
 * @throws PAYLOAD_TOO_LARGE 41300 at once where the request says that it is too long
 */
export function limited({ payload, raw }: Request, { signal }: HttpCall, maxBytes: number): Transform {
    if (Number(raw.req.headers['content-length']) > maxBytes) {
        throw fail.PAYLOAD_TOO_LARGE({ limit: maxBytes });
    }
    const source = payload as Readable;
    let seen = 0;
    const counter = new Transform({
        transform(chunk: Buffer, _encoding, done) {
            seen += chunk.length;
            done(seen > maxBytes ? fail.PAYLOAD_TOO_LARGE({ limit: maxBytes }) : null, chunk);
        }
    });
    source.on('error', (error) => counter.destroy(error)).pipe(counter);
    counter.on('error', () => source.unpipe(counter).resume());
    const end = (): void => {
        // The signal aborts also when the answer is over; what happened to the body then, the source says.
        if (!raw.res.closed) {
            counter.destroy(fail.TOKEN_REVOKED());
        }
    };
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) {
        end();
    }
    return counter;
}
