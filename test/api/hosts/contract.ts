/** Section 4 of the contract, and the uploads of section 6: every field by the traffic that it changes. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import type { Answer } from '../../support/panel/client.ts';
import { type Consumer, faultsOf, outcome, startConsumer } from '../../support/panel/consumer.ts';
import { startFastcgi, type TestResponder } from '../../support/servers/fastcgi.ts';
import { selfSigned } from '../../support/servers/self-signed.ts';
import { received, startUpstream, type TestUpstream } from '../../support/servers/upstream.ts';
import { until } from '../../support/until.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

interface Made {
    readonly id: number;
    readonly path: string;
    readonly domain: string;
    readonly answer: Answer;
}

let panel: Consumer;
let one: TestUpstream;
let two: TestUpstream;
let operator = '';
let viewer = '';
let folder = '';
let counter = 0;

before(async () => {
    one = await startUpstream('one', (request, response) => {
        const status = /^\/status\/(\d+)/.exec(request.url ?? '')?.[1];
        if (status !== undefined) {
            response.writeHead(Number(status)).end('of the upstream');
        } else if (request.url === '/long') {
            response.setHeader('content-type', 'text/html');
            response.end('long '.repeat(1000));
        } else if (request.url === '/never') {
            return true;
        }
        return status !== undefined || request.url === '/long';
    });
    two = await startUpstream('two');
    panel = await startConsumer();
    operator = await panel.tokenOf('operator');
    viewer = await panel.tokenOf('viewer');
    folder = mkdtempSync(join(tmpdir(), 'portico-root-'));
    chmodSync(folder, 0o755);
    mkdirSync(join(folder, 'sub'));
    writeFileSync(join(folder, 'index.html'), 'the index');
    writeFileSync(join(folder, 'sub', 'file.txt'), 'the file');
});

after(async () => {
    await panel?.close();
    await one?.close();
    await two?.close();
    rmSync(folder, { recursive: true, force: true });
});

/** Makes a host of a name of its own; the answer must be what GET reads. */
async function make(fields: Readonly<Record<string, unknown>> = {}): Promise<Made> {
    counter += 1;
    const domain = (fields['domain'] as string | undefined) ?? `field${counter}.test`;
    const isProxy = fields['type'] === undefined || fields['type'] === 'proxy';
    const answer = await panel.client.post('/api/hosts', {
        domain,
        ...(isProxy && fields['upstreams'] === undefined ? { upstream: one.address } : {}),
        ...fields
    });
    expect(answer.status, answer.text).to.equal(201);
    const path = answer.headers.location ?? '';
    expect(JSON.stringify((await panel.client.get(path)).data)).to.equal(JSON.stringify(answer.data));
    return { id: answer.data.id as number, path, domain, answer };
}

/** Several at once, which cost one load of the engine. */
const makeAll = (list: readonly Readonly<Record<string, unknown>>[]): Promise<Made[]> =>
    Promise.all(list.map(make));

const nameOf = async (
    domain: string | undefined,
    path = '/',
    headers: Record<string, string> = {}
): Promise<string> => {
    const { status, body } = await panel.visit(domain ?? '', path, { headers });
    return status === 200 ? received(body).name : String(status);
};
const namesOf = async (
    domain: string | undefined,
    count: number,
    headers: Record<string, string> = {}
): Promise<string[]> => {
    const names: string[] = [];
    for (let at = 0; at < count; at += 1) {
        names.push(await nameOf(domain, '/', headers));
    }
    return names.sort();
};
const refused = async (
    fields: object,
    path: string,
    via = panel.client.post('/api/hosts/validate', {
        domain: 'refused.test',
        upstream: one.address,
        ...fields
    })
): Promise<void> => {
    const answer = await via;
    expect(outcome(answer), JSON.stringify(fields)).to.equal([400, 40001, 'VALIDATION_FAILED']);
    expect(faultsOf(answer), JSON.stringify(fields)).to.equal([path]);
};

