/** Connections of a plugin. They reach the names and addresses of its grants, which are checked at each connection and at each redirect. */
import type { LookupAddress } from 'node:dns';
import { lookup as resolve } from 'node:dns/promises';
import { realpathSync } from 'node:fs';
import { isIP, type NetConnectOpts, Socket } from 'node:net';

import { errors, messageOf } from '@portico/sdk';
import type { Grants, Scope } from '@portico/sdk/host';

import { parseRange } from '../../platform/address/ip.ts';
import { type Outbound, OutboundFailure, ownHeaders } from '../../platform/outbound/client.ts';
import type { NetworkPort } from './ports.ts';

/** What the network of one generation needs. */
export interface NetworkOptions {
    readonly grants: Grants;
    readonly scope: Scope;
    readonly network: NetworkPort;
    readonly signal: AbortSignal;
    /** Folders and sockets that no grant opens. */
    forbidden(): readonly string[];
}

const mostRedirects = 20;
const redirects = new Set([301, 302, 303, 307, 308]);
/** Generous, because an AI model may think for minutes before its first byte. */
const limits = { timeoutMs: 60 * 60_000, idleMs: 10 * 60_000, maxBytes: Number.MAX_SAFE_INTEGER } as const;
/** Headers that a plugin's request does not pass on: the connection sets them itself. */
const replaced: ReadonlySet<string> = new Set([...ownHeaders, 'accept-encoding']);
const credentials = new Set(['authorization', 'cookie', 'proxy-authorization']);
const loopback = ['127.0.0.0/8', '::1'];

/** `fetch` and sockets of one generation. */
export class Network {
    readonly #options: NetworkOptions;
    readonly #outbound: Pick<Outbound, 'open'>;
    readonly #sockets = new Set<Socket>();

    constructor(options: NetworkOptions) {
        this.#options = options;
        this.#outbound = options.network.outbound(() => this.#ranges());
    }

    readonly fetch: typeof globalThis.fetch = async (input, init) => {
        const request = new Request(input as Request, init);
        const method = request.method as 'GET';
        let body: Uint8Array | null =
            request.body === null ? null : new Uint8Array(await request.arrayBuffer());
        let headers = Object.fromEntries([...request.headers].filter(([name]) => !replaced.has(name)));
        let url = new URL(request.url);
        let verb: string = method;
        const signal = AbortSignal.any([request.signal, this.#options.signal]);
        for (let hop = 0; ; hop += 1) {
            this.#require(url.hostname.replace(/^\[(.*)\]$/, '$1'));
            const answer = await this.#outbound
                .open(url, {
                    ...limits,
                    method: verb as 'GET',
                    headers,
                    signal,
                    ...(body === null ? {} : { body })
                })
                .catch((error: unknown) => {
                    // Like the global fetch: a TypeError whose cause says what happened.
                    throw error instanceof OutboundFailure && error.reason === 'ABORTED' && signal.aborted
                        ? signal.reason
                        : new TypeError(`fetch failed: ${messageOf(error)}`, { cause: error });
                });
            const { location } = answer.headers;
            if (!redirects.has(answer.status) || location === undefined || request.redirect === 'manual') {
                return response(answer, hop > 0);
            }
            answer.close();
            if (request.redirect === 'error' || hop >= mostRedirects) {
                throw new TypeError('fetch failed', {
                    cause: new OutboundFailure('REDIRECT_REFUSED', `${url.host} redirects`)
                });
            }
            const next = new URL(location, url);
            if (next.origin !== url.origin) {
                headers = Object.fromEntries(
                    Object.entries(headers).filter(([name]) => !credentials.has(name))
                );
            }
            if (answer.status === 303 || (verb === 'POST' && answer.status < 303)) {
                [verb, body] = [verb === 'HEAD' ? 'HEAD' : 'GET', null];
                headers = Object.fromEntries(
                    Object.entries(headers).filter(([name]) => !name.startsWith('content-'))
                );
            }
            url = next;
        }
    };

    /** A socket that connects to granted targets only, and ends with the generation. Without a target, the plugin calls `connect`. */
    dial(target?: { readonly host: string; readonly port: number } | { readonly path: string }): Socket {
        const socket = new GrantedSocket((options) => this.#judge(options));
        this.#sockets.add(socket);
        const owned = this.#options.scope.own(
            'socket',
            target === undefined
                ? 'socket'
                : 'path' in target
                  ? target.path
                  : `${target.host}:${target.port}`,
            () => socket.destroy()
        );
        socket.once('close', () => {
            this.#sockets.delete(socket);
            owned.drop();
        });
        return target === undefined ? socket : socket.connect(target as NetConnectOpts);
    }

    /**
     * The addresses of a name that are granted.
     *
     * @throws CAPABILITY_MISSING 50305 when none is; NOT_FOUND 40400 when the name has none at all
     */
    async resolve(host: string): Promise<readonly string[]> {
        if (typeof host !== 'string' || host === '') {
            throw new TypeError('ctx.resolve takes the name of a host');
        }
        const granted = this.#grant({ host, port: 0 });
        if (granted instanceof Error) {
            throw granted;
        }
        const found =
            isIP(host) === 0
                ? await this.#reachable(host).catch((error: NodeJS.ErrnoException) => {
                      throw error.code === 'ENOTFOUND' || error.code === 'ENODATA'
                          ? errors.notFound(`The name ${host} has no address`)
                          : error;
                  })
                : [{ address: host }];
        if (found.length === 0) {
            throw this.#options.grants.missing(`network: ${host}`);
        }
        return [...new Set(found.map(({ address }) => address))];
    }

