import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { type Assets, definePlugin } from '@portico/sdk';

import type { Generation } from '../../../../../core/src/plugins/runtime/generation/generation.ts';
import { createPluginRig, type PluginRig, type RunOptions } from '../../../../support/plugins/host.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

let rig: PluginRig;

const run = (
    assets: readonly Assets[],
    options: RunOptions = { capabilities: { pages: true } }
): Promise<Generation> =>
    rig.run(
        definePlugin({
            setup(ctx) {
                assets.forEach((each) => ctx.assets(each));
                ctx.route({ method: 'GET', path: '/hello', access: 'read', handler: () => ['hello'] });
            }
        }),
        options
    );
const get = async (
    path: string,
    init: RequestInit = {}
): Promise<{ readonly status: number; readonly text: string; readonly headers: Headers }> => {
    const answer = await fetch(`${rig.url}${path}`, init);
    return { status: answer.status, text: await answer.text(), headers: answer.headers };
};
const failing = (work: Promise<unknown>): Promise<{ readonly code?: string; readonly message: string }> =>
    work.then(
        () => {
            throw new Error('It did not fail');
        },
        (error: unknown) => error as Error
    );

describe('ctx.assets at the root of the site', () => {
    beforeEach(async () => {
        rig = await createPluginRig();
        mkdirSync(join(rig.root, 'ui', 'docs'), { recursive: true });
        mkdirSync(join(rig.root, 'static'));
        writeFileSync(join(rig.root, 'ui', 'index.html'), '<h1>panel</h1>');
        writeFileSync(join(rig.root, 'ui', 'app-0a1b2c3d4e.js'), 'run()');
        writeFileSync(join(rig.root, 'ui', 'docs', 'index.html'), '<h1>docs</h1>');
        writeFileSync(join(rig.root, 'static', 'logo.svg'), '<svg/>');
    });
    afterEach(() => rig.close());

    it('tells a place with a dot from a missing file by what the browser says that it does', async () => {
        await run([{ folder: 'ui', at: 'root', fallback: 'index.html' }]);
        expect((await get('/files/a.txt')).status).to.equal(404);
        // `fetch` does not let its caller say what it does.
        const sent = request(`${rig.url}/files/a.txt`, {
            agent: false,
            headers: { 'sec-fetch-mode': 'navigate' }
        }).end();
        const [opened] = (await once(sent, 'response')) as [IncomingMessage];
        expect([opened.statusCode, await text(opened)]).to.equal([200, '<h1>panel</h1>']);
    });

    it('serves files, folders and the application, with a policy of its own and caches by name', async () => {
        await run([
            {
                folder: 'ui',
                at: 'root',
                fallback: 'index.html',
                csp: { 'img-src': ["'self'", 'https://tiles.example'] }
            },
            { folder: 'static' }
        ]);
        const index = await get('/');
        expect([
            index.status,
            index.text,
            index.headers.get('content-type'),
            index.headers.get('cache-control')
        ]).to.equal([200, '<h1>panel</h1>', 'text/html; charset=utf-8', 'no-cache']);
        const policy = index.headers.get('content-security-policy') ?? '';
        expect(policy).to.contain([
            "script-src 'self'",
            "img-src 'self' https://tiles.example",
            "object-src 'none'",
            "frame-ancestors 'none'",
            "base-uri 'none'"
        ]);
        expect(index.headers.get('x-content-type-options')).to.equal('nosniff');
        expect(
            (await get('/', { headers: { 'if-none-match': index.headers.get('etag') ?? '' } })).status
        ).to.equal(304);
        expect((await get('/app-0a1b2c3d4e.js')).headers.get('cache-control')).to.equal(
            'public, max-age=31536000, immutable'
        );
        expect([(await get('/docs')).text, (await get('/docs/')).text]).to.equal([
            '<h1>docs</h1>',
            '<h1>docs</h1>'
        ]);
        expect((await get('/hosts/17?tab=tls')).text).to.equal('<h1>panel</h1>');
        expect((await get('/', { method: 'HEAD' })).text).to.equal('');
        expect((await get('/old-app-9f8e7d.js')).status).to.equal(404);
        expect(
            (await get('/api/plugins/probe/assets/logo.svg')).headers.get('content-security-policy')
        ).to.contain('sandbox');
    });

    it("leaves everything below /api, every other method and the core's own paths where they are", async () => {
        writeFileSync(join(rig.root, 'ui', 'healthz'), 'mine');
        mkdirSync(join(rig.root, 'ui', 'api'));
        writeFileSync(join(rig.root, 'ui', 'api', 'things'), 'mine');
        await run([{ folder: 'ui', at: 'root', fallback: 'index.html' }]);
        expect((await rig.ask('admin', 'GET', '/api/things')).data).to.equal([{ for: 'admin', via: null }]);
        expect((await rig.ask('admin', 'GET', '/api/plugins/probe/hello')).data).to.equal(['hello']);
        for (const path of ['/api', '/api/', '/api/nothing', '/api/plugins/other/x', '/api?x']) {
            expect(
                [(await get(path)).status >= 400, (await get(path)).text.includes('panel')],
                path
            ).to.equal([true, false]);
        }
        for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
            expect((await get('/', { method })).text).to.not.contain('<h1>');
        }
        for (const path of [
            '/..%2f..%2fetc/passwd',
            '/%zz',
            '//etc/passwd',
            `/${'x'.repeat(3000)}`,
            '/%00'
        ]) {
            const { status, text } = await get(path);
            expect([status < 500, text.includes('root:')], path).to.equal([true, false]);
        }
        expect(rig.gateway.servers().map(({ name }) => name)).to.equal(['core', 'probe 1.0.0']);
    });

    it('goes with the plugin, and comes back with the next generation without a gap', async () => {
        const first = await run([{ folder: 'ui', at: 'root' }]);
        expect((await get('/')).status).to.equal(200);
        expect((await get('/nowhere')).status).to.equal(404);
        const parking = rig.gateway.park('probe');
        const waiting = get('/');
        await parking.drain(1_000);
        expect((await first.close('a swap')).leaked).to.equal([]);
        writeFileSync(join(rig.root, 'ui', 'index.html'), '<h1>newer</h1>');
        const second = await run([{ folder: 'ui', at: 'root' }]);
        parking.open();
        expect((await waiting).text).to.equal('<h1>newer</h1>');
        await second.close('it is disabled');
        expect((await get('/')).status).to.equal(404);
        await run([]);
        expect((await get('/')).status).to.equal(404);
    });

    it('needs the capability, one plugin only, and files and a policy that are such', async () => {
        expect(await failing(run([{ folder: 'ui', at: 'root' }], {}))).to.include({
            code: 'REGISTRATION_INVALID'
        });
        expect((await failing(run([{ folder: '..', at: 'root' }]))).message).to.match(
            /not inside the package/
        );
        expect((await failing(run([{ folder: 'ui', at: 'root', fallback: 'none.html' }]))).message).to.match(
            /none.html/
        );
        for (const csp of [
            { 'frame-ancestors': ['*'] },
            { 'script-src': ["'self'; report-uri /x"] },
            { 'script-src': ['a,b'] },
            { 'script-src': [] },
            { 'img-src': ['a b'] }
        ]) {
            expect((await failing(run([{ folder: 'ui', at: 'root', csp }]))).message).to.match(/csp/);
        }
        expect((await get('/')).status).to.equal(404);
        await run([{ folder: 'ui', at: 'root' }]);
        expect(
            await failing(
                run([{ folder: 'static', at: 'root' }], { name: 'other', capabilities: { pages: true } })
            )
        ).to.include({
            code: 'REGISTRATION_INVALID',
            message: 'The plugin probe serves the root of the site already'
        });
        expect((await get('/')).text).to.equal('<h1>panel</h1>');
    });
});
