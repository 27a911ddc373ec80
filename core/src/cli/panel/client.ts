/** Speaks to the running panel: its ordinary HTTP API, with a token for each request that is made of the data folder's keys. */
// eslint-disable-next-line no-restricted-imports -- only the panel of this machine, at the address in its own data folder
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';

import { signConsoleToken } from '../../features/auth/tokens/console-tokens.ts';
import { systemClock } from '../../platform/clock.ts';
import type { Keyring } from '../../platform/keyring.ts';
import type { PanelAddress } from '../../platform/panel-address.ts';
import { Complaint, Refusal } from '../command/command-error.ts';
import { plain } from '../command/output.ts';

/** A success of the API. */
export interface Reply<T> {
    readonly data: T;
    /** What it says of itself beside the data. */
    readonly message: string;
    /** Cursor of the next page of a list; null at its end. */
    readonly next: string | null;
    readonly headers: IncomingHttpHeaders;
}

/** One event of a stream. */
export interface StreamedEvent {
    readonly event: string;
    /** Where a stream goes on that broke off; null for events that have no place in it. */
    readonly id: string | null;
    readonly data: unknown;
}

export interface Client {
    /** @throws Refusal when the panel refuses, Complaint when it does not answer */
    call<T>(
        method: 'GET' | 'POST' | 'PUT' | 'DELETE',
        path: string,
        body?: object,
        timeoutMs?: number,
        mostBytes?: number
    ): Promise<Reply<T>>;
    /**
     * Reads an event stream as it comes, until it ends or breaks off, which is the same to the reader.
     *
     * @param lastId - where it goes on; null: from its beginning
     * @throws the signal's reason
     */
    events(path: string, lastId: string | null, signal: AbortSignal): AsyncIterable<StreamedEvent>;
}

interface Answer {
    readonly status: number;
    readonly headers: IncomingHttpHeaders;
    readonly body: string;
}

const patienceMs = 60_000;
const longestAnswer = 16 * 1024 * 1024;

export function createClient(
    address: PanelAddress,
    keyring: Pick<Keyring, 'derive'>,
    userAgent: string
): Client {
    const credentials = (): Readonly<Record<string, string>> => ({
        authorization: `Bearer ${signConsoleToken(keyring, address.instance, systemClock.now())}`,
        'user-agent': userAgent
    });
    return {
        events: (path, lastId, signal) =>
            follow(
                address,
                path,
                {
                    ...credentials(),
                    accept: 'text/event-stream',
                    ...(lastId === null ? {} : { 'last-event-id': lastId })
                },
                signal
            ),
        async call<T>(
            method: 'GET' | 'POST' | 'PUT' | 'DELETE',
            path: string,
            body?: object,
            timeoutMs = patienceMs,
            mostBytes = longestAnswer
        ) {
            const answer = await exchange(address, method, path, {
                headers: credentials(),
                body,
                timeoutMs,
                mostBytes
            }).catch((error: Error) => {
                throw new Complaint(
                    `The panel at ${urlOf(address)} stopped answering (${error.message})${method === 'GET' ? '' : ': nobody knows whether it did what it was asked'}`
                );
            });
            return read<T>(answer, address);
        }
    };
}

/** What `/readyz` answers; null: nothing answers as a panel would. */
export async function askReadiness(
    address: PanelAddress,
    timeoutMs: number
): Promise<{ readonly ready: boolean; readonly message: string } | null> {
    try {
        const { status, body } = await exchange(address, 'GET', '/readyz', {
            headers: {},
            body: undefined,
            timeoutMs,
            mostBytes: longestAnswer
        });
        const { message } = envelopeOf(body) ?? {};
        return typeof message === 'string' ? { ready: status === 200, message: plain(message) } : null;
    } catch {
        return null;
    }
}

