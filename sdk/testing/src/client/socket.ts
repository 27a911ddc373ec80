/** A WebSocket of a test. */
import { on, once } from 'node:events';
import type { IncomingMessage } from 'node:http';

import { WebSocket } from 'ws';

import { inTime } from '../deadline.ts';
import { answerOf, failureOfAnswer } from './answer.ts';

type Message = string | Uint8Array;

/** The client's end of a WebSocket, which gives the messages in their order. */
export class TestSocket implements AsyncIterable<Message> {
    /** How it was closed: 1000 when the handler is done, 1011 when it failed, 1012 when the plugin stopped, 4401 when the session ended. */
    readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
    readonly #socket: WebSocket;
    readonly #path: string;
    readonly #patienceMs: number;
    readonly #inbox: AsyncIterator<readonly [Buffer, boolean]>;

    /** @internal */
    constructor(socket: WebSocket, path: string, patienceMs: number) {
        this.#socket = socket;
        this.#path = path;
        this.#patienceMs = patienceMs;
        this.#inbox = on(socket, 'message', { close: ['close'] })[Symbol.asyncIterator]() as AsyncIterator<
            readonly [Buffer, boolean]
        >;
        this.closed = once(socket, 'close').then(([code, reason]) => ({
            code: Number(code),
            reason: String(reason)
        }));
    }

    /** Sends a message. */
    send(data: Message): void {
        this.#socket.send(data);
    }

    /** The next message. @throws Error when the socket is closed before one comes; TestTimeout when none comes in time */
    async receive(): Promise<Message> {
        const next = await inTime(
            `a message of the WebSocket ${this.#path}`,
            this.#patienceMs,
            this.#inbox.next()
        );
        if (next.done === true) {
            const { code, reason } = await this.closed;
            throw new Error(`The WebSocket was closed (${code} ${reason})`);
        }
        const [data, isBinary] = next.value;
        return isBinary ? new Uint8Array(data) : data.toString();
    }

    /** Closes it from this side. */
    close(code = 1000): void {
        this.#socket.close(code);
    }

    /** Tears the connection off: the other side hears no goodbye. */
    terminate(): void {
        this.#socket.terminate();
    }

    async *[Symbol.asyncIterator](): AsyncGenerator<Message> {
        while (this.#socket.readyState === WebSocket.OPEN || this.#socket.readyState === WebSocket.CLOSING) {
            const message = await this.receive().catch((error: unknown) => {
                if (this.#socket.readyState !== WebSocket.CLOSED) {
                    throw error;
                }
                return null;
            });
            if (message === null) {
                return;
            }
            yield message;
        }
    }
}

/** Opens one. @throws FailureError when it is refused */
export async function openTestSocket(
    url: URL,
    headers: Readonly<Record<string, string>>,
    path: string,
    patienceMs: number
): Promise<TestSocket> {
    const socket = new WebSocket(url.href.replace(/^http/, 'ws'), { headers });
    const test = new TestSocket(socket, path, patienceMs);
    const refused = new Promise<never>((_resolve, reject) => {
        socket.once('unexpected-response', (_request, response: IncomingMessage) => {
            void response.toArray().then((chunks) => {
                const given = new Headers(response.headers as Record<string, string>);
                reject(
                    failureOfAnswer(
                        answerOf(response.statusCode ?? 0, given, Buffer.concat(chunks as Buffer[]))
                    )
                );
            }, reject);
        });
        socket.on('error', reject);
    });
    refused.catch(() => undefined);
    test.closed.catch(() => undefined);
    await inTime(`the WebSocket ${path} to open`, patienceMs, Promise.race([once(socket, 'open'), refused]));
    return test;
}
