/** A client of FastCGI 1.0 for one request without a body. Source: the FastCGI specification, sections 3 to 6. */
import type { Socket } from 'node:net';

import type { Ctx } from '../settings.ts';

/** What a FastCGI server answered. */
export interface FastCgiAnswer {
    /** The field `Status` of the head; 200 without one. */
    readonly status: number;
    /** Names in lower case. */
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string;
}

/** A request that is sent to PHP-FPM by FastCGI. */
export interface FastCgiRequest {
    /** Absolute path of the script that runs. */
    readonly script: string;
    /** Path of the request, as the script sees it. */
    readonly path: string;
    readonly query?: string;
    readonly host?: string;
    readonly params?: Readonly<Record<string, string>>;
    readonly timeoutMs?: number;
    readonly signal?: AbortSignal;
}

const [beginRequest, endRequest, paramsRecord, stdinRecord, stdoutRecord] = [1, 3, 4, 5, 6];
const headerBytes = 8;
const responder = 1;
const mostBytes = 4 * 2 ** 20;
const usualTimeoutMs = 5_000;

/** Asks the server behind a unix socket. @throws Error when it gives no whole answer in time */
export async function askFastCgi(ctx: Ctx, socket: string, request: FastCgiRequest): Promise<FastCgiAnswer> {
    const connection = ctx.dial({ path: socket });
    const { timeoutMs = usualTimeoutMs, signal } = request;
    const stop = (): void => void connection.destroy(new Error('The request was given up'));
    const timer = setTimeout(
        () => connection.destroy(new Error(`No answer within ${timeoutMs} ms`)),
        timeoutMs
    );
    signal?.addEventListener('abort', stop, { once: true });
    try {
        signal?.throwIfAborted();
        connection.write(requestBytes(request));
        return answerOf(await readOutput(connection));
    } finally {
        clearTimeout(timer);
        signal?.removeEventListener('abort', stop);
        connection.destroy();
    }
}

function requestBytes({ script, path, query = '', host = 'localhost', params = {} }: FastCgiRequest): Buffer {
    const all: Readonly<Record<string, string>> = {
        GATEWAY_INTERFACE: 'CGI/1.1',
        SERVER_PROTOCOL: 'HTTP/1.1',
        SERVER_SOFTWARE: 'portico',
        SERVER_NAME: host,
        SERVER_PORT: '80',
        REMOTE_ADDR: '127.0.0.1',
        REQUEST_METHOD: 'GET',
        REQUEST_URI: query === '' ? path : `${path}?${query}`,
        QUERY_STRING: query,
        SCRIPT_NAME: path,
        SCRIPT_FILENAME: script,
        HTTP_HOST: host,
        ...params
    };
    const pairs = Buffer.concat(Object.entries(all).flatMap(([name, value]) => pair(name, value)));
    return Buffer.concat([
        record(beginRequest, Buffer.from([0, responder, 0, 0, 0, 0, 0, 0])),
        record(paramsRecord, pairs),
        record(paramsRecord, Buffer.alloc(0)),
        record(stdinRecord, Buffer.alloc(0))
    ]);
}

function pair(name: string, value: string): readonly Buffer[] {
    const [key, text] = [Buffer.from(name), Buffer.from(value)];
    return [lengthOf(key), lengthOf(text), key, text];
}

function lengthOf({ length }: Buffer): Buffer {
    if (length < 128) {
        return Buffer.from([length]);
    }
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE((length | 0x80000000) >>> 0);
    return bytes;
}

function record(type: number, content: Buffer): Buffer {
    if (content.length > 0xffff) {
        throw new RangeError('The parameters of a request have at most 65,535 bytes');
    }
    const head = Buffer.from([1, type, 0, 1, content.length >> 8, content.length & 0xff, 0, 0]);
    return Buffer.concat([head, content]);
}

/** What the server wrote on its output, until it ended the request. */
async function readOutput(connection: Socket): Promise<Buffer> {
    const output: Buffer[] = [];
    let rest = Buffer.alloc(0);
    let bytes = 0;
    for await (const chunk of connection as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > mostBytes) {
            throw new Error(`The answer has more than ${mostBytes} bytes`);
        }
        rest = Buffer.concat([rest, chunk]);
        for (;;) {
            if (rest.length < headerBytes) {
                break;
            }
            const length = rest.readUInt16BE(4);
            const whole = headerBytes + length + rest.readUInt8(6);
            if (rest.length < whole) {
                break;
            }
            const type = rest.readUInt8(1);
            if (type === stdoutRecord) {
                output.push(rest.subarray(headerBytes, headerBytes + length));
            } else if (type === endRequest) {
                return Buffer.concat(output);
            }
            rest = rest.subarray(whole);
        }
    }
    throw new Error('The connection ended before the answer');
}

function answerOf(output: Buffer): FastCgiAnswer {
    const text = output.toString('utf8');
    const end = /\r?\n\r?\n/.exec(text);
    const head = end === null ? text : text.slice(0, end.index);
    const headers = Object.fromEntries(
        head.split(/\r?\n/).flatMap((line) => {
            const at = line.indexOf(':');
            return at < 1 ? [] : [[line.slice(0, at).trim().toLowerCase(), line.slice(at + 1).trim()]];
        })
    ) as Record<string, string>;
    const status = Number(/^\d{3}/.exec(headers['status'] ?? '200')?.[0] ?? 502);
    return { status, headers, body: end === null ? '' : text.slice(end.index + end[0].length) };
}
