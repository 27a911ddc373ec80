/**
 * The gateway: one plain HTTP server owns the port and hands each request to the server that owns its path. Nothing is ever removed from
 * a shared router; a mounted server is dropped whole.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';

import type { ServerInjectOptions, ServerInjectResponse } from '@hapi/hapi';

import type { Logger } from '../../platform/log/log.ts';
import { isNavigation } from '../http/navigation.ts';
import { liftTicket } from '../http/request/ticket.ts';
import type { Route, RouteMethod } from '../http/route.ts';
import { refuse } from '../http/routes/socket.ts';
import type { HttpServer } from '../http/server.ts';
import { createFront, listen, refuseRequest, refuseUpgrade, stopListening } from './front.ts';
import { Gate, type GateLimits, type Leave } from './gate.ts';
import { Mount } from './mount.ts';
import { describedPlugin, pluginOf } from './paths.ts';
import { enterWhenOpen, type StartOf, StartWaits } from './waiting.ts';

/** A parked gate, until it is opened. */
export interface Parking {
    /** Ends streams and sockets with a hint to come back, waits for the rest at most `milliseconds`. Resolves with how many are still inside. */
    drain(milliseconds: number): Promise<number>;
    /** Ends requests and sockets that are still inside. @returns how many */
    cut(): number;
    /** Lets the waiting requests in: to the server that is mounted now, or to the core when none is. */
    open(): void;
}

/** What a gateway is built from. */
export interface GatewayOptions {
    /** Serves every path that is no plugin's. */
    readonly core: HttpServer;
    /** Answers browsers that open the site while no plugin serves its root; without it the core answers 40400. */
    readonly startPage?: HttpServer;
    readonly log: Logger;
    /** How long a server that is taken away may finish what it has under way, milliseconds; default 30,000. */
    readonly drainMs?: number;
    /** No byte in either direction for so long ends a connection, milliseconds; default 120,000. */
    readonly silentMs?: number;
    /** How many requests may wait while a gate is parked or plugins start, and how long. */
    readonly waiting?: Partial<GateLimits>;
    /** The start that requests to a plugin wait for; without it, none waits. */
    readonly startOf?: StartOf;
}

/** One plugin's place behind the gateway. */
interface PluginSlot {
    readonly gate: Gate;
    mount: Mount | null;
    /** What it serves at the root of the site. */
    root: Mount | null;
    /** While the gate is parked: the server whose routes will be there again. */
    last: HttpServer | null;
    /** Servers that were taken away and still have something under way. */
    readonly leaving: Set<Mount>;
}

/** Starts the core's server and puts it behind a new gateway, which does not listen yet. */
export async function createGateway(options: GatewayOptions): Promise<Gateway> {
    await Promise.all([options.core.start(), options.startPage?.start()]);
    return new Gateway(options);
}

/** Maps paths to servers, and lets servers come and go while requests run. */
export class Gateway {
    readonly #core: Mount;
    readonly #startPage: Mount | null;
    readonly #log: Logger;
    readonly #drainMs: number;
    readonly #waiting: Partial<GateLimits>;
    readonly #starts: StartWaits;
    readonly #slots = new Map<string, PluginSlot>();
    readonly #leaving = new Set<Promise<number>>();
    readonly #front: ReturnType<typeof createFront>;
    /** The plugin that serves the root of the site; also while its gate is parked. */
    #rootName: string | null = null;
    readonly address = (): AddressInfo | null => this.#front.address() as AddressInfo | null;

