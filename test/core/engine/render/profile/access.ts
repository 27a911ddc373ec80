import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { hashSync } from '@node-rs/bcrypt';

import type { Site } from '../../../../../core/src/engine/site.ts';
import { type Ask, type Reply, startCaddy, type TestCaddy } from '../../../../support/engine/caddy.ts';
import { testSite } from '../../../../support/engine/site.ts';
import { received, startUpstream, type TestUpstream } from '../../../../support/servers/upstream.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

const open = { allow: [], deny: [], basicAuth: [], forwardAuth: null };

describe('who may come in, in a running engine', { timeout: 60_000 }, () => {
    let caddy: TestCaddy;
    let one: TestUpstream;
    let judge: TestUpstream;
    const serve = async (over: Partial<Site>): Promise<void> => {
        await caddy.apply({
            sites: [{ id: 1, site: testSite({ upstreams: [{ address: one.address, weight: 1 }], ...over }) }]
        });
    };
    const access = (over: Partial<Site['access']>, more: Partial<Site> = {}): Promise<void> =>
        serve({ ...more, access: { ...open, ...over } });
    const ask = (over: Ask = {}): Promise<Reply> => caddy.ask(over);
    const status = async (over: Ask = {}): Promise<number> => (await ask(over)).status;
    const basic = (text: string): Ask => ({
        headers: { authorization: `Basic ${Buffer.from(text).toString('base64')}` }
    });

    before(async () => {
        [caddy, one] = await Promise.all([
            startCaddy({}, { PORTICO_SECRET: 'leaked' }),
            startUpstream('one')
        ]);
        judge = await startUpstream('judge', (request, response) => {
            if (request.headers['x-token'] !== 'good') {
                response.writeHead(401, { 'www-authenticate': 'Token' });
                response.end('not you');
                return true;
            }

            response.setHeader(
                'x-user',
                `${request.method} ${request.headers['x-forwarded-method']} ${request.headers['x-forwarded-uri']} ${request.url} ${request.headers['upgrade'] ?? 'plain'} ${request.headers['x-forwarded-host']}`
            );
            response.end();
            return true;
        });
    });

    after(async () => {
        await Promise.all([caddy.close(), one.close(), judge.close()]);
    });

    it('lets in by address: deny wins, an empty list lets every address in, several allow any', async () => {
        await access({ deny: ['127.0.0.0/8'] });
        expect(await status({ headers: { 'x-forwarded-for': '8.8.8.8' } })).to.equal(403);
        await access({ deny: ['10.0.0.0/8', '::1'] });
        expect(await status({ headers: { 'x-forwarded-for': '10.0.0.1' } })).to.equal(200);
        await access({ allow: ['10.0.0.0/8'] });
        expect(await status({ headers: { 'x-forwarded-for': '10.0.0.1' } })).to.equal(403);
        await access({ allow: ['10.0.0.0/8', '127.0.0.1'] });
        expect(await status()).to.equal(200);
        await access(
            { allow: ['127.0.0.1'], deny: ['127.0.0.1/32'] },
            { errorPages: [{ status: 403, body: 'go away' }] }
        );
        const refused = await ask();
        expect([refused.status, refused.body]).to.equal([403, 'go away']);
    });

    it('asks for a name and password', async () => {
        const odd = 'o{env.PORTICO_SECRET}d';
        await access({
            basicAuth: [
                { username: 'ann', hash: hashSync('right', 4) },
                { username: odd, hash: hashSync('pass:word', 4) }
            ]
        });
        const refused = await ask();
        expect([refused.status, refused.headers['www-authenticate']]).to.equal([
            401,
            'Basic realm="restricted"'
        ]);
        expect(await status(basic('ann:wrong'))).to.equal(401);
        expect(await status(basic('ben:right'))).to.equal(401);
        expect(await status(basic('ann:'))).to.equal(401);
        expect(await status(basic('ann:right'))).to.equal(200);
        expect(await status(basic('ann:right'))).to.equal(200);
        expect(await status(basic(`${odd}:pass:word`))).to.equal(200);
        expect(await status(basic('oleakedd:pass:word'))).to.equal(401);
    });

    it('asks another server, passes on what it says, and believes no other sender', async () => {
        await access({
            forwardAuth: {
                url: `http://${judge.address}/verify/{env.PORTICO_SECRET}?q={x}`,
                copyHeaders: ['X-User', 'X-Groups']
            }
        });
        const refused = await ask();
        expect([refused.status, refused.body, refused.headers['www-authenticate']]).to.equal([
            401,
            'not you',
            'Token'
        ]);

        const reply = await ask({
            method: 'POST',
            path: '/page?a=1',
            body: 'kept',
            headers: {
                'x-token': 'good',
                'x-user': 'root',
                'x-groups': 'wheel',
                x_user: 'root',
                'x-other': 'mine'
            }
        });
        const request = received(reply.body);
        expect(reply.status).to.equal(200);
        expect(request).to.include({ method: 'POST', url: '/page?a=1', body: 'kept' });
        expect(request.headers['x-user']).to.equal(
            'GET POST /page?a=1 /verify/%7Benv.PORTICO_SECRET%7D?q=%7Bx%7D plain a.test'
        );
        expect(request.headers).to.include({ 'x-other': 'mine', 'x-forwarded-for': '127.0.0.1' });
        expect([request.headers['x-groups'], request.headers['x_user']]).to.equal([undefined, undefined]);

        // Headers that `Connection` names end here: not those that the other server set.
        for (const connection of ['close, X-User', 'X-User, Keep-Alive']) {
            const named = received((await ask({ headers: { 'x-token': 'good', connection } })).body);
            expect(named.headers['x-user'], connection).to.contain('GET GET');
        }

        await access({ forwardAuth: { url: 'http://127.0.0.1:1/', copyHeaders: [] } });
        expect(await status()).to.equal(502);
    });

    it('names one origin when it is of the list, answers real preflights only, and overrules the upstream', async () => {
        const loud = await startUpstream('loud', (_, response) => {
            response.writeHead(200, {
                'access-control-allow-origin': '*',
                'access-control-allow-credentials': 'true',
                vary: 'Accept'
            });
            response.end('loud');
            return true;
        });
        const cors = {
            origins: ['https://x.test', 'https://y.test:8443'],
            methods: ['GET', 'PUT'],
            headers: ['X-One', 'X-Two'],
            credentials: true,
            maxAgeSeconds: 600
        };
        await serve({
            cors,
            upstreams: [{ address: loud.address, weight: 1 }],
            access: { ...open, basicAuth: [] }
        });
        const said = async (origin: string | null, over: Ask = {}): Promise<readonly unknown[]> => {
            const reply = await ask({
                ...over,
                headers: { ...over.headers, ...(origin !== null && { origin }) }
            });
            return [
                reply.status,
                reply.headers['access-control-allow-origin'],
                reply.headers['access-control-allow-credentials'],
                reply.headers['vary']
            ];
        };
        expect(await said('https://x.test')).to.equal([200, 'https://x.test', 'true', 'Accept, Origin']);
        expect(await said('https://y.test:8443')).to.equal([
            200,
            'https://y.test:8443',
            'true',
            'Accept, Origin'
        ]);
        for (const origin of [
            'https://X.test',
            'https://x.test.evil.test',
            'http://x.test',
            'null',
            'https://x.test,https://y.test:8443',
            '{env.PORTICO_SECRET}',
            null
        ]) {
            expect(await said(origin)).to.equal([200, undefined, undefined, 'Accept, Origin']);
        }

        const asked = {
            method: 'OPTIONS',
            headers: { origin: 'https://x.test', 'access-control-request-method': 'PUT' }
        };
        const preflight = await ask(asked);
        expect(preflight.status).to.equal(204);
        expect(preflight.headers).to.include({
            'access-control-allow-origin': 'https://x.test',
            'access-control-allow-methods': 'GET, PUT',
            'access-control-allow-headers': 'X-One, X-Two',
            'access-control-max-age': '600',
            vary: 'Origin'
        });
        const foreign = await ask({ ...asked, headers: { ...asked.headers, origin: 'https://z.test' } });
        expect([
            foreign.status,
            foreign.headers['access-control-allow-origin'],
            foreign.headers['access-control-allow-methods']
        ]).to.equal([204, undefined, undefined]);
        expect((await ask({ method: 'OPTIONS', headers: { origin: 'https://x.test' } })).body).to.equal(
            'loud'
        );
        expect((await ask({ method: 'OPTIONS' })).body).to.equal('loud');

        await serve({
            cors: { ...cors, origins: ['*'], credentials: false },
            upstreams: [{ address: one.address, weight: 1 }]
        });
        expect(await said('https://any.test')).to.equal([200, '*', undefined, undefined]);
        await loud.close();
    });

    it('answers a preflight before it asks for a password, and refuses addresses before both', async () => {
        const cors = {
            origins: ['https://x.test'],
            methods: ['GET'],
            headers: [],
            credentials: false,
            maxAgeSeconds: 1
        };
        const basicAuth = [{ username: 'ann', hash: hashSync('right', 4) }];
        const preflight = {
            method: 'OPTIONS',
            headers: { origin: 'https://x.test', 'access-control-request-method': 'GET' }
        };
        await serve({ cors, access: { ...open, basicAuth } });
        expect(await status(preflight)).to.equal(204);
        const refused = await ask({ headers: { origin: 'https://x.test' } });
        expect([refused.status, refused.headers['access-control-allow-origin']]).to.equal([
            401,
            'https://x.test'
        ]);
        await serve({ cors, access: { ...open, basicAuth, deny: ['127.0.0.1'] } });
        expect(await status(preflight)).to.equal(403);
    });
});