    /** Whether a grant covers a host that another process connects to in the plugin's name: the name, or the address itself. */
    covers(host: string): boolean {
        return isIP(host) === 0
            ? this.#named(host)
            : this.#inRange(host) ||
                  (this.#named(host) && this.#options.network.forbids(host, this.#ranges()) === null);
    }

    /** Ends connections that are no longer granted. */
    revoke(): void {
        for (const socket of this.#sockets) {
            const judged = (socket as GrantedSocket).judged;
            if (judged !== null && this.#judge(judged) instanceof Error) {
                socket.destroy(this.#options.grants.missing('network'));
            }
        }
    }

    /** Granted addresses and ranges, which may be private ones. */
    #ranges(): readonly string[] {
        return this.#options.grants
            .list('network')
            .flatMap((entry) =>
                entry === 'localhost' ? loopback : parseRange(entry) !== null ? [entry] : []
            );
    }

    #require(host: string): void {
        if (!this.#named(host) && !(isIP(host) !== 0 && this.#inRange(host))) {
            const cause = this.#options.grants.missing(`network: ${host}`);
            throw new TypeError(`fetch failed: ${cause.message}`, { cause });
        }
    }

    /** Whether a grant names the host: `*`, the name itself, or `*.` before a parent domain. Only `*` covers an address. */
    #named(host: string): boolean {
        const name = host.toLowerCase().replace(/\.$/, '');
        return this.#options.grants
            .list('network')
            .some(
                (entry) =>
                    entry === '*' ||
                    entry.toLowerCase() === name ||
                    (entry.startsWith('*.') &&
                        isIP(name) === 0 &&
                        name.endsWith(entry.slice(1).toLowerCase()))
            );
    }

    /** The addresses of a name, without those that no grant covers. */
    async #reachable(hostname: string): Promise<readonly LookupAddress[]> {
        const { network } = this.#options;
        const given = (await network.addresses?.(hostname))?.map((address) => ({
            address,
            family: isIP(address)
        }));
        const named = this.#named(hostname);
        return (given ?? (await resolve(hostname, { all: true }))).filter(
            ({ address }) =>
                this.#inRange(address) || (named && network.forbids(address, this.#ranges()) === null)
        );
    }

    #inRange(address: string): boolean {
        return this.#options.network.within(address, this.#ranges());
    }

    /** The options to connect with, or the error when the target is not granted. */
    #judge(options: NetConnectOpts): NetConnectOpts | Error {
        const granted = this.#grant(options);
        return granted instanceof Error ? granted : (this.#options.network.redirect?.(options) ?? granted);
    }

    #grant(options: NetConnectOpts): NetConnectOpts | Error {
        const { grants } = this.#options;
        if ('path' in options && typeof options.path === 'string') {
            const path = real(options.path);
            const granted = grants.list('sockets').some((entry) => entry === '*' || real(entry) === path);
            return granted &&
                !this.#options
                    .forbidden()
                    .some((folder) => path === real(folder) || path.startsWith(`${real(folder)}/`))
                ? { ...options, path }
                : grants.missing(`sockets: ${options.path}`);
        }
        const { host = 'localhost' } = options as { host?: string };
        if (isIP(host) !== 0) {
            return this.covers(host) ? options : grants.missing(`network: ${host}`);
        }
        if (!this.#named(host) && this.#ranges().length === 0) {
            return grants.missing(`network: ${host}`);
        }
        const lookup: NonNullable<Extract<NetConnectOpts, { lookup?: unknown }>['lookup']> = (
            hostname,
            { all, family },
            done
        ) => {
            void (async () => {
                const found = (await this.#reachable(hostname)).filter(
                    ({ family: kind }) =>
                        family === undefined || family === 0 || family === kind || family === `IPv${kind}`
                );
                if (found.length === 0) {
                    throw grants.missing(`network: ${hostname}`);
                }
                return found;
            })().then(
                (found) =>
                    all === true
                        ? (done as (error: null, list: object[]) => void)(null, found)
                        : done(null, found[0]?.address ?? '', found[0]?.family),
                (error: NodeJS.ErrnoException) => done(error, '', 0)
            );
        };
        return { ...options, host, lookup };
    }
}