    /** @param options - its core was started already */
    constructor({ core, startPage, log, drainMs = 30_000, waiting = {}, ...options }: GatewayOptions) {
        this.#front = createFront(options.silentMs);
        this.#core = new Mount(core);
        this.#startPage = startPage === undefined ? null : new Mount(startPage);
        this.#log = log;
        this.#drainMs = drainMs;
        this.#waiting = waiting;
        this.#starts = new StartWaits(options.startOf ?? (() => null), waiting);
        this.#front.on('request', (request, response) => this.#serve(request, response, false));
        this.#front.on('checkContinue', (request, response) => this.#serve(request, response, true));
        this.#front.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) =>
            this.#upgrade(request, socket, head)
        );
    }

    /**
     * Serves `/api/plugins/<name>/*` with this server from now on. A server that was there before drains and is stopped.
     *
     * @param root - serves GET and HEAD of every path that is neither below `/api` nor the core's
     * @throws Error when another plugin serves the root
     */
    async mount(name: string, server: HttpServer, root: HttpServer | null = null): Promise<void> {
        if (root !== null) {
            if (this.#rootName !== null && this.#rootName !== name) {
                throw new Error(`The plugin ${this.#rootName} serves the root of the site already`);
            }
            this.#rootName = name;
        } else if (this.#rootName === name) {
            this.#rootName = null;
        }
        await Promise.all([server.start(), root?.start()]);
        const slot = this.#slotOf(name);
        const before = mountsOf(slot);
        slot.mount = new Mount(server);
        slot.root = root === null ? null : new Mount(root);
        slot.last = null;
        await Promise.all(before.map((each) => this.#drop(each, slot)));
    }

    /**
     * Takes a server away: new requests go to the core at once (or wait, while the gate is parked), those under way finish.
     *
     * @returns how many had to be cut
     */
    async unmount(name: string): Promise<number> {
        const slot = this.#slots.get(name);
        const mount = slot?.mount ?? null;
        if (slot === undefined || mount === null) {
            return 0;
        }
        const going = mountsOf(slot);
        [slot.mount, slot.root] = [null, null];
        slot.last = slot.gate.isParked ? mount.server : null;
        if (this.#rootName === name && !slot.gate.isParked) {
            this.#rootName = null;
        }
        return sum(await Promise.all(going.map((each) => this.#drop(each, slot))));
    }

    /** Gives what is under way on a server that is taken away, now or next, no time to finish. */
    hurry(name: string): void {
        const slot = this.#slots.get(name);
        [slot?.mount, slot?.root, ...(slot?.leaving ?? [])].forEach((mount) => mount?.hurry());
    }

    /** The gate of a plugin: one for all of its generations. */
    gate(name: string): Gate {
        return this.#slotOf(name).gate;
    }

    /** Parks a plugin's gate. @throws TypeError when it is parked already */
    park(name: string): Parking {
        const slot = this.#slotOf(name);
        slot.gate.park();
        const before = slot.mount;
        return {
            drain: async (milliseconds) => {
                before?.server.endStreams();
                return slot.gate.empty(milliseconds);
            },
            cut: () => before?.cut() ?? 0,
            open: () => {
                slot.last = null;
                if (this.#rootName === name && slot.root === null) {
                    this.#rootName = null;
                }
                if (slot.mount === before) {
                    before?.server.resumeStreams();
                }
                slot.gate.open();
            }
        };
    }

    /** Everything that is mounted now, the core first. */
    servers(): readonly HttpServer[] {
        return [
            this.#core.server,
            ...[...this.#slots.values()].flatMap((slot) => slot.mount?.server ?? slot.last ?? [])
        ];
    }

    /** The route that a request for this path (no query) reaches; by default a GET. */
    resolve(path: string, method?: RouteMethod): Route | null {
        const slot = this.#ownerOf(path);
        return (slot?.mount?.server ?? slot?.last ?? this.#core.server).resolve(path, method);
    }

    /** Sends a request past the network, by the same map. */
    async inject(options: ServerInjectOptions & { readonly url: string }): Promise<ServerInjectResponse> {
        const slot = this.#ownerOf(options.url);
        if (slot === null) {
            return this.#core.inject(options);
        }
        const leave = slot.gate.pass() ?? (await slot.gate.wait());
        try {
            return await (slot.mount ?? this.#core).inject(options);
        } finally {
            leave();
        }
    }

    /** Starts to listen. */
    listen(host: string, port: number): Promise<AddressInfo> {
        return listen(this.#front, host, port);
    }

    /** Stops listening, drains everything and stops every server. @returns how many requests had to be cut */
    async close(): Promise<number> {
        const { closed } = await stopListening(this.#front);
        const slots = [...this.#slots.values()];
        slots.forEach(({ gate }) => gate.close());
        const sweep = setInterval(() => this.#front.closeIdleConnections(), 100);
        const cuts = await Promise.all([
            ...[...slots.flatMap(mountsOf), this.#core, this.#startPage]
                .filter((mount) => mount !== null)
                .map((mount) => this.#drop(mount)),
            ...this.#leaving
        ]);
        clearInterval(sweep);
        this.#front.closeAllConnections();
        await closed;
        return sum(cuts);
    }

    #serve(request: IncomingMessage, response: ServerResponse, expecting: boolean): void {
        if (refuseRequest(request, response)) {
            return;
        }
        liftTicket(request);
        const owner = this.#ownerOf(request.url ?? '/');
        if (owner?.mount != null) {
            this.#route(request, response, expecting, owner);
            return;
        }
        this.#whenStarted(request, response, () =>
            this.#route(request, response, expecting, this.#ownerOf(request.url ?? '/'))
        );
    }

    #route(
        request: IncomingMessage,
        response: ServerResponse,
        expecting: boolean,
        owner: PluginSlot | null
    ): void {
        const slot = owner ?? this.#rootOf(request);
        if (slot === null) {
            const server =
                this.#startPage !== null && this.#opensSite(request) ? this.#startPage : this.#core;
            server.request(request, response, expecting);
            return;
        }
        const enter = (leave: Leave): void =>
            ((owner === null ? slot.root : slot.mount) ?? this.#core).request(
                request,
                response,
                expecting,
                leave
            );
        if (slot.gate.enter()) {
            enter(slot.gate.leave);
            return;
        }
        // Before there is a server that wants the request, its body is not read and "100 Continue" is not sent.
        enterWhenOpen(slot.gate, response, enter, (headers, body) =>
            response.writeHead(503, { ...headers, connection: 'close' }).end(body)
        );
    }

    #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
        if (refuseUpgrade(request, socket)) {
            return;
        }
        liftTicket(request);
        this.#whenStarted(request, socket, () => this.#routeUpgrade(request, socket, head));
    }

    #routeUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
        const slot = this.#ownerOf(request.url ?? '/');
        if (slot === null) {
            this.#core.upgrade(request, socket, head);
            return;
        }
        const enter = (leave: Leave): void => {
            socket.once('close', leave);
            (slot.mount ?? this.#core).upgrade(request, socket, head);
        };
        const leave = slot.gate.pass();
        if (leave !== null) {
            enter(leave);
            return;
        }
        const drop = (): void => void socket.destroy();
        socket.on('error', drop);
        enterWhenOpen(
            slot.gate,
            socket,
            (given) => {
                socket.removeListener('error', drop);
                enter(given);
            },
            (headers, body) => refuse(socket, 503, headers, body)
        );
    }

    #slotOf(name: string): PluginSlot {
        let slot = this.#slots.get(name);
        if (slot === undefined) {
            const gate = new Gate(name, this.#waiting);
            slot = { gate, mount: null, root: null, last: null, leaving: new Set() };
            this.#slots.set(name, slot);
        }
        return slot;
    }

    /** The plugin below whose prefix a path lies. */
    #ownerOf(url: string): PluginSlot | null {
        const name = pluginOf(url);
        return name === null ? null : (this.#slots.get(name) ?? null);
    }

    #whenStarted({ url = '/' }: IncomingMessage, peer: ServerResponse | Duplex, goOn: () => void): void {
        const name = pluginOf(url) ?? describedPlugin(url);
        if (name === null || this.#slots.get(name)?.mount != null) {
            goOn();
        } else {
            this.#starts.whenStarted(name, peer, goOn);
        }
    }

    /** The plugin that serves this path at the root of the site. */
    #rootOf(request: IncomingMessage): PluginSlot | null {
        return this.#rootName !== null && this.#isPage(request)
            ? (this.#slots.get(this.#rootName) ?? null)
            : null;
    }

    /** Whether a browser opens the site: its root, or any page. */
    #opensSite(request: IncomingMessage): boolean {
        const { accept, 'sec-fetch-mode': mode } = request.headers;
        const isOpened = pathOf(request) === '/' || isNavigation(mode, accept);
        return isOpened && this.#isPage(request);
    }

    /** Whether a request reads what is neither the core's nor below `/api`. */
    #isPage(request: IncomingMessage): boolean {
        const path = pathOf(request);
        if (
            (request.method !== 'GET' && request.method !== 'HEAD') ||
            !path.startsWith('/') ||
            path === '/api' ||
            path.startsWith('/api/')
        ) {
            return false;
        }
        try {
            return this.#core.server.resolve(path) === null;
        } catch {
            return false; // not a path at all: the core's server answers so
        }
    }

    /** Drains a mount that gets no new requests. @returns how many requests had to be cut */
    async #drop(mount: Mount, slot: PluginSlot | null = null): Promise<number> {
        const draining = mount.drain(this.#drainMs);
        this.#leaving.add(draining);
        slot?.leaving.add(mount);
        const cut = await draining.finally(() => {
            this.#leaving.delete(draining);
            slot?.leaving.delete(mount);
        });
        if (cut > 0) {
            this.#log.warn('Requests were cut when their server was taken away', {
                server: mount.server.name,
                cut
            });
        }
        return cut;
    }
}

function pathOf({ url = '/' }: IncomingMessage): string {
    const query = url.indexOf('?');
    return query < 0 ? url : url.slice(0, query);
}

function mountsOf({ mount, root }: PluginSlot): Mount[] {
    return [mount, root].filter((each) => each !== null);
}

function sum(numbers: readonly number[]): number {
    return numbers.reduce((total, each) => total + each, 0);
}
