/** Speaks ACME with one CA as one account (RFC 8555): directory, nonces, signed requests, and waiting for what takes time there. */
import type { IncomingHttpHeaders } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';

import type { Clock } from '../../../platform/clock.ts';
import { type ExternalAccount, signBinding, signRequest } from './jws.ts';
import { AcmeFailure, isOfType, ownProblem, type Problem, readProblem, retryTime } from './problem.ts';

/** The way out, which checks where it leads. */
export interface AcmeHttp {
    request(
        url: string,
        options: {
            readonly method?: 'GET' | 'HEAD' | 'POST';
            readonly headers?: Readonly<Record<string, string>>;
            readonly body?: string;
            readonly timeoutMs?: number;
            readonly maxBytes?: number;
            readonly signal?: AbortSignal;
            readonly ca?: readonly string[];
        }
    ): Promise<{ readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: Buffer }>;
}

export interface AcmeOptions {
    readonly http: AcmeHttp;
    readonly clock: Clock;
    /** URL of the CA's directory. */
    readonly directory: string;
    /** PEM of the account's key. */
    readonly key: string;
    /** PEM of authorities that the CA's own server may prove itself with, beside the system's. */
    readonly roots: readonly string[];
    readonly signal: AbortSignal;
}

export interface AcmeAnswer {
    readonly body: Readonly<Record<string, unknown>>;
    readonly text: string;
    /** The `Location` header. */
    readonly location: string | null;
    readonly retryAt: number | null;
}

export interface AcmeClient {
    /** Finds or makes the account and speaks as it from now on; resolves with its URL. `known`: the URL from the last time. */
    register(options: {
        readonly email: string | null;
        readonly eab: ExternalAccount | null;
        readonly known: string | null;
    }): Promise<string>;
    /** @throws AcmeFailure, or the signal's reason */
    post(url: string, payload: object | null, signal?: AbortSignal): Promise<AcmeAnswer>;
    /** A URL of the directory. @throws AcmeFailure */
    urlOf(name: 'newOrder' | 'newAccount' | 'newNonce'): Promise<string>;
    /** Asks until it is enough, at the CA's pace. */
    until(url: string, enough: (body: AcmeAnswer['body']) => boolean): Promise<AcmeAnswer['body']>;
}

/** CAs refuse nonces now and then, some on purpose; each refusal brings a fresh one. */
const mostNonces = 30;
const requestMs = 30_000;
const mostBytes = 512 * 1024;
const firstPauseMs = 150;
const longestPauseMs = 10_000;
const patienceMs = 10 * 60_000;

