/** An upstream that answers with what it received. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';

import { WebSocketServer } from 'ws';

export interface Received {
    readonly name: string;
    readonly method: string;
    readonly url: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string;
}

export interface TestUpstream {
    /** `127.0.0.1:<port>` */
    readonly address: string;
    /** Number of requests so far. */
    readonly count: () => number;
    close(): Promise<void>;
}

/**
 * Starts an upstream. It answers 200 with the request and its own name as JSON. `answer` can give another answer and then returns true.
 * WebSockets send every message back.
 */
export const startUpstream = async (
    name: string,
    answer: (request: IncomingMessage, response: ServerResponse) => boolean = () => false,
    at: string | number = 0
): Promise<TestUpstream> => {
    let count = 0;
    const server = createServer((request, response) => {
        count += 1;
        const chunks: Buffer[] = [];
        request.on('error', () => undefined);
        request.on('data', (chunk: Buffer) => chunks.push(chunk));
        request.on('end', () => {
            if (answer(request, response)) {
                return;
            }

            response.setHeader('content-type', 'application/json');
            response.end(
                JSON.stringify({
                    name,
                    method: request.method,
                    url: request.url,
                    headers: request.headers,
                    body: Buffer.concat(chunks).toString()
                })
            );
        });
    });
    const sockets = new WebSocketServer({ server });
    sockets.on('connection', (socket) => {
        // Caddy before 2.7 closes with a frame that the protocol forbids.
        socket.on('error', () => undefined);
        socket.on('message', (data) => socket.send(`${name}:${String(data)}`));
    });
    const open = new Set<Duplex>();
    server.on('connection', (socket) => {
        open.add(socket);
        socket.once('close', () => open.delete(socket));
    });
    await new Promise<void>((resolve) =>
        typeof at === 'string' ? server.listen(at, resolve) : server.listen(at, '127.0.0.1', resolve)
    );
    const address = server.address();
    return {
        address:
            typeof address === 'string' ? `unix/${address}` : `127.0.0.1:${(address as AddressInfo).port}`,
        count: () => count,
        close: async () => {
            sockets.close();
            for (const socket of open) {
                socket.destroy();
            }

            await new Promise<void>((resolve) => server.close(() => resolve()));
        }
    };
};

/** Reads the answer of an upstream. @throws Error when it is not JSON */
export const received = (body: string): Received => JSON.parse(body) as Received;
