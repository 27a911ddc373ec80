/** One request and one answer over one connection, which serves nothing else. */
import { type IncomingHttpHeaders, type IncomingMessage, request as httpRequest } from 'node:http';
import type { Socket } from 'node:net';

import { OutboundFailure } from './failure.ts';

const mostHeaderBytes = 16 * 1024;

/** What is sent on a connection, and the limits of the answer. */
export interface Exchange {
    readonly method: string;
    readonly url: URL;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string | Uint8Array | null;
    /** Longest silence, milliseconds. */
    readonly idleMs: number;
    readonly signal: AbortSignal;
}

/** The head of an answer with its body still to be read. */
export interface Incoming {
    readonly status: number;
    readonly headers: IncomingHttpHeaders;
    /** @throws OutboundFailure TOO_LARGE, CUT, TIMED_OUT, or the signal's reason */
    body(maxBytes: number): AsyncGenerator<Buffer, void, undefined>;
    /** Lets go of the connection. */
    close(): void;
}

/** Sends a request and waits for the head of its answer. The connection ends with the answer. @throws OutboundFailure PROTOCOL_ERROR, TOO_LARGE, CUT, TIMED_OUT, or the signal's reason */
export function exchange(
    socket: Socket,
    { method, url, headers, body, idleMs, signal }: Exchange
): Promise<Incoming> {
    return new Promise((resolve, reject) => {
        const fail = (error: unknown): void => {
            socket.destroy();
            reject(signal.aborted ? (signal.reason as Error) : failureOf(error, url));
        };
        const silent = (): void =>
            void socket.destroy(
                new OutboundFailure('TIMED_OUT', `${url.host} was silent for ${idleMs / 1000} s`)
            );
        const aborted = (): void => void socket.destroy(signal.reason as Error);
        socket.setTimeout(idleMs, silent);
        // A body that ends with its connection looks complete however that ended.
        let broken: Error | null = null;
        socket.on('error', (error) => {
            broken ??= error;
        });
        socket.once('close', () => signal.removeEventListener('abort', aborted));
        signal.addEventListener('abort', aborted);
        try {
            const request = httpRequest({
                createConnection: () => socket,
                method,
                path: `${url.pathname}${url.search}`,
                setHost: false,
                maxHeaderSize: mostHeaderBytes,
                headers: {
                    ...headers,
                    host: url.host,
                    connection: 'close',
                    ...(body === null ? {} : { 'content-length': String(Buffer.byteLength(body)) })
                }
            });
            request.on('error', fail);
            request.once('response', (answer) => {
                answer.on('error', () => undefined);
                resolve({
                    status: answer.statusCode ?? 0,
                    headers: answer.headers,
                    body: (maxBytes) =>
                        read(answer, {
                            url,
                            maxBytes: method === 'HEAD' ? Infinity : maxBytes,
                            signal,
                            broken: () => broken,
                            end: () => void socket.destroy()
                        }),
                    close: () => void socket.destroy()
                });
            });
            request.once('upgrade', () =>
                fail(
                    new OutboundFailure(
                        'PROTOCOL_ERROR',
                        `${url.host} changed to a protocol that was not asked for`
                    )
                )
            );
            request.end(body ?? undefined);
            if (signal.aborted) {
                fail(signal.reason);
            }
        } catch (error) {
            fail(error);
        }
    });
}

interface Reading {
    readonly url: URL;
    readonly maxBytes: number;
    readonly signal: AbortSignal;
    /** What ended the connection, if that was not its proper end. */
    broken(): Error | null;
    end(): void;
}

async function* read(
    answer: IncomingMessage,
    { url, maxBytes, signal, broken, end }: Reading
): AsyncGenerator<Buffer, void, undefined> {
    const large = (): OutboundFailure =>
        new OutboundFailure('TOO_LARGE', `The answer of ${url.host} is larger than ${maxBytes} bytes`);
    let bytes = 0;
    try {
        if (Number(answer.headers['content-length'] ?? 0) > maxBytes) {
            throw large();
        }
        for await (const chunk of answer as AsyncIterable<Buffer>) {
            bytes += chunk.length;
            if (bytes > maxBytes) {
                throw large();
            }
            yield chunk;
        }
        const error = broken();
        if (error !== null) {
            throw error;
        }
    } catch (error) {
        throw signal.aborted ? signal.reason : failureOf(error, url);
    } finally {
        end();
    }
}

function failureOf(error: unknown, { host }: URL): OutboundFailure {
    if (error instanceof OutboundFailure) {
        return error;
    }
    const { code = '', message } = error as NodeJS.ErrnoException;
    if (code === 'HPE_HEADER_OVERFLOW') {
        return new OutboundFailure(
            'TOO_LARGE',
            `The answer of ${host} has more than ${mostHeaderBytes} bytes of headers`,
            error
        );
    }
    if (
        code === 'ERR_INVALID_CHAR' ||
        code === 'ERR_INVALID_HTTP_TOKEN' ||
        code === 'ERR_UNESCAPED_CHARACTERS'
    ) {
        return new OutboundFailure(
            'URL_REFUSED',
            `The request to ${host} cannot be written: ${message}`,
            error
        );
    }
    if (code.startsWith('HPE_')) {
        return new OutboundFailure('PROTOCOL_ERROR', `What ${host} answers is not HTTP`, error);
    }
    return new OutboundFailure('CUT', `${host} closed the connection before it was done`, error);
}
