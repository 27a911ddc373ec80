/** The client of the engine's API: HTTP over its unix socket. */
// eslint-disable-next-line no-restricted-imports -- each connection is one of ctx.dial, which lets through granted sockets alone
import { type IncomingMessage, request } from 'node:http';
import type { Duplex } from 'node:stream';

import { createFailure, errors, type FailureError, isFailure } from '@portico/sdk';

import { fail } from '../errors.ts';
import type { Ctx } from '../settings.ts';
import { drained } from '../streams/drained.ts';
import type { EngineVersion } from './documents.ts';

/** How long the head of an answer may take, unless a call says otherwise. */
const patienceMs = 5_000;
const places = ['/run/docker.sock', '/run/podman/podman.sock'];
const cutWhy = 'its answer was cut';
/** The newest version of the API that this client speaks. */
const newestApi = 41;

/** The parameters of one call of the engine's API. */
export interface EngineCall {
    readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
    /** Goes as JSON; bytes and streams go as they are, as a tar archive. */
    readonly body?: object | AsyncIterable<Uint8Array>;
    readonly headers?: Readonly<Record<string, string>>;
    readonly signal?: AbortSignal | undefined;
    /** For the head of the answer, in milliseconds; 0: no limit. Default: 5,000. */
    readonly patienceMs?: number;
}

/** What engine is there. */
export interface EngineInfo {
    readonly kind: 'docker' | 'podman';
    readonly version: string;
    readonly apiVersion: string;
    readonly arch: string;
    readonly socket: string;
    /** Prefix of paths, such as `/v1.41`. */
    readonly prefix: string;
}

/** Speaks to one Docker or Podman engine. */
export class Engine {
    readonly #ctx: Ctx;
    #found: { readonly setting: string | undefined; readonly info: Promise<EngineInfo> } | null = null;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** Which engine answers. @throws TOOL_MISSING 50302 when there is none, ENGINE_DOWN 50350 when it gives no answer */
    async info(): Promise<EngineInfo> {
        const setting = this.#ctx.settings.socket;
        if (this.#found?.setting !== setting) {
            this.#found = null;
        }
        const found = (this.#found ??= { setting, info: this.#find(setting) });
        try {
            return await found.info;
        } catch (error) {
            if (this.#found === found) {
                this.#found = null;
            }
            throw error;
        }
    }

    /** A call that answers JSON, or nothing. @throws ENGINE_REFUSED 42254, NOT_FOUND 40400, IN_USE 40901, ENGINE_DOWN 50350, TOOL_MISSING 50302 */
    async call<T>(method: string, path: string, call: EngineCall = {}): Promise<T> {
        const response = await this.open(method, path, call);
        const text = await readText(response, call.signal);
        return (isEmpty(text) ? null : parse(text)) as T;
    }

    /** As {@link Engine.call}; null where the engine has nothing of that name. */
    async find<T>(path: string, call: EngineCall = {}): Promise<T | null> {
        try {
            return await this.call<T>('GET', path, call);
        } catch (error) {
            if (isFailure(error) && error.code === 40400) {
                return null;
            }
            throw error;
        }
    }

    /** A call whose answer is read as a stream. Aborting the signal, or destroying the answer, ends it. */
    async open(method: string, path: string, call: EngineCall = {}): Promise<IncomingMessage> {
        const { socket, prefix } = await this.info();
        const response = await this.#request(socket, method, `${prefix}${path}`, call).catch(
            (error: unknown) => {
                this.#found = null;
                throw error;
            }
        );
        const { statusCode = 500 } = response;
        if (statusCode < 400) {
            return response;
        }
        throw failureOf(statusCode, await readText(response));
    }

    /** A call that turns its connection into a stream of bytes both ways, as terminals do. The caller destroys it. */
    async upgrade(path: string, { query, body }: Pick<EngineCall, 'query' | 'body'>): Promise<Duplex> {
        const { socket, prefix } = await this.info();
        const answer = await this.#request(socket, 'POST', `${prefix}${path}`, {
            ...(query === undefined ? {} : { query }),
            ...(body === undefined ? {} : { body }),
            headers: { connection: 'Upgrade', upgrade: 'tcp' }
        });
        const { statusCode = 500 } = answer;
        if (statusCode !== 101) {
            throw failureOf(statusCode, await readText(answer));
        }
        return answer.socket;
    }

    async #find(setting: string | undefined): Promise<EngineInfo> {
        let there: Error | null = null;
        for (const socket of setting === undefined ? places : [setting]) {
            try {
                const response = await this.#request(socket, 'GET', '/version', {});
                return infoOf(socket, parse(await readText(response)) as EngineVersion);
            } catch (error) {
                const { code } = ((error as FailureError).cause ?? {}) as { code?: string };
                // One that hangs, or refuses, is there.
                there ??= code === 'ENOENT' ? null : (error as Error);
            }
        }
        throw there ?? missingEngine(setting);
    }

    async #request(
        socket: string,
        method: string,
        path: string,
        { query = {}, body, headers = {}, signal, patienceMs: patience = patienceMs }: EngineCall
    ): Promise<IncomingMessage> {
        const search = new URLSearchParams(
            Object.entries(query).flatMap(([name, value]): [string, string][] =>
                value === undefined ? [] : [[name, String(value)]]
            )
        ).toString();
        const isStream = body !== undefined && Symbol.asyncIterator in body;
        const text = body === undefined || isStream ? '' : JSON.stringify(body);
        const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
        const sent = request({
            method,
            path: search === '' ? path : `${path}?${search}`,
            createConnection: () => this.#ctx.dial({ path: socket }),
            ...(signal === undefined ? {} : { signal }),
            headers: {
                host: 'engine',
                connection: 'close',
                ...(isStream
                    ? { 'content-type': 'application/x-tar', 'transfer-encoding': 'chunked' }
                    : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
                ...headers
            }
        });
        sent.once('response', resolve);
        sent.once('upgrade', (response, upgraded, head) => {
            if (head.length > 0) {
                upgraded.unshift(head);
            }
            resolve(response);
        });
        sent.once('error', (error) => reject(signal?.aborted === true ? error : downOf(error)));
        const timer =
            patience === 0
                ? null
                : setTimeout(
                      () =>
                          sent.destroy(
                              fail.ENGINE_DOWN({ why: `it gave no answer in ${patience / 1_000} s` })
                          ),
                      patience
                  );
        try {
            if (isStream) {
                await Promise.race([sendAll(sent, body as AsyncIterable<Uint8Array>), promise]);
            } else {
                sent.end(text);
            }
            return await promise;
        } finally {
            if (timer !== null) {
                clearTimeout(timer);
            }
        }
    }
}

