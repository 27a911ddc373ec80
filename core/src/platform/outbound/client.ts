/**
 * The one way out: every request and connection of the panel to an address that a user typed in, or that an answer pointed to, goes
 * through here. No proxy of the environment is used, no cookie kept, no connection shared, nothing decoded.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';

import { createDialer, type DialOptions, type TlsOptions } from './dial.ts';
import { exchange, type Incoming } from './exchange.ts';
import { OutboundFailure } from './failure.ts';
import { readTarget, readUrl, targetOf } from './target.ts';

export { OutboundFailure } from './failure.ts';

/** One HTTP request to another machine. */
export interface OutboundRequest {
    /** Default GET. */
    readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
    /** Beside `host`, `content-length` and `connection`, which are set here. Sent to the first origin only, but those that say nothing about the caller. */
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string | Uint8Array;
    /** For all of it: resolving, connecting, redirects and body. Milliseconds, default 15,000. */
    readonly timeoutMs?: number;
    /** Longest silence. Milliseconds, default 10,000. */
    readonly idleMs?: number;
    /** Of the answer's body, default 1 MiB. */
    readonly maxBytes?: number;
    /** Default 0: a redirect is an answer like any other. */
    readonly maxRedirects?: number;
    readonly signal?: AbortSignal;
    /** PEM of authorities to trust beside the system's. */
    readonly ca?: readonly string[];
}

/** The answer to it. */
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
    /** Until the connection stands. Milliseconds, default 10,000. */
    readonly timeoutMs?: number;
    /** Until the connection stands; from then on it is the caller's. */
    readonly signal?: AbortSignal;
}

/** All methods throw OutboundFailure, and nothing else. */
export interface Outbound {
    /** Sends a request and reads the whole answer. */
    request(url: string | URL, options?: OutboundRequest): Promise<OutboundAnswer<Buffer>>;
    /** Sends a request and hands the answer over as it comes; the limits hold while it is read. To be read to its end, or closed. */
    open(
        url: string | URL,
        options?: OutboundRequest
    ): Promise<OutboundAnswer<AsyncIterable<Buffer>> & { close(): void }>;
    /** A connection for another protocol; a `TLSSocket` with `tls`. */
    connect(host: string, port: number, options?: OutboundConnection): Promise<Socket>;
}

/** What the client is built from. */
export type OutboundOptions = DialOptions;

const defaults = { timeoutMs: 15_000, idleMs: 10_000, connectMs: 10_000, maxBytes: 1024 * 1024 } as const;
const redirects = new Set([301, 302, 303, 307, 308]);
/** What may go to another origin than the one that it was meant for. */
const harmless = new Set(['accept', 'accept-encoding', 'accept-language', 'user-agent']);
const own = [
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

export function createOutbound(options: OutboundOptions): Outbound {
    const dialer = createDialer(options);

    async function once(
        url: URL,
        ca: readonly string[] | undefined,
        sent: Omit<Parameters<typeof exchange>[1], 'url'>
    ): Promise<Incoming> {
        const target = targetOf(url);
        const plain = await dialer.tcp(target, sent.signal);
        const socket =
            url.protocol === 'https:'
                ? await dialer.tls(
                      plain,
                      target,
                      { alpn: ['http/1.1'], ...(ca === undefined ? {} : { ca }) },
                      sent.signal
                  )
                : plain;
        return exchange(socket, { ...sent, url });
    }

    async function follow(
        first: string | URL,
        request: OutboundRequest,
        signal: AbortSignal
    ): Promise<{ readonly incoming: Incoming; readonly url: URL }> {
        const { idleMs = defaults.idleMs, maxRedirects = 0, ca } = request;
        let { method = 'GET', body = null }: { method?: string; body?: string | Uint8Array | null } = request;
        let headers = headersOf(request.headers ?? {});
        let url = readUrl(first);
        for (let count = 0; ; count += 1) {
            const incoming = await once(url, ca, { method, headers, body, idleMs, signal });
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
            if (
                method !== 'GET' &&
                method !== 'HEAD' &&
                (incoming.status === 303 || (method === 'POST' && incoming.status < 303))
            ) {
                method = 'GET';
                body = null;
                headers = without(headers, (name) => name.startsWith('content-'));
            }
            if (next.origin !== url.origin) {
                if (body !== null) {
                    throw new OutboundFailure(
                        'REDIRECT_REFUSED',
                        `${url.host} redirects what was sent to it to ${next.host}`
                    );
                }
                headers = without(headers, (name) => !harmless.has(name));
            }
            url = next;
        }
    }

    async function open(url: string | URL, request: OutboundRequest = {}): ReturnType<Outbound['open']> {
        const limit = deadline(request.timeoutMs ?? defaults.timeoutMs, request.signal);
        try {
            const { incoming, url: last } = await follow(url, request, limit.signal);
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

    return {
        open,
        async request(url, request) {
            const answer = await open(url, request);
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
        },
        async connect(host, port, { tls = false, timeoutMs = defaults.connectMs, signal, ...secure } = {}) {
            const limit = deadline(timeoutMs, signal);
            try {
                const target = readTarget(host, port);
                const socket = await dialer.tcp(target, limit.signal);
                return tls ? await dialer.tls(socket, target, secure, limit.signal) : socket;
            } catch (error) {
                throw asFailure(error);
            } finally {
                limit.end();
            }
        }
    };
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
        if (own.includes(lower)) {
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
