/** The outside of a test: hosts that answer what the test says, and sockets that lead to the test's own. Nothing leaves the machine. */
import type { NetConnectOpts } from 'node:net';
import { Readable } from 'node:stream';

import { type NetworkPort, networkPort } from '@portico/core/plugin-runtime';

import { silence } from '../../log.ts';

/** What a host answers. A text or an object is a 200; an object goes as JSON. */
export type NetworkAnswer = Response | string | object;
/** Where a socket really leads: a port of 127.0.0.1, or a unix socket. */
export type NetworkTarget = { readonly port: number } | { readonly path: string };

type Script = (request: Request) => NetworkAnswer | Promise<NetworkAnswer>;
/** Names and addresses of the machine itself. */
const ownAddress = /^(localhost|127\.\d+\.\d+\.\d+|::1)$/;

type Answering = ReturnType<NetworkPort['outbound']>['open'];

/** What the test says of the network, and what the plugin did with it. */
export class TestNetwork {
    /** Every request that was let through, in order; their bodies can be read. */
    readonly requests: Request[] = [];
    readonly #hosts = new Map<string, Script>();
    readonly #targets = new Map<string, NetworkTarget>();
    readonly #addresses = new Map<string, readonly string[]>();
    readonly #isReal: boolean;

    /** @param isReal - sockets of this machine, of which the test says nothing, are the machine's own @internal */
    constructor(isReal = false) {
        this.#isReal = isReal;
    }

    /** The network as the runtime takes it. @internal */
    readonly port: NetworkPort = {
        ...networkPort(silence),
        outbound: () => ({ open: (url, options) => this.#open(url, options) }),
        addresses: async (host) => this.#resolve(host),
        redirect: (target) => this.#redirect(target)
    };

    /** Says what a host answers. A function may throw: then the connection fails. */
    answer(host: string, answer: NetworkAnswer | Script): void {
        this.#hosts.set(host, typeof answer === 'function' ? (answer as Script) : () => answer);
    }

    /** Leads `dial` to a socket of the test's: `lead('db.example:5432', { port })` to 127.0.0.1, or `lead('/run/docker.sock', { path })`. */
    lead(address: string, target: NetworkTarget): void {
        this.#targets.set(address, target);
    }

    /** Says which addresses a name has, for `resolve`; what of it the plugin may reach, its grants say. None: there is no such name. */
    name(host: string, addresses: readonly string[]): void {
        this.#addresses.set(host, addresses);
    }

    readonly #open: Answering = async (
        url,
        { signal = null, body = null, method = 'GET', headers = {} } = {}
    ) => {
        const { hostname, href } = new URL(url);
        const script = this.#hosts.get(hostname);
        if (script === undefined) {
            throw new Error(
                `The plugin asks ${hostname}, of which the test says nothing: network.answer('${hostname}', …)`
            );
        }
        const request = new Request(href, { method, headers, body: body as string | null, signal });
        this.requests.push(request.clone());
        const answer = await abortable(signal, async () => script(request));
        const response =
            answer instanceof Response
                ? answer
                : typeof answer === 'string'
                  ? new Response(answer)
                  : Response.json(answer);
        return {
            status: response.status,
            headers: Object.fromEntries(response.headers),
            url: href,
            body: (response.body ?? Readable.from([])) as AsyncIterable<Buffer>,
            close: () => void response.body?.cancel().catch(() => undefined)
        };
    };

    #resolve(host: string): readonly string[] {
        const addresses = this.#addresses.get(host);
        if (addresses === undefined && this.#isReal && ownAddress.test(host)) {
            return [host === 'localhost' ? '127.0.0.1' : host];
        }
        if (addresses === undefined) {
            throw new Error(
                `The plugin resolves ${host}, of which the test says nothing: network.name('${host}', …)`
            );
        }
        if (addresses.length === 0) {
            throw Object.assign(new Error(`There is no ${host}`), { code: 'ENOTFOUND' });
        }
        return addresses;
    }

    #redirect(target: NetConnectOpts): NetConnectOpts | Error {
        const {
            path,
            host = 'localhost',
            port = 0
        } = target as { path?: string; host?: string; port?: number };
        const address = path ?? `${host}:${port}`;
        const led = this.#targets.get(address);
        if (led === undefined && this.#isReal && (path !== undefined || ownAddress.test(host))) {
            return target;
        }
        if (led === undefined) {
            return new Error(
                `The plugin dials ${address}, of which the test says nothing: network.lead('${address}', …)`
            );
        }
        return 'path' in led ? led : { host: '127.0.0.1', port: led.port };
    }
}

async function abortable<T>(signal: AbortSignal | null, work: () => Promise<T>): Promise<T> {
    signal?.throwIfAborted();
    const { promise, reject } = Promise.withResolvers<never>();
    const abort = (): void => reject(signal?.reason as Error);
    signal?.addEventListener('abort', abort, { once: true });
    try {
        return await Promise.race([work(), promise]);
    } finally {
        signal?.removeEventListener('abort', abort);
    }
}