describe('names', () => {
    it('are lower-cased, kept as A-labels, and unique over domains and aliases', async () => {
        const { answer } = await make({ domain: 'Bücher.Names.test', aliases: ['WWW.names.test'] });
        expect([answer.data.domain, answer.data.aliases]).to.equal([
            'xn--bcher-kva.names.test',
            ['www.names.test']
        ]);
        expect([
            await nameOf('xn--bcher-kva.names.test'),
            await nameOf('www.names.test'),
            await nameOf('other.names.test')
        ]).to.equal(['one', 'one', '404']);
        for (const [body, field] of [
            [{ domain: 'www.NAMES.test' }, 'domain'],
            [{ domain: 'free.test', aliases: ['x.test', 'www.names.test'] }, 'aliases.1']
        ] as const) {
            const taken = await panel.client.post('/api/hosts', { upstream: one.address, ...body });
            expect([...outcome(taken), taken.data.field]).to.equal([409, 40900, 'CONFLICT', field]);
        }
        await refused({ domain: 'self.test', aliases: ['self.test'] }, 'aliases.0');
    });

    it('may begin with one wildcard, which stands for one label', async () => {
        await make({ domain: '*.wild.test' });
        expect([
            await nameOf('a.wild.test'),
            await nameOf('a.b.wild.test'),
            await nameOf('wild.test')
        ]).to.equal(['one', '404', '404']);
    });

    it('are DNS names, and nothing that only looks like one', async () => {
        for (const domain of [
            '',
            'a b',
            '-a.test',
            'a..test',
            '*',
            '*.*',
            'a.*.test',
            '1.2.3.4',
            '[::1]',
            'a.test:80',
            'http://a.test',
            'a.test/',
            'a.test.',
            'a_b.test',
            '{env.HOME}.test',
            `${'a'.repeat(64)}.test`
        ]) {
            await refused({ domain }, 'domain');
        }
    });
});

describe('upstreams', () => {
    it('are read back as a list whose first is upstream; upstream alone replaces the list', async () => {
        const { path } = await make();
        const both = await panel.client.put(path, {
            upstream: one.address,
            upstreams: [{ address: one.address, weight: 2 }, { address: two.address }]
        });
        expect([both.data.upstream, both.data.upstreams]).to.equal([
            one.address,
            [
                { address: one.address, weight: 2 },
                { address: two.address, weight: 1 }
            ]
        ]);
        await refused(
            {},
            'upstream',
            panel.client.put(path, { upstream: two.address, upstreams: [{ address: one.address }] })
        );
        const single = await panel.client.put(path, { upstream: two.address });
        expect(single.data.upstreams).to.equal([{ address: two.address, weight: 1 }]);
    });

    it('have one fault for one mistake', async () => {
        for (const upstream of [
            'x',
            '127.0.0.1',
            '127.0.0.1:0',
            '127.0.0.1:99999',
            'ftp://a:1',
            'http://a.test/path',
            'http://u:p@a:1',
            '::1:80',
            '{env.X}:80',
            'unix/relative'
        ]) {
            await refused({ upstream }, 'upstream');
        }
        await refused({ upstream: null }, 'upstream');
        await refused({ upstream: `127.0.0.1:${panel.httpPort}` }, 'upstreams.0.address');
    });

    it('share the traffic as the policy says', async () => {
        const upstreams = [
            { address: one.address, weight: 3 },
            { address: two.address, weight: 1 }
        ];
        const policies = [
            null,
            { policy: 'weighted' },
            { policy: 'first' },
            { policy: 'ip_hash' },
            { policy: 'header', key: 'X-Shard' },
            { policy: 'cookie', key: 'stick' }
        ];
        const [turns, weighted, first, hashed, byHeader, byCookie] = (
            await makeAll(policies.map((loadBalancing) => ({ upstreams, loadBalancing })))
        ).map(({ domain }) => domain);
        expect(await namesOf(turns, 4)).to.equal(['one', 'one', 'two', 'two']);
        expect(await namesOf(weighted, 4)).to.equal(['one', 'one', 'one', 'two']);
        expect(await namesOf(first, 3)).to.equal(['one', 'one', 'one']);
        expect(new Set(await namesOf(hashed, 3)).size).to.equal(1);
        expect(new Set(await namesOf(byHeader, 3, { 'x-shard': 'a' })).size).to.equal(1);
        expect(String((await panel.visit(byCookie ?? '')).headers['set-cookie'])).to.startWith('stick=');
    });

    it('that do not answer are passed over by a retry', async () => {
        const { domain } = await make({
            upstreams: [{ address: '127.0.0.1:1' }, { address: two.address }],
            loadBalancing: { policy: 'first', retries: 1 }
        });
        expect(await namesOf(domain, 2)).to.equal(['two', 'two']);
    });

    it('that fail their check get nothing, and are listed as the engine sees them', async () => {
        const { domain, path } = await make({
            upstreams: [{ address: one.address }, { address: two.address }],
            loadBalancing: { policy: 'first' },
            healthCheck: { path: '/fine', intervalSeconds: 1, timeoutSeconds: 1 }
        });
        expect(await nameOf(domain)).to.equal('one');
        // `two` answers everything with 200, `one` this with 500.
        await panel.client.put(path, {
            healthCheck: { path: '/status/500', intervalSeconds: 1, timeoutSeconds: 1 }
        });
        await until(async () => (await nameOf(domain)) === 'two', 'the sick one is out');
        const listed = (await panel.client.get('/api/proxyengine/upstreams')).data as { address: string }[];
        expect(listed.map(({ address }) => address)).to.include([one.address, two.address]);
        expect(listed.filter(({ address }) => address.includes('{'))).to.equal([]);
    });

    it('are given up after the time-out', async () => {
        const { domain } = await make({ timeouts: { connectSeconds: 1, readSeconds: 1 } });
        const silent = await startUpstream('silent', () => true);
        await panel.client.put(
            `/api/hosts/${(await panel.client.get(`/api/hosts?q=${domain}`)).data[0].id as number}`,
            { upstream: silent.address }
        );
        expect((await panel.visit(domain)).status).to.equal(504);
        await silent.close();
    });
});

