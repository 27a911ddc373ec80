/** Somebody who asks the plugin under test, and what they are answered. */
import type { StreamEvent } from '../route.ts';
import type { Caller } from './actors.ts';
import { answerOf, failureOf, type TestAnswer } from './answer.ts';
import { readEvents } from './events.ts';
import type { Front } from './front.ts';
import { openTestSocket, type TestSocket } from './socket.ts';

/** What goes with a request. */
export interface AskOptions {
    readonly query?: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;
    readonly headers?: Readonly<Record<string, string>>;
    /** Becomes `If-Match`. */
    readonly ifMatch?: string | number;
    readonly idempotencyKey?: string;
    readonly signal?: AbortSignal;
}

/** A text, bytes or a stream go as they are; anything else goes as JSON. */
export type Body = object | string | Uint8Array | ReadableStream<Uint8Array> | undefined;

/** Somebody who asks. Paths are the plugin's own, such as `/notes/1`, or whole ones. */
export interface TestClient {
    readonly username: string | null;
    get<T = unknown>(path: string, options?: AskOptions): Promise<TestAnswer<T>>;
    post<T = unknown>(path: string, body?: Body, options?: AskOptions): Promise<TestAnswer<T>>;
    put<T = unknown>(path: string, body?: Body, options?: AskOptions): Promise<TestAnswer<T>>;
    delete<T = unknown>(path: string, options?: AskOptions): Promise<TestAnswer<T>>;
    ask<T = unknown>(method: string, path: string, body?: Body, options?: AskOptions): Promise<TestAnswer<T>>;
    /** The response itself, with its body still to be read. */
    fetch(method: string, path: string, body?: Body, options?: AskOptions): Promise<Response>;
    /** Events of a stream as they come; leaving the loop leaves the stream. @throws FailureError when the stream is refused */
    events(
        path: string,
        options?: AskOptions & {
            readonly method?: 'GET' | 'POST';
            readonly body?: object;
            readonly lastEventId?: string;
        }
    ): AsyncGenerator<StreamEvent>;
    /** Opens a WebSocket. @throws FailureError when it is refused */
    socket(path: string, options?: AskOptions): Promise<TestSocket>;
    /** Ends the session: what is open ends, and what is asked afterwards is 40103. */
    end(): void;
}

export function createClient(front: Front, plugin: string, caller: Caller, end: () => void): TestClient {
    const requestOf = (
        method: string,
        path: string,
        body: Body,
        { query = {}, headers = {}, ifMatch, idempotencyKey, signal }: AskOptions = {}
    ): Request => {
        const url = new URL(
            path.startsWith('/api/') ? path : `/api/plugins/${plugin}${path}`,
            'http://panel.invalid'
        );
        for (const [name, value] of Object.entries(query)) {
            (Array.isArray(value)
                ? (value as readonly string[])
                : value === undefined
                  ? []
                  : [String(value as string)]
            ).forEach((each) => url.searchParams.append(name, each));
        }
        const isRaw =
            typeof body === 'string' || body instanceof Uint8Array || body instanceof ReadableStream;
        const sent = new Headers(headers);
        if (body !== undefined && !isRaw && !sent.has('content-type')) {
            sent.set('content-type', 'application/json');
        }
        if (typeof body === 'string' || body instanceof Uint8Array) {
            sent.set(
                'content-length',
                String(typeof body === 'string' ? new TextEncoder().encode(body).length : body.length)
            );
        }
        if (ifMatch !== undefined) {
            sent.set('if-match', `"${ifMatch}"`);
        }
        if (idempotencyKey !== undefined) {
            sent.set('idempotency-key', idempotencyKey);
        }
        return new Request(url, {
            method,
            headers: sent,
            ...(signal === undefined ? {} : { signal }),
            ...(body === undefined
                ? {}
                : { body: (isRaw ? body : JSON.stringify(body)) as never, duplex: 'half' })
        });
    };
    const ask = async <T>(
        method: string,
        path: string,
        body?: Body,
        options?: AskOptions
    ): Promise<TestAnswer<T>> =>
        answerOf<T>(await front.answer(requestOf(method, path, body, options), caller));
    return {
        username: caller.plain.username,
        get: (path, options) => ask('GET', path, undefined, options),
        post: (path, body, options) => ask('POST', path, body, options),
        put: (path, body, options) => ask('PUT', path, body, options),
        delete: (path, options) => ask('DELETE', path, undefined, options),
        ask,
        fetch: (method, path, body, options) => front.answer(requestOf(method, path, body, options), caller),
        async *events(path, { method = 'GET', body, lastEventId, ...options } = {}) {
            const leaving = new AbortController();
            const headers = {
                ...options.headers,
                ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId })
            };
            const signal =
                options.signal === undefined
                    ? leaving.signal
                    : AbortSignal.any([options.signal, leaving.signal]);
            const response = await front.answer(
                requestOf(method, path, body, { ...options, headers, signal }),
                caller
            );
            if (
                response.headers.get('content-type')?.startsWith('text/event-stream') !== true ||
                response.body === null
            ) {
                throw failureOf(await answerOf(response));
            }
            try {
                yield* readEvents(response.body);
            } finally {
                leaving.abort();
            }
        },
        socket: async (path, options) =>
            openTestSocket(front, requestOf('GET', path, undefined, options), caller),
        end
    };
}
