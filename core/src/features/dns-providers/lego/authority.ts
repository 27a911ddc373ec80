/**
 * An ACME server (RFC 8555) for one run of `lego`, on the loopback. lego writes records only as part of an order, so it gets an order here,
 * with the tokens, the account key and the outcome of the real one. This server issues nothing.
 */
import { createPublicKey, type KeyObject, randomBytes, verify } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import type { Challenge } from '../challenges/solver.ts';

/** What a {@link LegoAuthority} works with. */
export interface LegoAuthorityOptions {
    readonly challenges: readonly Challenge[];
    /** PEM of the account's key. Requests that it did not sign are refused. */
    readonly key: string;
    /** Called when lego has written the record of a challenge. The authorization is valid when this resolves, invalid when it rejects. */
    written(challenge: Challenge): Promise<void>;
}

/** lego waits 30 s for an answer: a longer wait is made of several requests. */
const holdMs = 15_000;
/** lego gives up after a hundred times this. */
const retrySeconds = 6;
const mostBytes = 64 * 1024;

type Outcome = { status: 'pending' | 'valid' | 'invalid'; message: string };

/** The ACME server that one run of lego talks to. */
export class LegoAuthority {
    readonly #challenges: readonly Challenge[];
    readonly #written: LegoAuthorityOptions['written'];
    readonly #owner: KeyObject;
    readonly #nonces = new Set<string>();
    readonly #outcomes: Outcome[];
    readonly #attempts: (Promise<void> | undefined)[] = [];
    readonly #over = new AbortController();
    #done = false;
    #base = '';
    readonly #server: Server;

