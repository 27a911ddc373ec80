import { once } from 'node:events';
import { type IncomingHttpHeaders, request } from 'node:http';
import { connect } from 'node:net';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { joi, reply, type Socket } from '@portico/sdk';
import { WebSocket } from 'ws';

import { createGateway, type Gateway } from '../../../../core/src/server/gateway/gateway.ts';
import {
    download,
    http,
    json,
    type Route,
    socket,
    stream,
    upload
} from '../../../../core/src/server/http/route.ts';
import { createHttpServer, type HttpServer } from '../../../../core/src/server/http/server.ts';
import { createTestPorts, type TestPorts } from '../../../support/core/http-ports.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

interface Answer {
    readonly status: number;
    readonly headers: IncomingHttpHeaders;
    readonly text: string;
    readonly body: { code: number; message: string; data: unknown };
}

let ports: TestPorts;
let gateway: Gateway;
let port: number;

/** A plain client, without a library's opinions on what is sent. */
function call(
    method: string,
    path: string,
    options: { headers?: Record<string, string>; body?: string | Buffer } = {}
): Promise<Answer> {
    return new Promise((resolve, reject) => {
        const sent = request(
            {
                host: '127.0.0.1',
                port,
                method,
                path,
                agent: false,
                headers: { authorization: 'Bearer admin', ...options.headers }
            },
            async (answer) => {
                const chunks: Buffer[] = [];
                for await (const chunk of answer) {
                    chunks.push(chunk as Buffer);
                }
                const text = Buffer.concat(chunks).toString();
                const body = (answer.headers['content-type'] ?? '').startsWith('application/json')
                    ? JSON.parse(text)
                    : null;
                resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text, body });
            }
        );
        sent.once('error', reject);
        sent.end(options.body);
    });
}

function post(path: string, value: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    return call('POST', path, {
        headers: { 'content-type': 'application/json', ...headers },
        body: typeof value === 'string' ? value : JSON.stringify(value)
    });
}

