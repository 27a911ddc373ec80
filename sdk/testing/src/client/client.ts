/** A person who asks the plugin under test, over the network of this machine and through the panel's own gateway. */
import type { StreamEvent } from '@portico/sdk';

import { inTime } from '../deadline.ts';
import { answerOf, failureOfAnswer, type TestAnswer } from './answer.ts';
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

/** What `events` takes beside the path. */
export interface EventsOptions extends AskOptions {
    readonly method?: 'GET' | 'POST';
    readonly body?: object;
    readonly lastEventId?: string;
}

/** Where a client asks, and as whom. */
export interface ClientOptions {
    readonly plugin: string;
    /** Of the panel, without a path. */
    readonly url: string;
    /** Null for a caller without a login. */
    readonly token: string | null;
    readonly username: string | null;
    readonly patienceMs: number;
    end(): void;
}

/** A person who asks. Paths are the plugin's own, such as `/notes/1`, or whole ones, which begin with `/api/`. */
export class TestClient {
    readonly username: string | null;
    readonly #options: ClientOptions;

    /** @internal */
    constructor(options: ClientOptions) {
        this.username = options.username;
        this.#options = options;
    }

    get<T = unknown>(path: string, options?: AskOptions): Promise<TestAnswer<T>> {
        return this.ask('GET', path, undefined, options);
    }

    post<T = unknown>(path: string, body?: Body, options?: AskOptions): Promise<TestAnswer<T>> {
        return this.ask('POST', path, body, options);
    }

    put<T = unknown>(path: string, body?: Body, options?: AskOptions): Promise<TestAnswer<T>> {
        return this.ask('PUT', path, body, options);
    }

    delete<T = unknown>(path: string, options?: AskOptions): Promise<TestAnswer<T>> {
        return this.ask('DELETE', path, undefined, options);
    }

    /** Asks, and reads the whole answer. @throws TestTimeout when there is none in time */
    async ask<T = unknown>(
        method: string,
        path: string,
        body?: Body,
        options?: AskOptions
    ): Promise<TestAnswer<T>> {
        const reading = this.#send(method, path, body, options).then(async (response) =>
            answerOf<T>(response.status, response.headers, new Uint8Array(await response.arrayBuffer()))
        );
        return inTime(`the answer of ${method} ${path}`, this.#options.patienceMs, reading);
    }

    /** The response itself, with its body still to be read. @throws TestTimeout when it does not begin in time */
    fetch(method: string, path: string, body?: Body, options?: AskOptions): Promise<Response> {
        const sending = this.#send(method, path, body, options);
        return inTime(`the answer of ${method} ${path}`, this.#options.patienceMs, sending);
    }

    /**
     * Events of a stream as they come; leaving the loop leaves the stream.
     *
     * @throws FailureError when the stream is refused; TestTimeout when no event comes in time
     */
    async *events(path: string, given: EventsOptions = {}): AsyncGenerator<StreamEvent> {
        const { method = 'GET', body, lastEventId, signal, ...options } = given;
        const leaving = new AbortController();
        const headers = {
            ...options.headers,
            ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId })
        };
        const until = signal === undefined ? leaving.signal : AbortSignal.any([signal, leaving.signal]);
        try {
            const response = await this.fetch(method, path, body, { ...options, headers, signal: until });
            if (
                response.headers.get('content-type')?.startsWith('text/event-stream') !== true ||
                response.body === null
            ) {
                throw failureOfAnswer(
                    answerOf(response.status, response.headers, new Uint8Array(await response.arrayBuffer()))
                );
            }
            const events = readEvents(response.body);
            for (;;) {
                const next = await inTime(
                    `an event of ${method} ${path}`,
                    this.#options.patienceMs,
                    events.next()
                );
                if (next.done === true) {
                    return;
                }
                yield next.value;
            }
        } finally {
            leaving.abort();
        }
    }

    /** Opens a WebSocket. @throws FailureError when it is refused */
    socket(path: string, options: AskOptions = {}): Promise<TestSocket> {
        const { headers } = this.#headers(undefined, options);
        return openTestSocket(this.#url(path, options), headers, path, this.#options.patienceMs);
    }

    /** Ends the session: what is open ends, and what is asked afterwards is 40103. */
    end(): void {
        this.#options.end();
    }

    #send(method: string, path: string, body: Body, options: AskOptions = {}): Promise<Response> {
        const { isRaw, headers } = this.#headers(body, options);
        return fetch(this.#url(path, options), {
            method,
            headers,
            redirect: 'manual',
            signal: options.signal ?? null,
            ...(body === undefined
                ? {}
                : { body: (isRaw ? body : JSON.stringify(body)) as string, duplex: 'half' })
        });
    }

    #url(path: string, { query = {} }: AskOptions): URL {
        const { plugin, url: panel } = this.#options;
        const url = new URL(path.startsWith('/api/') ? path : `/api/plugins/${plugin}${path}`, panel);
        for (const [name, value] of Object.entries(query)) {
            for (const each of typeof value === 'object'
                ? value
                : value === undefined
                  ? []
                  : [String(value)]) {
                url.searchParams.append(name, each);
            }
        }
        return url;
    }

    #headers(
        body: Body,
        { headers = {}, ifMatch, idempotencyKey }: AskOptions
    ): { isRaw: boolean; headers: Record<string, string> } {
        const isRaw =
            typeof body === 'string' || body instanceof Uint8Array || body instanceof ReadableStream;
        const { token } = this.#options;
        return {
            isRaw,
            headers: {
                'accept-encoding': 'identity',
                ...(token === null ? {} : { authorization: `Bearer ${token}` }),
                ...(body === undefined || isRaw ? {} : { 'content-type': 'application/json' }),
                ...(ifMatch === undefined ? {} : { 'if-match': `"${ifMatch}"` }),
                ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
                ...headers
            }
        };
    }
}

/** The events of a stream's text. Comments are left out. */
async function* readEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<StreamEvent> {
    const decoder = new TextDecoder();
    let text = '';
    for await (const chunk of body) {
        text += decoder.decode(chunk, { stream: true });
        for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
            const lines = text.slice(0, end).split('\n');
            text = text.slice(end + 2);
            const fields = new Map(
                lines.map((line) => [line.split(': ', 1)[0], line.slice(line.indexOf(': ') + 2)])
            );
            const [data, event, id] = [fields.get('data'), fields.get('event'), fields.get('id')];
            if (data !== undefined) {
                yield {
                    ...(id === undefined ? {} : { id }),
                    ...(event === undefined ? {} : { event }),
                    data: JSON.parse(data) as unknown
                };
            }
        }
    }
}