    private constructor({ challenges, key, written }: LegoAuthorityOptions) {
        this.#challenges = challenges;
        this.#written = written;
        this.#owner = createPublicKey(key);
        this.#outcomes = challenges.map((): Outcome => ({ status: 'pending', message: '' }));
        this.#server = createServer((request, response) => {
            this.#serve(request, response).catch(() => response.destroy());
        });
    }

    /** Starts one that listens on a free port of the loopback. */
    static async open(options: LegoAuthorityOptions): Promise<LegoAuthority> {
        const authority = new LegoAuthority(options);
        await new Promise<void>((resolve, reject) => {
            authority.#server.once('error', reject);
            authority.#server.listen(0, '127.0.0.1', resolve);
        });
        authority.#base = `http://127.0.0.1:${(authority.#server.address() as AddressInfo).port}`;
        return authority;
    }

    /** URL of the ACME directory. */
    get directory(): string {
        return `${this.#base}/directory`;
    }

    /** The folder in which lego keeps the accounts of this server. */
    get folder(): string {
        return this.#base.slice('http://'.length).replace(':', '_');
    }

    /** True when lego got through every challenge and has removed the records that it wrote. */
    get done(): boolean {
        return this.#done;
    }

    close(): void {
        this.#over.abort();
        this.#server.close();
        this.#server.closeAllConnections();
    }

    #answer(
        response: ServerResponse,
        status: number,
        body: unknown,
        headers: Readonly<Record<string, string>> = {}
    ): void {
        const nonce = randomBytes(16).toString('base64url');
        this.#nonces.add(nonce);
        response.writeHead(status, {
            'content-type': status < 400 ? 'application/json' : 'application/problem+json',
            'replay-nonce': nonce,
            'cache-control': 'no-store',
            ...headers
        });
        response.end(JSON.stringify(body));
    }

    #refuse(response: ServerResponse, status: number, type: string, detail: string): void {
        this.#answer(response, status, { type: `urn:ietf:params:acme:error:${type}`, detail, status });
    }

    #challengeOf(at: number): unknown {
        const { status, message } = this.#outcomes[at] ?? { status: 'invalid', message: '' };
        return {
            type: 'dns-01',
            url: `${this.#base}/challenge/${at}`,
            token: this.#challenges[at]?.token,
            status: status === 'pending' && this.#attempts[at] !== undefined ? 'processing' : status,
            ...(status === 'invalid'
                ? { error: { type: 'urn:ietf:params:acme:error:unauthorized', detail: message, status: 403 } }
                : {})
        };
    }

    #authorizationOf(at: number): unknown {
        const domain = this.#challenges[at]?.domain ?? '';
        const wildcard = this.#challenges.findIndex((other) => other.domain === domain) !== at;
        return {
            status: this.#outcomes[at]?.status,
            identifier: { type: 'dns', value: domain },
            challenges: [this.#challengeOf(at)],
            ...(wildcard ? { wildcard } : {})
        };
    }

    #order(): unknown {
        return {
            status: this.#outcomes.every(({ status }) => status === 'valid') ? 'ready' : 'pending',
            finalize: `${this.#base}/finalize`,
            identifiers: this.#challenges.map(({ domain }) => ({ type: 'dns', value: domain })),
            authorizations: this.#challenges.map((_challenge, at) => `${this.#base}/authorization/${at}`)
        };
    }

    #attempt(at: number): Promise<void> {
        const challenge = this.#challenges[at];
        const outcome = this.#outcomes[at];
        if (challenge === undefined || outcome === undefined) {
            return Promise.resolve();
        }
        this.#attempts[at] ??= this.#written(challenge).then(
            () => void (outcome.status = 'valid'),
            (error: unknown) =>
                void Object.assign(outcome, {
                    status: 'invalid',
                    message: error instanceof Error ? error.message : 'refused'
                })
        );
        return this.#attempts[at];
    }

    async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
        const { method = '', url = '' } = request;
        if (url === '/directory') {
            this.#answer(response, 200, {
                newNonce: `${this.#base}/nonce`,
                newAccount: `${this.#base}/account`,
                newOrder: `${this.#base}/order`,
                revokeCert: `${this.#base}/revoke`,
                keyChange: `${this.#base}/key`
            });
        } else if (url === '/nonce') {
            this.#answer(response, 200, {});
        } else if (
            method === 'POST' &&
            isSigned(await bodyOf(request), `${this.#base}${url}`, this.#owner, this.#nonces)
        ) {
            await this.#serveSigned(url, response);
        } else {
            this.#refuse(response, 403, 'unauthorized', 'not signed as it should be');
        }
    }

    async #serveSigned(url: string, response: ServerResponse): Promise<void> {
        const [, kind = '', number] = /^\/([a-z]+)(?:\/(\d{1,4}))?$/.exec(url) ?? [];
        const at = Number(number ?? NaN);
        if (kind === 'account') {
            this.#answer(
                response,
                201,
                { status: 'valid', orders: `${this.#base}/orders` },
                { location: `${this.#base}/account/1` }
            );
        } else if (kind === 'order') {
            this.#answer(response, 201, this.#order(), { location: `${this.#base}/order/1` });
        } else if (kind === 'authorization' && this.#outcomes[at] !== undefined) {
            if (this.#attempts[at] !== undefined) {
                await within(this.#attempts[at], holdMs, this.#over.signal);
            }
            this.#answer(response, 200, this.#authorizationOf(at), { 'retry-after': String(retrySeconds) });
        } else if (kind === 'challenge' && this.#outcomes[at] !== undefined) {
            await within(this.#attempt(at), holdMs, this.#over.signal);
            this.#answer(response, 200, this.#challengeOf(at), {
                'retry-after': String(retrySeconds),
                link: `<${this.#base}/authorization/${at}>;rel="up"`
            });
        } else if (kind === 'finalize') {
            this.#done = this.#outcomes.every(({ status }) => status === 'valid');
            this.#refuse(response, 403, 'unauthorized', 'the records were what was wanted');
        } else {
            this.#refuse(response, 404, 'malformed', 'there is nothing here');
        }
    }
}

/** Whether the owner of the key signed the request for this URL with a nonce of ours, which is then spent (RFC 8555, section 6). */
function isSigned(body: string, url: string, owner: KeyObject, nonces: Set<string>): boolean {
    try {
        const jws = JSON.parse(body) as { protected: string; payload: string; signature: string };
        const header = JSON.parse(Buffer.from(jws.protected, 'base64url').toString()) as {
            alg?: unknown;
            nonce?: unknown;
            url?: unknown;
        };
        const isGood =
            header.alg === 'ES256' &&
            header.url === url &&
            typeof header.nonce === 'string' &&
            verify(
                'sha256',
                Buffer.from(`${jws.protected}.${jws.payload}`),
                { key: owner, dsaEncoding: 'ieee-p1363' },
                Buffer.from(jws.signature, 'base64url')
            );
        return isGood && nonces.delete(header.nonce as string);
    } catch {
        return false;
    }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of request as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > mostBytes) {
            throw new Error('the request is too large');
        }
        chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString();
}

/** Resolves when the work has ended, the time is over or the signal aborts, whichever comes first. */
function within(work: Promise<void>, ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
        const timer = setTimeout(resolve, ms);
        const end = (): void => {
            clearTimeout(timer);
            resolve();
        };
        signal.addEventListener('abort', end, { once: true });
        work.then(end, end);
    });
}