export function createAcmeClient({ http, clock, directory, key, roots, signal }: AcmeOptions): AcmeClient {
    const nonces: string[] = [];
    let urls: Promise<Readonly<Record<string, unknown>>> | null = null;
    let account: string | null = null;

    async function send(
        url: string,
        options: Parameters<AcmeHttp['request']>[1]
    ): Promise<Awaited<ReturnType<AcmeHttp['request']>>> {
        try {
            const answer = await http.request(url, {
                timeoutMs: requestMs,
                maxBytes: mostBytes,
                signal,
                ...(roots.length === 0 ? {} : { ca: roots }),
                ...options
            });
            const nonce = answer.headers['replay-nonce'];
            if (typeof nonce === 'string' && /^[A-Za-z0-9_-]{1,512}$/.test(nonce)) {
                nonces.push(nonce);
            }
            return answer;
        } catch (error) {
            (options.signal ?? signal).throwIfAborted();
            throw new AcmeFailure(
                ownProblem(
                    'ca-unreachable',
                    `The CA cannot be reached: ${error instanceof Error ? error.message : 'unknown'}`
                ),
                null,
                error
            );
        }
    }

    function read(answer: Awaited<ReturnType<typeof send>>): Readonly<Record<string, unknown>> {
        try {
            const value = JSON.parse(answer.body.toString()) as unknown;
            return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
        } catch {
            return {};
        }
    }

    function problemOf(answer: Awaited<ReturnType<typeof send>>, url: string): Problem {
        return {
            status: answer.status,
            ...readProblem(read(answer), `${hostOf(url)} answered with the status ${answer.status}`)
        };
    }

    async function urlOf(name: string): Promise<string> {
        urls ??= send(directory, { method: 'GET' }).then((answer) => {
            if (answer.status !== 200) {
                throw new AcmeFailure(
                    problemOf(answer, directory),
                    retryTime(answer.headers['retry-after'], clock.now())
                );
            }
            return read(answer);
        });
        const url = (await urls)[name];
        if (typeof url !== 'string') {
            throw new AcmeFailure(ownProblem('no-directory', `${hostOf(directory)} gave no ACME directory`));
        }
        return url;
    }

    async function freshNonce(own: AbortSignal): Promise<string> {
        if (nonces.length === 0) {
            await send(await urlOf('newNonce'), { method: 'HEAD', signal: own });
        }
        const nonce = nonces.pop();
        if (nonce === undefined) {
            throw new AcmeFailure(ownProblem('no-nonce', `${hostOf(directory)} gave no nonce`));
        }
        return nonce;
    }

    async function post(url: string, payload: object | null, own: AbortSignal = signal): Promise<AcmeAnswer> {
        for (let attempt = 1; ; attempt += 1) {
            const body = signRequest({ url, nonce: await freshNonce(own), key, account, payload });
            const answer = await send(url, {
                method: 'POST',
                headers: {
                    'content-type': 'application/jose+json',
                    accept: 'application/json, application/pem-certificate-chain, application/problem+json'
                },
                body,
                signal: own
            });
            const retryAt = retryTime(answer.headers['retry-after'], clock.now());
            if (answer.status >= 200 && answer.status < 300) {
                return {
                    body: read(answer),
                    text: answer.body.toString(),
                    location: answer.headers.location ?? null,
                    retryAt
                };
            }
            const problem = problemOf(answer, url);
            if (!isOfType(problem, 'badNonce') || attempt >= mostNonces) {
                throw new AcmeFailure(problem, retryAt);
            }
        }
    }

    return {
        post,
        urlOf,
        async register({ email, eab, known }) {
            const url = await urlOf('newAccount');
            account = null;
            if (known !== null) {
                // A key that the CA knows already gets its account, with 200, and nothing is bound again.
                const found = await post(url, { onlyReturnExisting: true }).catch((error: unknown) => {
                    if (error instanceof AcmeFailure && isOfType(error.problem, 'accountDoesNotExist')) {
                        return null;
                    }
                    throw error;
                });
                account = found?.location ?? null;
            }
            if (account === null) {
                const { location } = await post(url, {
                    termsOfServiceAgreed: true,
                    ...(email === null ? {} : { contact: [`mailto:${email}`] }),
                    ...(eab === null ? {} : { externalAccountBinding: signBinding(eab, key, url) })
                });
                account = location;
            }
            if (account === null) {
                throw new AcmeFailure(ownProblem('no-account', `${hostOf(directory)} gave no account`));
            }
            return account;
        },
        async until(url, enough) {
            const end = performance.now() + patienceMs;
            for (let pause = firstPauseMs; ; pause = Math.min(longestPauseMs, pause * 1.5)) {
                const { body, retryAt } = await post(url, null);
                if (enough(body)) {
                    return body;
                }
                if (performance.now() > end) {
                    throw new AcmeFailure(
                        ownProblem(
                            'ca-slow',
                            `${hostOf(url)} did not come to a decision within ${patienceMs / 60_000} minutes`
                        )
                    );
                }
                await wait(
                    Math.min(60_000, Math.max(pause, retryAt === null ? 0 : retryAt - clock.now())),
                    undefined,
                    { signal }
                );
            }
        }
    };
}

function hostOf(url: string): string {
    return URL.parse(url)?.host ?? 'The CA';
}
