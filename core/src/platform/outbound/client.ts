/**
 * The client for the outside: every request and connection of the panel to an address that a user typed, or that an answer pointed to,
 * goes through here. It uses no proxy of the environment, keeps no cookies, shares no connections and decodes nothing.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';

import { Dialer, type DialOptions, type TlsOptions } from './dial.ts';
import { type Exchange, exchange, type Incoming } from './exchange.ts';
import { OutboundFailure } from './failure.ts';
import { readTarget, readUrl, targetOf } from './target.ts';

export { OutboundFailure } from './failure.ts';

/** One HTTP request to another machine. */
export interface OutboundRequest {
    /** Default GET. */
    readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
    /** Without `host`, `content-length` and `connection`, which the client sets. Only headers that say nothing about the caller, such as `accept`, follow a redirect to another origin. */
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string | Uint8Array;
    /** Limit for resolving, connecting, redirects and body together. Milliseconds, default 15,000. */
    readonly timeoutMs?: number;
    /** Longest time without a byte. Milliseconds, default 10,000. */
    readonly idleMs?: number;
    /** Most bytes of the answer's body, default 1 MiB. */
    readonly maxBytes?: number;
    /** How many redirects are followed. Default 0: a redirect is returned like any other answer. */
    readonly maxRedirects?: number;
    readonly signal?: AbortSignal;
    /** PEM of authorities to trust beside the system's. */
    readonly ca?: readonly string[];
}

/** The answer to a request. */
export interface OutboundAnswer<B> {
    readonly status: number;
    readonly headers: IncomingHttpHeaders;
    /** Where the answer came from, after redirects. */
    readonly url: string;
    readonly body: B;
}

/** A plain connection to another machine. */
export interface OutboundConnection extends TlsOptions {
    /** TLS from the first byte on. Default false. */
    readonly tls?: boolean;
    /** Limit until the connection is open. Milliseconds, default 10,000. */
    readonly timeoutMs?: number;
    /** Cancels the attempt; it has no effect once the connection is open. */
    readonly signal?: AbortSignal;
}

const defaults = { timeoutMs: 15_000, idleMs: 10_000, connectMs: 10_000, maxBytes: 1024 * 1024 } as const;
const redirects = new Set([301, 302, 303, 307, 308]);
/** Headers that may go to another origin than the one that they were meant for. */
const harmless = new Set(['accept', 'accept-encoding', 'accept-language', 'user-agent']);
/** Headers that the client sets itself, in lower case. */
export const ownHeaders: readonly string[] = [
    'host',
    'connection',
    'content-length',
    'transfer-encoding',
    'expect',
    'upgrade',
    'te',
    'trailer',
    'keep-alive',
    'proxy-connection'
];

/** Requests and connections to the outside. Every method throws OutboundFailure, and nothing else. */
export class Outbound {
    readonly #dialer: Dialer;

    constructor(options: DialOptions) {
        this.#dialer = new Dialer(options);
    }

    /** Sends a request and returns its answer as a stream; the limits hold while it is read. The caller reads it to its end, or closes it. */
    async open(
        url: string | URL,
        request: OutboundRequest = {}
    ): Promise<OutboundAnswer<AsyncIterable<Buffer>> & { close(): void }> {
        const limit = deadline(request.timeoutMs ?? defaults.timeoutMs, request.signal);
        try {
            const { incoming, url: last } = await this.#follow(url, request, limit.signal);
            const body = async function* (): AsyncGenerator<Buffer, void, undefined> {
                try {
                    yield* incoming.body(request.maxBytes ?? defaults.maxBytes);
                } finally {
                    limit.end();
                }
            };
            const close = (): void => {
                limit.end();
                incoming.close();
            };
            return {
                status: incoming.status,
                headers: incoming.headers,
                url: last.href,
                body: body(),
                close
            };
        } catch (error) {
            limit.end();
            throw asFailure(error);
        }
    }

    /** Sends a request and reads the whole answer. */
    async request(url: string | URL, request?: OutboundRequest): Promise<OutboundAnswer<Buffer>> {
        const answer = await this.open(url, request);
        const chunks: Buffer[] = [];
        for await (const chunk of answer.body) {
            chunks.push(chunk);
        }
        return {
            status: answer.status,
            headers: answer.headers,
            url: answer.url,
            body: Buffer.concat(chunks)
        };
    }

    /** Opens a connection for another protocol; a `TLSSocket` with `tls`. */
    async connect(
        host: string,
        port: number,
        { tls = false, timeoutMs = defaults.connectMs, signal, ...secure }: OutboundConnection = {}
    ): Promise<Socket> {
        const limit = deadline(timeoutMs, signal);
        try {
            const target = readTarget(host, port);
            const socket = await this.#dialer.tcp(target, limit.signal);
            return tls ? await this.#dialer.tls(socket, target, secure, limit.signal) : socket;
        } catch (error) {
            throw asFailure(error);
        } finally {
            limit.end();
        }
    }

