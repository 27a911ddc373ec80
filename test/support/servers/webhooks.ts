/** A receiver of webhooks on the loopback address. It verifies signatures with code of its own and gives the answers of a test. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Received {
    /** With its query. */
    readonly path: string;
    readonly headers: IncomingHttpHeaders;
    readonly body: string;
    readonly at: number;
}

export interface Receiver {
    readonly url: string;
    readonly received: Received[];
    /** Answers a request; `count` begins at 1. Default: 204. */
    answer: (response: ServerResponse, received: Received, count: number) => void;
    close(): Promise<void>;
}

export async function openReceiver(): Promise<Receiver> {
    const received: Received[] = [];
    const server = createServer((request, response) => {
        let body = '';
        request
            .setEncoding('utf8')
            .on('data', (chunk: string) => {
                body += chunk;
            })
            .once('end', () => {
                const one = { path: request.url ?? '', headers: request.headers, body, at: Date.now() };
                received.push(one);
                receiver.answer(response, one, received.length);
            });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const receiver: Receiver = {
        url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
        received,
        answer: (response) => void response.writeHead(204).end(),
        async close() {
            server.closeAllConnections();
            server.close();
            await once(server, 'close');
        }
    };
    return receiver;
}

/**
 * Whether one of the signatures is right: a second implementation of the Standard Webhooks specification, on another crypto API.
 * @throws Error when nothing was received
 */
export async function verifies(secret: string, received: Received | undefined): Promise<boolean> {
    if (received === undefined) {
        throw new Error('Nothing was received.');
    }
    const { headers, body } = received;
    const bytes = Uint8Array.from(atob(secret.replace(/^whsec_/, '')), (char) => char.charCodeAt(0));
    const key = await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, [
        'verify'
    ]);
    const signed = new TextEncoder().encode(
        [headers['webhook-id'], headers['webhook-timestamp'], body].join('.')
    );
    for (const signature of String(headers['webhook-signature']).split(' ')) {
        const [version, encoded = ''] = signature.split(',');
        if (
            version === 'v1' &&
            (await crypto.subtle.verify(
                'HMAC',
                key,
                Uint8Array.from(atob(encoded), (char) => char.charCodeAt(0)),
                signed
            ))
        ) {
            return true;
        }
    }
    return false;
}