describe('what a request meets on its way', () => {
    it('locations: the longest path first, on the border of a segment', async () => {
        const { domain } = await make({
            locations: [
                { path: '/api', upstream: two.address },
                { path: '/api/own', upstream: one.address, stripPrefix: true }
            ]
        });
        for (const [path, name, url] of [
            ['/', 'one', '/'],
            ['/api', 'two', '/api'],
            ['/api/x?q=1', 'two', '/api/x?q=1'],
            ['/apis', 'one', '/apis'],
            ['/api/own/z?q=1', 'one', '/z?q=1'],
            ['/api/own', 'one', '/']
        ] as const) {
            const got = received((await panel.visit(domain, path)).body);
            expect([got.name, got.url], path).to.equal([name, url]);
        }
    });

    it('headers: set, add and delete, and what was typed is what is served', async () => {
        const { domain } = await make({
            headers: {
                request: [
                    { op: 'set', name: 'X-Set', value: '{env.HOME} {http.request.host}' },
                    { op: 'add', name: 'X-Add', value: '2' },
                    { op: 'delete', name: 'X-Delete' }
                ],
                response: [{ op: 'set', name: 'X-Answer', value: '{env.HOME}' }]
            }
        });
        const { headers, body } = await panel.visit(domain, '/', {
            headers: { 'x-add': '1', 'x-delete': 'me' }
        });
        expect(headers['x-answer']).to.equal('{env.HOME}');
        const got = received(body).headers;
        expect([got['x-set'], got['x-add'], got['x-delete'], got['host']]).to.equal([
            '{env.HOME} {http.request.host}',
            '1, 2',
            undefined,
            domain
        ]);
    });

    it('access: several allow entries mean any of them, and deny wins', async () => {
        const cases = [
            [{ allow: ['10.0.0.0/8'] }, '403'],
            [{ allow: ['10.0.0.0/8', '127.0.0.1'] }, 'one'],
            [{ allow: ['127.0.0.1'], deny: ['127.0.0.0/8'] }, '403'],
            [{ deny: ['10.0.0.0/8'] }, 'one'],
            [null, 'one']
        ] as const;
        for (const [at, { domain }] of (await makeAll(cases.map(([access]) => ({ access })))).entries()) {
            expect(await nameOf(domain), JSON.stringify(cases[at])).to.equal(cases[at]?.[1] ?? '');
        }
    });

    it("basicAuth: an entry without password keeps its user's, and no password comes back", async () => {
        const basic = (username: string, password: string): Record<string, string> => ({
            authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
        });
        const { domain, path, answer } = await make({
            access: {
                basicAuth: [
                    { username: 'u', password: 'secret of u' },
                    { username: 'v', password: 'secret of v' }
                ]
            }
        });
        expect(answer.data.access.basicAuth).to.equal([{ username: 'u' }, { username: 'v' }]);
        expect([
            await nameOf(domain),
            await nameOf(domain, '/', basic('u', 'secret of u')),
            await nameOf(domain, '/', basic('u', 'wrong'))
        ]).to.equal(['401', 'one', '401']);
        await panel.client.put(path, { access: { basicAuth: [{ username: 'u' }] } });
        expect([
            await nameOf(domain, '/', basic('u', 'secret of u')),
            await nameOf(domain, '/', basic('v', 'secret of v'))
        ]).to.equal(['one', '401']);
        await refused({ access: { basicAuth: [{ username: 'stranger' }] } }, 'access.basicAuth.0.password');
    });

    it('forwardAuth: what the other side refuses is refused, and only its own headers go on', async () => {
        const gate = await startUpstream('gate', (request, response) => {
            const may = request.headers['x-key'] === 'right';
            response
                .writeHead(may ? 200 : 401, may ? { 'Remote-User': 'joe' } : {})
                .end(`refused ${request.headers['x-forwarded-uri'] as string}`);
            return true;
        });
        const { domain } = await make({
            access: { forwardAuth: { url: `http://${gate.address}/check`, copyHeaders: ['Remote-User'] } }
        });
        const no = await panel.visit(domain, '/page?q=1', { headers: { 'remote-user': 'forged' } });
        expect([no.status, no.body]).to.equal([401, 'refused /page?q=1']);
        const yes = await panel.visit(domain, '/page', {
            headers: { 'x-key': 'right', 'remote-user': 'forged' }
        });
        expect([yes.status, received(yes.body).headers['remote-user']]).to.equal([200, 'joe']);
        await gate.close();
    });

    it('cors: listed origins only, and never with credentials for every origin', async () => {
        const { domain } = await make({ cors: { origins: ['https://app.example'], methods: ['PUT'] } });
        const preflight = await panel.visit(domain, '/', {
            method: 'OPTIONS',
            headers: { origin: 'https://app.example', 'access-control-request-method': 'PUT' }
        });
        expect([
            preflight.status,
            preflight.headers['access-control-allow-origin'],
            preflight.headers['access-control-allow-methods']
        ]).to.equal([204, 'https://app.example', 'PUT']);
        expect(
            (await panel.visit(domain, '/', { headers: { origin: 'https://evil.example' } })).headers[
                'access-control-allow-origin'
            ]
        ).to.be.undefined();
        await refused({ cors: { origins: ['*'], credentials: true } }, 'cors.credentials');
    });

    it('securityHeaders, compression, bodyLimitBytes, errorPages and maintenance each do what they say', async () => {
        const [safe, packed, limited, paged, closed] = (await makeAll([
            { securityHeaders: true },
            { compression: true },
            { bodyLimitBytes: 10 },
            {
                errorPages: [
                    { status: 404, body: '<b>{env.HOME}</b>' },
                    { status: 502, body: 'down' }
                ]
            },
            { maintenance: true }
        ])) as [Made, Made, Made, Made, Made];
        const secured = await panel.visit(safe.domain);
        expect([
            secured.headers['x-content-type-options'],
            secured.headers['x-frame-options'],
            secured.headers['referrer-policy'],
            secured.headers.server
        ]).to.equal(['nosniff', 'SAMEORIGIN', 'strict-origin-when-cross-origin', undefined]);
        expect(
            (await panel.visit(packed.domain, '/long', { headers: { 'accept-encoding': 'gzip' } })).headers[
                'content-encoding'
            ]
        ).to.equal('gzip');
        expect([
            (await panel.visit(limited.domain, '/', { method: 'POST', body: 'short' })).status,
            (await panel.visit(limited.domain, '/', { method: 'POST', body: 'x'.repeat(20) })).status
        ]).to.equal([200, 413]);
        const page = await panel.visit(paged.domain, '/status/404');
        expect([page.status, page.body]).to.equal([404, '<b>{env.HOME}</b>']);
        expect(await nameOf(closed.domain)).to.equal('503');
        const open = await panel.client.put(closed.path, { maintenance: false });
        expect([open.headers['x-engine-reload'], await nameOf(closed.domain)]).to.equal(['false', 'one']);
    });

    it("advanced: native handlers before the host's own; what the engine refuses leaves everything as it was", async () => {
        const { domain, path, answer } = await make({
            advanced: [{ handler: 'headers', response: { set: { 'X-Advanced': ['1'] } } }]
        });
        expect((await panel.visit(domain)).headers['x-advanced']).to.equal('1');
        const no = await panel.client.put(path, { advanced: [{ handler: 'rate_limit' }] });
        expect(outcome(no)).to.equal([422, 42200, 'ENGINE_REJECTED']);
        expect(no.data.engine).to.contain('unknown module: http.handlers.rate_limit');
        expect((await panel.client.get(path)).data).to.equal(answer.data);
        expect((await panel.visit(domain)).headers['x-advanced']).to.equal('1');
        await refused({ advanced: [{ handler: 'static_response', body: '{env.HOME}' }] }, 'advanced.0.body');
    });
});

