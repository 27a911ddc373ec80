/**
 * Opens all outbound connections. A name is resolved once, each of its addresses is checked, and the connection goes to the checked
 * address: a name that resolves differently a moment later (DNS rebinding) changes nothing.
 */
import { lookup } from 'node:dns/promises';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { connect as connectTls, getCACertificates, type TLSSocket } from 'node:tls';

import { type Ip, parseIp, parseRanges, unmapped } from '../address/ip.ts';
import type { Logger } from '../log/log.ts';
import { forbids } from './addresses.ts';
import { OutboundFailure } from './failure.ts';
import type { Target } from './target.ts';

/** How many addresses of one name are tried. */
const mostAddresses = 8;
/** Milliseconds for one address while there is another one to try. */
const attemptMs = 3_000;

/** What a dialer is built from. */
export interface DialOptions {
    /** Addresses and ranges that may be reached although they are private or special. Entries that are neither are left out. */
    readonly allow: () => readonly string[];
    readonly log: Pick<Logger, 'warn'>;
    /** Every address of a name; default: the answer of the system's resolver. */
    readonly resolve?: (name: string) => Promise<readonly string[]>;
    /** Addresses of this machine; default: those of its interfaces. */
    readonly own?: () => readonly string[];
}

/** How the other side proves who it is. */
export interface TlsOptions {
    /** The name to ask for (SNI) and to find in the certificate; default: the host. */
    readonly servername?: string;
    /** PEM of authorities to trust beside the system's. */
    readonly ca?: readonly string[];
    /** False: any certificate is accepted. Only to look at the certificate; nothing may be sent. */
    readonly verify?: boolean;
    readonly alpn?: readonly string[];
}

/** Opens connections to addresses that are allowed. */
export class Dialer {
    readonly #options: DialOptions;
    readonly #resolve: NonNullable<DialOptions['resolve']>;
    readonly #own: NonNullable<DialOptions['own']>;

    constructor(options: DialOptions) {
        this.#options = options;
        this.#resolve = options.resolve ?? resolveBySystem;
        this.#own = options.own ?? interfaceAddresses;
    }

    /** Opens a TCP connection. @throws OutboundFailure ADDRESS_FORBIDDEN, NAME_NOT_FOUND, CONNECT_FAILED, or the signal's reason */
    async tcp(target: Target, signal: AbortSignal): Promise<Socket> {
        const addresses = await this.#permitted(target, signal);
        let last: unknown;
        for (const [at, address] of addresses.entries()) {
            try {
                return await open(address, target.port, signal, at < addresses.length - 1 ? attemptMs : null);
            } catch (error) {
                signal.throwIfAborted();
                last = error;
            }
        }
        throw new OutboundFailure(
            'CONNECT_FAILED',
            `${target.host} port ${target.port} cannot be reached: ${wordsFor(last)}`,
            last
        );
    }

    /** Starts TLS over an open connection, which the TLS socket owns from then on. @throws OutboundFailure TLS_FAILED, or the signal's reason */
    async tls(
        socket: Socket,
        { host }: Target,
        { servername = host, ca, verify = true, alpn }: TlsOptions,
        signal: AbortSignal
    ): Promise<TLSSocket> {
        const secure = connectTls({
            socket,
            host: servername,
            rejectUnauthorized: verify,
            ...(isIP(servername) === 0 ? { servername } : {}),
            ...(ca === undefined ? {} : { ca: [...getCACertificates('default'), ...ca] }),
            ...(alpn === undefined ? {} : { ALPNProtocols: [...alpn] })
        });
        try {
            await settled(secure, 'secureConnect', signal);
            return secure;
        } catch (error) {
            socket.destroy();
            signal.throwIfAborted();
            throw new OutboundFailure(
                'TLS_FAILED',
                `${servername} was reached, but not over TLS: ${wordsFor(error)}`,
                error
            );
        }
    }

