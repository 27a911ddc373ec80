/**
 * A certificate authority for one run of `lego`, on the loopback. The command can only write a record as a part of an order, so it gets
 * one: with the tokens and the account key of the real order, and with the real outcome. It issues nothing.
 */
import { createPublicKey, type KeyObject, randomBytes, verify } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import type { Challenge } from '../solver.ts';

export interface LegoAuthority {
    readonly directory: string;
    /** As the command calls the folder of this authority's accounts. */
    readonly folder: string;
    /** The command has been through every challenge, and has removed the records of those that it wrote. */
    readonly done: boolean;
    close(): void;
}

export interface LegoAuthorityOptions {
    readonly challenges: readonly Challenge[];
    /** PEM; only who signs with it is heard. */
    readonly key: string;
    /** The record of this challenge is written. Its end is the end of the authorization. */
    written(challenge: Challenge): Promise<void>;
}

/** The command gives an answer 30 s to begin; a longer wait is several. */
const holdMs = 15_000;
/** Its patience is a hundred times this. */
const retrySeconds = 6;
const mostBytes = 64 * 1024;

type Outcome = { status: 'pending' | 'valid' | 'invalid'; message: string };

export async function openLegoAuthority({
    challenges,
    key,
    written
}: LegoAuthorityOptions): Promise<LegoAuthority> {
    const owner = createPublicKey(key);
    const nonces = new Set<string>();
    const outcomes = challenges.map((): Outcome => ({ status: 'pending', message: '' }));
    const works: (Promise<void> | undefined)[] = [];
    const over = new AbortController();
    let done = false;
    let base = '';

    const nonce = (): string => {
        const value = randomBytes(16).toString('base64url');
        nonces.add(value);
        return value;
    };
    const answer = (
        response: ServerResponse,
        status: number,
        body: unknown,
        headers: Readonly<Record<string, string>> = {}
    ): void => {
        response.writeHead(status, {
            'content-type': status < 400 ? 'application/json' : 'application/problem+json',
            'replay-nonce': nonce(),
            'cache-control': 'no-store',
            ...headers
        });
        response.end(JSON.stringify(body));
    };
    const challengeOf = (at: number): unknown => {
        const { status, message } = outcomes[at] ?? { status: 'invalid', message: '' };
        return {
            type: 'dns-01',
            url: `${base}/challenge/${at}`,
            token: challenges[at]?.token,
            status: status === 'pending' && works[at] !== undefined ? 'processing' : status,
            ...(status === 'invalid'
                ? { error: { type: 'urn:ietf:params:acme:error:unauthorized', detail: message, status: 403 } }
                : {})
        };
    };
    const authorizationOf = (at: number): unknown => {
        const domain = challenges[at]?.domain ?? '';
        const wildcard = challenges.findIndex((other) => other.domain === domain) !== at;
        return {
            status: outcomes[at]?.status,
            identifier: { type: 'dns', value: domain },
            challenges: [challengeOf(at)],
            ...(wildcard ? { wildcard } : {})
        };
    };
    const order = (): unknown => ({
        status: outcomes.every(({ status }) => status === 'valid') ? 'ready' : 'pending',
        finalize: `${base}/finalize`,
        identifiers: challenges.map(({ domain }) => ({ type: 'dns', value: domain })),
        authorizations: challenges.map((_challenge, at) => `${base}/authorization/${at}`)
    });
    const begin = (at: number): Promise<void> => {
        const challenge = challenges[at];
        const outcome = outcomes[at];
        if (challenge === undefined || outcome === undefined) {
            return Promise.resolve();
        }
        works[at] ??= written(challenge).then(
            () => void (outcome.status = 'valid'),
            (error: unknown) =>
                void Object.assign(outcome, {
                    status: 'invalid',
                    message: error instanceof Error ? error.message : 'refused'
                })
        );
        return works[at];
    };

    async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
        const { method = '', url = '' } = request;
        if (url === '/directory') {
            answer(response, 200, {
                newNonce: `${base}/nonce`,
                newAccount: `${base}/account`,
                newOrder: `${base}/order`,
                revokeCert: `${base}/revoke`,
                keyChange: `${base}/key`
            });
            return;
        }
        if (url === '/nonce') {
            answer(response, 200, {});
            return;
        }
        const payload =
            method === 'POST' ? read(await bodyOf(request), `${base}${url}`, owner, nonces) : null;
        if (payload === null) {
            answer(response, 403, {
                type: 'urn:ietf:params:acme:error:unauthorized',
                detail: 'not signed as it should be',
                status: 403
            });
            return;
        }
        const [, kind = '', number] = /^\/([a-z]+)(?:\/(\d{1,4}))?$/.exec(url) ?? [];
        const at = Number(number ?? NaN);
        if (kind === 'account') {
            answer(
                response,
                201,
                { status: 'valid', orders: `${base}/orders` },
                { location: `${base}/account/1` }
            );
        } else if (kind === 'order') {
            answer(response, 201, order(), { location: `${base}/order/1` });
        } else if (kind === 'authorization' && outcomes[at] !== undefined) {
            if (works[at] !== undefined) {
                await within(works[at], holdMs, over.signal);
            }
            answer(response, 200, authorizationOf(at), { 'retry-after': String(retrySeconds) });
        } else if (kind === 'challenge' && outcomes[at] !== undefined) {
            await within(begin(at), holdMs, over.signal);
            answer(response, 200, challengeOf(at), {
                'retry-after': String(retrySeconds),
                link: `<${base}/authorization/${at}>;rel="up"`
            });
        } else if (kind === 'finalize') {
            done = outcomes.every(({ status }) => status === 'valid');
            answer(response, 403, {
                type: 'urn:ietf:params:acme:error:unauthorized',
                detail: 'the records were what was wanted',
                status: 403
            });
        } else {
            answer(response, 404, {
                type: 'urn:ietf:params:acme:error:malformed',
                detail: 'there is nothing here',
                status: 404
            });
        }
    }

    const server = createServer((request, response) => {
        serve(request, response).catch(() => response.destroy());
    });
    await new Promise<void>((resolve, reject) => {
        server.once('error', reject);
        server.listen(0, '127.0.0.1', resolve);
    });
    const { port } = server.address() as AddressInfo;
    base = `http://127.0.0.1:${port}`;
    return {
        directory: `${base}/directory`,
        folder: `127.0.0.1_${port}`,
        get done() {
            return done;
        },
        close() {
            over.abort();
            server.close();
            server.closeAllConnections();
        }
    };
}

/** What a signed request says; null when anything about it is not right. */
function read(body: string, url: string, owner: KeyObject, nonces: Set<string>): unknown {
    try {
        const jws = JSON.parse(body) as { protected: string; payload: string; signature: string };
        const header = JSON.parse(Buffer.from(jws.protected, 'base64url').toString()) as {
            alg?: unknown;
            nonce?: unknown;
            url?: unknown;
        };
        const signed = Buffer.from(`${jws.protected}.${jws.payload}`);
        const good =
            header.alg === 'ES256' &&
            header.url === url &&
            typeof header.nonce === 'string' &&
            verify(
                'sha256',
                signed,
                { key: owner, dsaEncoding: 'ieee-p1363' },
                Buffer.from(jws.signature, 'base64url')
            );
        return good && nonces.delete(header.nonce as string) ? jws.payload : null;
    } catch {
        return null;
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

/** Waits for it, but not for longer than that. */
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