    /** Sends a request, and again to where it is redirected, up to `maxRedirects` times. */
    async #follow(
        first: string | URL,
        request: OutboundRequest,
        signal: AbortSignal
    ): Promise<{ readonly incoming: Incoming; readonly url: URL }> {
        const { idleMs = defaults.idleMs, maxRedirects = 0, ca } = request;
        let sent: Sent = {
            method: request.method ?? 'GET',
            headers: headersOf(request.headers ?? {}),
            body: request.body ?? null
        };
        let url = readUrl(first);
        for (let count = 0; ; count += 1) {
            const incoming = await this.#exchange(url, ca, { ...sent, idleMs, signal });
            const { location } = incoming.headers;
            if (maxRedirects === 0 || !redirects.has(incoming.status) || location === undefined) {
                return { incoming, url };
            }
            incoming.close();
            if (count >= maxRedirects) {
                throw new OutboundFailure(
                    'REDIRECT_REFUSED',
                    `${url.host} redirects more than ${maxRedirects} times`
                );
            }
            const next = redirected(url, location);
            sent = resent(sent, incoming.status, url, next);
            url = next;
        }
    }

    /** One request and its answer over a connection of its own. */
    async #exchange(
        url: URL,
        ca: readonly string[] | undefined,
        sent: Omit<Exchange, 'url'>
    ): Promise<Incoming> {
        const target = targetOf(url);
        const plain = await this.#dialer.tcp(target, sent.signal);
        const socket =
            url.protocol === 'https:'
                ? await this.#dialer.tls(
                      plain,
                      target,
                      { alpn: ['http/1.1'], ...(ca === undefined ? {} : { ca }) },
                      sent.signal
                  )
                : plain;
        return exchange(socket, { ...sent, url });
    }
}

type Sent = Pick<Exchange, 'method' | 'headers' | 'body'>;

/** What is sent after a redirect: the body and the headers about the caller do not go to another origin. */
function resent(sent: Sent, status: number, from: URL, to: URL): Sent {
    let { method, headers, body } = sent;
    if (method !== 'GET' && method !== 'HEAD' && (status === 303 || (method === 'POST' && status < 303))) {
        method = 'GET';
        body = null;
        headers = without(headers, (name) => name.startsWith('content-'));
    }
    if (to.origin !== from.origin) {
        if (body !== null) {
            throw new OutboundFailure(
                'REDIRECT_REFUSED',
                `${from.host} redirects what was sent to it to ${to.host}`
            );
        }
        headers = without(headers, (name) => !harmless.has(name));
    }
    return { method, headers, body };
}

/** A signal that aborts with a failure when the time is up, or the caller's own does. */
function deadline(ms: number, outer: AbortSignal | undefined): { readonly signal: AbortSignal; end(): void } {
    const controller = new AbortController();
    const aborted = (): void =>
        controller.abort(new OutboundFailure('ABORTED', 'The request was cancelled', outer?.reason));
    const timer = setTimeout(
        () => controller.abort(new OutboundFailure('TIMED_OUT', `Not done within ${ms / 1000} s`)),
        ms
    );
    outer?.addEventListener('abort', aborted);
    if (outer?.aborted === true) {
        aborted();
    }
    return {
        signal: controller.signal,
        end() {
            clearTimeout(timer);
            outer?.removeEventListener('abort', aborted);
        }
    };
}

function headersOf(given: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
    const headers: Record<string, string> = { 'accept-encoding': 'identity', 'user-agent': 'Portico' };
    for (const [name, value] of Object.entries(given)) {
        const lower = name.toLowerCase();
        if (ownHeaders.includes(lower)) {
            throw new OutboundFailure('URL_REFUSED', `The header ${lower} is not the caller's to set`);
        }
        headers[lower] = value;
    }
    return headers;
}

function without(
    headers: Readonly<Record<string, string>>,
    drops: (name: string) => boolean
): Readonly<Record<string, string>> {
    return Object.fromEntries(Object.entries(headers).filter(([name]) => !drops(name)));
}

function redirected(from: URL, location: string): URL {
    const next = URL.parse(location, from.href);
    if (next === null) {
        throw new OutboundFailure('REDIRECT_REFUSED', `${from.host} redirects to something that is no URL`);
    }
    if (from.protocol === 'https:' && next.protocol === 'http:') {
        throw new OutboundFailure('REDIRECT_REFUSED', `${from.host} redirects from https to http`);
    }
    return readUrl(next);
}

function asFailure(error: unknown): OutboundFailure {
    return error instanceof OutboundFailure
        ? error
        : new OutboundFailure('CONNECT_FAILED', 'The request failed for an unknown reason', error);
}
