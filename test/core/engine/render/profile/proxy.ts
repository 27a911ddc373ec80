import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { WebSocket } from 'ws';

import type { Site } from '../../../../../core/src/engine/site.ts';
import { type Ask, type Reply, startCaddy, type TestCaddy } from '../../../../support/engine/caddy.ts';
import { testSite } from '../../../../support/engine/site.ts';
import { received, startUpstream, type TestUpstream } from '../../../../support/servers/upstream.ts';
import { until } from '../../../../support/until.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

describe('a proxy in a running engine', { timeout: 60_000 }, () => {
    let caddy: TestCaddy;
    let one: TestUpstream;
    let two: TestUpstream;
    let odd: TestUpstream;
    const held: ServerResponse[] = [];
    const hold = (request: IncomingMessage, response: ServerResponse): boolean => {
        if (request.url !== '/hold') {
            return false;
        }

        held.push(response);
        return true;
    };
    const serve = async (over: Partial<Site>): Promise<void> => {
        await caddy.apply({
            sites: [{ id: 1, site: testSite({ upstreams: [{ address: one.address, weight: 1 }], ...over }) }]
        });
    };
    const ask = (over: Ask = {}): Promise<Reply> => caddy.ask(over);
    const names = async (
        count: number,
        over: (index: number) => Ask = () => ({})
    ): Promise<readonly string[]> => {
        const found: string[] = [];
        for (let index = 0; index < count; index += 1) {
            const reply = await ask(over(index));
            found.push(reply.status === 200 ? received(reply.body).name : String(reply.status));
        }

        return found;
    };
    const share = (found: readonly string[], name: string): number =>
        found.filter((each) => each === name).length;

    before(async () => {
        [caddy, one, two] = await Promise.all([
            startCaddy({}, { PORTICO_SECRET: 'leaked' }),
            startUpstream('one', hold),
            startUpstream('two', hold)
        ]);
        odd = await startUpstream('odd', (request, response) => {
            const status = /^\/status\/(\d+)/.exec(request.url ?? '')?.[1];
            if (status !== undefined) {
                response.writeHead(Number(status), {
                    'set-cookie': 's=1',
                    'content-type': 'text/plain',
                    'x-powered-by': 'odd',
                    server: 'odd',
                    'x-frame-options': 'DENY',
                    'access-control-allow-origin': '*',
                    'www-authenticate': 'Odd'
                });
                response.end("the upstream's own page");
            } else if (request.url === '/hang') {
                // Never answered: the engine has to give up.
            } else {
                return false;
            }

            return true;
        });
    });

    after(async () => {
        await Promise.all([caddy.close(), one.close(), two.close(), odd.close()]);
    });

    it('hands on method, path, query, body and Host as they came, and says who asked', async () => {
        await serve({});
        const reply = await ask({
            method: 'POST',
            path: '/a%20b//c/%2e?x=%7B1%7D&y',
            body: 'hello',
            headers: {
                'x-forwarded-for': '9.9.9.9',
                'x-forwarded-proto': 'https',
                'x-forwarded-host': 'evil.test'
            }
        });
        const request = received(reply.body);
        expect(request).to.include({ method: 'POST', url: '/a%20b//c/%2e?x=%7B1%7D&y', body: 'hello' });
        expect(request.headers).to.include({
            host: 'a.test',
            'x-forwarded-for': '127.0.0.1',
            'x-forwarded-proto': 'http',
            'x-forwarded-host': 'a.test'
        });
    });

    it('lets no visitor say what only a proxy may, unless the site itself does', async () => {
        const forged = {
            forwarded: 'for=1.2.3.4',
            'x-forwarded-prefix': '/admin',
            'x-forwarded-port': '1',
            'x-real-ip': '1.2.3.4',
            'x-forwarded-for': '1.2.3.4',
            'cf-connecting-ip': '1.2.3.4',
            'true-client-ip': '1.2.3.4',
            connection: 'close, x-real-ip'
        };
        await serve({});
        const { headers } = received((await ask({ headers: forged })).body);
        expect([headers['x-real-ip'], headers['x-forwarded-for']]).to.equal(['127.0.0.1', '127.0.0.1']);
        expect(JSON.stringify(headers)).to.not.contain('1.2.3.4');
        expect(headers).to.not.include(['x-forwarded-prefix', 'x-forwarded-port', 'forwarded']);
        await serve({
            headers: {
                request: [
                    { op: 'add', name: 'x-forwarded-prefix', value: '/app' },
                    { op: 'set', name: 'X-Real-Ip', value: 'mine' }
                ],
                response: []
            }
        });
        const own = received((await ask({ headers: forged })).body).headers;
        expect([own['x-real-ip'], own['x-forwarded-prefix']]).to.equal(['mine', '/app']);
    });

    it('speaks http, https and h2c to one upstream, and through a unix socket', async () => {
        await serve({ upstreams: [{ address: `http://${one.address}`, weight: 1 }] });
        expect(await names(1)).to.equal(['one']);
        await serve({ upstreams: [{ address: `https://${one.address}`, weight: 1 }] });
        expect((await ask()).status).to.equal(502);

        const socket = await startUpstream('socket', undefined, join(caddy.folder, 'up.sock'));
        await serve({ upstreams: [{ address: socket.address, weight: 1 }] });
        expect(await names(1)).to.equal(['socket']);
        await socket.close();
    });

    it('answers 502 when the upstream is not there', async () => {
        await serve({ upstreams: [{ address: '127.0.0.1:1', weight: 1 }] });
        const reply = await ask();
        expect([reply.status, reply.body]).to.equal([502, '502 Bad Gateway\n']);
    });

    it('takes turns, follows weights, keeps to the first, and sticks by header, cookie and address', async () => {
        const upstreams = [
            { address: one.address, weight: 3 },
            { address: two.address, weight: 1 }
        ];
        const policy = (name: NonNullable<Site['loadBalancing']>['policy'], key: string | null = null) =>
            serve({ upstreams, loadBalancing: { policy: name, key, retries: 0, tryDurationSeconds: 0 } });

        await policy('round_robin');
        expect(share(await names(20), 'one')).to.equal(10);
        await serve({ upstreams, loadBalancing: null });
        expect(share(await names(20), 'one')).to.equal(10);
        await policy('weighted');
        expect(share(await names(20), 'one')).to.equal(15);
        await policy('first');
        expect(share(await names(5), 'one')).to.equal(5);
        await policy('random');
        const random = await names(60);
        expect(share(random, 'one')).to.be.between(5, 55);
        await policy('least_conn');
        const [ones, twos] = [one.count(), two.count()];
        const waiting = ask({ path: '/hold' });
        await until(() => held.length === 1);
        expect(one.count() - ones + two.count() - twos).to.equal(1);
        const idle = one.count() > ones ? 'two' : 'one';
        expect(share(await names(10), idle)).to.equal(10);
        held.pop()?.end();
        await waiting;
        await policy('ip_hash');
        expect(new Set(await names(6)).size).to.equal(1);

        await policy('header', 'X-Key');
        const byHeader = await names(48, (index) => ({ headers: { 'x-key': `k${index % 24}` } }));
        expect(byHeader.slice(0, 24)).to.equal(byHeader.slice(24));
        expect(new Set(byHeader).size).to.equal(2);

        await policy('cookie', 'stick');
        const first = await ask();
        const cookie = first.headers['set-cookie']?.[0]?.split(';')[0] ?? '';
        expect(cookie).to.startWith('stick=');
        expect(new Set(await names(6, () => ({ headers: { cookie } })))).to.equal(
            new Set([received(first.body).name])
        );
    });

    it('tries another upstream after one that does not answer, as often as it may', async () => {
        const upstreams = [
            { address: '127.0.0.1:1', weight: 1 },
            { address: one.address, weight: 1 }
        ];
        await serve({
            upstreams,
            loadBalancing: { policy: 'round_robin', key: null, retries: 0, tryDurationSeconds: 0 }
        });
        expect(share(await names(6), '502')).to.equal(3);
        await serve({
            upstreams,
            loadBalancing: { policy: 'round_robin', key: null, retries: 2, tryDurationSeconds: 0 }
        });
        expect(await names(6)).to.equal(Array.from({ length: 6 }, () => 'one'));
        await serve({
            upstreams,
            loadBalancing: { policy: 'round_robin', key: null, retries: 0, tryDurationSeconds: 5 }
        });
        expect(await names(6)).to.equal(Array.from({ length: 6 }, () => 'one'));
    });

    it('tries another one also under a policy that always chooses the same', async () => {
        const upstreams = [
            { address: '127.0.0.1:1', weight: 1 },
            { address: one.address, weight: 1 }
        ];
        await serve({
            upstreams,
            loadBalancing: { policy: 'first', key: null, retries: 0, tryDurationSeconds: 0 }
        });
        expect(share(await names(4), '502')).to.equal(4);
        await serve({
            upstreams,
            loadBalancing: { policy: 'first', key: null, retries: 1, tryDurationSeconds: 0 }
        });
        expect(await names(4)).to.equal(Array.from({ length: 4 }, () => 'one'));
    });

    it('takes an upstream out that fails its check, and brings it back', async () => {
        const upstreams = [
            { address: one.address, weight: 1 },
            { address: odd.address, weight: 1 }
        ];
        const healthCheck = {
            path: '/status/500?{env.PORTICO_SECRET}',
            intervalSeconds: 1,
            timeoutSeconds: 1,
            expectStatus: 2,
            passive: null
        };
        await serve({ upstreams, healthCheck });
        await until(async () => !(await names(4)).includes('odd'), 'the sick one is out');
        await serve({ upstreams, healthCheck: { ...healthCheck, path: '/fine' } });
        await until(async () => (await names(4)).includes('odd'), 'it is back');
    });

    it('takes an upstream out that failed in traffic', async () => {
        const upstreams = [
            { address: '127.0.0.1:1', weight: 1 },
            { address: one.address, weight: 1 }
        ];
        await serve({
            upstreams,
            healthCheck: {
                path: null,
                intervalSeconds: 1,
                timeoutSeconds: 1,
                expectStatus: 2,
                passive: { maxFails: 1, failDurationSeconds: 60 }
            }
        });
        const found = await names(10);
        expect(share(found, '502')).to.equal(1);
        expect(found.slice(-6)).to.equal(Array.from({ length: 6 }, () => 'one'));
    });

    it('sends a location elsewhere, the longest first, on the border of a segment', async () => {
        await serve({
            locations: [
                { path: '/api', upstream: two.address, stripPrefix: false },
                { path: '/api/deep', upstream: odd.address, stripPrefix: true },
                { path: '/we{env.PORTICO_SECRET}ird*[x]?', upstream: two.address, stripPrefix: true },
                { path: '/a b', upstream: two.address, stripPrefix: true }
            ]
        });
        const at = async (path: string): Promise<string> => {
            const request = received((await ask({ path })).body);
            return `${request.name} ${request.url}`;
        };
        expect(await at('/api')).to.equal('two /api');
        expect(await at('/api/')).to.equal('two /api/');
        expect(await at('/api/x?y=/api/deep')).to.equal('two /api/x?y=/api/deep');
        expect(await at('/apis')).to.equal('one /apis');
        expect(await at('/API')).to.equal('one /API');
        expect(await at('/x/api')).to.equal('one /x/api');
        expect(await at('/api/deep')).to.equal('odd /');
        expect(await at('/api/deep?q=1')).to.equal('odd /?q=1');
        expect(await at('/api/deep/er%20x?q')).to.equal('odd /er%20x?q');
        expect(await at('/api/deeper')).to.equal('two /api/deeper');
        expect(await at('/we%7Benv.PORTICO_SECRET%7Dird*%5Bx%5D%3F/z')).to.equal('two /z');
        expect(await at('/weleakedirdxx')).to.equal('one /weleakedirdxx');
        expect(await at('/a%20b/c')).to.equal('two /c');
    });

    it('sets, adds and deletes headers both ways, in the order of the list, and serves braces as typed', async () => {
        const value = '{env.PORTICO_SECRET} \\{x} {http.request.host} {';
        await serve({
            upstreams: [{ address: odd.address, weight: 1 }],
            headers: {
                request: [
                    { op: 'set', name: 'X-Set', value },
                    { op: 'add', name: 'X-Add', value: 'mine' },
                    { op: 'delete', name: 'X-Gone', value: '' },
                    { op: 'delete', name: 'X-Order', value: '' },
                    { op: 'add', name: 'X-Order', value: 'after' },
                    { op: 'set', name: 'Host', value: 'other.test' },
                    { op: 'set', name: 'X-Forwarded-For', value: 'hidden' }
                ],
                response: [
                    { op: 'set', name: 'X-Answer', value },
                    { op: 'delete', name: 'X-Powered-By', value: '' },
                    { op: 'add', name: 'Set-Cookie', value: 't=2' },
                    { op: 'set', name: 'Server', value: 'mine' }
                ]
            }
        });
        const request = received(
            (
                await ask({
                    headers: { 'x-set': 'theirs', 'x-add': 'theirs', 'x-gone': '1', 'x-order': 'before' }
                })
            ).body
        );
        expect(request.headers).to.include({
            'x-set': value,
            'x-add': 'theirs, mine',
            'x-order': 'after',
            host: 'other.test',
            'x-forwarded-for': 'hidden'
        });
        expect(request.headers['x-gone']).to.be.undefined();

        const reply = await ask({ path: '/status/200' });
        expect(reply.headers).to.include({ 'x-answer': value, server: 'mine' });
        expect(reply.headers['set-cookie']).to.equal(['s=1', 't=2']);
        expect(reply.headers['x-powered-by']).to.be.undefined();
    });

    it('sets the headers of a careful site, and leaves an application its stricter word', async () => {
        await serve({ upstreams: [{ address: odd.address, weight: 1 }], securityHeaders: true });
        const plain = await ask();
        expect(plain.headers).to.include({
            'x-content-type-options': 'nosniff',
            'x-frame-options': 'SAMEORIGIN',
            'referrer-policy': 'strict-origin-when-cross-origin'
        });
        const own = await ask({ path: '/status/200' });
        expect(own.headers).to.include({ 'x-frame-options': 'DENY', 'x-content-type-options': 'nosniff' });
        expect(own.headers['server']).to.be.undefined();

        await serve({ securityHeaders: true, upstreams: [{ address: '127.0.0.1:1', weight: 1 }] });
        const failed = await ask();
        expect(failed.status).to.equal(502);
        expect(failed.headers['x-content-type-options']).to.equal('nosniff');
    });

    it('compresses for who can read it', async () => {
        const long = await startUpstream('long', (_, response) => {
            response.setHeader('content-type', 'text/plain');
            response.end('x'.repeat(5000));
            return true;
        });
        await serve({ compression: true, upstreams: [{ address: long.address, weight: 1 }] });
        const reply = (encoding: string): Promise<Reply> => ask({ headers: { 'accept-encoding': encoding } });
        expect((await reply('gzip')).headers['content-encoding']).to.equal('gzip');
        expect((await reply('gzip, zstd')).headers['content-encoding']).to.equal('zstd');
        const plain = await reply('identity');
        expect([plain.headers['content-encoding'], plain.body.length]).to.equal([undefined, 5000]);
        await serve({ compression: false, upstreams: [{ address: long.address, weight: 1 }] });
        expect((await reply('gzip')).headers['content-encoding']).to.be.undefined();
        await long.close();
    });

    it('refuses a longer body than allowed with 413, announced or not', async () => {
        await serve({ bodyLimitBytes: 1000 });
        expect((await ask({ method: 'POST', body: 'x'.repeat(1000) })).status).to.equal(200);
        expect((await ask({ method: 'POST', body: 'x'.repeat(1001) })).status).to.equal(413);
        expect(
            (
                await ask({
                    method: 'POST',
                    body: 'x'.repeat(100_000),
                    headers: { 'transfer-encoding': 'chunked' }
                })
            ).status
        ).to.equal(413);
    });

    it('gives up on an upstream that is silent for too long', async () => {
        await serve({
            upstreams: [{ address: odd.address, weight: 1 }],
            timeouts: { connectSeconds: 1, readSeconds: 1, writeSeconds: 1 }
        });
        const started = Date.now();
        const reply = await ask({ path: '/hang' });
        expect([502, 504]).to.include(reply.status);
        expect(Date.now() - started).to.be.below(8000);
        expect((await ask()).status).to.equal(200);
    });

    it('serves its own page for an error of the upstream and for one of the engine', async () => {
        const body = '<style>p{color:red}</style>{env.PORTICO_SECRET} {http.request.host} \\{} {{{ \\';
        const errorPages = [
            { status: 404, body },
            { status: 502, body: 'no upstream' },
            { status: 503, body: 'pause {env.PORTICO_SECRET}' },
            { status: 401, body: 'who' }
        ];
        await serve({ upstreams: [{ address: odd.address, weight: 1 }], errorPages });
        const reply = await ask({ path: '/status/404' });
        expect([reply.status, reply.body, reply.headers['content-type']]).to.equal([
            404,
            body,
            'text/html; charset=utf-8'
        ]);
        expect(reply.headers['set-cookie']).to.equal(['s=1']);
        const who = await ask({ path: '/status/401' });
        expect([who.status, who.body, who.headers['www-authenticate']]).to.equal([401, 'who', 'Odd']);
        expect((await ask({ path: '/status/500' })).body).to.equal("the upstream's own page");
        expect((await ask({ path: '/status/404', method: 'HEAD' })).status).to.equal(404);

        await serve({ upstreams: [{ address: '127.0.0.1:1', weight: 1 }], errorPages });
        const failed = await ask();
        expect([failed.status, failed.body]).to.equal([502, 'no upstream']);

        await serve({ upstreams: [{ address: '127.0.0.1:1', weight: 1 }], errorPages, maintenance: true });
        const pause = await ask();
        expect([
            pause.status,
            pause.body,
            pause.headers['retry-after'],
            pause.headers['content-type']
        ]).to.equal([503, 'pause {env.PORTICO_SECRET}', '300', 'text/html; charset=utf-8']);
    });

    it('runs the advanced handlers before its own', async () => {
        await serve({
            advanced: [
                { handler: 'headers', request: { set: { 'X-Advanced': ['{http.request.method}'] } } },
                {
                    handler: 'subroute',
                    routes: [
                        {
                            match: [{ path: ['/stop'] }],
                            handle: [{ handler: 'static_response', status_code: 418, body: 'stopped' }]
                        }
                    ]
                }
            ]
        });
        expect(received((await ask()).body).headers['x-advanced']).to.equal('GET');
        const stopped = await ask({ path: '/stop' });
        expect([stopped.status, stopped.body]).to.equal([418, 'stopped']);
    });

    it('carries a WebSocket with everything on', async () => {
        await serve({
            securityHeaders: true,
            compression: true,
            bodyLimitBytes: 10,
            errorPages: [{ status: 404, body: 'no' }],
            headers: { request: [], response: [{ op: 'set', name: 'X-A', value: 'b' }] },
            cors: {
                origins: ['https://x.test'],
                methods: ['GET'],
                headers: [],
                credentials: false,
                maxAgeSeconds: 5
            },
            timeouts: { connectSeconds: 5, readSeconds: null, writeSeconds: null }
        });
        const socket = new WebSocket(`ws://127.0.0.1:${caddy.settings.httpPort}/`, {
            headers: { host: 'a.test' }
        });
        const said = await new Promise((resolve, reject) => {
            socket.on('error', reject);
            socket.on('open', () => socket.send('hello'));
            socket.on('message', (data) => resolve(String(data)));
        });
        socket.close();
        expect(said).to.equal('one:hello');
    });
});