describe('types', () => {
    it('redirect: to, code and keepPath', async () => {
        const cases = [
            [{ to: 'https://to.example/base', code: 301, keepPath: false }, 301, 'https://to.example/base'],
            [{ to: 'https://to.example/base', code: 302 }, 302, 'https://to.example/base/a?b=c'],
            [{ to: 'https://to.example', code: 307 }, 307, 'https://to.example/a?b=c'],
            [{ to: 'https://to.example/{env.HOME}', keepPath: false }, 308, 'https://to.example/{env.HOME}']
        ] as const;
        for (const [at, { domain }] of (
            await makeAll(cases.map(([redirect]) => ({ type: 'redirect', redirect })))
        ).entries()) {
            const got = await panel.visit(domain, '/a?b=c');
            expect([got.status, got.headers.location]).to.equal([cases[at]?.[1], cases[at]?.[2]]);
        }
        await refused({ type: 'redirect', upstream: null, redirect: { to: '/relative' } }, 'redirect.to');
    });

    it('static: root, index, browse and spaFallback', async () => {
        const { domain, path } = await make({ type: 'static', static: { root: folder } });
        const read = async (url: string): Promise<string> => {
            const { status, body } = await panel.visit(domain, url);
            return status === 200 ? body : String(status);
        };
        expect([
            await read('/'),
            await read('/sub/file.txt'),
            await read('/sub/'),
            await read('/nope'),
            await read('/../../etc/passwd')
        ]).to.equal(['the index', 'the file', '404', '404', '404']);
        await panel.client.put(path, { static: { root: folder, browse: true, index: ['none.html'] } });
        expect(await read('/sub/')).to.contain('file.txt');
        await panel.client.put(path, { static: { root: folder, spaFallback: true } });
        expect([await read('/some/route'), await read('/sub/file.txt')]).to.equal(['the index', 'the file']);
        for (const root of ['/nonexistent', 'relative', '/srv/../etc', '/', panel.config.dataDir, '/proc']) {
            await refused({}, 'static.root', panel.client.put(path, { static: { root } }));
        }
    });

    it('php: scripts by FastCGI', async () => {
        const responder: TestResponder = await startFastcgi();
        writeFileSync(join(folder, 'index.php'), '');
        const { domain } = await make({ type: 'php', php: { root: folder, fastcgi: responder.address } });
        const { status, body } = await panel.visit(domain, '/index.php?x=1');
        expect([status, body.includes(join(folder, 'index.php')), body.includes('x=1')]).to.equal([
            200,
            true,
            true
        ]);
        await responder.close();
    });

    it('php: several FastCGI servers by weight, instead of one', async () => {
        const [own, other] = await Promise.all([startFastcgi('own'), startFastcgi('other')]);
        const upstreams = [{ address: own.address, weight: 3 }, { address: other.address }];
        const { domain, path, answer } = await make({ type: 'php', php: { root: folder, upstreams } });
        expect(answer.data.php).to.equal({
            root: folder,
            upstreams: [
                { address: own.address, weight: 3 },
                { address: other.address, weight: 1 }
            ],
            index: ['index.php']
        });
        const respondersOf = async (count: number): Promise<string[]> => {
            const names: string[] = [];
            while (names.length < count) {
                const { body } = await panel.visit(domain, '/index.php');
                names.push((JSON.parse(body) as { RESPONDER: string }).RESPONDER);
            }
            return names.sort();
        };
        expect(await respondersOf(8)).to.equal([...Array<string>(6).fill('own'), 'other', 'other'].sort());
        const same = await panel.client.put(path, answer.data);
        expect([same.status, same.data.php, same.headers['x-engine-reload']], same.text).to.equal([
            200,
            answer.data.php,
            'false'
        ]);

        const put = (php: object): Promise<Answer> =>
            panel.client.put(path, { php: { root: folder, ...php } });
        for (const [php, fault] of [
            [{}, 'php'],
            [{ fastcgi: own.address, upstreams }, 'php'],
            [{ upstreams: [] }, 'php.upstreams'],
            [{ upstreams: [{ address: own.address, weight: 0 }] }, 'php.upstreams.0.weight'],
            [{ upstreams: [{ address: own.address, weight: 1001 }] }, 'php.upstreams.0.weight'],
            [{ upstreams: [{ address: own.address }, { address: own.address }] }, 'php.upstreams.1.address'],
            [{ upstreams: [{ address: `http://${own.address}` }] }, 'php.upstreams.0.address'],
            [{ upstreams: [{ address: '{env.HOME}:1' }] }, 'php.upstreams.0.address'],
            [
                { upstreams: [{ address: own.address }, { address: `127.0.0.1:${panel.httpPort}` }] },
                'php.upstreams.1.address'
            ]
        ] as const) {
            await refused(php, fault, put(php));
        }
        expect((await panel.client.get(path)).data.php).to.equal(answer.data.php);

        const single = await put({ fastcgi: other.address });
        expect(single.data.php).to.equal({ root: folder, fastcgi: other.address, index: ['index.php'] });
        expect(await respondersOf(3)).to.equal(['other', 'other', 'other']);
        await Promise.all([own.close(), other.close()]);
    });

    it('have only their own fields, and lose them when they change', async () => {
        await refused({ redirect: { to: 'https://x.example' } }, 'redirect');
        await refused({ static: { root: folder } }, 'static');
        await refused({ type: 'redirect', redirect: { to: 'https://x.example' } }, 'upstream');
        const { path } = await make();
        const turned = await panel.client.put(path, {
            type: 'redirect',
            redirect: { to: 'https://x.example' }
        });
        expect([turned.data.upstream, turned.data.upstreams]).to.equal([null, []]);
        await refused({}, 'upstream', panel.client.put(path, { type: 'proxy' }));
    });
});

