/** Asks a web server, and judges its answer. */
// eslint-disable-next-line no-restricted-imports -- it goes over a socket of ctx.dial, whose target was checked when it connected
import { type IncomingMessage, request } from 'node:http';
import type { Socket } from 'node:net';
import { isDeepStrictEqual } from 'node:util';

import { messageOf } from '@portico/sdk';

import type { CheckSpec } from '../spec.ts';
import type { Attempt } from './attempt.ts';
import { ProbeFailure } from './outcome.ts';

/** How much of an answer is read. */
const mostBytes = 1024 * 1024;

/** Sends one request. Redirects are not followed. Returns the milliseconds to the first byte of the answer. @throws ProbeFailure */
export async function probeHttp(attempt: Attempt, { target, expect, headers }: CheckSpec): Promise<number> {
    const url = new URL(target);
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
    const isSecure = url.protocol === 'https:';
    const plain = await attempt.connect(host, url.port === '' ? (isSecure ? 443 : 80) : Number(url.port));
    const socket = isSecure ? await attempt.secure(plain, host) : plain;
    const answer = await attempt.step('firstByte', () =>
        send(socket, url, expect.method ?? 'GET', headers, attempt.signal)
    );
    const latencyMs = attempt.elapsedMs;
    try {
        await judge(answer, expect);
        attempt.judgeCertificate(expect.certificateDays);
    } catch (error) {
        if (error instanceof ProbeFailure) {
            throw error;
        }
        throw attempt.signal.aborted
            ? new ProbeFailure('ANSWER_TIMEOUT', 'It waited too long for the end of the answer')
            : new ProbeFailure('ANSWER_CUT', `The answer was cut: ${messageOf(error)}`);
    } finally {
        answer.destroy();
    }
    return latencyMs;
}

function send(
    socket: Socket,
    url: URL,
    method: string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal
): Promise<IncomingMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const sent = request({
        method,
        path: `${url.pathname}${url.search}`,
        createConnection: () => socket,
        signal,
        headers: {
            host: url.host,
            'user-agent': 'Portico-Check',
            accept: '*/*',
            ...headers,
            connection: 'close'
        }
    });
    sent.once('response', resolve);
    sent.on('error', (error) =>
        reject(new ProbeFailure('ANSWER_FAILED', `There is no answer: ${messageOf(error)}`))
    );
    sent.end();
    return promise;
}

/** @throws ProbeFailure HTTP_STATUS, TEXT_MISSING, JSON_DIFFERS */
async function judge(answer: IncomingMessage, { status, text, json }: CheckSpec['expect']): Promise<void> {
    const given = String(answer.statusCode);
    const wanted = status ?? ['2xx', '3xx'];
    if (!wanted.some((each) => given === each || `${given[0]}xx` === each)) {
        throw new ProbeFailure('HTTP_STATUS', `It answered ${given}; wanted: ${wanted.join(', ')}`);
    }
    if (text === undefined && json === undefined) {
        return;
    }
    const body = await read(answer);
    if (text !== undefined && !body.includes(text)) {
        throw new ProbeFailure('TEXT_MISSING', 'The answer lacks the wanted text');
    }
    if (json !== undefined && !isDeepStrictEqual(valueAt(body, json.path), json.equals)) {
        throw new ProbeFailure('JSON_DIFFERS', `The answer has another value at ${json.path}`);
    }
}

async function read(answer: IncomingMessage): Promise<string> {
    const parts: Buffer[] = [];
    let bytes = 0;
    for await (const part of answer as AsyncIterable<Buffer>) {
        parts.push(part);
        bytes += part.length;
        if (bytes >= mostBytes) {
            break;
        }
    }
    return Buffer.concat(parts).subarray(0, mostBytes).toString('utf8');
}

/** The value at a path such as `services.0.state`. @throws ProbeFailure JSON_DIFFERS for a text that is no JSON */
function valueAt(body: string, path: string): unknown {
    let value: unknown;
    try {
        value = JSON.parse(body);
    } catch {
        throw new ProbeFailure('JSON_DIFFERS', 'The answer is no JSON');
    }
    for (const part of path.split('.')) {
        value =
            typeof value === 'object' && value !== null && Object.hasOwn(value, part)
                ? (value as Readonly<Record<string, unknown>>)[part]
                : undefined;
    }
    return value;
}
