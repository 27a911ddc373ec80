/** Downloads a URL into a folder of a root. Each address, also that of a redirect, is checked when it is connected to. */
import { createHash } from 'node:crypto';

import { type Actor, errors, isFailure, messageOf } from '@portico/sdk';

import { fail } from '../errors.ts';
import { hashed } from '../files/content/hashing.ts';
import type { FileWriter } from '../files/writer.ts';
import type { Place } from '../roots/roots.ts';
import type { Ctx } from '../settings.ts';

const mostRedirects = 5;
/** How long an address may send nothing. */
const idleMs = 60_000;
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** What is downloaded, and how it must be. */
export interface FetchOptions {
    readonly url: URL;
    /** Of the whole file, in hexadecimal digits; null: any. */
    readonly sha256: string | null;
    readonly replace: boolean;
    readonly signal: AbortSignal;
    /** Is called with the bytes so far, and with all that are announced; null: the address did not say. */
    progress(bytes: number, total: number | null): void;
}

/** What a download came to. */
export interface Fetched {
    readonly root: string;
    readonly path: string;
    readonly bytes: number;
    readonly sha256: string;
}

/** Downloads files from addresses of the network into a root. */
export class Fetching {
    readonly #ctx: Ctx;
    readonly #writer: FileWriter;

    constructor(ctx: Ctx, writer: FileWriter) {
        this.#ctx = ctx;
        this.#writer = writer;
    }

    /**
     * Downloads a URL to a place. The file appears whole or not at all.
     *
     * @throws FETCH_FAILED 50250, CHECKSUM_MISMATCH 42253, CONFLICT 40900, QUOTA_EXCEEDED 50750, STORAGE_FULL 50700
     */
    async run({ root, path }: Place, actor: Actor, options: FetchOptions): Promise<Fetched> {
        const answer = await this.#open(options.url, options.signal);
        const total = lengthOf(answer);
        const most = this.#ctx.settings.fetchBytes;
        if (total !== null && total > most) {
            await answer.body?.cancel();
            throw tooLarge(most);
        }
        const hash = createHash('sha256');
        const got = { bytes: 0, sha256: '' };
        const body = this.#checked(hashed(bodyOf(answer), hash), path, {
            ...options,
            total,
            most,
            done(bytes) {
                got.bytes = bytes;
                got.sha256 = hash.digest('hex');
                return got.sha256;
            }
        });
        try {
            await this.#writer.replace(root, path, actor, {
                body,
                length: total,
                ifMatch: null,
                onlyNew: !options.replace,
                signal: options.signal
            });
        } catch (error) {
            throw isFailure(error) && error.reason === 'VERSION_STALE' ? errors.conflict('path') : error;
        }
        return { root: root.name, path, ...got };
    }

    /** Follows redirects to an answer with a file. @throws FETCH_FAILED 50250 */
    async #open(first: URL, signal: AbortSignal): Promise<Response> {
        let url = first;
        for (let hop = 0; ; hop += 1) {
            const answer = await this.#ask(url, signal);
            const location = answer.headers.get('location');
            if (!redirects.has(answer.status) || location === null) {
                if (answer.status !== 200) {
                    await answer.body?.cancel();
                    throw failed(`${url.host} answered ${answer.status}`, answer.status);
                }
                return answer;
            }
            await answer.body?.cancel();
            if (hop === mostRedirects) {
                throw failed(`${first.host} redirects more than ${mostRedirects} times`, answer.status);
            }
            url = requireWeb(URL.parse(location, url.href), answer.status);
        }
    }

    async #ask(url: URL, signal: AbortSignal): Promise<Response> {
        const idle = idleSignal();
        try {
            return await this.#ctx.fetch(url, {
                redirect: 'manual',
                headers: { accept: '*/*' },
                signal: AbortSignal.any([signal, idle.signal])
            });
        } catch (error) {
            signal.throwIfAborted();
            throw idle.signal.aborted ? failed(`${url.host} does not answer`) : failed(wordsOf(error));
        } finally {
            idle.stop();
        }
    }

    /** Yields a body, and fails where it is not what it must be. */
    async *#checked(
        source: AsyncIterable<Uint8Array>,
        path: string,
        options: Pick<FetchOptions, 'sha256' | 'signal' | 'progress'> & {
            readonly total: number | null;
            readonly most: number;
            done(bytes: number): string;
        }
    ): AsyncGenerator<Uint8Array> {
        const { total, most, sha256, signal, progress } = options;
        let bytes = 0;
        try {
            for await (const chunk of source) {
                signal.throwIfAborted();
                bytes += chunk.byteLength;
                if (bytes > most) {
                    throw tooLarge(most);
                }
                progress(bytes, total);
                yield chunk;
            }
        } catch (error) {
            signal.throwIfAborted();
            throw isFailure(error) ? error : failed(wordsOf(error));
        }
        if (total !== null && bytes !== total) {
            throw failed(`it ended after ${bytes} of ${total} bytes`);
        }
        const found = options.done(bytes);
        if (sha256 !== null && sha256.toLowerCase() !== found) {
            throw fail.CHECKSUM_MISMATCH({ path });
        }
    }
}

/** Parses the address of a download. @throws VALIDATION_FAILED 40001 */
export function parseUrl(text: string): URL {
    const url = URL.parse(text);
    if (url === null || !isWeb(url)) {
        throw errors.invalid([
            { path: 'url', message: 'url must be an address of http or https, without a user' }
        ]);
    }
    return url;
}

function isWeb({ protocol, username, password }: URL): boolean {
    return (protocol === 'http:' || protocol === 'https:') && username === '' && password === '';
}

function requireWeb(url: URL | null, status: number): URL {
    if (url === null || !isWeb(url)) {
        throw failed('it redirects to something that is no address of http or https', status);
    }
    return url;
}

/** Yields the bytes of an answer. Fails when the address sends nothing for a while. */
async function* bodyOf(answer: Response): AsyncGenerator<Uint8Array> {
    if (answer.body === null) {
        return;
    }
    const reader = answer.body.getReader();
    try {
        for (;;) {
            const idle = Promise.withResolvers<never>();
            const timer = setTimeout(
                () => idle.reject(failed(`it sent nothing for ${idleMs / 1_000} seconds`)),
                idleMs
            );
            try {
                const { done, value } = await Promise.race([reader.read(), idle.promise]);
                if (done) {
                    return;
                }
                yield value;
            } finally {
                clearTimeout(timer);
            }
        }
    } finally {
        await reader.cancel().catch(() => undefined);
    }
}

function idleSignal(): { readonly signal: AbortSignal; stop(): void } {
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), idleMs);
    return { signal: abort.signal, stop: () => clearTimeout(timer) };
}

function lengthOf(answer: Response): number | null {
    const text = answer.headers.get('content-length');
    return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

function tooLarge(most: number): Error {
    return failed(`it has more than ${most} bytes`);
}

function failed(why: string, status: number | null = null): Error {
    return fail.FETCH_FAILED({ why, status });
}

function wordsOf(error: unknown): string {
    return messageOf(error).replace(/^fetch failed: /, '');
}