describe('HTTPS', () => {
    it("internal: by the engine's own authority; forceHttps follows ssl, hsts is sent where it is asked for", async () => {
        const { domain, path, answer } = await make({ ssl: true, sslMode: 'internal', hsts: true });
        expect(answer.data.forceHttps).to.be.true();
        const secure = await panel.visit(domain, '/', { secure: true });
        expect([secure.status, secure.names, secure.headers['strict-transport-security']]).to.equal([
            200,
            `DNS:${domain}`,
            'max-age=31536000'
        ]);
        const plain = await panel.visit(domain, '/p?q');
        expect([plain.status, plain.headers.location]).to.equal([
            308,
            `https://${domain}:${panel.httpsPort}/p?q`
        ]);
        await panel.client.put(path, { forceHttps: false });
        expect(await nameOf(domain)).to.equal('one');
        for (const [fields, at] of [
            [{ hsts: true }, 'hsts'],
            [{ forceHttps: true }, 'forceHttps'],
            [{ domain: '*.auto.test', ssl: true }, 'sslMode'],
            [{ ssl: true, sslMode: 'certificate' }, 'certificateId'],
            [{ ssl: true, sslMode: 'certificate', certificateId: 999 }, 'certificateId']
        ] as const) {
            await refused(fields, at);
        }
        await expect(panel.visit('unknown.test', '/', { secure: true })).to.reject();
    });

    it('certificate: an uploaded one, served by SNI, in use until the host is gone', async () => {
        const { certificate, key } = selfSigned(['own.test', '*.own.test']);
        const uploaded = await panel.client.post('/api/certificates', {
            name: 'own',
            source: 'upload',
            certificate,
            key
        });
        expect([uploaded.status, uploaded.data.domains, uploaded.data.usedBy], uploaded.text).to.equal([
            201,
            ['own.test', '*.own.test'],
            []
        ]);
        const path = uploaded.headers.location ?? '';
        expect((await panel.client.get(path)).data).to.equal(uploaded.data);
        expect(uploaded.text + (await panel.client.get('/api/certificates')).text).not.to.contain(
            'PRIVATE KEY'
        );
        const id = uploaded.data.id as number;
        await refused(
            { domain: 'elsewhere.test', ssl: true, sslMode: 'certificate', certificateId: id },
            'certificateId'
        );
        const host = await make({
            domain: 'own.test',
            aliases: ['www.own.test'],
            ssl: true,
            sslMode: 'certificate',
            certificateId: id
        });
        for (const name of ['own.test', 'www.own.test']) {
            expect((await panel.visit(name, '/', { secure: true })).names).to.equal(
                'DNS:own.test, DNS:*.own.test'
            );
        }
        expect((await panel.client.get(path)).data.usedBy).to.equal([host.id]);
        const used = await panel.client.delete(path);
        expect([...outcome(used), used.data.by]).to.equal([409, 40901, 'IN_USE', [host.id]]);
        const checks = (await panel.client.get(`${host.path}/check`)).data as {
            id: string;
            ok: boolean | null;
            evidence: string;
        }[];
        const { ok, evidence } = checks.find((check) => check.id === 'certificate') ?? {};
        expect([ok, evidence?.includes('valid until')]).to.equal([true, true]);
        expect([
            (await panel.client.delete(host.path)).status,
            (await panel.client.delete(path)).status,
            (await panel.client.get(path)).status
        ]).to.equal([200, 200, 404]);
    });

    it('upload: a key that does not match and what is no PEM are refused with the reason', async () => {
        const [first, second] = [selfSigned(['first.test']), selfSigned(['second.test'])];
        for (const [body, faults] of [
            [{ certificate: first.certificate, key: second.key }, ['key']],
            [{ certificate: first.certificate + second.certificate, key: first.key }, ['certificate']],
            [{ certificate: 'x', key: 'y' }, ['certificate', 'key']]
        ] as const) {
            const answer = await panel.client.post('/api/certificates', { source: 'upload', ...body });
            expect(outcome(answer)).to.equal([400, 40001, 'VALIDATION_FAILED']);
            expect(faultsOf(answer)).to.equal([...faults]);
        }
        const {
            headers: { location = '' }
        } = await panel.client.post('/api/certificates', { source: 'upload', ...first });
        for (const [token, withKey] of [
            [operator, false],
            [panel.client.token, true]
        ] as const) {
            const { status, headers, text } = await panel.client.get(`${location}/download`, { token });
            expect([
                status,
                headers['content-type'],
                text.includes('BEGIN CERTIFICATE'),
                text.includes('PRIVATE KEY')
            ]).to.equal([200, 'application/x-pem-file', true, withKey]);
        }
    });
});

