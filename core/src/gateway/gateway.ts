/**
 * The gateway: one plain HTTP server owns the port and hands each request to the server that owns its path. Nothing is ever removed from
 * a shared router; a mounted server is dropped whole.
 */
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Server as Listener, type AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises';
import type { ServerInjectOptions, ServerInjectResponse } from '@hapi/hapi';
import { fail } from '../errors.ts';
import { commonHeaders, failureEnvelope, jsonType } from '../http/envelope.ts';
import type { HttpServer } from '../http/server.ts';
import { liftTicket } from '../http/ticket.ts';
import { refuse } from '../http/upgrade.ts';
import type { Route } from '../http/route.ts';
import type { Logger } from '../log.ts';
import { createMount, type Mount } from './mount.ts';

export interface Gateway {
    /** Serves `/api/plugins/<name>/*` with this server from now on. One that was there before drains and is stopped. */
    mount(name: string, server: HttpServer): Promise<void>;
    /** Takes a server away: new requests go to the core at once, those under way finish. Resolves with how many had to be cut. */
    unmount(name: string): Promise<number>;
    /** Everything that is mounted now, the core first. */
    servers(): readonly HttpServer[];
    /** The route that a GET of this path (no query) reaches. */
    resolve(path: string): Route | null;
    /** Sends a request past the network, by the same map. */
    inject(options: ServerInjectOptions & { readonly url: string }): Promise<ServerInjectResponse>;
    listen(host: string, port: number): Promise<AddressInfo>;
    /** Stops listening, drains everything and stops every server. Resolves with how many requests had to be cut. */
    close(): Promise<number>;
}

export interface GatewayOptions {
    readonly core: HttpServer;
    readonly log: Logger;
    /** How long a server that goes may finish what it has under way; default 30 s. */
    readonly drainMs?: number;
}

const pluginPrefix = '/api/plugins/';
const maxHeaderBytes = 16 * 1024;
const headersTimeoutMs = 15_000;
/** Longer than what sits in front usually waits (60 s), so that it is the other side which closes. */
const keepAliveMs = 65_000;
/** How long somebody who connected just before the end has to send the request. */
const lateMs = 50;
/** So many connections that wait at the end are still accepted. */
const mostLate = 512;
/** No byte in either direction for so long ends a connection; streams send a comment far more often. */
const silenceMs = 120_000;

export async function createGateway({ core, log, drainMs = 30_000 }: GatewayOptions): Promise<Gateway> {
    const coreMount = createMount(core);
    const mounts = new Map<string, Mount>();
    const leaving = new Set<Promise<number>>();
    const front = createServer({
        maxHeaderSize: maxHeaderBytes, headersTimeout: headersTimeoutMs, requestTimeout: 0, keepAliveTimeout: keepAliveMs, requireHostHeader: false,
        // Clients that offer HTTP/2 on the way (RFC 9110, section 7.8) are answered in HTTP/1.1, as if they had not.
        shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === 'websocket'
    });
    front.timeout = silenceMs;

    const ownerOf = (url: string): Mount => {
        if (url.startsWith(pluginPrefix)) {
            const end = url.indexOf('/', pluginPrefix.length);
            if (end > 0 && end + 1 < url.length) {
                return mounts.get(url.slice(pluginPrefix.length, end)) ?? coreMount;
            }
        }
        return coreMount;
    };
    const serve = (request: IncomingMessage, response: ServerResponse, expecting: boolean): void => {
        if (lacksHost(request)) {
            response.writeHead(400, { ...refusalHeaders(), connection: 'close' }).end(refusal('The header Host is missing'));
            return;
        }
        liftTicket(request);
        ownerOf(request.url ?? '/').request(request, response, expecting);
    };
    front.on('request', (request: IncomingMessage, response: ServerResponse) => serve(request, response, false));
    front.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => serve(request, response, true));
    front.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
        if (lacksHost(request)) {
            refuse(socket, 400, refusalHeaders(), refusal('The header Host is missing'));
            return;
        }
        liftTicket(request);
        ownerOf(request.url ?? '/').upgrade(request, socket, head);
    });
    front.on('clientError', answerClientError);
    await core.start();

    const leave = async (mount: Mount): Promise<number> => {
        const draining = mount.drain(drainMs);
        leaving.add(draining);
        const cut = await draining.finally(() => leaving.delete(draining));
        if (cut > 0) {
            log.warn('Requests were cut when their server was taken away', { server: mount.server.name, cut });
        }
        return cut;
    };
    return {
        async mount(name, server) {
            await server.start();
            const before = mounts.get(name);
            mounts.set(name, createMount(server));
            if (before !== undefined) {
                await leave(before);
            }
        },
        async unmount(name) {
            const mount = mounts.get(name);
            mounts.delete(name);
            return mount === undefined ? 0 : leave(mount);
        },
        servers: () => [core, ...[...mounts.values()].map((mount) => mount.server)],
        resolve: (path) => ownerOf(path).server.resolve(path),
        inject: (options) => ownerOf(options.url).server.inject(options),
        listen: (host, port) => listen(front, host, port),
        async close() {
            const { closed } = await stopListening(front);
            const sweep = setInterval(() => front.closeIdleConnections(), 100);
            const cuts = await Promise.all([...[...mounts.values(), coreMount].map((mount) => leave(mount)), ...leaving]);
            clearInterval(sweep);
            front.closeAllConnections();
            await closed;
            return cuts.reduce((sum, cut) => sum + cut, 0);
        }
    };
}

function listen(front: Server, host: string, port: number): Promise<AddressInfo> {
    return new Promise((resolve, reject) => {
        front.once('error', reject);
        front.listen(port, host, () => {
            front.removeListener('error', reject);
            resolve(front.address() as AddressInfo);
        });
    });
}

/**
 * Lets nobody in any more. Whoever had connected is still heard: the kernel holds connections that were not accepted yet, and an accepted one
 * whose request was not read yet counts as idle, so that `http.Server.close` would reset both.
 */
async function stopListening(front: Server): Promise<{ readonly closed: Promise<void> }> {
    if (!front.listening) {
        return { closed: Promise.resolve() };
    }
    // One connection is accepted in a turn of the loop, so a turn without one says that none waits.
    let accepted = false;
    const notice = (): void => {
        accepted = true;
    };
    front.on('connection', notice);
    for (let turns = 0, quiet = 0; turns < mostLate && quiet < 2; turns += 1) {
        accepted = false;
        await turn();
        quiet = accepted ? 0 : quiet + 1;
    }
    front.removeListener('connection', notice);
    const closed = new Promise<void>((resolve) => Listener.prototype.close.call(front, () => resolve()));
    await wait(lateMs);
    await turn();
    return { closed };
}

/** What is not even HTTP still gets the envelope. */
function answerClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
    if (error.code === 'ECONNRESET' || !socket.writable) {
        socket.destroy();
        return;
    }
    const message = error.code === 'HPE_HEADER_OVERFLOW' ? `The headers are larger than ${maxHeaderBytes} bytes` : error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'The request did not arrive in time' : 'This is not an HTTP request';
    refuse(socket, 400, refusalHeaders(), refusal(message));
}

/** RFC 9112, section 3.2. Node would refuse it too, but without the envelope. */
function lacksHost({ headers, httpVersion }: IncomingMessage): boolean {
    return headers.host === undefined && httpVersion !== '1.0';
}

function refusalHeaders(): Record<string, string> {
    return { 'content-type': jsonType, ...commonHeaders, 'x-request-id': randomUUID() };
}

function refusal(message: string): string {
    return failureEnvelope(fail.BAD_REQUEST(null, { message }));
}
