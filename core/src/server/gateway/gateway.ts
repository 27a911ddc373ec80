/**
 * The gateway: one plain HTTP server owns the port and hands each request to the server that owns its path. Nothing is ever removed from
 * a shared router; a mounted server is dropped whole.
 */
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, Server as Listener } from 'node:net';
import type { Duplex } from 'node:stream';
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises';

import type { ServerInjectOptions, ServerInjectResponse } from '@hapi/hapi';

import { fail } from '../../platform/errors.ts';
import type { Logger } from '../../platform/log.ts';
import {
    commonHeaders,
    failureEnvelope,
    failureHeaders,
    failureOf,
    jsonType
} from '../http/answer/envelope.ts';
import { liftTicket } from '../http/request/ticket.ts';
import type { Route } from '../http/route.ts';
import { refuse } from '../http/routes/socket.ts';
import type { HttpServer } from '../http/server.ts';
import { createGate, type Gate, type GateLimits, type Leave } from './gate.ts';
import { createMount, type Mount } from './mount.ts';

export interface Gateway {
    /**
     * Serves `/api/plugins/<name>/*` with this server from now on. One that was there before drains and is stopped.
     * @param root - reads of every path that is neither below `/api` nor the core's
     * @throws Error when another plugin serves the root
     */
    mount(name: string, server: HttpServer, root?: HttpServer | null): Promise<void>;
    /** Takes a server away: new requests go to the core at once (or wait, while the gate is parked), those under way finish. Resolves with how many had to be cut. */
    unmount(name: string): Promise<number>;
    /** What is under way on a server that goes, now or next, gets no time to finish. */
    hurry(name: string): void;
    /** The gate of a plugin: one for all of its generations. */
    gate(name: string): Gate;
    /** Parks a plugin's gate. @throws TypeError when it is parked already */
    park(name: string): Parking;
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

/** A parked gate, until it is opened. */
export interface Parking {
    /** Ends streams and sockets with a hint to come back, waits for the rest at most `milliseconds`. Resolves with how many are still inside. */
    drain(milliseconds: number): Promise<number>;
    /** Ends requests and sockets that are still inside; how many. */
    cut(): number;
    /** Lets in whoever waits: to the server that is mounted now, or to the core when none is. */
    open(): void;
}

export interface GatewayOptions {
    readonly core: HttpServer;
    readonly log: Logger;
    /** How long a server that goes may finish what it has under way; default 30 s. */
    readonly drainMs?: number;
    /** Who may wait while a gate is parked, and how long. */
    readonly waiting?: Partial<GateLimits>;
}

/** One plugin's place behind the gateway. */
interface Door {
    readonly gate: Gate;
    mount: Mount | null;
    /** What it serves at the root of the site. */
    root: Mount | null;
    /** While the gate is parked: whose routes those are that will be there again. */
    last: HttpServer | null;
    /** Servers that were taken away and still have something under way. */
    readonly leaving: Set<Mount>;
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

export async function createGateway({
    core,
    log,
    drainMs = 30_000,
    waiting = {}
}: GatewayOptions): Promise<Gateway> {
    const coreMount = createMount(core);
    const doors = new Map<string, Door>();
    const leaving = new Set<Promise<number>>();
    /** Whose the root of the site is; also while its gate is parked. */
    let rootName: string | null = null;
    const front = createServer({
        maxHeaderSize: maxHeaderBytes,
        headersTimeout: headersTimeoutMs,
        requestTimeout: 0,
        keepAliveTimeout: keepAliveMs,
        requireHostHeader: false,
        // Clients that offer HTTP/2 on the way (RFC 9110, section 7.8) are answered in HTTP/1.1, as if they had not.
        shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === 'websocket'
    });
    front.timeout = silenceMs;

    const doorOf = (name: string): Door => {
        let door = doors.get(name);
        if (door === undefined) {
            door = {
                gate: createGate(name, waiting),
                mount: null,
                root: null,
                last: null,
                leaving: new Set()
            };
            doors.set(name, door);
        }
        return door;
    };
    const ownerOf = (url: string): Door | null => {
        if (url.startsWith(pluginPrefix)) {
            const end = url.indexOf('/', pluginPrefix.length);
            if (end > 0 && end + 1 < url.length) {
                return doors.get(url.slice(pluginPrefix.length, end)) ?? null;
            }
        }
        return null;
    };
    /** The plugin that serves this path at the root of the site. */
    const rootOf = (request: IncomingMessage): Door | null => {
        const path = (request.url ?? '/').split('?', 1)[0] ?? '/';
        if (
            rootName === null ||
            (request.method !== 'GET' && request.method !== 'HEAD') ||
            !path.startsWith('/') ||
            path === '/api' ||
            path.startsWith('/api/')
        ) {
            return null;
        }
        try {
            return core.resolve(path) === null ? (doors.get(rootName) ?? null) : null;
        } catch {
            return null; // no path at all: the core says so
        }
    };
    const serverOf = (door: Door | null): HttpServer => door?.mount?.server ?? door?.last ?? core;
    const serve = (request: IncomingMessage, response: ServerResponse, expecting: boolean): void => {
        if (lacksHost(request)) {
            response
                .writeHead(400, { ...refusalHeaders(), connection: 'close' })
                .end(refusal('The header Host is missing'));
            return;
        }
        liftTicket(request);
        const own = ownerOf(request.url ?? '/');
        const door = own ?? rootOf(request);
        if (door === null) {
            coreMount.request(request, response, expecting);
            return;
        }
        const enter = (leave: Leave): void =>
            ((own === null ? door.root : door.mount) ?? coreMount).request(
                request,
                response,
                expecting,
                leave
            );
        if (door.gate.enter()) {
            enter(door.gate.leave);
            return;
        }
        // Nothing of the body is read, and nobody who waits for "100 Continue" is answered, before there is a server that wants it.
        untilGone(door.gate, response, enter, (headers, body) =>
            response.writeHead(503, { ...headers, connection: 'close' }).end(body)
        );
    };
    front.on('request', (request: IncomingMessage, response: ServerResponse) =>
        serve(request, response, false)
    );
    front.on('checkContinue', (request: IncomingMessage, response: ServerResponse) =>
        serve(request, response, true)
    );
    front.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
        if (lacksHost(request)) {
            refuse(socket, 400, refusalHeaders(), refusal('The header Host is missing'));
            return;
        }
        liftTicket(request);
        const door = ownerOf(request.url ?? '/');
        if (door === null) {
            coreMount.upgrade(request, socket, head);
            return;
        }
        const enter = (leave: Leave): void => {
            socket.once('close', leave);
            (door.mount ?? coreMount).upgrade(request, socket, head);
        };
        const leave = door.gate.pass();
        if (leave !== null) {
            enter(leave);
            return;
        }
        const drop = (): void => void socket.destroy();
        socket.on('error', drop);
        untilGone(
            door.gate,
            socket,
            (given) => {
                socket.removeListener('error', drop);
                enter(given);
            },
            (headers, body) => refuse(socket, 503, headers, body)
        );
    });
    front.on('clientError', answerClientError);
    await core.start();

