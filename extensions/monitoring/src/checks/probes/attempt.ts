/** One try of a check: the steps to the other side, each timed, and the words for each way in which one fails. */
import { isIP, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
// eslint-disable-next-line no-restricted-imports -- it goes over a socket of ctx.dial, whose target was checked when it connected
import { connect as startTls, type TLSSocket } from 'node:tls';

import { type Context, isFailure, messageOf } from '@portico/sdk';

import { type Outcome, type Phases, ProbeFailure, type SeenCertificate } from './outcome.ts';

/** What probes need of the plugin's context. */
export type ProbeContext = Pick<Context, 'resolve' | 'dial' | 'exec'>;

/** Milliseconds for one address while there is another one to try. */
const addressMs = 3_000;
const mostAddresses = 4;
const notFound = 40400;
const notGranted = 50305;

const refusals: Readonly<Record<string, readonly [code: string, message: string]>> = {
    ECONNREFUSED: ['CONNECT_REFUSED', 'The connection is refused: nothing listens there'],
    ECONNRESET: ['CONNECT_CUT', 'The connection was cut'],
    EHOSTUNREACH: ['CONNECT_UNREACHABLE', 'There is no way to the address'],
    ENETUNREACH: ['CONNECT_UNREACHABLE', 'There is no way to the address'],
    ETIMEDOUT: ['CONNECT_TIMEOUT', 'The address does not answer']
};
const certificateWords: Readonly<Record<string, string>> = {
    CERT_HAS_EXPIRED: 'The certificate has expired',
    CERT_NOT_YET_VALID: 'The certificate is not valid yet',
    DEPTH_ZERO_SELF_SIGNED_CERT: 'The certificate is self-signed',
    SELF_SIGNED_CERT_IN_CHAIN: 'The certificate comes from an authority that is not trusted',
    UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'The certificate comes from an authority that is not trusted',
    UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'The certificate comes from an authority that is not trusted',
    ERR_TLS_CERT_ALTNAME_INVALID: 'The certificate is for another name'
};
const steps: Readonly<Record<keyof Phases, readonly [prefix: string, waited: string]>> = {
    name: ['NAME', 'the address of the name'],
    connect: ['CONNECT', 'the connection'],
    tls: ['TLS', 'the TLS handshake'],
    firstByte: ['ANSWER', 'an answer']
};

/** One try. Its sockets are closed when it ends. */
export class Attempt {
    readonly phases: Phases = { name: null, connect: null, tls: null, firstByte: null };
    readonly signal: AbortSignal;
    certificate: SeenCertificate | null = null;
    readonly #ctx: ProbeContext;
    readonly #began = performance.now();
    readonly #sockets: Socket[] = [];

    /** @param signal - aborts when the try takes too long */
    constructor(ctx: ProbeContext, signal: AbortSignal) {
        this.#ctx = ctx;
        this.signal = signal;
    }

    /** Milliseconds since the beginning. */
    get elapsedMs(): number {
        return performance.now() - this.#began;
    }

    /** Times a step. @throws ProbeFailure `<STEP>_TIMEOUT` when the try is over first */
    async step<T>(phase: keyof Phases, work: () => Promise<T>): Promise<T> {
        const began = performance.now();
        const { promise, reject } = Promise.withResolvers<never>();
        const late = (): void => {
            const [prefix, waited] = steps[phase];
            reject(new ProbeFailure(`${prefix}_TIMEOUT`, `It waited too long for ${waited}`));
        };
        this.signal.addEventListener('abort', late, { once: true });
        try {
            if (this.signal.aborted) {
                late();
            }
            const result = await Promise.race([work(), promise]);
            this.phases[phase] = performance.now() - began;
            return result;
        } finally {
            this.signal.removeEventListener('abort', late);
            promise.catch(() => undefined);
        }
    }

    /** The checked addresses of a host. @throws ProbeFailure NAME_NOT_FOUND, NAME_FAILED, ADDRESS_FORBIDDEN */
    async addresses(host: string): Promise<readonly string[]> {
        const find = async (): Promise<readonly string[]> => {
            try {
                return await this.#ctx.resolve(host);
            } catch (error) {
                throw nameFailure(host, error);
            }
        };
        return isIP(host) === 0 ? this.step('name', find) : find();
    }

    /** Connects to a host; the address is checked again when the socket connects. @throws ProbeFailure */
    async connect(host: string, port: number): Promise<Socket> {
        const addresses = (await this.addresses(host)).slice(0, mostAddresses);
        return this.step('connect', async () => {
            let last: unknown;
            for (const [at, address] of addresses.entries()) {
                try {
                    return await this.#open(address, port, at < addresses.length - 1);
                } catch (error) {
                    this.signal.throwIfAborted();
                    last = error;
                }
            }
            throw connectFailure(last);
        });
    }

    /**
     * Starts TLS, and looks at the certificate before anything is sent.
     *
     * @throws ProbeFailure TLS_FAILED, TLS_CERTIFICATE
     */
    async secure(socket: Socket, host: string): Promise<TLSSocket> {
        return this.step('tls', async () => {
            const secure = startTls({
                socket,
                host,
                // The certificate is judged below, so that one that is not trusted can be described.
                rejectUnauthorized: false,
                ...(isIP(host) === 0 ? { servername: host } : {})
            });
            this.#sockets.push(secure);
            const { promise, resolve, reject } = Promise.withResolvers<undefined>();
            secure.once('secureConnect', () => resolve(undefined));
            secure.on('error', reject);
            secure.once('close', () => reject(new Error('the connection was closed')));
            await promise.catch((error: unknown) => {
                throw new ProbeFailure('TLS_FAILED', `The TLS handshake fails: ${messageOf(error)}`);
            });
            const { issuer, valid_to: end } = secure.getPeerCertificate();
            this.certificate = { issuer: issuerOf(issuer), notAfter: Date.parse(end) };
            if (!secure.authorized) {
                const why = String(secure.authorizationError);
                throw new ProbeFailure('TLS_CERTIFICATE', certificateWords[why] ?? `The certificate: ${why}`);
            }
            return secure;
        });
    }

    /** Says that the certificate ends soon. @throws ProbeFailure CERTIFICATE_ENDS, which is mild */
    judgeCertificate(days: number | null | undefined): void {
        const left = this.certificate === null ? null : (this.certificate.notAfter - Date.now()) / 86_400_000;
        if (days != null && left !== null && left < days) {
            throw new ProbeFailure(
                'CERTIFICATE_ENDS',
                `The certificate ends in ${Math.max(0, Math.floor(left))} days`,
                true
            );
        }
    }

    /** Closes what is open. */
    end(): void {
        // The last opened first: TLS must be gone before the socket below it.
        this.#sockets.reverse().forEach((socket) => socket.on('error', () => undefined).destroy());
    }

    /** The outcome of a try that was good, or of the failure that ended it. */
    outcome(latencyMs: number | null, failure: ProbeFailure | null): Outcome {
        return {
            state: failure === null ? 'up' : failure.isMild ? 'degraded' : 'down',
            latencyMs: failure === null || failure.isMild ? latencyMs : null,
            code: failure?.code ?? null,
            message: failure?.message ?? null,
            phases: this.phases,
            certificate: this.certificate
        };
    }

    async #open(address: string, port: number, isOther: boolean): Promise<Socket> {
        const socket = this.#ctx.dial({ host: address, port });
        this.#sockets.push(socket);
        const { promise, resolve, reject } = Promise.withResolvers<undefined>();
        socket.once('connect', () => resolve(undefined));
        socket.on('error', reject);
        socket.once('close', () => reject(new Error('the connection was closed')));
        const timer = isOther
            ? setTimeout(
                  () => socket.destroy(Object.assign(new Error('late'), { code: 'ETIMEDOUT' })),
                  addressMs
              )
            : undefined;
        try {
            await promise;
            return socket;
        } finally {
            clearTimeout(timer);
        }
    }
}

function nameFailure(host: string, error: unknown): ProbeFailure {
    if (isFailure(error) && error.code === notFound) {
        return new ProbeFailure('NAME_NOT_FOUND', `The name ${host} does not resolve`);
    }
    return isFailure(error) && error.code === notGranted
        ? forbidden(host)
        : new ProbeFailure('NAME_FAILED', `The name ${host} cannot be resolved: ${messageOf(error)}`);
}

function connectFailure(error: unknown): ProbeFailure {
    if (isFailure(error) && error.code === notGranted) {
        return forbidden('The address');
    }
    const [code, message] = refusals[(error as { code?: string }).code ?? ''] ?? [
        'CONNECT_FAILED',
        `The connection fails: ${messageOf(error)}`
    ];
    return new ProbeFailure(code, message);
}

function forbidden(subject: string): ProbeFailure {
    return new ProbeFailure(
        'ADDRESS_FORBIDDEN',
        `${subject} may not be reached: an admin can grant it to the plugin as a network`
    );
}

function issuerOf(issuer: Readonly<Record<string, string | string[] | undefined>> | undefined): string {
    const { O: organization, CN: name } = issuer ?? {};
    return [organization, name].flatMap((part) => part ?? []).join(', ');
}
