import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import type { Site } from '../../../../../core/src/engine/site.ts';
import { type Ask, type Reply, startCaddy, type TestCaddy } from '../../../../support/engine/caddy.ts';
import { testSite } from '../../../../support/engine/site.ts';
import { startFastcgi, type TestResponder } from '../../../../support/servers/fastcgi.ts';
import { until } from '../../../../support/until.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

describe('a site without an upstream in a running engine', { timeout: 60_000 }, () => {
    let caddy: TestCaddy;
    let php: TestResponder;
    let root: string;
    const serve = async (over: Partial<Site>): Promise<void> => {
        await caddy.apply({ sites: [{ id: 1, site: testSite(over) }] });
    };
    const ask = (path: string, over: Ask = {}): Promise<Reply> => caddy.ask({ path, ...over });
    const write = (path: string, text: string): void => writeFileSync(join(root, path), text);

    before(async () => {
        [caddy, php] = await Promise.all([startCaddy({}, { PORTICO_SECRET: 'leaked' }), startFastcgi()]);
        root = join(caddy.folder, 'www{env.PORTICO_SECRET}');
        mkdirSync(join(root, 'sub'), { recursive: true });
        mkdirSync(join(root, 'empty'));
        write('index.html', 'home');
        write('start.htm', 'start');
        write('page.txt', 'page');
        write('sub/index.html', 'sub home');
        write('index.php', '<?php secret');
        write('sub/index.php', '<?php secret');
        write('100%.txt', 'percent');
        write('{env.PORTICO_SECRET}.txt', 'braces');
        writeFileSync(join(caddy.folder, 'outside.txt'), 'outside');
    });

    after(async () => {
        await Promise.all([caddy.close(), php.close()]);
    });

    it('serves files and nothing outside the root', async () => {
        const files = { root, browse: false, index: [], spaFallback: false };
        await serve({ type: 'static', static: files });
        expect((await ask('/')).body).to.equal('home');
        expect((await ask('/page.txt')).body).to.equal('page');
        expect((await ask('/%7Benv.PORTICO_SECRET%7D.txt')).body).to.equal('braces');
        expect((await ask('/sub/')).body).to.equal('sub home');
        expect((await ask('/sub')).status).to.equal(308);
        expect((await ask('/empty/')).status).to.equal(404);
        for (const path of [
            '/none',
            '/../outside.txt',
            '/%2e%2e/outside.txt',
            '/..%2foutside.txt',
            '/sub/../../outside.txt'
        ]) {
            const reply = await ask(path);
            expect([path, reply.status]).to.equal([path, 404]);
        }

        await serve({
            type: 'static',
            static: { ...files, index: ['none.html', 'start.htm'] },
            errorPages: [{ status: 404, body: 'lost {x}' }]
        });
        expect((await ask('/')).body).to.equal('start');
        const lost = await ask('/none');
        expect([lost.status, lost.body]).to.equal([404, 'lost {x}']);
    });

    it('lists a folder when it may', async () => {
        await serve({ type: 'static', static: { root, browse: true, index: [], spaFallback: false } });
        const reply = await ask('/empty/');
        expect(reply.status).to.equal(200);
        expect(String(reply.headers['content-type'])).to.startWith('text/html');
    });

    it('gives an application of one page its index for every address that is no file', async () => {
        await serve({ type: 'static', static: { root, browse: false, index: [], spaFallback: true } });
        for (const path of ['/', '/some/route', '/some/route?x=1', '/empty/', '/*', '/%5Bx%5D']) {
            const reply = await ask(path);
            expect([path, reply.status, reply.body]).to.equal([path, 200, 'home']);
        }

        expect((await ask('/page.txt')).body).to.equal('page');
        expect((await ask('/sub/')).body).to.equal('sub home');
        expect((await ask('/..%2f..%2foutside.txt')).body).to.equal('home');
    });

    it('serves no file whose name begins with a dot, but for .well-known', async () => {
        for (const [name, text] of [
            ['.env', 'secret'],
            ['.git/config', 'secret'],
            ['.well-known/security.txt', 'contact'],
            ['.well-known/.env', 'secret'],
            ['sub/.well-known/x', 'secret'],
            ['.well-known-not', 'secret']
        ] as const) {
            mkdirSync(dirname(join(root, name)), { recursive: true });
            writeFileSync(join(root, name), text);
        }
        const hidden = [
            '/.env',
            '/%2eenv',
            '//.env',
            '/.git/config',
            '/.well-known/.env',
            '/sub/.well-known/x',
            '/.well-known-not',
            '/x/../.env'
        ];
        for (const site of [
            { type: 'static', static: { root, browse: false, index: [], spaFallback: false } },
            { type: 'static', static: { root, browse: true, index: [], spaFallback: true } },
            { type: 'php', php: { root, fastcgi: '127.0.0.1:1', index: [] } }
        ] as const) {
            await serve(site);
            for (const path of hidden) {
                const { status, body } = await ask(path);
                expect([status, body.includes('secret')], `${site.type} ${path}`).to.equal([404, false]);
            }
            expect((await ask('/.well-known/security.txt')).body).to.equal('contact');
        }
    });

    it('leads no redirect to another name by a request without a path', async () => {
        for (const [to, expected] of [
            ['https://b.test', 'https://b.test/'],
            ['https://b.test?x=1', 'https://b.test/?x=1']
        ] as const) {
            await serve({ type: 'redirect', redirect: { to, code: 302, keepPath: true } });
            for (const target of ['http:.evil.test', 'http:@evil.test']) {
                const reply = await ask(target);
                expect([reply.status, reply.headers['location']], target).to.equal([302, expected]);
            }
        }
    });

    it('redirects, with the path and query where it is told to', async () => {
        const location = async (to: string, keepPath: boolean, path: string): Promise<readonly unknown[]> => {
            await serve({ type: 'redirect', redirect: { to, code: 302, keepPath } });
            const reply = await ask(path);
            return [reply.status, reply.headers['location']];
        };
        expect(await location('https://b.test/x?y=1#z', false, '/a?b')).to.equal([
            302,
            'https://b.test/x?y=1#z'
        ]);
        expect(await location('https://b.test', true, '/a%20b/%7B?c=d&e')).to.equal([
            302,
            'https://b.test/a%20b/%7B?c=d&e'
        ]);
        expect(await location('https://b.test/base/', true, '/a')).to.equal([302, 'https://b.test/base/a']);
        expect(await location('https://b.test/base', true, '/')).to.equal([302, 'https://b.test/base/']);
        expect(await location('https://b.test', true, '//evil.test/')).to.equal([
            302,
            'https://b.test//evil.test/'
        ]);
        expect(await location('https://b.test/?y=1', true, '/a%2Fb')).to.equal([
            302,
            'https://b.test/a%2Fb?y=1'
        ]);
        expect(await location('https://b.test/?y=1', true, '/a%2Fb?c=%20d')).to.equal([
            302,
            'https://b.test/a%2Fb?y=1&c=%20d'
        ]);
        expect(await location('https://b.test/?y=1', true, '/a?{env.PORTICO_SECRET}')).to.equal([
            302,
            'https://b.test/a?y=1&{env.PORTICO_SECRET}'
        ]);
        expect(
            await location('https://b.test/', true, '/%7Benv.PORTICO_SECRET%7D?{env.PORTICO_SECRET}')
        ).to.equal([302, 'https://b.test/%7Benv.PORTICO_SECRET%7D?{env.PORTICO_SECRET}']);
        expect(await location('https://b.test/{env.PORTICO_SECRET}', true, '/a')).to.equal([
            302,
            'https://b.test/{env.PORTICO_SECRET}/a'
        ]);
        for (const code of [301, 307, 308] as const) {
            await serve({ type: 'redirect', redirect: { to: 'https://b.test/', code, keepPath: false } });
            expect((await ask('/')).status).to.equal(code);
        }
    });

    it('gives PHP its scripts and serves the rest', async () => {
        await serve({
            type: 'php',
            php: { root, fastcgi: php.address, index: ['index.php', 'index.html'] },
            errorPages: [{ status: 404, body: 'lost' }],
            headers: {
                request: [{ op: 'set', name: 'X-Mine', value: 'v{env.PORTICO_SECRET}' }],
                response: []
            }
        });
        const ran = async (path: string, over: Ask = {}): Promise<Readonly<Record<string, string>>> =>
            JSON.parse((await ask(path, over)).body) as Record<string, string>;
        expect(await ran('/')).to.include({
            SCRIPT_FILENAME: join(root, 'index.php'),
            SCRIPT_NAME: '/index.php',
            REQUEST_URI: '/',
            DOCUMENT_ROOT: root,
            HTTP_X_MINE: 'v{env.PORTICO_SECRET}'
        });
        expect(
            await ran('/pretty/route?x=1', {
                method: 'POST',
                body: 'posted',
                headers: { proxy: 'http://evil.test' }
            })
        ).to.include({
            SCRIPT_NAME: '/index.php',
            REQUEST_URI: '/pretty/route?x=1',
            QUERY_STRING: 'x=1',
            REQUEST_METHOD: 'POST',
            body: 'posted',
            SERVER_NAME: 'a.test'
        });
        expect((await ran('/', { headers: { proxy: 'http://evil.test' } }))['HTTP_PROXY']).to.be.undefined();
        expect(await ran('/index.php/info/x')).to.include({
            SCRIPT_NAME: '/index.php',
            PATH_INFO: '/info/x'
        });
        expect(await ran('/sub/')).to.include({ SCRIPT_NAME: '/sub/index.php' });
        expect(await ran('/page.txt/x.php')).to.include({ SCRIPT_NAME: '/index.php' });
        expect((await ask('/page.txt')).body).to.equal('page');
        expect((await ask('/100%25.txt')).body).to.equal('percent');
        expect((await ask('/%7Benv.PORTICO_SECRET%7D.txt')).body).to.equal('braces');
        expect((await ask('/{env.PORTICO_SECRET}.txt')).body).to.equal('braces');
        const folder = await ask('/sub?x=1');
        expect([folder.status, folder.headers['location']]).to.equal([308, '/sub/?x=1']);
        for (const path of [
            '/index.php',
            '/INDEX.PHP',
            '/index.php/',
            '/sub/index.php',
            '/index%2ephp',
            '/index.php%00',
            '/.//index.php',
            '/index.php%20'
        ]) {
            expect((await ask(path)).body).to.not.include('secret');
        }

        const lost = await ask('/?status=404');
        expect([lost.status, lost.body]).to.equal([404, 'lost']);
        await serve({ type: 'php', php: { root, fastcgi: '127.0.0.1:1', index: [] } });
        expect((await ask('/')).status).to.equal(502);
    });

    it('spreads scripts over several servers by weight, and loses no request when the weights change', async () => {
        const other = await startFastcgi('other');
        const weigh = (own: number, others: number): Promise<void> =>
            serve({
                type: 'php',
                php: {
                    root,
                    upstreams: [
                        { address: php.address, weight: own },
                        { address: other.address, weight: others }
                    ],
                    index: ['index.php']
                }
            });
        const responder = async (path: string): Promise<string> => {
            const { status, body } = await ask(path);
            return status === 200 ? (JSON.parse(body) as { RESPONDER: string }).RESPONDER : String(status);
        };
        const share = async (): Promise<number> => {
            const names: string[] = [];
            while (names.length < 20) {
                names.push(await responder('/'));
            }
            expect(names.filter((name) => name !== '' && name !== 'other')).to.equal([]);
            return names.filter((name) => name === 'other').length;
        };
        await weigh(1, 1);
        expect(await share()).to.equal(10);
        await weigh(9, 1);
        expect(await share()).to.equal(2);

        // Requests under way are answered by the server that has them.
        for (let turn = 1; turn <= 5; turn += 1) {
            const before = php.requests() + other.requests();
            const held = Array.from({ length: 8 }, () => responder('/?waitMs=300'));
            await until(() => php.requests() + other.requests() === before + 8, 'all are under way');
            await weigh(turn, 1);
            expect(new Set(await Promise.all(held))).to.equal(new Set(['', 'other']));
        }
        // Before 2.7 a reload resets connections that wait in its queue; like a browser, a client tries such a one again.
        const retried = (path: string): Promise<string> =>
            responder(path).catch((error: NodeJS.ErrnoException) =>
                error.code === 'ECONNRESET' ? retried(path) : String(error.code)
            );
        let running = true;
        const answers = new Map<string, number>();
        const askers = ['/', '/?waitMs=40', '/index.php/info'].map(async (path) => {
            while (running) {
                const key = await retried(path);
                answers.set(key, (answers.get(key) ?? 0) + 1);
            }
        });
        for (let turn = 0; turn < 10; turn += 1) {
            await weigh(10 - turn, 1 + turn);
        }
        running = false;
        await Promise.all(askers);
        expect([...answers.keys()].sort()).to.equal(['', 'other']);

        await weigh(1, 4);
        expect(await share()).to.equal(16);
        // A list of one is all of the traffic.
        await serve({
            type: 'php',
            php: { root, upstreams: [{ address: other.address, weight: 7 }], index: ['index.php'] }
        });
        expect(await share()).to.equal(20);
        await other.close();
    });
});
