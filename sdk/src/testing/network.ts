/** The outside in a test: hosts that answer what the test says, and addresses that lead to a socket of the test's own. Nothing leaves the machine. */
import { type NetConnectOpts, Socket } from 'node:net';

import type { Grants } from '../boundary/grants.ts';
import type { Scope } from '../boundary/scope.ts';

/** What a host answers. */
export type NetworkAnswer = Response | string | object;
type Script = (request: Request) => NetworkAnswer | Promise<NetworkAnswer>;
/** Where a socket really leads. */
export type NetworkTarget = { readonly port: number } | { readonly path: string };

const mostRedirects = 20;

/** What the test says of the network, and what the plugin did with it. */
export class NetworkFake {
    /** Every request that was let through, in order; bodies are read from clones. */
    readonly requests: Request[] = [];
    readonly #hosts = new Map<string, Script>();
    readonly #targets = new Map<string, NetworkTarget>();

    /** Says what a host answers. A text or an object is a 200; an object goes as JSON. A function may throw: then the connection fails. */
    answer(host: string, answer: NetworkAnswer | Script): void {
        this.#hosts.set(host, typeof answer === 'function' ? (answer as Script) : () => answer);
    }

    /** Leads `dial` to a socket of the test's: `lead('db.example:5432', { port })` to 127.0.0.1, or `lead('/run/docker.sock', { path })`. */
    lead(address: string, target: NetworkTarget): void {
        this.#targets.set(address, target);
    }

    scriptOf(host: string): Script {
        const script = this.#hosts.get(host);
        if (script === undefined) {
            throw new Error(
                `The plugin asks ${host}, of which the test says nothing: network.answer('${host}', …)`
            );
        }
        return script;
    }

    targetOf(address: string): NetworkTarget {
        const target = this.#targets.get(address);
        if (target === undefined) {
            throw new Error(
                `The plugin dials ${address}, of which the test says nothing: network.lead('${address}', …)`
            );
        }
        return target;
    }
}

/** The doors `fetch` and `dial` over what the test says. */
export function createNetworkDoors(
    network: NetworkFake,
    {
        grants,
        scope,
        signal
    }: { readonly grants: Grants; readonly scope: Scope; readonly signal: AbortSignal }
): { readonly fetch: typeof globalThis.fetch; dial(target?: NetConnectOpts): Socket; revoke(): void } {
    const isNamed = (host: string): boolean => {
        const name = host.toLowerCase().replace(/\.$/, '');
        return grants
            .list('network')
            .some(
                (entry) =>
                    entry === '*' ||
                    entry.toLowerCase() === name ||
                    (entry.startsWith('*.') && name.endsWith(entry.slice(1).toLowerCase()))
            );
    };
    const sockets = new Set<LedSocket>();
    const judge = (options: NetConnectOpts): NetConnectOpts | Error => {
        const path = 'path' in options && typeof options.path === 'string' ? options.path : null;
        const { host = 'localhost', port = 0 } = options as { host?: string; port?: number };
        if (path === null ? !isNamed(host) : !grants.has('sockets', path)) {
            return grants.missing(path === null ? `network: ${host}` : `sockets: ${path}`);
        }
        try {
            const target = network.targetOf(path ?? `${host}:${port}`);
            return 'path' in target ? { path: target.path } : { host: '127.0.0.1', port: target.port };
        } catch (error) {
            return error as Error;
        }
    };
    return {
        fetch: async (input, init) => {
            let request = new Request(input as Request, init);
            for (let hop = 0; ; hop += 1) {
                const { hostname } = new URL(request.url);
                if (!isNamed(hostname.replace(/^\[(.*)\]$/, '$1'))) {
                    throw new TypeError('fetch failed', { cause: grants.missing(`network: ${hostname}`) });
                }
                const script = network.scriptOf(hostname);
                network.requests.push(request.clone());
                const answer = await abortable(AbortSignal.any([request.signal, signal]), async () =>
                    script(request)
                ).catch((error: unknown) => {
                    throw request.signal.aborted ? error : new TypeError('fetch failed', { cause: error });
                });
                const response =
                    answer instanceof Response
                        ? answer
                        : typeof answer === 'string'
                          ? new Response(answer)
                          : Response.json(answer);
                const location = response.headers.get('location');
                if (
                    ![301, 302, 303, 307, 308].includes(response.status) ||
                    location === null ||
                    request.redirect === 'manual'
                ) {
                    return response;
                }
                if (request.redirect === 'error' || hop >= mostRedirects) {
                    throw new TypeError('fetch failed', { cause: new Error(`${hostname} redirects`) });
                }
                request = new Request(new URL(location, request.url), {
                    method: request.method === 'HEAD' ? 'HEAD' : 'GET',
                    signal: request.signal
                });
            }
        },
        dial(target) {
            const socket = new LedSocket(judge);
            sockets.add(socket);
            const owned = scope.own('socket', target === undefined ? 'socket' : JSON.stringify(target), () =>
                socket.destroy()
            );
            socket.once('close', () => {
                sockets.delete(socket);
                owned.drop();
            });
            return target === undefined ? socket : socket.connect(target);
        },
        revoke() {
            for (const socket of sockets) {
                if (socket.asked !== null && judge(socket.asked) instanceof Error) {
                    socket.destroy(grants.missing('network'));
                }
            }
        }
    };
}

/** A socket that goes where the test leads it. */
class LedSocket extends Socket {
    asked: NetConnectOpts | null = null;
    readonly #judge: (options: NetConnectOpts) => NetConnectOpts | Error;

    constructor(judge: (options: NetConnectOpts) => NetConnectOpts | Error) {
        super();
        this.#judge = judge;
    }

    override connect(...input: unknown[]): this {
        const [first, ...rest] = (Array.isArray(input[0]) ? input[0] : input) as unknown[];
        const listener = [first, ...rest].find((each) => typeof each === 'function') as
            (() => void) | undefined;
        const options = (
            typeof first === 'object' && first !== null
                ? first
                : typeof first === 'string' && !/^\d+$/.test(first)
                  ? { path: first }
                  : { port: Number(first), ...(typeof rest[0] === 'string' ? { host: rest[0] } : {}) }
        ) as NetConnectOpts;
        const judged = this.#judge(options);
        if (judged instanceof Error) {
            process.nextTick(() => this.destroy(judged));
            return this;
        }
        this.asked = options;
        return super.connect(judged, listener as () => void);
    }
}

async function abortable<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    const { promise, reject } = Promise.withResolvers<never>();
    const abort = (): void => reject(signal.reason as Error);
    signal.addEventListener('abort', abort, { once: true });
    try {
        return await Promise.race([work(), promise]);
    } finally {
        signal.removeEventListener('abort', abort);
    }
}
