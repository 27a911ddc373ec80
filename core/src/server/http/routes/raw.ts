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

/** A body of at most so many bytes is handed over whole: a stream of the web costs more than all else that is done with a small request. */
const smallBytes = 65_536;

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
        ...(hasBody ? { body: await bodyOf(route, call, request), duplex: 'half' } : {})
    });
    const answer = await route.handler(asked, call);
    if (effectOf(route) !== 'read' && route.audit !== false && hasBody && !call.completed) {
        await ports.recorder.recordAlone(call.entry(answer.status, 0));
    }
    const body = answer.body === null ? null : await wholeOrStream(answer.body);
    if (body instanceof Readable) {
        // The answer of a revoked caller ends here, also when the handler does not look at the signal.
        call.signal.addEventListener('abort', () => body.destroy(), { once: true });
        // A client that waits for a quiet stream sees that it is open. When the body begins to flow, the head is set.
        body.once('resume', () => request.raw.res.flushHeaders());
    }
    const response = (body === null ? h.response() : h.response(body)).code(answer.status);
    answer.headers.forEach((value, name) => {
        if (!stripped.has(name) && !name.startsWith('access-control-')) {
            response.headers[name] = value;
        }
    });
    return response;
}

/** The body of a request: whole where the client said that it is small. */
async function bodyOf(
    { maxBytes }: HttpRoute,
    call: HttpCall,
    request: Request
): Promise<Bytes | Uint8Array<ArrayBuffer>> {
    return Number(request.raw.req.headers['content-length'] ?? Number.NaN) <= Math.min(smallBytes, maxBytes)
        ? readWhole(request.payload as Readable, call.signal)
        : (Readable.toWeb(limited(request, call, maxBytes)) as Bytes);
}

/** A body whose length the client said. @throws TOKEN_REVOKED when the caller may not go on */
function readWhole(source: Readable, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    return new Promise((resolve, reject) => {
        const chunks: Buffer[] = [];
        // Aborts, too, when the client is gone before the end.
        const left = (): void => reject(fail.TOKEN_REVOKED());
        signal.addEventListener('abort', left, { once: true });
        source
            .on('data', (chunk: Buffer) => chunks.push(chunk))
            .once('end', () => {
                signal.removeEventListener('abort', left);
                resolve(new Uint8Array(Buffer.concat(chunks)));
            })
            .once('error', reject);
    });
}

type Reader = ReadableStreamDefaultReader<Uint8Array>;

/** The body of an answer: whole where all of it is there already and small, which most answers are. */
async function wholeOrStream(body: Bytes): Promise<Buffer | Readable> {
    const reader: Reader = body.getReader();
    const turn = new Promise<null>((resolve) => void setImmediate(resolve, null));
    const read: Uint8Array[] = [];
    let bytes = 0;
    while (bytes <= smallBytes) {
        const pending = reader.read();
        const next = await Promise.race([pending, turn]);
        if (next === null) {
            return continued(read, pending, reader);
        }
        if (next.done) {
            return Buffer.concat(read);
        }
        read.push(next.value);
        bytes += next.value.length;
    }
    return continued(read, null, reader);
}

/** What was read of a stream, and then the rest of it. @param pending - a read that has begun */
function continued(
    read: readonly Uint8Array[],
    pending: ReturnType<Reader['read']> | null,
    reader: Reader
): Readable {
    let begun = pending;
    const rest = new ReadableStream<Uint8Array>({
        start: (controller) => read.forEach((chunk) => controller.enqueue(chunk)),
        async pull(controller) {
            const { done, value } = await (begun ?? reader.read());
            begun = null;
            if (done) {
                controller.close();
            } else {
                controller.enqueue(value);
            }
        },
        cancel: (reason) => reader.cancel(reason)
    });
    return Readable.fromWeb(rest as WebStream);
}