describe('clone, batch, validate and preview', () => {
    it('clone copies everything but the names', async () => {
        const { path, answer } = await make({ aliases: ['alias-of-it.test'], notes: 'copied', tags: ['t'] });
        const copy = await panel.client.post(`${path}/clone`, { domain: 'copy.test' });
        expect([
            copy.status,
            copy.data.domain,
            copy.data.aliases,
            copy.data.notes,
            copy.data.upstreams
        ]).to.equal([201, 'copy.test', [], 'copied', answer.data.upstreams]);
        expect(await nameOf('copy.test')).to.equal('one');
        expect(outcome(await panel.client.post(`${path}/clone`, { domain: 'copy.test' }))).to.equal([
            409,
            40900,
            'CONFLICT'
        ]);
    });

    it('batch is all or nothing', async () => {
        const [a, b] = [await make(), await make()];
        expect(
            outcome(await panel.client.post('/api/hosts/batch', { ids: [a.id, 9999], action: 'disable' }))
        ).to.equal([404, 40400, 'NOT_FOUND']);
        expect(await nameOf(a.domain)).to.equal('one');
        const off = await panel.client.post('/api/hosts/batch', { ids: [a.id, b.id], action: 'disable' });
        expect((off.data as { state: string }[]).map(({ state }) => state)).to.equal([
            'disabled',
            'disabled'
        ]);
        expect([await nameOf(a.domain), await nameOf(b.domain)]).to.equal(['404', '404']);
        expect((await panel.client.get('/api/hosts?state=disabled&enabled=false')).data).to.have.length(2);
        expect(
            (await panel.client.post('/api/hosts/batch', { ids: [a.id, b.id], action: 'delete' })).data
        ).to.be.null();
        expect((await panel.client.get(a.path)).status).to.equal(404);
    });

    it('validate has the errors of create and changes nothing, and tells whether the engine would reload', async () => {
        const before = (await panel.client.get('/api/hosts')).text;
        expect(
            (
                await panel.client.post(
                    '/api/hosts/validate',
                    { domain: 'dry.test', upstream: one.address },
                    { token: viewer }
                )
            ).data
        ).to.equal({ reload: false });
        expect(
            (
                await panel.client.post('/api/hosts/validate', {
                    domain: 'dry.test',
                    upstream: one.address,
                    bodyLimitBytes: 4711
                })
            ).data
        ).to.equal({ reload: true });
        expect(
            outcome(
                await panel.client.post('/api/hosts/validate', { domain: 'copy.test', upstream: one.address })
            )
        ).to.equal([409, 40900, 'CONFLICT']);
        expect(
            outcome(
                await panel.client.post('/api/hosts/validate', {
                    domain: 'dry.test',
                    upstream: one.address,
                    advanced: [{ handler: 'rate_limit' }]
                })
            )
        ).to.equal([422, 42200, 'ENGINE_REJECTED']);
        expect((await panel.client.get('/api/hosts')).text).to.equal(before);
        expect(await nameOf('dry.test')).to.equal('404');
    });

    it('validate of one host has the errors of a change, does not conflict with itself, and changes nothing', async () => {
        const { path, id } = await make({ compression: true });
        const before = await panel.client.get(path);
        const tried = (body: object, more: object = {}): ReturnType<typeof panel.client.post> =>
            panel.client.post(`${path}/validate`, body, more);
        expect((await tried({ ...before.data, notes: 'again' }, { token: viewer })).data).to.equal({
            reload: false
        });
        expect((await tried({})).data).to.equal({ reload: false });
        expect((await tried({ bodyLimitBytes: 4712 })).data).to.equal({ reload: true });
        expect(outcome(await tried({ domain: 'copy.test' }))).to.equal([409, 40900, 'CONFLICT']);
        expect(outcome(await tried({ advanced: [{ handler: 'rate_limit' }] }))).to.equal([
            422,
            42200,
            'ENGINE_REJECTED'
        ]);
        expect((await tried({ notes: 7 })).code).to.equal(40001);
        expect((await tried({ notes: 'x', version: before.data.version + 1 })).code).to.equal(41200);
        expect((await panel.client.post(`/api/hosts/${id + 9_999}/validate`, {})).code).to.equal(40400);
        expect((await panel.client.get(path)).text).to.equal(before.text);
    });

    it('preview is what the engine gets, with secrets masked', async () => {
        const { path } = await make({
            access: { basicAuth: [{ username: 'u', password: 'a secret for the preview' }] },
            headers: { request: [{ op: 'set', name: 'X-Token', value: 'top-secret-value' }] }
        });
        const shown = await panel.client.get(`${path}/preview`, { token: viewer });
        expect([shown.status, shown.text.includes('top-secret-value'), shown.text.includes('$2')]).to.equal([
            200,
            false,
            false
        ]);
        expect((await panel.client.get(`${path}/preview`)).text).to.contain('top-secret-value');
    });
});