export function urlOf({ host, port }: PanelAddress): string {
    return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

function exchange(
    address: PanelAddress,
    method: string,
    path: string,
    {
        headers,
        body,
        timeoutMs,
        mostBytes
    }: {
        readonly headers: Readonly<Record<string, string>>;
        readonly body: object | undefined;
        readonly timeoutMs: number;
        readonly mostBytes: number;
    }
): Promise<Answer> {
    const [content, type] =
        body instanceof Uint8Array
            ? [body, 'application/gzip']
            : [body === undefined ? null : Buffer.from(JSON.stringify(body)), 'application/json'];
    return new Promise((resolve, reject) => {
        const asked = request({
            host: address.host,
            port: address.port,
            method,
            path,
            agent: false,
            headers: {
                ...headers,
                ...(content === null ? {} : { 'content-type': type, 'content-length': content.byteLength })
            }
        });
        const timer = setTimeout(
            () => asked.destroy(new Error(`no answer within ${timeoutMs / 1000} s`)),
            timeoutMs
        );
        const failed = (error: Error): void => {
            clearTimeout(timer);
            reject(error);
        };
        asked.on('error', failed);
        asked.on('response', (response) => {
            const chunks: Buffer[] = [];
            let size = 0;
            response.on('error', failed);
            response.on('data', (chunk: Buffer) => {
                size += chunk.length;
                chunks.push(chunk);
                if (size > mostBytes) {
                    asked.destroy(new Error('its answer is too long'));
                }
            });
            response.on('end', () => {
                clearTimeout(timer);
                resolve({
                    status: response.statusCode ?? 0,
                    headers: response.headers,
                    body: Buffer.concat(chunks).toString('utf8')
                });
            });
        });
        asked.end(content ?? undefined);
    });
}

async function* follow(
    { host, port }: PanelAddress,
    path: string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal
): AsyncGenerator<StreamedEvent> {
    signal.throwIfAborted();
    const asked = request({ host, port, method: 'GET', path, agent: false, headers, signal });
    asked.setTimeout(patienceMs, () => asked.destroy()); // the panel sends a beat every 15 s
    try {
        const response = await new Promise<IncomingMessage>((resolve, reject) => {
            asked.on('response', resolve).on('error', reject).end();
        });
        if (response.statusCode !== 200) {
            return; // whoever asks for what it is about hears why
        }
        let text = '';
        for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) {
            const blocks = (text + chunk).split('\n\n');
            text = (blocks.pop() ?? '').slice(0, longestAnswer);
            yield* blocks.flatMap((block) => eventOf(block) ?? []);
        }
    } catch {
        signal.throwIfAborted();
    } finally {
        asked.destroy();
    }
}

/** Null for what is no event, such as a comment. */
function eventOf(block: string): StreamedEvent | null {
    const fields = Object.fromEntries(
        block.split('\n').map((line) => /^(\w+): ?(.*)$/.exec(line)?.slice(1) ?? ['', ''])
    );
    try {
        return fields['event'] === undefined
            ? null
            : {
                  event: fields['event'],
                  id: fields['id'] ?? null,
                  data: JSON.parse(fields['data'] ?? 'null') as unknown
              };
    } catch {
        return null;
    }
}

function envelopeOf(
    body: string
): { readonly code?: unknown; readonly message?: unknown; readonly data?: unknown } | null {
    try {
        const parsed: unknown = JSON.parse(body);
        return typeof parsed === 'object' && parsed !== null ? parsed : null;
    } catch {
        return null;
    }
}

function read<T>({ status, headers, body }: Answer, address: PanelAddress): Reply<T> {
    const envelope = envelopeOf(body);
    if (envelope === null || typeof envelope.code !== 'number' || typeof envelope.message !== 'string') {
        throw new Complaint(`What answers at ${urlOf(address)} (status ${status}) is not the panel`);
    }
    if (envelope.code !== 0) {
        throw new Refusal(envelope.message, envelope.data);
    }
    return {
        data: envelope.data as T,
        message: plain(envelope.message),
        next: /[?&]cursor=([^&>]+)[^>]*>;\s*rel="?next"?/.exec(String(headers['link'] ?? ''))?.[1] ?? null,
        headers
    };
}