const things = (): Route[] => {
    const id = joi.object({ id: joi.number().integer().min(1).required() });
    let made = 0;
    return [
        json({
            id: 'things.list',
            method: 'GET',
            path: '/api/things',
            access: 'things:read',
            summary: 'Lists',
            handler: () => reply.list([{ id: 1 }], { total: 5, next: 'abc' })
        }),
        json({
            id: 'things.get',
            method: 'GET',
            path: '/api/things/{id}',
            access: 'things:read',
            summary: 'Reads',
            validate: { params: id },
            returns: joi.object({ id: joi.number().required(), version: joi.number().required() }),
            handler: ({ params }) => ({ id: params.id, version: 3 })
        }),
        ...(['/api/named/{name}', '/api/tree/{name*}', '/api/free/{name}'] as const).map((path, at) =>
            json({
                id: `things.named${at}`,
                method: 'GET',
                path,
                access: 'things:read',
                summary: 'Reads by name',
                validate: {
                    params: joi.object({
                        name: path.startsWith('/api/free')
                            ? joi.string().meta({ anyText: true }).required()
                            : joi.string().required()
                    })
                },
                handler: ({ params }) => ({ name: params.name })
            })
        ),
        json({
            id: 'things.create',
            method: 'POST',
            path: '/api/things',
            access: 'things:write',
            summary: 'Makes',
            validate: {
                payload: joi.object({ name: joi.string().max(20).required(), size: joi.number().integer() })
            },
            handler: ({ payload }) => {
                made += 1;
                return reply.created(`/api/things/${made}`, { id: made, version: 1, name: payload.name });
            }
        }),
        json({
            id: 'things.quick',
            method: 'POST',
            path: '/api/quick',
            access: 'things:write',
            summary: 'Makes soon',
            timeoutSeconds: 1,
            handler: () => null
        }),
        json({
            id: 'things.slow',
            method: 'GET',
            path: '/api/slow',
            access: 'things:read',
            summary: 'Waits',
            timeoutSeconds: 1,
            handler: ({ signal }) =>
                new Promise((_resolve, reject) =>
                    signal.addEventListener('abort', () => reject(new Error('gone')))
                )
        }),
        json({
            id: 'things.broken',
            method: 'GET',
            path: '/api/broken',
            access: 'things:read',
            summary: 'Breaks',
            handler: () => {
                throw new Error('the secret inside');
            }
        }),
        stream({
            id: 'things.events',
            path: '/api/events',
            access: 'things:read',
            summary: 'Tells',
            async *handler({ signal }) {
                for (let n = 1; !signal.aborted; n += 1) {
                    yield { id: String(n), event: 'tick', data: { n } };
                    await new Promise((resolve) => setTimeout(resolve, 20));
                }
            }
        }),
        socket({
            id: 'things.socket',
            path: '/api/socket/{id}',
            access: 'things:read',
            summary: 'Talks',
            validate: { params: id },
            async handler(peer: Socket, { params }) {
                for await (const message of peer) {
                    await peer.send(`${params.id}:${message}`);
                }
            }
        }),
        upload({
            id: 'things.upload',
            method: 'POST',
            path: '/api/upload',
            access: 'things:write',
            summary: 'Takes',
            accepts: ['application/octet-stream'],
            maxBytes: 1000,
            async handler({ body }) {
                let bytes = 0;
                for await (const chunk of body) {
                    bytes += chunk.length;
                }
                return { bytes };
            }
        }),
        download({
            id: 'things.download',
            path: '/api/download',
            access: 'things:read',
            summary: 'Gives',
            handler: () => ({
                size: 10,
                type: 'text/plain',
                name: 'a "b"\r\nü.txt',
                version: 'v1',
                async *open({ start, end }) {
                    yield Buffer.from('0123456789').subarray(start, end ?? 10);
                }
            })
        }),
        http({
            id: 'things.raw',
            methods: ['GET', 'POST'],
            path: '/api/raw',
            access: 'things:read',
            summary: 'Raw',
            raw: 'A foreign protocol of the tests',
            maxBytes: 100,
            async handler(asked) {
                return new Response(
                    `${asked.method} ${asked.headers.get('authorization')} ${await asked.text()}`,
                    {
                        status: 207,
                        headers: { 'set-cookie': 'a=b', 'x-mine': 'yes', 'access-control-allow-origin': '*' }
                    }
                );
            }
        })
    ];
};

function throwaway(prefix: string, word: string): HttpServer {
    return createHttpServer({
        name: word,
        prefix,
        ports,
        routes: [
            json({
                id: 'say',
                method: 'GET',
                path: '/say',
                access: 'authenticated',
                summary: 'Says',
                handler: async () => {
                    await new Promise((resolve) => setTimeout(resolve, 5));
                    return { word };
                }
            }),
            stream({
                id: 'stream',
                path: '/stream',
                access: 'authenticated',
                summary: 'Streams',
                async *handler({ signal }) {
                    yield { data: word };
                    await once(signal, 'abort');
                }
            })
        ]
    });
}

