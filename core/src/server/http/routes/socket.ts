/**
 * WebSockets. An upgrade first makes a dry run through the server like any GET, so identity, access, validation and the envelope of a
 * refusal are those of every other route; only a dry run that was approved becomes a handshake.
 */
import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';

import type { Lifecycle, Request, ResponseToolkit, Server } from '@hapi/hapi';
import type { Socket } from '@portico/sdk';
import { type RawData, type WebSocket, WebSocketServer } from 'ws';

import { fail } from '../../../platform/errors.ts';
import type { HttpPorts } from '../ports.ts';
import type { HttpCall } from '../request/http-call.ts';
import { readAddress } from '../request/input/input.ts';
import type { RequestState } from '../request/state.ts';
import { ticketOf } from '../request/ticket.ts';
import type { Route } from '../route.ts';

type SocketRoute = Extract<Route, { kind: 'socket' }>;

interface Approval {
    readonly route: SocketRoute;
    readonly call: HttpCall;
}

const pingMs = 30_000;
const closeTimeoutMs = 5_000;
/** The same for a caller who may not go on: whatever the peer answers, the connection is cut then. */
const revokedTimeoutMs = 500;

/** The handler of a socket route: without an upgrade there is nothing to see. */
export async function approveUpgrade(
    route: SocketRoute,
    call: HttpCall,
    request: Request,
    h: ResponseToolkit
): Promise<Lifecycle.ReturnValue> {
    readAddress(route, call, request);
    const state = request.app as RequestState & { approval?: Approval };
    if (state.upgrading === undefined) {
        throw fail.BAD_REQUEST(null, { message: 'This is a WebSocket: connect with an upgrade' });
    }
    state.approval = { route, call };
    return h.response('').code(200);
}

/** Answers an upgrade request, and owns its socket from then on. */
export async function upgrade({
    hapi,
    ports,
    request,
    socket,
    head
}: {
    hapi: Server;
    ports: HttpPorts;
    request: IncomingMessage;
    socket: Duplex;
    head: Buffer;
}): Promise<void> {
    socket.on('error', () => socket.destroy());
    try {
        if (request.method !== 'GET' || request.headers.upgrade?.toLowerCase() !== 'websocket') {
            return refuse(
                socket,
                400,
                { 'content-type': 'text/plain' },
                'Only WebSocket upgrades are answered'
            );
        }
        if (!sameOrigin(request, ports)) {
            return refuse(socket, 403, { 'content-type': 'text/plain' }, 'This origin is not listed');
        }
        const ticket = ticketOf(request);
        const answer = await hapi.inject({
            method: 'GET',
            url: request.url ?? '/',
            headers: request.headers as Record<string, string>,
            remoteAddress: request.socket.remoteAddress ?? '',
            app: { upgrading: true, ...(ticket === null ? {} : { ticket }) } as never // hapi's type knows no names here
        });
        const { approval } = answer.request.app as RequestState & { approval?: Approval };
        if (answer.statusCode !== 200 || approval === undefined) {
            return refuse(
                socket,
                answer.statusCode,
                answer.headers as Record<string, string>,
                answer.payload
            );
        }
        shake(approval, ports, request, socket, head);
    } catch (error) {
        ports.log.error('An upgrade failed', { error });
        socket.destroy();
    }
}

/** Browsers send no token by themselves here, but a page of another origin must not even try. */
function sameOrigin(request: IncomingMessage, ports: HttpPorts): boolean {
    const { origin, host } = request.headers;
    return (
        origin === undefined ||
        ports.corsOrigins().includes(origin) ||
        (URL.canParse(origin) && new URL(origin).host === host)
    );
}

function shake(
    { route, call }: Approval,
    ports: HttpPorts,
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer
): void {
    const handshake = new WebSocketServer({
        noServer: true,
        clientTracking: false,
        maxPayload: route.maxMessageBytes,
        perMessageDeflate: false,
        handleProtocols: (offered) => route.protocols.find((protocol) => offered.has(protocol)) ?? false
    });
    handshake.handleUpgrade(request, socket, head, (peer) => void serve(peer, route, call, ports));
}

