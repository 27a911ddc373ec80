/** A plain HTTP client of the panel, which sends exactly what a test says, and solves challenges. */
import { hash } from 'node:crypto';
import { type IncomingHttpHeaders, request } from 'node:http';

export interface Answer {
    readonly status: number;
    readonly headers: IncomingHttpHeaders;
    readonly text: string;
    /** The fields of the envelope; `code` is 0 when the body has none. */
    readonly code: number;
    readonly message: string;
    // A test reads the fields that it expects, and so checks them.
    readonly data: any; // eslint-disable-line @typescript-eslint/no-explicit-any -- see above
}

export interface CallOptions {
    readonly token?: string | null;
    /** Sent as JSON unless it is text or bytes. */
    readonly body?: unknown;
    readonly headers?: Readonly<Record<string, string>>;
}

/** Is called with every answer, for example to check the contract. */
export type Watch = (method: string, path: string, answer: Answer) => void;

export class Client {
    readonly #host: string;
    readonly #port: number;
    readonly #watch: Watch;
    /** Used where a call names no token. */
    token: string | null = null;

    constructor(port: number, watch: Watch = () => undefined, host = '127.0.0.1') {
        this.#port = port;
        this.#host = host;
        this.#watch = watch;
    }

    call(
        method: string,
        path: string,
        { token = this.token, body, headers = {} }: CallOptions = {}
    ): Promise<Answer> {
        const bytes =
            body === undefined || typeof body === 'string' || Buffer.isBuffer(body)
                ? (body as string | Buffer | undefined)
                : JSON.stringify(body);
        return new Promise((resolve, reject) => {
            const sent = request(
                {
                    host: this.#host,
                    port: this.#port,
                    method,
                    path,
                    agent: false,
                    headers: {
                        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
                        ...(bytes === undefined
                            ? {}
                            : {
                                  'content-type': 'application/json',
                                  'content-length': String(Buffer.byteLength(bytes))
                              }),
                        ...headers
                    }
                },
                (answer) => {
                    const chunks: Buffer[] = [];
                    answer.on('data', (chunk: Buffer) => chunks.push(chunk));
                    answer.once('error', reject);
                    answer.once('end', () => {
                        const text = Buffer.concat(chunks).toString();
                        const isJson =
                            (answer.headers['content-type'] ?? '').startsWith('application/json') &&
                            text !== '';
                        const envelope = isJson
                            ? (JSON.parse(text) as { code?: number; message?: string; data?: unknown })
                            : {};
                        const got: Answer = {
                            status: answer.statusCode ?? 0,
                            headers: answer.headers,
                            text,
                            code: envelope.code ?? 0,
                            message: envelope.message ?? '',
                            data: envelope.data ?? null
                        };
                        try {
                            this.#watch(method, path, got);
                            resolve(got);
                        } catch (error) {
                            reject(error as Error);
                        }
                    });
                }
            );
            sent.once('error', reject);
            sent.end(bytes);
        });
    }

    get(path: string, options?: CallOptions): Promise<Answer> {
        return this.call('GET', path, options);
    }

    post(path: string, body?: unknown, options?: CallOptions): Promise<Answer> {
        return this.call('POST', path, { body, ...options });
    }

    put(path: string, body: unknown, options?: CallOptions): Promise<Answer> {
        return this.call('PUT', path, { body, ...options });
    }

    delete(path: string, options?: CallOptions): Promise<Answer> {
        return this.call('DELETE', path, options);
    }

    /** Solves a challenge and logs in. Returns the answer of the login; the client does not keep the token. */
    async login(
        username: string,
        password: string,
        more: Readonly<Record<string, string>> = {}
    ): Promise<Answer> {
        const { data } = await this.get('/api/auth/login', { token: null });
        return this.post(
            '/api/auth/login',
            { username, password, altcha: solve(data), ...more },
            { token: null }
        );
    }
}

export interface Challenge {
    readonly algorithm: string;
    readonly challenge: string;
    readonly maxnumber: number;
    readonly salt: string;
    readonly signature: string;
}

/** Finds the number of an ALTCHA challenge, and makes the payload that a login takes. */
export function solve({ algorithm, challenge, maxnumber, salt, signature }: Challenge): string {
    for (let number = 0; number <= maxnumber; number += 1) {
        if (hash('sha256', salt + number) === challenge) {
            return Buffer.from(JSON.stringify({ algorithm, challenge, number, salt, signature })).toString(
                'base64'
            );
        }
    }
    throw new Error('The challenge has no solution');
}
