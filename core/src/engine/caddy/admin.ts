import { request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';

import { checkSocket, type EngineFolders } from '../files/home.ts';
import { EngineRejected, EngineUnavailable, type EngineUpstream } from '../port.ts';
import { readOrigin } from './origin.ts';

/** A request to the engine's admin API. */
export interface AdminRequest {
    readonly method: 'GET' | 'POST';
    readonly path: string;
    /** JSON text. */
    readonly body?: string;
    /** For the whole exchange. */
    readonly timeoutMs: number;
    /** Ends the exchange. It is unknown then whether the engine acts. */
    readonly signal?: AbortSignal;
}

/** The largest answer that is taken: a configuration of 10,000 hosts with rich settings is 6 MB. */
const answerLimit = 256 * 1024 * 1024;

/**
 * Asks the engine's admin API, over its unix socket and only if that is the engine's.
 *
 * `node:http` and not `fetch`: newer engines refuse what looks like a browser (`Origin`, `Sec-Fetch-*`), and every one wants
 * the `Host` that it was started with (`readOrigin`).
 *
 * @returns the answer's text
 * @throws EngineRejected with the engine's own message for any status that is not 2xx
 * @throws EngineUnavailable when there is no answer in time
 */
export const requestAdmin = async (folders: EngineFolders, asked: AdminRequest): Promise<string> => {
    const answer = await exchange(folders, asked);
    if (answer.status < 200 || answer.status > 299) {
        throw new EngineRejected(messageOf(answer.text) || `the engine answered ${answer.status}`);
    }

    return answer.text;
};

/**
 * Whether the engine answers at all. It does even while it is busy with a load, which blocks requests for its configuration.
 * `/metrics` is the one address that the engine does not log each time. An engine that does not know our name for it (403) is none that we can use.
 */
export const pingAdmin = async (folders: EngineFolders, timeoutMs: number): Promise<boolean> => {
    try {
        return (await exchange(folders, { method: 'GET', path: '/metrics', timeoutMs })).status !== 403;
    } catch {
        return false;
    }
};

/** When an engine that works on a long request counts as stalled. Milliseconds. */
export interface StallTiming {
    /** A request that takes longer is watched: the engine is pinged while it works. */
    readonly stallAfterMs: number;
    /** Two pings in a row without an answer in this time mean that the engine has stalled. */
    readonly stallPingMs: number;
}

/** The engine's process lives and answers nothing. It would still act on requests that it has received, should it go on. */
export class EngineStalled extends EngineUnavailable {}

/**
 * Like `requestAdmin`, for requests that may rightly take long. It distinguishes an engine that works from one that does nothing.
 * @throws EngineStalled as soon as the engine answers nothing any more
 */
export const requestWatched = async (
    folders: EngineFolders,
    asked: AdminRequest,
    timing: StallTiming
): Promise<string> => {
    const ended = new AbortController();
    const stalled = new AbortController();
    void watchForStall(folders, timing, ended.signal).then((hasStalled) => {
        if (hasStalled) {
            stalled.abort();
        }
    });
    try {
        const signals = [stalled.signal, ...(asked.signal === undefined ? [] : [asked.signal])];
        return await requestAdmin(folders, { ...asked, signal: AbortSignal.any(signals) });
    } catch (error) {
        throw stalled.signal.aborted
            ? new EngineStalled('the engine does not answer', { cause: error })
            : error;
    } finally {
        ended.abort();
    }
};

const watchForStall = async (
    folders: EngineFolders,
    { stallAfterMs, stallPingMs }: StallTiming,
    ended: AbortSignal
): Promise<boolean> => {
    while (await isOver(stallAfterMs, ended)) {
        const answers =
            (await pingAdmin(folders, stallPingMs)) ||
            ended.aborted ||
            (await pingAdmin(folders, stallPingMs));
        if (!answers) {
            return !ended.aborted;
        }
    }

    return false;
};

/** Waits. @returns false when the signal aborted first */
const isOver = (delayMs: number, signal: AbortSignal): Promise<boolean> =>
    wait(delayMs, true, { signal, ref: false }).catch(() => false);

/** Reads what `/reverse_proxy/upstreams` answers. The one that stands for every address of the table has no address of its own. */
export const parseUpstreams = (text: string): readonly EngineUpstream[] => {
    const parsed: unknown = JSON.parse(text);
    return (Array.isArray(parsed) ? parsed : [])
        .map(
            (entry: {
                readonly address?: unknown;
                readonly num_requests?: unknown;
                readonly fails?: unknown;
            }) => ({
                address: String(entry.address ?? ''),
                requests: Number(entry.num_requests ?? 0),
                fails: Number(entry.fails ?? 0)
            })
        )
        .filter(({ address }) => !address.includes('{'));
};

const exchange = (
    folders: EngineFolders,
    asked: AdminRequest
): Promise<{ readonly status: number; readonly text: string }> =>
    new Promise((done, failed) => {
        if (!checkSocket(folders)) {
            throw new EngineUnavailable('the engine does not run: its socket is not there');
        }

        const body = asked.body === undefined ? null : Buffer.from(asked.body);
        const call = request({
            socketPath: folders.adminSocket,
            method: asked.method,
            path: asked.path,
            agent: false,
            ...(asked.signal === undefined ? {} : { signal: asked.signal }),
            headers: {
                host: readOrigin(folders),
                ...(body === null
                    ? {}
                    : { 'content-type': 'application/json', 'content-length': body.length })
            }
        });
        const timer = setTimeout(
            () =>
                call.destroy(
                    new EngineUnavailable(
                        `the engine did not answer ${asked.method} ${asked.path} within ${asked.timeoutMs / 1000} s`
                    )
                ),
            asked.timeoutMs
        );
        const fail = (error: Error): void => {
            clearTimeout(timer);
            failed(
                error instanceof EngineUnavailable
                    ? error
                    : new EngineUnavailable(`the engine does not answer: ${error.message}`)
            );
        };

        call.on('error', fail);
        call.on('response', (response) => {
            const chunks: Buffer[] = [];
            let size = 0;
            response.on('data', (chunk: Buffer) => {
                chunks.push(chunk);
                size += chunk.length;
                if (size > answerLimit) {
                    call.destroy(new EngineUnavailable("the engine's answer is too long"));
                }
            });
            response.on('error', fail);
            response.on('end', () => {
                clearTimeout(timer);
                done({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') });
            });
        });
        call.end(body);
    });

const messageOf = (text: string): string => {
    try {
        const parsed: unknown = JSON.parse(text);
        if (
            typeof parsed === 'object' &&
            parsed !== null &&
            'error' in parsed &&
            typeof parsed.error === 'string'
        ) {
            return parsed.error.trim();
        }
    } catch {
        // Not JSON: the text itself is the message.
    }

    return text.trim().slice(0, 4096);
};
