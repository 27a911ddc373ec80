/** Talks to the running panel through its ordinary HTTP API. The token of each request is signed with a key of the data folder. */
// eslint-disable-next-line no-restricted-imports -- only the panel of this machine, at the address in its own data folder
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';

import { signConsoleToken } from '../../features/auth/tokens/console-tokens.ts';
import type { PanelAddress } from '../../platform/address/panel.ts';
import { systemClock } from '../../platform/clock.ts';
import type { Keyring } from '../../platform/keys/keyring.ts';
import { CommandError, RequestRefused } from '../command/command-error.ts';
import { toPlainText } from '../command/output.ts';

/** A successful answer of the API. */
export interface Reply<T> {
    readonly data: T;
    /** The message of the answer. */
    readonly message: string;
    /** Cursor of the next page of a list; null at its end. */
    readonly next: string | null;
    readonly headers: IncomingHttpHeaders;
}

/** One event of a stream. */
export interface StreamedEvent {
    readonly event: string;
    /** To be sent as `Last-Event-ID` to go on after this event; null for an event without an id. */
    readonly id: string | null;
    readonly data: unknown;
}

interface Answer {
    readonly status: number;
    readonly headers: IncomingHttpHeaders;
    readonly body: string;
}

const patienceMs = 60_000;
const longestAnswer = 16 * 1024 * 1024;

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** Sends requests to the running panel as the system. */
export class Client {
    readonly #address: PanelAddress;
    readonly #keyring: Pick<Keyring, 'derive'>;
    readonly #userAgent: string;
    /** A token of a user, null for no token; undefined: the system's. */
    #bearer: string | null | undefined = undefined;

    constructor(address: PanelAddress, keyring: Pick<Keyring, 'derive'>, userAgent: string) {
        this.#address = address;
        this.#keyring = keyring;
        this.#userAgent = userAgent;
    }

    /** A client of the same panel with a user's token, or with none. */
    as(bearer: string | null): Client {
        const other = new Client(this.#address, this.#keyring, this.#userAgent);
        other.#bearer = bearer;
        return other;
    }

    /** Sends one request. @throws RequestRefused when the panel refuses it, CommandError when it does not answer */
    async call<T>(
        method: Method,
        path: string,
        body?: object,
        timeoutMs = patienceMs,
        mostBytes = longestAnswer
    ): Promise<Reply<T>> {
        const answer = await exchange(this.#address, method, path, {
            headers: this.#credentials(),
            body,
            timeoutMs,
            mostBytes
        }).catch((error: Error) => {
            throw new CommandError(
                `The panel at ${panelUrl(this.#address)} stopped answering (${error.message})${method === 'GET' ? '' : ': it is not known whether it carried out the request'}`
            );
        });
        return parseReply<T>(answer, this.#address);
    }

    /** Reads a document that the panel answers without its envelope. @throws CommandError */
    async document<T>(path: string): Promise<T> {
        const { status, body } = await exchange(this.#address, 'GET', path, {
            headers: this.#credentials(),
            body: undefined,
            timeoutMs: patienceMs,
            mostBytes: longestAnswer
        });
        if (status !== 200) {
            throw new CommandError(`The panel at ${panelUrl(this.#address)} answers ${path} with ${status}`);
        }
        return JSON.parse(body) as T;
    }

    /**
     * Reads an event stream until it ends or the connection is lost, which the reader cannot tell apart.
     *
     * @param lastId - the id of the last event that was read; null to begin with the first
     * @throws the signal's reason
     */
    events(path: string, lastId: string | null, signal: AbortSignal): AsyncIterable<StreamedEvent> {
        const headers = {
            ...this.#credentials(),
            accept: 'text/event-stream',
            ...(lastId === null ? {} : { 'last-event-id': lastId })
        };
        return follow(this.#address, path, headers, signal);
    }

    /** The system's: a new token for each request, which is valid once, and for 30 s. */
    #credentials(): Readonly<Record<string, string>> {
        const token =
            this.#bearer === undefined
                ? signConsoleToken(this.#keyring, this.#address.instance, systemClock.now())
                : this.#bearer;
        return {
            ...(token === null ? {} : { authorization: `Bearer ${token}` }),
            'user-agent': this.#userAgent
        };
    }
}

/** Asks `/readyz`; null when no panel answers at the address. */
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
        const { message } = parseEnvelope(body) ?? {};
        return typeof message === 'string' ? { ready: status === 200, message: toPlainText(message) } : null;
    } catch {
        return null;
    }
}

/** The URL of an address. */
export function panelUrl({ host, port }: PanelAddress): string {
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
    asked.setTimeout(patienceMs, () => asked.destroy()); // the panel sends a comment every 15 s
    try {
        const response = await new Promise<IncomingMessage>((resolve, reject) => {
            asked.on('response', resolve).on('error', reject).end();
        });
        if (response.statusCode !== 200) {
            return; // the caller then asks for the task itself, and gets the error
        }
        let text = '';
        for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) {
            const blocks = (text + chunk).split('\n\n');
            text = (blocks.pop() ?? '').slice(0, longestAnswer);
            yield* blocks.flatMap((block) => parseEvent(block) ?? []);
        }
    } catch {
        signal.throwIfAborted();
    } finally {
        asked.destroy();
    }
}

/** Reads one block of the stream; null for a block that is not an event, such as a comment. */
function parseEvent(block: string): StreamedEvent | null {
    const fields = Object.fromEntries(
        block.split('\n').map((line) => /^(\w+): ?(.*)$/.exec(line)?.slice(1) ?? ['', ''])
    );
    try {
        return fields['event'] === undefined && fields['data'] === undefined
            ? null
            : {
                  event: fields['event'] ?? 'message',
                  id: fields['id'] ?? null,
                  data: JSON.parse(fields['data'] ?? 'null') as unknown
              };
    } catch {
        return null;
    }
}

function parseEnvelope(
    body: string
): { readonly code?: unknown; readonly message?: unknown; readonly data?: unknown } | null {
    try {
        const parsed: unknown = JSON.parse(body);
        return typeof parsed === 'object' && parsed !== null ? parsed : null;
    } catch {
        return null;
    }
}

function parseReply<T>({ status, headers, body }: Answer, address: PanelAddress): Reply<T> {
    const envelope = parseEnvelope(body);
    if (envelope === null || typeof envelope.code !== 'number' || typeof envelope.message !== 'string') {
        throw new CommandError(
            `The program that answers at ${panelUrl(address)} (status ${status}) is not the panel`
        );
    }
    if (envelope.code !== 0) {
        throw new RequestRefused(envelope.message, envelope.data);
    }
    return {
        data: envelope.data as T,
        message: toPlainText(envelope.message),
        next: /[?&]cursor=([^&>]+)[^>]*>;\s*rel="?next"?/.exec(String(headers['link'] ?? ''))?.[1] ?? null,
        headers
    };
}
