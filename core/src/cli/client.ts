/** Speaks to the running panel: its ordinary HTTP API, with a token for each request that is made of the data folder's keys. */
// eslint-disable-next-line no-restricted-imports -- only the panel of this machine, at the address in its own data folder
import { request } from 'node:http';
import { signConsoleToken } from '../auth/console-tokens.ts';
import { systemClock } from '../clock.ts';
import type { Keyring } from '../keyring.ts';
import type { PanelAddress } from '../panel-address.ts';
import { Complaint, Refusal } from './complaint.ts';
import { plain } from './output.ts';

/** A success of the API. */
export interface Reply<T> {
    readonly data: T;
    /** Cursor of the next page of a list; null at its end. */
    readonly next: string | null;
}

export interface Client {
    /** @throws Refusal when the panel refuses, Complaint when it does not answer */
    call<T>(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: object, timeoutMs?: number, mostBytes?: number): Promise<Reply<T>>;
}

interface Answer {
    readonly status: number;
    readonly link: string;
    readonly body: string;
}

const patienceMs = 60_000;
const longestAnswer = 16 * 1024 * 1024;

export function createClient(address: PanelAddress, keyring: Pick<Keyring, 'derive'>, userAgent: string): Client {
    return {
        async call<T>(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: object, timeoutMs = patienceMs, mostBytes = longestAnswer) {
            const headers = { authorization: `Bearer ${signConsoleToken(keyring, address.instance, systemClock.now())}`, 'user-agent': userAgent };
            const answer = await exchange(address, method, path, { headers, body, timeoutMs, mostBytes }).catch((error: Error) => {
                throw new Complaint(`The panel at ${urlOf(address)} stopped answering (${error.message})${method === 'GET' ? '' : ': nobody knows whether it did what it was asked'}`);
            });
            return read<T>(answer, address);
        }
    };
}

/** What `/readyz` answers; null: nothing answers as a panel would. */
export async function askReadiness(address: PanelAddress, timeoutMs: number): Promise<{ readonly ready: boolean; readonly message: string } | null> {
    try {
        const { status, body } = await exchange(address, 'GET', '/readyz', { headers: {}, body: undefined, timeoutMs, mostBytes: longestAnswer });
        const { message } = envelopeOf(body) ?? {};
        return typeof message === 'string' ? { ready: status === 200, message: plain(message) } : null;
    }
    catch {
        return null;
    }
}

export function urlOf({ host, port }: PanelAddress): string {
    return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

function exchange(address: PanelAddress, method: string, path: string, { headers, body, timeoutMs, mostBytes }: { readonly headers: Readonly<Record<string, string>>; readonly body: object | undefined; readonly timeoutMs: number; readonly mostBytes: number }): Promise<Answer> {
    const text = body === undefined ? null : JSON.stringify(body);
    return new Promise((resolve, reject) => {
        const asked = request({
            host: address.host, port: address.port, method, path, agent: false,
            headers: { ...headers, ...(text === null ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }) }
        });
        const timer = setTimeout(() => asked.destroy(new Error(`no answer within ${timeoutMs / 1000} s`)), timeoutMs);
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
                resolve({ status: response.statusCode ?? 0, link: String(response.headers['link'] ?? ''), body: Buffer.concat(chunks).toString('utf8') });
            });
        });
        asked.end(text ?? undefined);
    });
}

function envelopeOf(body: string): { readonly code?: unknown; readonly message?: unknown; readonly data?: unknown } | null {
    try {
        const parsed: unknown = JSON.parse(body);
        return typeof parsed === 'object' && parsed !== null ? parsed : null;
    }
    catch {
        return null;
    }
}

function read<T>({ status, link, body }: Answer, address: PanelAddress): Reply<T> {
    const envelope = envelopeOf(body);
    if (envelope === null || typeof envelope.code !== 'number' || typeof envelope.message !== 'string') {
        throw new Complaint(`What answers at ${urlOf(address)} (status ${status}) is not the panel`);
    }
    if (envelope.code !== 0) {
        throw new Refusal(envelope.message, envelope.data);
    }
    return { data: envelope.data as T, next: /[?&]cursor=([^&>]+)[^>]*>;\s*rel="?next"?/.exec(link)?.[1] ?? null };
}
