/** The HTTP server that owns the port: how it listens, refuses what no server gets to see, and stops without resetting connections. */
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, Server as Listener } from 'node:net';
import type { Duplex } from 'node:stream';
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises';

import type { FailureError } from '@portico/sdk';

import { bindWhenFree } from '../../platform/address/ephemeral-port.ts';
import { fail } from '../../platform/errors.ts';
import { commonHeaders, failureEnvelope, jsonType } from '../http/answer/envelope.ts';
import { refuse } from '../http/routes/socket.ts';

const maxHeaderBytes = 16 * 1024;
const headersTimeoutMs = 15_000;
/** Longer than a proxy in front usually waits (60 s), so that the proxy closes first. */
const keepAliveMs = 65_000;
/** How long a client that connected just before the end has to send its request. */
const lateMs = 50;
const bindMs = 10_000;
/** The number of waiting connections that are still accepted at the end. */
const mostLate = 512;
/** No byte in either direction for so long ends a connection; streams send a comment far more often. */
const silenceMs = 120_000;

/** The newest request of a connection, and its answer. */
type Exchange = readonly [request: IncomingMessage, response: ServerResponse];

/** Makes the server. It answers nothing but errors of the protocol. @param silentMs - no byte in either direction for so long ends a connection */
export function createFront(silentMs = silenceMs): Server {
    const front = createServer({
        maxHeaderSize: maxHeaderBytes,
        headersTimeout: headersTimeoutMs,
        requestTimeout: 0,
        keepAliveTimeout: keepAliveMs,
        requireHostHeader: false,
        // Clients that offer HTTP/2 on the way (RFC 9110, section 7.8) are answered in HTTP/1.1, as if they had not.
        shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === 'websocket'
    });
    const newest = new WeakMap<Duplex, Exchange>();
    const note = (...exchange: Exchange): void => void newest.set(exchange[0].socket, exchange);
    front.prependListener('request', note).prependListener('checkContinue', note);
    front.setTimeout(silentMs, (socket) => {
        if (isHalfSent(newest.get(socket))) {
            answerTimeout(socket, 'The body did not arrive in time');
            socket.destroySoon();
        } else {
            socket.destroy();
        }
    });
    front.on('clientError', (error: NodeJS.ErrnoException, socket) => {
        if (isHalfSent(newest.get(socket)) && socket.writable) {
            answerTimeout(socket, 'The connection ended before the body did');
        } else {
            answerClientError(error, socket);
        }
    });
    return front;
}

/** Starts to listen. Waits up to 10 s for a port that an outgoing connection has. */
export function listen(front: Server, host: string, port: number): Promise<AddressInfo> {
    return bindWhenFree(port, () => tryToListen(front, host, port), bindMs);
}

function tryToListen(front: Server, host: string, port: number): Promise<AddressInfo> {
    return new Promise((resolve, reject) => {
        front.once('error', reject);
        front.listen(port, host, () => {
            front.removeListener('error', reject);
            resolve(front.address() as AddressInfo);
        });
    });
}

/**
 * Stops listening without losing requests of clients that had connected: the kernel holds connections that were not accepted yet, and an
 * accepted one whose request was not read yet counts as idle, so that `http.Server.close` would reset both.
 *
 * @returns a promise that resolves when the last connection is closed
 */
export async function stopListening(front: Server): Promise<{ readonly closed: Promise<void> }> {
    if (!front.listening) {
        return { closed: Promise.resolve() };
    }
    // One connection is accepted in a turn of the loop, so a turn without one says that none waits.
    let accepted = false;
    const notice = (): void => {
        accepted = true;
    };
    front.on('connection', notice);
    for (let round = 0, quiet = 0; round < mostLate && quiet < 2; round += 1) {
        accepted = false;
        await nextTurn();
        quiet = accepted ? 0 : quiet + 1;
    }
    front.removeListener('connection', notice);
    const closed = new Promise<void>((resolve) => Listener.prototype.close.call(front, () => resolve()));
    await wait(lateMs);
    await nextTurn();
    return { closed };
}

/** Whether the body of a request is not complete, and nothing was answered yet. */
function isHalfSent(exchange: Exchange | undefined): boolean {
    return exchange !== undefined && !exchange[0].complete && !exchange[1].headersSent;
}

function answerTimeout(socket: Duplex, message: string): void {
    refuse(socket, 408, refusalHeaders(), failureEnvelope(fail.REQUEST_TIMEOUT(null, { message })));
}

/** Answers with the envelope also what is not even HTTP. */
function answerClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
    if (error.code === 'ECONNRESET' || !socket.writable) {
        socket.destroy();
        return;
    }
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') {
        answerTimeout(socket, 'The headers did not arrive in time');
        return;
    }
    const message =
        error.code === 'HPE_HEADER_OVERFLOW'
            ? `The headers are larger than ${maxHeaderBytes} bytes`
            : 'This is not an HTTP request';
    refuse(socket, 400, refusalHeaders(), refusal(message));
}

/** A backslash, or a segment that the URL standard reads as `.` or `..`: `/api/x/../settings` would be another path for each reader. */
const ambiguousPath = /\\|\/(?:\.|%2e){1,2}(?:\/|$)/i;

/**
 * Why a request reaches no server; null when it may. `Host` must be there, once (RFC 9112, section 3.2): Node takes the first of several, another
 * proxy may take the last.
 */
function requestFault({ headers, httpVersion, rawHeaders, url = '/' }: IncomingMessage): FailureError | null {
    if (headers.host === undefined && httpVersion !== '1.0') {
        return fail.BAD_REQUEST(null, { message: 'The header Host is missing' });
    }
    if (countOfHost(rawHeaders) > 1) {
        return fail.BAD_REQUEST(null, { message: 'The header Host is there twice' });
    }
    const query = url.indexOf('?');
    return ambiguousPath.test(query < 0 ? url : url.slice(0, query))
        ? fail.NOT_FOUND(null, { message: 'The path may have no backslash, and no segment . or ..' })
        : null;
}

/** @param rawHeaders - names and values in turns */
function countOfHost(rawHeaders: readonly string[]): number {
    let count = 0;
    for (let at = 0; at < rawHeaders.length; at += 2) {
        const name = rawHeaders[at];
        if (name?.length === 4 && name.toLowerCase() === 'host') {
            count += 1;
        }
    }
    return count;
}

/** Answers a request that may reach no server. @returns whether it was one */
export function refuseRequest(request: IncomingMessage, response: ServerResponse): boolean {
    const fault = requestFault(request);
    if (fault !== null) {
        const headers = { ...refusalHeaders(), connection: 'close' };
        response.writeHead(statusOf(fault), headers).end(failureEnvelope(fault));
    }
    return fault !== null;
}

/** The same for an upgrade. */
export function refuseUpgrade(request: IncomingMessage, socket: Duplex): boolean {
    const fault = requestFault(request);
    if (fault !== null) {
        refuse(socket, statusOf(fault), refusalHeaders(), failureEnvelope(fault));
    }
    return fault !== null;
}

function statusOf({ code }: FailureError): number {
    return Math.floor(code / 100);
}

/** Headers of an answer that no server gave. */
export function refusalHeaders(): Record<string, string> {
    return { 'content-type': jsonType, ...commonHeaders, 'x-request-id': randomUUID() };
}

/** The body of a 400. */
function refusal(message: string): string {
    return failureEnvelope(fail.BAD_REQUEST(null, { message }));
}