describe('createGateway', () => {
    beforeEach(async () => {
        ports = createTestPorts();
        gateway = await createGateway({
            core: createHttpServer({ name: 'core', prefix: '', routes: things(), ports }),
            log: ports.log,
            drainMs: 2_000,
            silentMs: 1_500
        });
        ({ port } = await gateway.listen('127.0.0.1', 0));
    });

    afterEach(async () => {
        await gateway.close();
    });

    it('answers a client that offers another protocol as if it had not', async () => {
        const { status, body } = await call('GET', '/api/things/7', {
            headers: {
                connection: 'Upgrade, HTTP2-Settings',
                upgrade: 'h2c',
                'http2-settings': 'AAMAAABkAARAAAAAAAIAAAAA'
            }
        });
        expect([status, body]).to.equal([200, { code: 0, message: 'ok', data: { id: 7, version: 3 } }]);
    });

    it('answers in the envelope with the common headers and the request id that was sent', async () => {
        const answer = await call('GET', '/api/things/7', { headers: { 'x-request-id': 'abc-1' } });
        expect(answer.status).to.equal(200);
        expect(answer.body).to.equal({ code: 0, message: 'ok', data: { id: 7, version: 3 } });
        expect(answer.headers).to.include({
            'x-request-id': 'abc-1',
            etag: '"3"',
            'cache-control': 'no-store',
            'x-content-type-options': 'nosniff',
            'referrer-policy': 'no-referrer',
            'content-type': 'application/json; charset=utf-8'
        });
        expect(String(answer.headers['content-security-policy'])).to.startWith("default-src 'none'");
    });

    it('revalidates objects and lists, and pages with Link and X-Total-Count', async () => {
        expect((await call('GET', '/api/things/7', { headers: { 'if-none-match': '"3"' } })).status).to.equal(
            304
        );
        const list = await call('GET', '/api/things');
        expect(list.headers['link']).to.equal('</api/things?cursor=abc>; rel="next"');
        expect(list.headers['x-total-count']).to.equal('5');
        const again = await call('GET', '/api/things', {
            headers: { 'if-none-match': list.headers.etag as string }
        });
        expect([again.status, again.text]).to.equal([304, '']);
    });

    it('refuses without, with a wrong and with a weak token, each with its code and an entry', async () => {
        expect((await call('GET', '/api/things', { headers: { authorization: '' } })).body.code).to.equal(
            40100
        );
        expect(
            (await call('GET', '/api/things', { headers: { authorization: 'Bearer forged' } })).body.code
        ).to.equal(40101);
        const refused = await post('/api/things', { name: 'x' }, { authorization: 'Bearer viewer' });
        expect(refused.status).to.equal(403);
        expect(refused.body.data).to.equal({ reason: 'FORBIDDEN', permission: 'things:write' });
        expect(ports.refusals.map((entry) => [entry.code, entry.actor.username, entry.resource])).to.equal([
            [40100, null, 'things'],
            [40101, null, 'things'],
            [40300, 'viewer', 'things']
        ]);
    });

    it('refuses malformed, deep, doubled and oversize bodies, other types and unknown fields, and makes nothing', async () => {
        const deep = `{"name":${'['.repeat(10_000)}${']'.repeat(10_000)}}`;
        const cases: [string, Record<string, string>, number][] = [
            ['{"name":', {}, 40000],
            ['[1]', {}, 40000],
            ['"x"', {}, 40000],
            [deep, {}, 40000],
            ['{"name":"a","name":"b"}', {}, 40000],
            ['{"__proto__":{"a":1},"name":"x"}', {}, 40000],
            ['\ufeff{"name":"x"}', {}, 40000],
            ['{"name":"x"}', { 'content-type': 'text/plain' }, 41500],
            ['{"name":"x"}', { 'content-encoding': 'gzip' }, 41500],
            [JSON.stringify({ name: 'x'.repeat(1024 * 1024) }), {}, 41300],
            ['{}', {}, 40001],
            ['{"name":5}', {}, 40001],
            ['{"name":"x","role":"admin"}', {}, 40001],
            ['{"name":"x","size":9007199254740993}', {}, 40001],
            ['', {}, 40001]
        ];
        for (const [body, headers, code] of cases) {
            expect((await post('/api/things', body, headers)).body.code, body.slice(0, 40)).to.equal(code);
        }
        const all = await post('/api/things', { size: 'x', extra: 1 });
        expect((all.body.data as { errors: { path: string }[] }).errors.map((error) => error.path)).to.equal([
            'name',
            'size',
            'extra'
        ]);
        expect(ports.recorded).to.equal([]);
        expect((await post('/api/things', { name: 'ok' })).headers.location).to.equal('/api/things/1');
        expect(
            ports.recorded.map((entry) => [entry.action, entry.resource, entry.outcome, entry.status])
        ).to.equal([['create', 'things', 'success', 201]]);
    });

    it('answers odd paths, methods and ids in the envelope', async () => {
        for (const [method, path] of [
            ['GET', '/nothing'],
            ['GET', '/api/things/0'],
            ['GET', '/api/things/x'],
            ['GET', '/api/things/1e3x'],
            ['PUT', '/api/things'],
            ['TRACE', '/api/things'],
            ['GET', '/api/things/%2e%2e'],
            ['GET', '/API/things']
        ] as const) {
            expect((await call(method, path)).body.code, `${method} ${path}`).to.equal(40400);
        }
        expect((await call('GET', '/api/%')).body.code).to.equal(40000);
        expect((await call('GET', '/api/things?x=1')).body.code).to.equal(40001);
    });

    it('answers OPTIONS with the methods of a path, and like every other method where there is none', async () => {
        const known = await call('OPTIONS', '/api/things');
        expect([known.status, known.body.data, known.headers.allow]).to.equal([
            200,
            { methods: ['HEAD', 'GET', 'POST'] },
            'HEAD, GET, POST, OPTIONS'
        ]);
        expect((await call('OPTIONS', '/api/nothing')).body.code).to.equal(40400);
        expect((await call('OPTIONS', '/api/plugins/none/x')).body.code).to.equal(
            (await call('GET', '/api/plugins/none/x')).body.code
        );
    });

    it('says nothing of the inside when a handler breaks, and logs it under the request id', async () => {
        const answer = await call('GET', '/api/broken', { headers: { 'x-request-id': 'find-me' } });
        expect([answer.status, answer.body.code]).to.equal([500, 50000]);
        expect(answer.text).to.not.contain('secret inside');
        expect(ports.lines.find((line) => line.includes('find-me'))).to.contain('secret inside');
    });

    it('ends a handler that hangs, and tells it', async () => {
        expect((await call('GET', '/api/slow')).body.code).to.equal(50300);
    });

    it('replays the first answer to the same key, and refuses another body', async () => {
        const first = await post('/api/things', { name: 'once' }, { 'idempotency-key': 'k1' });
        const second = await post('/api/things', { name: 'once' }, { 'idempotency-key': 'k1' });
        expect([second.status, second.text]).to.equal([first.status, first.text]);
        expect(
            (await post('/api/things', { name: 'twice' }, { 'idempotency-key': 'k1' })).body.code
        ).to.equal(40902);
        expect((await post('/api/things', { name: 'x' }, { 'idempotency-key': 'ü' })).body.code).to.equal(
            40000
        );
        expect(ports.recorded.filter((entry) => entry.outcome === 'success')).to.have.length(1);
    });

    it('lets only listed origins read', async () => {
        expect(
            (await call('GET', '/api/things', { headers: { origin: 'https://panel.example' } })).headers[
                'access-control-allow-origin'
            ]
        ).to.equal('https://panel.example');
        for (const origin of ['https://evil.example', 'null']) {
            expect((await call('GET', '/api/things', { headers: { origin } })).headers).to.not.include(
                'access-control-allow-origin'
            );
        }
        expect(
            (await call('OPTIONS', '/api/things', { headers: { origin: 'https://panel.example' } })).headers[
                'access-control-allow-methods'
            ]
        ).to.contain('PUT');
    });

    it('streams events at once and ends them with the session', async () => {
        const [answer] = (await once(
            request({
                host: '127.0.0.1',
                port,
                path: '/api/events',
                headers: { authorization: 'Bearer viewer' }
            }).end(),
            'response'
        )) as [import('node:http').IncomingMessage];
        let text = '';
        for await (const chunk of answer) {
            text += chunk;
            if (text.includes('"n":3')) {
                ports.end('viewer');
            }
        }
        expect(answer.headers['content-type']).to.equal('text/event-stream; charset=utf-8');
        expect(text).to.startWith(': open\n\nid: 1\nevent: tick\ndata: {"n":1}\n\n');
    });

    it('takes one spelling of a path, of an id and of the host', async () => {
        const raw = async (head: string): Promise<string> => {
            const peer = connect(port, '127.0.0.1');
            peer.end(`${head}\r\nAuthorization: Bearer admin\r\nConnection: close\r\n\r\n`);
            let text = '';
            for await (const chunk of peer) {
                text += chunk;
            }
            return text.slice('HTTP/1.1 '.length, 'HTTP/1.1 '.length + 3);
        };
        for (const [path, status] of [
            ['/api/things/7', '200'],
            ['/api/things/07', '404'],
            ['/api/things/+7', '404'],
            ['/api/things/7e0', '404'],
            ['/api/things/7.0', '404'],
            ['/api/things/%37', '404'],
            ['/api/x/../things', '404'],
            ['/api/x/%2e%2E/things', '404'],
            ['/api/./things', '404'],
            ['/api\\things', '404'],
            ['/api/named/plain', '200'],
            ['/api/named/a%2Fb', '404'],
            ['/api/named/a%5Cb', '404'],
            ['/api/named/a%00b', '404'],
            ['/api/free/a%2Fb', '200'],
            ['/api/tree/a/b', '200'],
            ['/api/tree/a/%2e%2e%2fb', '404']
        ] as const) {
            expect(await raw(`GET ${path} HTTP/1.1\r\nHost: panel`), path).to.equal(status);
        }
        expect(await raw('GET /api/things HTTP/1.1\r\nHost: panel\r\nhost: other')).to.equal('400');
    });

    it('takes a ticket instead of a token on a GET, and keeps it out of what handlers see', async () => {
        expect(
            (await call('GET', '/api/things/7?ticket=good', { headers: { authorization: '' } })).body.code
        ).to.equal(40100);
        const answer = await new Promise<number>((resolve) =>
            request({ host: '127.0.0.1', port, path: '/api/things/7?ticket=good' }, (got) =>
                resolve(got.resume().statusCode ?? 0)
            ).end()
        );
        expect(answer).to.equal(200);
        const bad = await new Promise<number>((resolve) =>
            request({ host: '127.0.0.1', port, path: '/api/things/7?ticket=bad' }, (got) =>
                resolve(got.resume().statusCode ?? 0)
            ).end()
        );
        expect(bad).to.equal(401);
    });

    it('speaks WebSocket with the same refusals as any route', async () => {
        const peer = new WebSocket(`ws://127.0.0.1:${port}/api/socket/4`, {
            headers: { authorization: 'Bearer viewer' }
        });
        await once(peer, 'open');
        peer.send('hi');
        expect(String((await once(peer, 'message'))[0])).to.equal('4:hi');
        ports.end('viewer');
        expect((await once(peer, 'close'))[0]).to.equal(4401);
        for (const [path, headers, status] of [
            ['/api/socket/4', {}, 401],
            ['/api/socket/x', { authorization: 'Bearer viewer' }, 404],
            ['/api/things', { authorization: 'Bearer viewer' }, 404],
            ['/api/socket/4', { authorization: 'Bearer viewer', origin: 'https://evil.example' }, 403]
        ] as const) {
            const refused = new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers });
            refused.on('error', () => undefined);
            const [, answer] = (await once(refused, 'unexpected-response')) as [
                unknown,
                import('node:http').IncomingMessage
            ];
            expect(answer.statusCode, path).to.equal(status);
            answer.resume();
            refused.terminate();
        }
    });

    it('takes uploads up to their limit, counted as they arrive', async () => {
        const type = { 'content-type': 'application/octet-stream' };
        expect(
            (await call('POST', '/api/upload', { headers: type, body: Buffer.alloc(1000) })).body.data
        ).to.equal({ bytes: 1000 });
        expect(
            (await call('POST', '/api/upload', { headers: type, body: Buffer.alloc(1001) })).body.code
        ).to.equal(41300);
        // What says that it is too long is refused before any of it is sent.
        const announced = await new Promise<number>((resolve, reject) => {
            const headers = { ...type, authorization: 'Bearer admin', 'content-length': 2 ** 32 };
            const place = { host: '127.0.0.1', port, method: 'POST', path: '/api/upload', agent: false };
            const sent = request({ ...place, headers }, (answer) => {
                resolve(answer.statusCode ?? 0);
                sent.destroy();
            });
            sent.on('error', reject).flushHeaders();
        });
        expect(announced).to.equal(413);
        const chunked = await new Promise<number>((resolve, reject) => {
            const sent = request(
                {
                    host: '127.0.0.1',
                    port,
                    method: 'POST',
                    path: '/api/upload',
                    agent: false,
                    headers: { ...type, authorization: 'Bearer admin', 'transfer-encoding': 'chunked' }
                },
                (answer) => resolve(answer.resume().statusCode ?? 0)
            );
            sent.once('error', reject);
            sent.write(Buffer.alloc(900));
            sent.end(Buffer.alloc(900));
        });
        expect(chunked).to.equal(413);
        expect(
            (await call('POST', '/api/upload', { headers: { 'content-type': 'text/html' }, body: 'x' })).body
                .code
        ).to.equal(41500);
    });

    it('answers ranges, conditions and HEAD of downloads, with a name that breaks no header', async () => {
        const whole = await call('GET', '/api/download');
        expect([whole.status, whole.text, whole.headers['content-length']]).to.equal([
            200,
            '0123456789',
            '10'
        ]);
        expect(whole.headers['content-disposition']).to.equal(
            'attachment; filename="a _b____.txt"; filename*=UTF-8\'\'a%20%22b%22%0D%0A%C3%BC.txt'
        );
        for (const [range, status, text, shown] of [
            ['bytes=2-4', 206, '234', 'bytes 2-4/10'],
            ['bytes=-3', 206, '789', 'bytes 7-9/10'],
            ['bytes=8-', 206, '89', 'bytes 8-9/10'],
            ['bytes=5-99', 206, '56789', 'bytes 5-9/10'],
            ['bytes=10-', 416, '', 'bytes */10']
        ] as const) {
            const part = await call('GET', '/api/download', { headers: { range } });
            expect([part.status, part.text, part.headers['content-range']], range).to.equal([
                status,
                text,
                shown
            ]);
        }
        expect(
            (await call('GET', '/api/download', { headers: { range: 'bytes=2-4', 'if-range': '"old"' } }))
                .status
        ).to.equal(200);
        expect(
            (await call('GET', '/api/download', { headers: { 'if-none-match': '"v1"' } })).status
        ).to.equal(304);
        const head = await call('HEAD', '/api/download');
        expect([head.status, head.text, head.headers['content-length']]).to.equal([200, '', '10']);
    });

    it('hands the raw door a request without credentials, and strips what reaches beyond the answer', async () => {
        const answer = await call('POST', '/api/raw', { body: 'hello', headers: { cookie: 'x=y' } });
        expect([answer.status, answer.text, answer.headers['x-mine']]).to.equal([
            207,
            'POST null hello',
            'yes'
        ]);
        expect(answer.headers).to.not.include(['set-cookie', 'access-control-allow-origin']);
    });

    it('answers what is not HTTP in the envelope', async () => {
        const raw = connect(port, '127.0.0.1');
        raw.end('NONSENSE\r\n\r\n');
        let text = '';
        for await (const chunk of raw) {
            text += chunk;
        }
        expect(text).to.startWith('HTTP/1.1 400 ').and.to.contain('"code":40000');
    });

    it('answers 408 in the envelope to a body that does not come to its end, and closes the connection', async () => {
        const half = async (path: string, type: string, isEnded: boolean): Promise<string> => {
            const raw = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
            raw.write(
                `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin\r\nContent-Type: ${type}\r\nContent-Length: 100\r\n\r\n{"name":`
            );
            if (isEnded) {
                raw.end();
            }
            let text = '';
            for await (const chunk of raw) {
                text += chunk;
            }
            raw.destroy();
            return text;
        };
        for (const [path, type, isEnded] of [
            ['/api/quick', 'application/json', false],
            ['/api/quick', 'application/json', true],
            ['/api/upload', 'application/octet-stream', false],
            ['/api/upload', 'application/octet-stream', true]
        ] as const) {
            const text = await half(path, type, isEnded);
            expect(text, `${path} ${isEnded}`)
                .to.startWith('HTTP/1.1 408 ')
                .and.to.contain('"code":40800')
                .and.to.contain('"reason":"REQUEST_TIMEOUT"');
            expect(text.toLowerCase()).to.contain('connection: close');
            expect(text.match(/HTTP\/1\.1 /g)).to.have.length(1);
        }
        expect(ports.recorded).to.equal([]);
    });

    it(
        'lets throwaway mounts come and go under load without one failed request and without a leaked server',
        { timeout: 60_000 },
        async () => {
            const refs: WeakRef<HttpServer>[] = [];
            const remember = (server: HttpServer): HttpServer => {
                refs.push(new WeakRef(server));
                return server;
            };
            await gateway.mount('hello', remember(throwaway('/api/plugins/hello', 'gen0')));
            let running = true;
            const seen = new Set<string>();
            const failures: string[] = [];
            let count = 0;
            const client = async (): Promise<void> => {
                while (running) {
                    const [own, core] = await Promise.all([
                        call('GET', '/api/plugins/hello/say'),
                        call('GET', '/api/things/1')
                    ]);
                    count += 2;
                    seen.add((own.body.data as { word?: string }).word ?? '?');
                    if (own.status !== 200 || core.status !== 200) {
                        failures.push(`${own.status} ${core.status}`);
                    }
                }
            };
            const clients = [client(), client(), client(), client()];
            const streaming = once(
                request({
                    host: '127.0.0.1',
                    port,
                    path: '/api/plugins/hello/stream',
                    headers: { authorization: 'Bearer viewer' }
                }).end(),
                'response'
            ).then(async ([answer]) => {
                let text = '';
                for await (const chunk of answer as AsyncIterable<Buffer>) {
                    text += chunk;
                }
                return text;
            });
            for (let generation = 1; generation <= 50; generation += 1) {
                await gateway.mount('hello', remember(throwaway('/api/plugins/hello', `gen${generation}`)));
                const before = count;
                while (count < before + 8) {
                    await new Promise((resolve) => setTimeout(resolve, 1));
                }
            }
            running = false;
            await Promise.all(clients);
            expect(failures).to.equal([]);
            expect(count).to.be.above(400);
            expect(seen.size).to.be.above(25);
            expect(await streaming).to.contain('retry: 1000');
            expect(await gateway.unmount('hello')).to.equal(0);
            expect((await call('GET', '/api/plugins/hello/say')).body.code).to.equal(40400);
            expect(gateway.servers()).to.have.length(1);
            if (globalThis.gc !== undefined) {
                for (let round = 0; round < 20 && refs.some((ref) => ref.deref() !== undefined); round += 1) {
                    await new Promise((resolve) => setTimeout(resolve, 20));
                    globalThis.gc();
                }
                expect(refs.filter((ref) => ref.deref() !== undefined)).to.have.length(0);
            }
        }
    );

    it('does not mount a route without access, with a false one, or twice under one id', () => {
        const make =
            (route: object): (() => unknown) =>
            () =>
                createHttpServer({
                    name: 'x',
                    prefix: '',
                    ports,
                    routes: [
                        {
                            kind: 'json',
                            id: 'a',
                            method: 'GET',
                            path: '/a',
                            summary: '',
                            handler: () => null,
                            ...route
                        } as never // wrong on purpose
                    ]
                });
        expect(make({})).to.throw(TypeError, /declares no access/);
        expect(make({ access: { public: 'short' } })).to.throw(TypeError, /declares no access/);
        expect(make({ access: 'things' })).to.throw(TypeError, /area:verb/);
        expect(make({ access: 'things:read', effect: 'write' })).to.throw(TypeError, /must not/);
    });
});