/**
 * The bytes of an answer. What the signal of its call cuts ends with the signal's own reason.
 *
 * @throws ENGINE_DOWN 50350 when the answer was cut, so that no half of an archive, a pull or a build counts as one
 */
export async function* wholly(response: IncomingMessage, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    try {
        for await (const chunk of response) {
            yield chunk as Buffer;
        }
        signal?.throwIfAborted();
        if (!response.complete) {
            throw fail.ENGINE_DOWN({ why: cutWhy });
        }
    } catch (error) {
        signal?.throwIfAborted();
        const isCut = (error as { readonly code?: unknown }).code === 'ECONNRESET';
        throw isCut ? fail.ENGINE_DOWN({ why: cutWhy }, { cause: error }) : error;
    } finally {
        response.destroy();
    }
}

async function sendAll(sent: ReturnType<typeof request>, body: AsyncIterable<Uint8Array>): Promise<void> {
    try {
        for await (const chunk of body) {
            if (!sent.write(chunk)) {
                await drained(sent);
            }
            if (sent.destroyed) {
                return;
            }
        }
        sent.end();
    } catch (error) {
        sent.destroy(error as Error);
        throw error;
    }
}

function infoOf(socket: string, version: EngineVersion): EngineInfo {
    const isPodman = (version.Components ?? []).some(({ Name }) => Name.includes('Podman'));
    const minor = (text: string | undefined, otherwise: number): number => {
        const [, found] = /^1\.(\d+)$/.exec(text ?? '') ?? [];
        return found === undefined ? otherwise : Number(found);
    };
    const api = Math.max(
        Math.min(newestApi, minor(version.ApiVersion, newestApi)),
        isPodman ? 0 : minor(version.MinAPIVersion, 0)
    );
    return {
        kind: isPodman ? 'podman' : 'docker',
        version: version.Version,
        apiVersion: version.ApiVersion,
        arch: version.Arch,
        socket,
        prefix: `/v1.${api}`
    };
}

/** Podman says OK, or ends a line, where Docker says nothing. */
const isEmpty = (text: string): boolean => ['', 'OK'].includes(text.trim());

/** @throws ENGINE_DOWN 50350 for what is no JSON, or was cut */
function parse(text: string): unknown {
    try {
        return JSON.parse(text);
    } catch {
        throw fail.ENGINE_DOWN({ why: 'its answer is no JSON' });
    }
}

async function readText(response: IncomingMessage, signal?: AbortSignal): Promise<string> {
    return Buffer.concat(await Array.fromAsync(wholly(response, signal))).toString();
}

function failureOf(status: number, text: string): FailureError {
    let message = text.trim();
    try {
        message = String((JSON.parse(text) as { message?: unknown }).message ?? message);
    } catch {
        // Some answers of Podman are plain text.
    }
    if (status === 404) {
        return errors.notFound(message === '' ? undefined : message);
    }
    if (message.includes('container-init binary not found')) {
        // Podman's package only recommends it.
        return errors.toolMissing('the first process of containers with init', 'apt-get install catatonit');
    }
    const engine = message === '' ? `status ${status}, without a word` : message.slice(0, 2_000);
    const port = takenPort(engine);
    if (port !== null) {
        const taken = `The port ${port} of this machine is taken: choose another one, or end what has it`;
        return fail.ENGINE_REFUSED({ engine, status, port }, { message: taken });
    }
    const [, program] = /exec: \\?"([^"\\]+)\\?": executable file not found in \$PATH/.exec(engine) ?? [];
    const missing = `The image has no program ${program}: see the command and the entry point`;
    return fail.ENGINE_REFUSED({ engine, status }, program === undefined ? {} : { message: missing });
}

/** The port of the machine that another one has, as both engines say it. */
function takenPort(engine: string): string | null {
    const [, port = null] =
        /Bind for (\S+) failed: port is already allocated/.exec(engine) ??
        /listen \w+ (\S+): bind: address already in use/.exec(engine) ??
        [];
    return port;
}

/** @returns TOOL_MISSING 50302 */
function missingEngine(setting: string | undefined): FailureError {
    const install = 'apt-get install docker.io';
    const message =
        setting === undefined
            ? `There is no container engine at ${places.join(' and ')}: install one, or start it`
            : `There is no container engine at ${setting}: see the setting \`socket\``;
    return createFailure({ code: 50302, reason: 'TOOL_MISSING', message, data: { tool: 'docker', install } });
}

function downOf(error: unknown): FailureError {
    return isFailure(error) ? error : fail.ENGINE_DOWN({ why: (error as Error).message }, { cause: error });
}
