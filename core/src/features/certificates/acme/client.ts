/** An ACME client (RFC 8555): directory, nonces, signed requests and polling. */
import type { IncomingHttpHeaders } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';

import type { Clock } from '../../../platform/clock.ts';
import { type ExternalAccount, signBinding, signRequest } from './jws.ts';
import { AcmeFailure, isOfType, ownProblem, type Problem, readProblem, retryTime } from './problem.ts';

/** The panel's outbound HTTP, which refuses forbidden addresses. */
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

/** What an {@link AcmeClient} works with. */
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

/** A CA's answer with a status of success. */
export interface AcmeAnswer {
    readonly body: Readonly<Record<string, unknown>>;
    readonly text: string;
    /** The `Location` header. */
    readonly location: string | null;
    readonly retryAt: number | null;
}

type HttpAnswer = Awaited<ReturnType<AcmeHttp['request']>>;

/** How often a request is repeated with a fresh nonce. CAs refuse nonces now and then, some of them on purpose. */
const mostNonces = 30;
const requestMs = 30_000;
const mostBytes = 512 * 1024;
const firstPauseMs = 150;
const longestPauseMs = 10_000;
const patienceMs = 10 * 60_000;

/** A client of one CA for one account. */
export class AcmeClient {
    readonly #http: AcmeHttp;
    readonly #clock: Clock;
    readonly #directory: string;
    readonly #key: string;
    readonly #roots: readonly string[];
    readonly #signal: AbortSignal;
    readonly #nonces: string[] = [];
    #urls: Promise<Readonly<Record<string, unknown>>> | null = null;
    #account: string | null = null;

    constructor({ http, clock, directory, key, roots, signal }: AcmeOptions) {
        this.#http = http;
        this.#clock = clock;
        this.#directory = directory;
        this.#key = key;
        this.#roots = roots;
        this.#signal = signal;
    }

    /** Finds or creates the account and uses it from now on. Resolves with its URL. `known`: the URL from the last time. */
    async register({
        email,
        eab,
        known
    }: {
        readonly email: string | null;
        readonly eab: ExternalAccount | null;
        readonly known: string | null;
    }): Promise<string> {
        const url = await this.urlOf('newAccount');
        this.#account = null;
        if (known !== null) {
            // A key that the CA knows already gets its account, with 200, and nothing is bound again.
            const found = await this.post(url, { onlyReturnExisting: true }).catch((error: unknown) => {
                if (error instanceof AcmeFailure && isOfType(error.problem, 'accountDoesNotExist')) {
                    return null;
                }
                throw error;
            });
            this.#account = found?.location ?? null;
        }
        if (this.#account === null) {
            const { location } = await this.post(url, {
                termsOfServiceAgreed: true,
                ...(email === null ? {} : { contact: [`mailto:${email}`] }),
                ...(eab === null ? {} : { externalAccountBinding: signBinding(eab, this.#key, url) })
            });
            this.#account = location;
        }
        if (this.#account === null) {
            throw new AcmeFailure(ownProblem('no-account', `${hostOf(this.#directory)} gave no account`));
        }
        return this.#account;
    }

    /** Polls a URL until `enough` is true, at the pace that the CA asks for, for at most ten minutes. @throws AcmeFailure */
    async until(url: string, enough: (body: AcmeAnswer['body']) => boolean): Promise<AcmeAnswer['body']> {
        const end = performance.now() + patienceMs;
        for (let pause = firstPauseMs; ; pause = Math.min(longestPauseMs, pause * 1.5)) {
            const { body, retryAt } = await this.post(url, null);
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
                Math.min(60_000, Math.max(pause, retryAt === null ? 0 : retryAt - this.#clock.now())),
                undefined,
                { signal: this.#signal }
            );
        }
    }

    /** A URL of the directory. @throws AcmeFailure */
    async urlOf(name: string): Promise<string> {
        this.#urls ??= this.#send(this.#directory, { method: 'GET' }).then((answer) => {
            if (answer.status !== 200) {
                throw new AcmeFailure(
                    problemOf(answer, this.#directory),
                    retryTime(answer.headers['retry-after'], this.#clock.now())
                );
            }
            return bodyOf(answer);
        });
        const url = (await this.#urls)[name];
        if (typeof url !== 'string') {
            throw new AcmeFailure(
                ownProblem('no-directory', `${hostOf(this.#directory)} gave no ACME directory`)
            );
        }
        return url;
    }

    /** Sends a signed request. A payload of null reads the URL (POST-as-GET). @throws AcmeFailure, or the signal's reason */
    async post(url: string, payload: object | null, own: AbortSignal = this.#signal): Promise<AcmeAnswer> {
        for (let attempt = 1; ; attempt += 1) {
            const body = signRequest({
                url,
                nonce: await this.#freshNonce(own),
                key: this.#key,
                account: this.#account,
                payload
            });
            const answer = await this.#send(url, {
                method: 'POST',
                headers: {
                    'content-type': 'application/jose+json',
                    accept: 'application/json, application/pem-certificate-chain, application/problem+json'
                },
                body,
                signal: own
            });
            const retryAt = retryTime(answer.headers['retry-after'], this.#clock.now());
            if (answer.status >= 200 && answer.status < 300) {
                return {
                    body: bodyOf(answer),
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

    async #send(url: string, options: Parameters<AcmeHttp['request']>[1]): Promise<HttpAnswer> {
        try {
            const answer = await this.#http.request(url, {
                timeoutMs: requestMs,
                maxBytes: mostBytes,
                signal: this.#signal,
                ...(this.#roots.length === 0 ? {} : { ca: this.#roots }),
                ...options
            });
            const nonce = answer.headers['replay-nonce'];
            if (typeof nonce === 'string' && /^[A-Za-z0-9_-]{1,512}$/.test(nonce)) {
                this.#nonces.push(nonce);
            }
            return answer;
        } catch (error) {
            (options.signal ?? this.#signal).throwIfAborted();
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

    async #freshNonce(own: AbortSignal): Promise<string> {
        if (this.#nonces.length === 0) {
            await this.#send(await this.urlOf('newNonce'), { method: 'HEAD', signal: own });
        }
        const nonce = this.#nonces.pop();
        if (nonce === undefined) {
            throw new AcmeFailure(ownProblem('no-nonce', `${hostOf(this.#directory)} gave no nonce`));
        }
        return nonce;
    }
}

function hostOf(url: string): string {
    return URL.parse(url)?.host ?? 'The CA';
}

function bodyOf(answer: HttpAnswer): Readonly<Record<string, unknown>> {
    try {
        const value = JSON.parse(answer.body.toString()) as unknown;
        return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
    } catch {
        return {};
    }
}

function problemOf(answer: HttpAnswer, url: string): Problem {
    return {
        status: answer.status,
        ...readProblem(bodyOf(answer), `${hostOf(url)} answered with the status ${answer.status}`)
    };
}