    const leave = async (mount: Mount, door: Door | null = null): Promise<number> => {
        const draining = mount.drain(drainMs);
        leaving.add(draining);
        door?.leaving.add(mount);
        const cut = await draining.finally(() => {
            leaving.delete(draining);
            door?.leaving.delete(mount);
        });
        if (cut > 0) {
            log.warn('Requests were cut when their server was taken away', {
                server: mount.server.name,
                cut
            });
        }
        return cut;
    };
    return {
        async mount(name, server, root = null) {
            if (root !== null && rootName !== null && rootName !== name) {
                throw new Error(`The plugin ${rootName} serves the root of the site already`);
            }
            rootName = root === null && rootName === name ? null : root === null ? rootName : name;
            await Promise.all([server.start(), root?.start()]);
            const door = doorOf(name);
            const before = [door.mount, door.root].filter((mount) => mount !== null);
            door.mount = createMount(server);
            door.root = root === null ? null : createMount(root);
            door.last = null;
            await Promise.all(before.map((each) => leave(each, door)));
        },
        async unmount(name) {
            const door = doors.get(name);
            const mount = door?.mount ?? null;
            if (door === undefined || mount === null) {
                return 0;
            }
            const { root } = door;
            [door.mount, door.root] = [null, null];
            door.last = door.gate.isParked ? mount.server : null;
            if (rootName === name && !door.gate.isParked) {
                rootName = null;
            }
            const cuts = await Promise.all(
                [mount, ...(root === null ? [] : [root])].map((each) => leave(each, door))
            );
            return cuts.reduce((sum, cut) => sum + cut, 0);
        },
        hurry(name) {
            const door = doors.get(name);
            [door?.mount, door?.root, ...(door?.leaving ?? [])].forEach((mount) => mount?.hurry());
        },
        gate: (name) => doorOf(name).gate,
        park(name) {
            const door = doorOf(name);
            door.gate.park();
            const before = door.mount;
            return {
                async drain(milliseconds) {
                    before?.server.endStreams();
                    return door.gate.empty(milliseconds);
                },
                cut: () => before?.cut() ?? 0,
                open() {
                    door.last = null;
                    if (rootName === name && door.root === null) {
                        rootName = null;
                    }
                    if (door.mount === before) {
                        before?.server.resumeStreams();
                    }
                    door.gate.open();
                }
            };
        },
        servers: () => [
            core,
            ...[...doors.values()].flatMap((door) => door.mount?.server ?? door.last ?? [])
        ],
        resolve: (path) => serverOf(ownerOf(path)).resolve(path),
        async inject(options) {
            const door = ownerOf(options.url);
            if (door === null) {
                return coreMount.inject(options);
            }
            const leave = door.gate.pass() ?? (await door.gate.wait());
            try {
                return await (door.mount ?? coreMount).inject(options);
            } finally {
                leave();
            }
        },
        listen: (host, port) => listen(front, host, port),
        async close() {
            const { closed } = await stopListening(front);
            doors.forEach(({ gate }) => gate.close());
            const sweep = setInterval(() => front.closeIdleConnections(), 100);
            const cuts = await Promise.all([
                ...[
                    ...[...doors.values()].flatMap(({ mount, root }) =>
                        [mount, root].filter((each) => each !== null)
                    ),
                    coreMount
                ].map((mount) => leave(mount)),
                ...leaving
            ]);
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
    const message =
        error.code === 'HPE_HEADER_OVERFLOW'
            ? `The headers are larger than ${maxHeaderBytes} bytes`
            : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
              ? 'The request did not arrive in time'
              : 'This is not an HTTP request';
    refuse(socket, 400, refusalHeaders(), refusal(message));
}

/** RFC 9112, section 3.2. Node would refuse it too, but without the envelope. */
function lacksHost({ headers, httpVersion }: IncomingMessage): boolean {
    return headers.host === undefined && httpVersion !== '1.0';
}

function refusalHeaders(): Record<string, string> {
    return { 'content-type': jsonType, ...commonHeaders, 'x-request-id': randomUUID() };
}

/** Lets somebody in once the gate opens, unless they have gone by then. */
function untilGone(
    gate: Gate,
    peer: ServerResponse | Duplex,
    enter: (leave: Leave) => void,
    refuseWith: (headers: Record<string, string>, body: string) => void
): void {
    const gone = new AbortController();
    const leave = (): void => gone.abort();
    peer.once('close', leave);
    gate.wait({ signal: gone.signal }).then(
        (given) => {
            peer.removeListener('close', leave);
            if (peer.destroyed) {
                given();
                return;
            }
            enter(given);
        },
        (error: unknown) => {
            if (!gone.signal.aborted) {
                const failure = failureOf(error);
                refuseWith({ ...refusalHeaders(), ...failureHeaders(failure) }, failureEnvelope(failure));
            }
        }
    );
}

function refusal(message: string): string {
    return failureEnvelope(fail.BAD_REQUEST(null, { message }));
}