/** A socket that checks its target whenever it connects, in each form that `connect` accepts. */
class GrantedSocket extends Socket {
    judged: NetConnectOpts | null = null;
    readonly #judge: (options: NetConnectOpts) => NetConnectOpts | Error;

    constructor(judge: (options: NetConnectOpts) => NetConnectOpts | Error) {
        super();
        this.#judge = judge;
    }

    override connect(...input: unknown[]): this {
        // net.connect passes its normalised arguments as one array.
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
        this.judged = options;
        return super.connect(judged, listener as () => void);
    }

    /**
     * A socket that is closed while TLS runs over it crashes Node when that TLS is written to, or destroyed, in the same turn of the event loop. The
     * end of a generation and the code of a plugin may do both in either order, so the closing waits for the next turn. Reading stops at once: Node
     * does not expect data for a socket that is destroyed.
     */
    override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
        // Node's types leave out the handle, and it has no other way to stop the reading below TLS.
        (this as unknown as { readonly _handle: { readStop?(): void } | null })._handle?.readStop?.();
        setImmediate(() => super._destroy(error, done));
    }
}

function response(answer: Awaited<ReturnType<Outbound['open']>>, redirected: boolean): Response {
    const empty = [101, 204, 205, 304].includes(answer.status);
    const headers = Object.entries(answer.headers).flatMap(([name, value]) =>
        (Array.isArray(value) ? value : [value ?? '']).map((each): [string, string] => [name, each])
    );
    if (empty) {
        answer.close();
    }
    const body = empty ? null : streamOf(answer);
    const made = new Response(body, { status: answer.status, headers });
    return Object.defineProperties(made, { url: { value: answer.url }, redirected: { value: redirected } });
}

/** The body as a web stream. Not by `Readable.toWeb`: its controller throws, where no code can catch it, when data comes after the reader cancelled. */
function streamOf(answer: Awaited<ReturnType<Outbound['open']>>): ReadableStream<Uint8Array<ArrayBuffer>> {
    const chunks = answer.body[Symbol.asyncIterator]();
    let isCancelled = false;
    return new ReadableStream({
        async pull(controller) {
            const next = await chunks.next();
            if (isCancelled) {
                return;
            }
            if (next.done === true) {
                controller.close();
                return;
            }
            controller.enqueue(next.value as Uint8Array<ArrayBuffer>);
        },
        cancel() {
            isCancelled = true;
            answer.close();
            // Does not wait: the source may be at a read that only the closing ends.
            chunks.return?.()?.catch(() => undefined);
        }
    });
}

function real(path: string): string {
    try {
        return realpathSync(path);
    } catch {
        return path;
    }
}