async function serve(peer: WebSocket, route: SocketRoute, call: HttpCall, ports: HttpPorts): Promise<void> {
    const controller = new AbortController();
    const inbox = new Inbox(peer);
    const leave = (): void => closePeer(peer, 1012, 'The service restarts');
    call.ending.addEventListener('abort', leave, { once: true });
    if (call.ending.aborted) {
        leave();
    }
    const stopWatching = ports.authenticator.onEnd(call.actor, route, () => {
        inbox.drop();
        controller.abort();
        closePeer(peer, 4401, 'The session has ended', revokedTimeoutMs);
    });
    let alive = true;
    const pings = setInterval(() => {
        if (!alive) {
            return peer.terminate();
        }
        alive = false;
        peer.ping();
    }, pingMs);
    peer.on('pong', () => {
        alive = true;
    });
    peer.on('error', () => peer.terminate());
    peer.once('close', () => {
        clearInterval(pings);
        stopWatching();
        call.ending.removeEventListener('abort', leave);
        controller.abort();
    });
    call.live(controller.signal);
    // The handler reads no more: a peer that is not read would not be heard when it answers the closing.
    const end = (code: number, reason: string): void => {
        inbox.drop();
        closePeer(peer, code, reason);
    };
    try {
        await route.handler(plainSocket(peer, inbox), call);
        end(1000, '');
    } catch (error) {
        ports.log.error('A WebSocket failed', { requestId: call.id, error });
        end(1011, 'Something went wrong');
    }
}

/** Closes with a time limit: a peer that never answers the closing handshake is cut. */
function closePeer(peer: WebSocket, code: number, reason: string, timeoutMs = closeTimeoutMs): void {
    peer.close(code, reason);
    const timer = setTimeout(() => peer.terminate(), timeoutMs);
    timer.unref();
    peer.once('close', () => clearTimeout(timer));
}

function plainSocket(peer: WebSocket, inbox: Inbox): Socket {
    return {
        send: (data) =>
            new Promise((resolve, reject) => peer.send(data, (error) => (error ? reject(error) : resolve()))),
        close: async (code = 1000, reason = '') => closePeer(peer, code, reason),
        [Symbol.asyncIterator]: () => inbox.read()
    };
}

/** The messages of a peer. It listens from the first byte, and reads with back-pressure: the peer is read only when the handler asks for the next message. */
class Inbox {
    readonly #peer: WebSocket;
    #waiting: (string | Uint8Array)[] = [];
    #isDropped = false;
    #wake: () => void = () => undefined;

    constructor(peer: WebSocket) {
        this.#peer = peer;
        peer.on('message', (data: RawData, isBinary: boolean) => {
            if (this.#isDropped) {
                return;
            }
            this.#waiting.push(isBinary ? new Uint8Array(data as Buffer) : (data as Buffer).toString('utf8'));
            peer.pause();
            this.#wake();
        });
        peer.once('close', () => this.#wake());
    }

    /** Ends the reading: messages that wait are dropped, and those that still arrive are ignored. */
    drop(): void {
        this.#isDropped = true;
        this.#waiting = [];
        this.#peer.resume();
        this.#wake();
    }

    async *read(): AsyncGenerator<string | Uint8Array> {
        for (;;) {
            const message = this.#waiting.shift();
            if (message !== undefined) {
                yield message;
            } else if (this.#isDropped || this.#peer.readyState !== this.#peer.OPEN) {
                return;
            } else {
                const woken = new Promise<void>((resolve) => {
                    this.#wake = resolve;
                });
                this.#peer.resume();
                await woken;
            }
        }
    }
}

/** Writes an answer by hand: there is no response object for an upgrade. */
export function refuse(
    socket: Duplex,
    status: number,
    headers: Readonly<Record<string, string>>,
    body: string
): void {
    const { 'transfer-encoding': _chunked, connection: _connection, ...kept } = headers;
    const lines = Object.entries({
        ...kept,
        connection: 'close',
        'content-length': String(Buffer.byteLength(body))
    }).map(([name, value]) => `${name}: ${value}`);
    socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('\r\n')}\r\n\r\n${body}`);
}