describe('roles', () => {
    it('a viewer reads, an operator writes, and only an admin reaches what the machine reaches', async () => {
        const { path } = await make();
        for (const [method, url, body] of [
            ['POST', '/api/hosts', { domain: 'no.test', upstream: one.address }],
            ['PUT', path, { notes: 'x' }],
            ['DELETE', path, undefined],
            ['POST', '/api/hosts/batch', { ids: [1], action: 'delete' }],
            ['POST', `${path}/clone`, { domain: 'no.test' }]
        ] as const) {
            const answer = await panel.client.call(method, url, { body, token: viewer });
            expect([...outcome(answer), answer.data.permission], url).to.equal([
                403,
                40300,
                'FORBIDDEN',
                'hosts:write'
            ]);
        }
        expect((await panel.client.get(path, { token: viewer })).status).to.equal(200);
        expect(
            (await panel.client.put(path, { notes: 'by the operator' }, { token: operator })).status
        ).to.equal(200);
        for (const fields of [
            { upstream: 'unix//run/a.sock' },
            { advanced: [{ handler: 'headers' }] },
            { headers: { request: [{ op: 'set', name: 'host', value: 'inner' }] } },
            { type: 'static', static: { root: folder } },
            { type: 'php', php: { root: folder, fastcgi: '127.0.0.1:9' } }
        ]) {
            const answer = await panel.client.put(path, fields, { token: operator });
            expect([...outcome(answer), answer.data.permission], JSON.stringify(fields)).to.equal([
                403,
                40300,
                'FORBIDDEN',
                'hosts:unsafe'
            ]);
        }
        await refused(
            {},
            'upstreams.0.address',
            panel.client.put(path, { upstream: `unix/${panel.config.dataDir}/a.sock` })
        );
    });
});
