import { once } from 'node:events';
import {
    createServer as createHttp,
    type IncomingMessage,
    type Server,
    type ServerResponse
} from 'node:http';
import { createServer as createHttps } from 'node:https';
import { type AddressInfo, createServer as createTcp, type Server as TcpServer, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { gzipSync } from 'node:zlib';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { Outbound, OutboundFailure } from '../../../../core/src/platform/outbound/client.ts';
import { type NameServer, openNameServer } from '../../../support/servers/dns.ts';
import { selfSigned } from '../../../support/servers/self-signed.ts';
import { until } from '../../../support/until.ts';

export const lab = Lab.script();
const { after, afterEach, before, beforeEach, describe, it } = lab;

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** The address that may be reached, and one beside it where the victim listens. */
const good = '127.0.0.1';
const bad = '127.0.0.2';

const listening: TcpServer[] = [];
const warned: unknown[] = [];
let allow: readonly string[];
let outbound: Outbound;
let handle: Handler;
let server: Server;
let port: number;
let victim: Server;
let touched = 0;

async function listen<S extends TcpServer>(created: S, host = good, at = 0): Promise<S> {
    created.listen(at, host);
    await once(created, 'listening');
    listening.push(created);
    return created;
}

function portOf(listener: TcpServer): number {
    return (listener.address() as AddressInfo).port;
}

async function failure(work: Promise<unknown>): Promise<OutboundFailure> {
    const error = await expect(work).to.reject();
    expect(error).to.be.instanceOf(OutboundFailure);
    return error as OutboundFailure;
}

function client(more: Partial<ConstructorParameters<typeof Outbound>[0]> = {}): Outbound {
    return new Outbound({
        allow: () => allow,
        log: { warn: (_message, fields) => void warned.push(fields) },
        ...more
    });
}

beforeEach(async () => {
    allow = [`${good}/32`];
    touched = 0;
    warned.length = 0;
    outbound = client();
    handle = (_request, response) => void response.end('fine');
    server = await listen(createHttp((request, response) => handle(request, response)));
    port = portOf(server);
    // The same port on the address beside it: only the address tells them apart.
    victim = await listen(
        createHttp((_request, response) => void response.end('stolen')),
        bad,
        port
    );
    victim.on('connection', () => {
        touched += 1;
    });
});

afterEach(async () => {
    for (const each of listening.splice(0)) {
        (each as Partial<Server>).closeAllConnections?.();
        each.close();
    }
    expect(touched).to.equal(0);
});

describe('Outbound', () => {
    it('asks an address that is allowed, and sends only what was given', async () => {
        let seen!: IncomingMessage;
        let body = '';
        handle = (request, response) => {
            seen = request;
            request
                .setEncoding('utf8')
                .on('data', (chunk: string) => {
                    body += chunk;
                })
                .on('end', () => response.writeHead(202, { 'x-a': 'b' }).end('thanks'));
        };
        const answer = await outbound.request(`http://${good}:${port}/a%20b?c=d#e`, {
            method: 'POST',
            headers: { 'X-Own': '1' },
            body: 'päyload'
        });
        expect(answer).to.include({ status: 202, url: `http://${good}:${port}/a%20b?c=d` });
        expect(answer.body.toString()).to.equal('thanks');
        expect(answer.headers['x-a']).to.equal('b');
        expect(body).to.equal('päyload');
        const { url, headers } = seen;
        expect(url).to.equal('/a%20b?c=d');
        expect(headers).to.equal({
            'accept-encoding': 'identity',
            'user-agent': 'Portico',
            'x-own': '1',
            host: `${good}:${port}`,
            connection: 'close',
            'content-length': '8'
        });
    });

    it('refuses private and special addresses in every notation, and connects nowhere', async () => {
        allow = [];
        const hosts = [
            '127.0.0.2',
            '127.0.0.2.',
            '0x7f.2',
            '0x7f000002',
            '2130706434',
            '017700000002',
            '127.2',
            '127.0.2',
            '0177.0.0.2',
            '[::ffff:127.0.0.2]',
            '[::ffff:7f00:2]',
            '[::ffff:0:127.0.0.2]',
            '[0:0:0:0:0:ffff:7f00:0002]',
            '[64:ff9b::7f00:2]',
            '[2002:7f00:2::1]',
            '[::1]',
            '[::]',
            '0.0.0.0',
            '0',
            '169.254.169.254',
            '[fe80::1]',
            '10.0.0.1',
            '192.168.1.1',
            '100.64.0.1',
            '%31%32%37.0.0.2',
            '１２７。0.0.2',
            'localhost',
            'LOCALHOST.'
        ];
        for (const host of hosts) {
            const { reason } = await failure(outbound.request(`http://${host}:${port}/`));
            expect(reason, host).to.equal('ADDRESS_FORBIDDEN');
        }
        for (const host of [
            '127.0.0.2',
            '0x7f.2',
            '2130706434',
            '::1',
            '::ffff:127.0.0.2',
            '[::1]',
            'localhost',
            '127.0.0.2.'
        ]) {
            expect((await failure(outbound.connect(host, port))).reason, host).to.equal('ADDRESS_FORBIDDEN');
        }
        expect(warned).to.have.length(hosts.length + 8);
    });

    it('refuses what is no http URL, no host and no port', async () => {
        const urls = [
            'ftp://127.0.0.1/',
            'file:///etc/passwd',
            'gopher://127.0.0.1/',
            'javascript:1',
            'data:,a',
            'unix:/run/x',
            '/relative',
            '',
            'http://',
            'http://user@127.0.0.1/',
            'http://:pass@127.0.0.1/',
            'http://[fe80::1%25eth0]/',
            'http://256.256.256.256/',
            'http://1.2.3.4.5/',
            `http://127.0.0.1/${'a'.repeat(9000)}`
        ];
        for (const url of urls) {
            expect((await failure(outbound.request(url))).reason, url.slice(0, 40)).to.equal('URL_REFUSED');
        }
        for (const host of [
            '',
            'a b',
            'a/b',
            'a@b',
            'a:1',
            'a?b',
            '[::1',
            '::1%lo',
            'fe80::1%eth0',
            'a\r\nb',
            'a\0b',
            `${'a'.repeat(300)}`,
            '127.0.0.1:80'
        ]) {
            expect((await failure(outbound.connect(host, 25))).reason, host).to.equal('URL_REFUSED');
        }
        for (const number of [0, -1, 65_536, 1.5, Number.NaN]) {
            expect((await failure(outbound.connect(good, number))).reason).to.equal('URL_REFUSED');
        }
        for (const headers of [
            { Host: 'x' },
            { 'content-length': '0' },
            { 'Transfer-Encoding': 'chunked' },
            { 'x-a': 'b\r\nx-c: d' },
            { 'x\n': '1' }
        ]) {
            expect(
                (
                    await failure(
                        outbound.request(`http://${good}:${port}/`, {
                            headers
                        })
                    )
                ).reason
            ).to.equal('URL_REFUSED');
        }
    });

    it('uses no proxy of the environment', async () => {
        const names = ['http_proxy', 'HTTP_PROXY', 'all_proxy', 'NODE_USE_ENV_PROXY'];
        for (const name of names) {
            process.env[name] = name === 'NODE_USE_ENV_PROXY' ? '1' : `http://${bad}:${port}`;
        }
        try {
            expect((await outbound.request(`http://${good}:${port}/`)).body.toString()).to.equal('fine');
        } finally {
            for (const name of names) {
                Reflect.deleteProperty(process.env, name);
            }
        }
    });

    it('says why nothing could be reached', async () => {
        const closed = await listen(createTcp());
        const free = portOf(closed);
        closed.close();
        await once(closed, 'close');
        expect(await failure(outbound.request(`http://${good}:${free}/`))).to.include({
            reason: 'CONNECT_FAILED',
            message: `${good} port ${free} cannot be reached: the connection is refused`
        });
        expect(await failure(outbound.request(`https://${good}:${port}/`))).to.include({
            reason: 'TLS_FAILED'
        });
    });
});

describe('Outbound with names', () => {
    let names: NameServer;
    let answer: (name: string) => readonly string[] | null;

    beforeEach(async () => {
        names = await openNameServer((name) => answer(name));
        outbound = client({ resolve: names.resolve });
    });

    afterEach(() => names.close());

    it('connects to the very address that it checked, however often the name changes its mind', async () => {
        let turn = 0;
        answer = () => (turn++ % 2 === 0 ? [good] : [bad]);
        const outcomes: string[] = [];
        for (let count = 0; count < 40; count += 1) {
            outcomes.push(
                await outbound.request(`http://flip.example:${port}/`).then(
                    ({ body }) => body.toString(),
                    (error: OutboundFailure) => error.reason
                )
            );
        }
        expect(outcomes).to.equal(
            Array.from({ length: 40 }, (_, at) => (at % 2 === 0 ? 'fine' : 'ADDRESS_FORBIDDEN'))
        );
        expect(names.asked).to.have.length(40);
    });

    it('asks anew, and checks anew, for each redirect', async () => {
        let turn = 0;
        answer = () => (turn++ === 0 ? [good] : [bad]);
        handle = (_request, response) =>
            void response.writeHead(302, { location: `http://flip.example:${port}/again` }).end();
        expect(
            (await failure(outbound.request(`http://flip.example:${port}/`, { maxRedirects: 5 }))).reason
        ).to.equal('ADDRESS_FORBIDDEN');
        expect(names.asked).to.equal(['A flip.example', 'A flip.example']);
    });

    it('goes to the permitted ones of many addresses, and to the next where one does not answer', async () => {
        answer = () => [bad, '10.0.0.1', good];
        expect((await outbound.request(`http://both.example:${port}/`)).body.toString()).to.equal('fine');
        allow = [good, '127.0.0.3'];
        answer = () => ['127.0.0.3', good];
        expect((await outbound.request(`http://both.example:${port}/`)).body.toString()).to.equal('fine');
        answer = () => [bad, '10.0.0.1'];
        expect(await failure(outbound.request(`http://both.example:${port}/`))).to.include({
            reason: 'ADDRESS_FORBIDDEN',
            message: `both.example means ${bad} (a loopback address), 10.0.0.1 (a private address), which may not be reached; the setting panel.outboundAllow can permit it`
        });
    });

    it('sends the name, not the address, to the server', async () => {
        answer = () => [good];
        handle = (request, response) => void response.end(request.headers.host);
        expect((await outbound.request(`http://NAMED.example.:${port}/`)).body.toString()).to.equal(
            `named.example.:${port}`
        );
        expect(names.asked).to.equal(['A named.example']);
    });

    it('fails on a name that does not resolve, and in time on a name server that does not answer', async () => {
        answer = () => [];
        expect(await failure(outbound.request('http://nowhere.example/'))).to.include({
            reason: 'NAME_NOT_FOUND',
            message: 'The name nowhere.example does not resolve'
        });
        answer = () => null;
        expect(
            (await failure(outbound.request('http://silent.example/', { timeoutMs: 100 }))).reason
        ).to.equal('TIMED_OUT');
    });
});

describe('Outbound with redirects', () => {
    const to =
        (status: number, location: string): Handler =>
        (request, response) => {
            if (request.url === '/') {
                response.writeHead(status, { location }).end();
            } else {
                response.end(
                    JSON.stringify({ method: request.method, url: request.url, headers: request.headers })
                );
            }
        };
    const seen = async (
        url: string,
        options: Parameters<Outbound['request']>[1] = {}
    ): Promise<{ method: string; url: string; headers: Record<string, string> }> =>
        JSON.parse((await outbound.request(url, { maxRedirects: 5, ...options })).body.toString());

    it('hands a redirect over where none is to be followed', async () => {
        handle = to(302, `http://${bad}:${port}/`);
        const answer = await outbound.request(`http://${good}:${port}/`);
        expect(answer.status).to.equal(302);
        expect(answer.headers.location).to.equal(`http://${bad}:${port}/`);
    });

    it('does not follow to a forbidden address, in whichever notation', async () => {
        for (const location of [
            `http://${bad}:${port}/x`,
            `//${bad}:${port}/x`,
            `http://2130706434:${port}/x`,
            `http://[::ffff:7f00:2]:${port}/x`,
            `http://0x7f.2:${port}/x`
        ]) {
            handle = to(307, location);
            expect(
                (await failure(outbound.request(`http://${good}:${port}/`, { maxRedirects: 5 }))).reason,
                location
            ).to.equal('ADDRESS_FORBIDDEN');
        }
    });

    it('does not follow to another protocol, to credentials, or in circles', async () => {
        for (const [location, reason] of [
            ['file:///etc/passwd', 'URL_REFUSED'],
            ['ftp://127.0.0.1/', 'URL_REFUSED'],
            [`http://a:b@${good}:${port}/x`, 'URL_REFUSED'],
            ['http://[', 'REDIRECT_REFUSED'],
            ['/', 'REDIRECT_REFUSED']
        ] as const) {
            handle = to(301, location);
            expect(
                (await failure(outbound.request(`http://${good}:${port}/`, { maxRedirects: 5 }))).reason,
                location
            ).to.equal(reason);
        }
        let count = 0;
        handle = (_request, response) => {
            count += 1;
            response.writeHead(302, { location: `/${count}` }).end();
        };
        expect(await failure(outbound.request(`http://${good}:${port}/`, { maxRedirects: 3 }))).to.include({
            reason: 'REDIRECT_REFUSED',
            message: `${good}:${port} redirects more than 3 times`
        });
        expect(count).to.equal(4);
    });

    it('keeps headers within an origin and drops what tells of the caller beyond it', async () => {
        const headers = {
            authorization: 'Bearer secret',
            cookie: 'a=b',
            'x-api-key': 'secret',
            accept: 'text/plain'
        };
        handle = to(302, '/x');
        expect((await seen(`http://${good}:${port}/`, { headers })).headers).to.include(headers);
        const other = await listen(createHttp((request, response) => to(302, '/')(request, response)));
        handle = to(302, `http://${good}:${portOf(other)}/x`);
        const beyond = await seen(`http://${good}:${port}/`, { headers });
        expect(beyond.headers).to.equal({
            accept: 'text/plain',
            'accept-encoding': 'identity',
            'user-agent': 'Portico',
            host: `${good}:${portOf(other)}`,
            connection: 'close'
        });
    });

    it('sends a body again only to the origin that it was meant for', async () => {
        const post = { method: 'POST', body: 'secret', headers: { 'content-type': 'text/plain' } } as const;
        handle = to(307, '/x');
        expect(await seen(`http://${good}:${port}/`, post)).to.include({ method: 'POST', url: '/x' });
        for (const status of [301, 302, 303]) {
            handle = to(status, '/x');
            const answer = await seen(`http://${good}:${port}/`, post);
            expect(answer.method).to.equal('GET');
            expect(answer.headers).not.to.include(['content-type', 'content-length']);
        }
        let reached = 0;
        const other = await listen(
            createHttp((_request, response) => {
                reached += 1;
                response.end();
            })
        );
        handle = to(308, `http://${good}:${portOf(other)}/x`);
        expect(
            (await failure(outbound.request(`http://${good}:${port}/`, { ...post, maxRedirects: 5 }))).reason
        ).to.equal('REDIRECT_REFUSED');
        expect(reached).to.equal(0);
    });
});

describe('Outbound against hostile servers', () => {
    const raw = async (speak: (socket: Socket) => void): Promise<string> => {
        const created = await listen(
            createTcp((socket) => {
                socket.on('error', () => undefined);
                socket.once('data', () => speak(socket));
                lingering.add(socket);
            })
        );
        return `http://${good}:${portOf(created)}/`;
    };
    const lingering = new Set<Socket>();

    afterEach(() => {
        for (const socket of lingering) {
            socket.destroy();
        }
        lingering.clear();
    });

    it('stops at the limit of a body, announced or not, and closes the connection', async () => {
        handle = (_request, response) =>
            void response.writeHead(200, { 'content-length': 2_000_000 }).write('a');
        expect(await failure(outbound.request(`http://${good}:${port}/`))).to.include({
            reason: 'TOO_LARGE',
            message: `The answer of ${good}:${port} is larger than 1048576 bytes`
        });
        const closed = new Promise<number>((resolve) => {
            handle = (_request, response) => {
                let sent = 0;
                const more = (): void => {
                    while (!response.destroyed && response.write(Buffer.alloc(16_384))) {
                        sent += 16_384;
                    }
                };
                response.on('drain', more).on('close', () => resolve(sent));
                more();
            };
        });
        expect(
            (await failure(outbound.request(`http://${good}:${port}/`, { maxBytes: 100_000 }))).reason
        ).to.equal('TOO_LARGE');
        expect(await closed).to.be.below(20_000_000);
        handle = (_request, response) => void response.end(Buffer.alloc(100));
        expect((await outbound.request(`http://${good}:${port}/`, { maxBytes: 100 })).body.length).to.equal(
            100
        );
    });

    it('does not unpack what comes packed', async () => {
        const packed = gzipSync(Buffer.alloc(5_000_000));
        handle = (_request, response) =>
            void response.writeHead(200, { 'content-encoding': 'gzip' }).end(packed);
        expect((await outbound.request(`http://${good}:${port}/`)).body).to.equal(packed);
    });

    it('gives up on silence, and on an answer that never ends', async () => {
        handle = () => undefined;
        expect(await failure(outbound.request(`http://${good}:${port}/`, { idleMs: 50 }))).to.include({
            reason: 'TIMED_OUT',
            message: `${good}:${port} was silent for 0.05 s`
        });
        const drip =
            (write: (socket: Socket) => void) =>
            (socket: Socket): void => {
                const timer = setInterval(() => write(socket), 10);
                socket.once('close', () => clearInterval(timer));
            };
        const cases = [
            await raw(drip((socket) => socket.write('H'))),
            await raw((socket) => {
                socket.write('HTTP/1.1 200 OK\r\n\r\n');
                drip((each) => each.write('x'))(socket);
            }),
            await raw(drip((socket) => socket.write('HTTP/1.1 100 Continue\r\n\r\n'))),
            await raw((socket) => {
                socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n');
                drip((each) => each.write('1;x=y\r\na\r\n'))(socket);
            })
        ];
        for (const [at, url] of cases.entries()) {
            const { reason } = await failure(outbound.request(url, { timeoutMs: 300, idleMs: 200 }));
            expect(at === 0 ? ['PROTOCOL_ERROR'] : ['TIMED_OUT']).to.include(reason);
        }
        const half = await raw((socket) => void socket.write('HTTP/1.1 200 OK\r\n\r\nhalf'));
        expect((await failure(outbound.request(half, { idleMs: 50 }))).reason).to.equal('TIMED_OUT');
        const reset = await raw(
            (socket) =>
                void socket.write('HTTP/1.1 200 OK\r\n\r\nhalf', () =>
                    setTimeout(() => socket.resetAndDestroy(), 20)
                )
        );
        expect((await failure(outbound.request(reset))).reason).to.equal('CUT');
    });

    it('refuses endless headers, other protocols and cut answers', async () => {
        const cases: readonly (readonly [string, OutboundFailure['reason']])[] = [
            [`HTTP/1.1 200 OK\r\n${`x-a: ${'b'.repeat(1000)}\r\n`.repeat(20)}\r\n`, 'TOO_LARGE'],
            ['SSH-2.0-OpenSSH_9.2\r\n', 'PROTOCOL_ERROR'],
            ['HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n', 'PROTOCOL_ERROR'],
            [
                'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
                'PROTOCOL_ERROR'
            ],
            ['HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf', 'CUT'],
            ['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhe', 'CUT'],
            ['', 'CUT']
        ];
        for (const [answer, reason] of cases) {
            const found = await failure(outbound.request(await raw((socket) => void socket.end(answer))));
            expect(found.reason, answer.slice(0, 80)).to.equal(reason);
        }
    });

    it('lets go when the caller does', async () => {
        const cut = new Promise<void>((resolve) => {
            handle = (request) => void request.socket.once('close', () => resolve());
        });
        const controller = new AbortController();
        const work = failure(outbound.request(`http://${good}:${port}/`, { signal: controller.signal }));
        await once(server, 'request');
        controller.abort();
        expect((await work).reason).to.equal('ABORTED');
        await cut;
        expect(
            (await failure(outbound.request(`http://${good}:${port}/`, { signal: controller.signal }))).reason
        ).to.equal('ABORTED');
        expect((await failure(outbound.connect(good, port, { signal: controller.signal }))).reason).to.equal(
            'ABORTED'
        );
    });

    it('hands an answer over as it comes, and closes what is not read', async () => {
        let closed = 0;
        handle = (_request, response) => {
            response
                .on('close', () => {
                    closed += 1;
                })
                .writeHead(200)
                .write('first');
        };
        const answer = await outbound.open(`http://${good}:${port}/`);
        for await (const chunk of answer.body) {
            expect(chunk.toString()).to.equal('first');
            break;
        }
        answer.close();
        const unread = await outbound.open(`http://${good}:${port}/`, { timeoutMs: 50 });
        expect(unread.status).to.equal(200);
        await until(() => closed === 2);
        expect(
            (
                await failure(
                    unread.body[Symbol.asyncIterator]()
                        .next()
                        .then(() => unread.body[Symbol.asyncIterator]().next())
                )
            ).reason
        ).to.equal('TIMED_OUT');
    });
});

describe('Outbound over TLS', () => {
    let key: string;
    let cert: string;
    let names: NameServer;
    let secure: string;
    let securePort: number;

    before(async () => {
        ({ key, certificate: cert } = selfSigned(['internal.example', '127.0.0.1']));
        names = await openNameServer(() => [good]);
    });

    after(async () => {
        await names.close();
    });

    beforeEach(async () => {
        outbound = client({ resolve: names.resolve });
        const created = await listen(
            createHttps(
                { key, cert },
                (request, response) =>
                    void response.end(`${(request.socket as TLSSocket).servername || 'none'}`)
            )
        );
        securePort = portOf(created);
        secure = `internal.example:${securePort}`;
    });

    it('trusts an authority that it is given, and asks for the name', async () => {
        expect((await outbound.request(`https://${secure}/`, { ca: [cert] })).body.toString()).to.equal(
            'internal.example'
        );
        expect(
            (await outbound.request(`https://${good}:${securePort}/`, { ca: [cert] })).body.toString()
        ).to.equal('none');
    });

    it('refuses a certificate that it cannot trust, or of another name', async () => {
        expect(await failure(outbound.request(`https://${secure}/`))).to.include({
            reason: 'TLS_FAILED',
            message: 'internal.example was reached, but not over TLS: its certificate is self-signed'
        });
        expect(
            await failure(outbound.request(`https://other.example:${securePort}/`, { ca: [cert] }))
        ).to.include({
            reason: 'TLS_FAILED',
            message: 'other.example was reached, but not over TLS: its certificate is for another name'
        });
    });

    it('does not go from https to http', async () => {
        const created = await listen(
            createHttps(
                { key, cert },
                (_request, response) =>
                    void response.writeHead(302, { location: `http://${good}:${port}/` }).end()
            )
        );
        expect(
            (
                await failure(
                    outbound.request(`https://internal.example:${portOf(created)}/`, {
                        ca: [cert],
                        maxRedirects: 3
                    })
                )
            ).reason
        ).to.equal('REDIRECT_REFUSED');
    });

    it('gives up on a handshake that does not end', async () => {
        const silent = await listen(createTcp(() => undefined));
        expect(
            (await failure(outbound.request(`https://${good}:${portOf(silent)}/`, { timeoutMs: 100 }))).reason
        ).to.equal('TIMED_OUT');
        expect(
            (await failure(outbound.connect(good, portOf(silent), { tls: true, timeoutMs: 100 }))).reason
        ).to.equal('TIMED_OUT');
    });

    it('connects for other protocols, and lets a certificate be looked at', async () => {
        const plain = await outbound.connect('internal.example', port);
        expect(plain.remoteAddress).to.equal(good);
        plain.destroy();
        const peek = await outbound.connect('127.0.0.1', securePort, {
            tls: true,
            servername: 'whoever.example',
            verify: false
        });
        expect(peek).to.be.instanceOf(TLSSocket);
        expect((peek as TLSSocket).getPeerX509Certificate()?.subjectAltName).to.contain('internal.example');
        peek.destroy();
        expect(
            (await failure(outbound.connect('internal.example', securePort, { tls: true }))).reason
        ).to.equal('TLS_FAILED');
    });
});