    /** The addresses of a host that may be connected to: at least one. */
    async #permitted({ host, port }: Target, signal: AbortSignal): Promise<readonly string[]> {
        const found = isIP(host) === 0 ? await within(signal, this.#addressesOf(host)) : [host];
        const allow = parseRanges(this.#options.allow());
        const ours = this.#own().flatMap((text) => parseIp(text) ?? []);
        const refused: string[] = [];
        const good = found.filter((text) => {
            const address = parseIp(text);
            const why = address === null ? 'not a plain address' : forbids(address, allow, ours);
            if (why !== null) {
                refused.push(`${text} (${why})`);
            }
            return why === null;
        });
        if (good.length === 0) {
            this.#options.log.warn('A connection to the outside was refused', {
                host,
                port,
                addresses: refused.slice(0, mostAddresses)
            });
            throw forbidden(host, refused);
        }
        return good.slice(0, mostAddresses);
    }

    async #addressesOf(host: string): Promise<readonly string[]> {
        let found: readonly string[] = [];
        let cause: unknown;
        try {
            found = await this.#resolve(host);
        } catch (error) {
            cause = error;
        }
        if (found.length === 0) {
            throw new OutboundFailure('NAME_NOT_FOUND', `The name ${host} does not resolve`, cause);
        }
        return found;
    }
}

async function resolveBySystem(name: string): Promise<readonly string[]> {
    return (await lookup(name, { all: true, order: 'verbatim' })).map(({ address }) => address);
}

function interfaceAddresses(): readonly string[] {
    return Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address));
}

/** @param refused - each address of the host, with the reason in brackets */
function forbidden(host: string, refused: readonly string[]): OutboundFailure {
    const subject =
        refused[0]?.startsWith(`${host} `) === true
            ? `The address ${refused[0]}`
            : `${host} means ${refused.slice(0, mostAddresses).join(', ')}, which`;
    return new OutboundFailure(
        'ADDRESS_FORBIDDEN',
        `${subject} may not be reached; the setting panel.outboundAllow can permit it`
    );
}

async function open(
    address: string,
    port: number,
    signal: AbortSignal,
    timeoutMs: number | null
): Promise<Socket> {
    const socket = connectTcp({ host: address, port, noDelay: true });
    const timer =
        timeoutMs === null
            ? null
            : setTimeout(() => socket.destroy(new Error('no answer in time')), timeoutMs);
    try {
        await settled(socket, 'connect', signal);
    } finally {
        clearTimeout(timer ?? undefined);
    }
    if (!same(parseIp(socket.remoteAddress ?? ''), parseIp(address))) {
        socket.destroy();
        throw new OutboundFailure(
            'ADDRESS_FORBIDDEN',
            `The connection went to ${socket.remoteAddress ?? 'nowhere'} and not to ${address}`
        );
    }
    return socket;
}

/** Waits for the event, an error, the end or the signal. Destroys the socket in every case but the event. */
function settled(socket: Socket, event: 'connect' | 'secureConnect', signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
        const end = (problem: unknown): void => {
            socket.off(event, good).off('error', bad).off('close', closed);
            signal.removeEventListener('abort', aborted);
            if (problem === null) {
                resolve();
            } else {
                socket.on('error', () => undefined).destroy();
                reject(problem instanceof Error ? problem : new Error(String(problem)));
            }
        };
        const good = (): void => end(null);
        const bad = (error: Error): void => end(error);
        const closed = (): void => end(new Error('the connection was closed'));
        const aborted = (): void => end(signal.reason);
        socket.on(event, good).on('error', bad).on('close', closed);
        signal.addEventListener('abort', aborted);
        if (signal.aborted) {
            aborted();
        }
    });
}

/** Stops waiting for work when the signal aborts. The work itself cannot be cancelled. */
function within<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
        const aborted = (): void => reject(signal.reason as Error);
        signal.addEventListener('abort', aborted);
        if (signal.aborted) {
            aborted();
        }
        void work.then(resolve, reject).finally(() => signal.removeEventListener('abort', aborted));
    });
}

/** Whether two addresses are the same one; an IPv4 address may come back mapped into IPv6. */
function same(one: Ip | null, other: Ip | null): boolean {
    return one !== null && other !== null && unmapped(one).toString() === unmapped(other).toString();
}

const words: Readonly<Record<string, string>> = {
    ECONNREFUSED: 'the connection is refused',
    ECONNRESET: 'the connection was cut',
    EHOSTUNREACH: 'there is no way there',
    ENETUNREACH: 'there is no way there',
    ETIMEDOUT: 'no answer in time',
    CERT_HAS_EXPIRED: 'its certificate has expired',
    DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is self-signed',
    ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
    SELF_SIGNED_CERT_IN_CHAIN: 'its certificate comes from an authority that is not trusted',
    UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate comes from an authority that is not trusted',
    UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate comes from an authority that is not trusted'
};

function wordsFor(error: unknown): string {
    const { code = '', message = 'for an unknown reason' } = (error ?? {}) as {
        code?: string;
        message?: string;
    };
    return words[code] ?? (code === '' || code.startsWith('ERR_') ? message : code);
}
