import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request, type RequestOptions } from 'node:http';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createGateway, type Gateway } from '../../../../core/src/server/gateway/gateway.ts';
import { json } from '../../../../core/src/server/http/route.ts';
import { createHttpServer } from '../../../../core/src/server/http/server.ts';
import { createStartPage, type PagesState } from '../../../../core/src/server/http/start-page.ts';
import { createTestPorts } from '../../../support/core/http-ports.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const navigate = { 'sec-fetch-mode': 'navigate' };

describe('the start page', () => {
    let gateway: Gateway;
    let url: string;
    let state: PagesState = 'missing';

    before(async () => {
        const ports = createTestPorts();
        const core = createHttpServer({
            name: 'core',
            prefix: '',
            ports,
            routes: [
                json({
                    id: 'health',
                    method: 'GET',
                    path: '/healthz',
                    access: { public: 'for the test alone' },
                    summary: 'Health',
                    handler: () => null
                })
            ]
        });
        gateway = await createGateway({
            core,
            startPage: createStartPage(ports, () => state),
            log: ports.log
        });
        const { port } = await gateway.listen('127.0.0.1', 0);
        url = `http://127.0.0.1:${port}`;
    });
    after(() => gateway.close());

    it('says why there are no pages and what to do, for each reason', async () => {
        const expected: [PagesState, number, string][] = [
            ['missing', 200, 'portico plugin install'],
            ['disabled', 200, 'portico plugin enable'],
            ['starting', 503, 'loads again by itself'],
            ['failed', 503, 'did not start'],
            ['safe-mode', 503, 'safe mode']
        ];
        for (const [now, status, words] of expected) {
            state = now;
            const answer = await fetch(url);
            expect([answer.status, answer.headers.get('retry-after')], now).to.equal([
                status,
                now === 'starting' ? '2' : null
            ]);
            const text = await answer.text();
            expect(text).to.contain(words);
            expect(text.includes('<meta http-equiv="refresh" content="2" />'), now).to.equal(
                now === 'starting'
            );
        }
    });

    it('is a page that no browser keeps, whose policy allows its own style and nothing else', async () => {
        state = 'missing';
        const answer = await fetch(`${url}/?from=mail`);
        const style = /<style>([\s\S]*?)<\/style>/.exec(await answer.text())?.[1] ?? '';
        const hash = createHash('sha256').update(style).digest('base64');
        expect(
            ['content-type', 'cache-control', 'content-security-policy'].map((name) =>
                answer.headers.get(name)
            )
        ).to.equal([
            'text/html; charset=utf-8',
            'no-store',
            `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
        ]);
        const head = await fetch(url, { method: 'HEAD' });
        expect([head.status, await head.text()]).to.equal([200, '']);
    });

    it('answers browsers that open a place of the pages, and leaves the API and its clients alone', async () => {
        // `fetch` does not let its caller say what it does.
        const ask = async (path: string, init: RequestOptions = {}): Promise<unknown> => {
            const sent = request(`${url}${path}`, { agent: false, ...init }).end();
            const [answer] = (await once(sent, 'response')) as [IncomingMessage];
            answer.resume();
            await once(answer, 'end');
            return [answer.statusCode, answer.headers['content-type']?.split(';')[0]];
        };
        expect(await ask('/hosts/7', { headers: navigate })).to.equal([200, 'text/html']);
        // Over plain HTTP to another machine, a browser says only what it wants to read.
        const read = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
        expect(await ask('/hosts/7', { headers: read })).to.equal([200, 'text/html']);
        expect(await ask('/hosts/7')).to.equal([404, 'application/json']);
        expect(await ask('/hosts/7', { headers: { accept: '*/*' } })).to.equal([404, 'application/json']);
        expect(await ask('/hosts/7', { headers: { ...read, 'sec-fetch-mode': 'cors' } })).to.equal([
            404,
            'application/json'
        ]);
        expect(await ask('/', { method: 'POST' })).to.equal([404, 'application/json']);
        expect(await ask('/api/none', { headers: navigate })).to.equal([404, 'application/json']);
        expect(await ask('/healthz', { headers: navigate })).to.equal([200, 'application/json']);
    });
});
