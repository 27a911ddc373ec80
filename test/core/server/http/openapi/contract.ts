/** The check that black-box tests apply to every answer: it finds an answer that the OpenAPI document does not describe. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createOpenApi } from '../../../../../core/src/server/http/openapi/document.ts';
import { openApiRoutes } from '../../../../../core/src/server/http/openapi/routes.ts';
import { createHttpServer, type HttpServer } from '../../../../../core/src/server/http/server.ts';
import { contractCheck } from '../../../../support/api/contract.ts';
import { routes } from '../../../../support/core/described-routes.ts';
import { createTestPorts } from '../../../../support/core/http-ports.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('contractCheck', () => {
    const all: HttpServer[] = [];
    const ports = { ...createTestPorts(), checkReturns: false };
    const openApi = createOpenApi({ servers: () => all, version: '1' });
    const core = createHttpServer({
        name: 'core',
        prefix: '',
        routes: [...routes(), ...openApiRoutes(() => openApi)],
        ports
    });
    all.push(core);
    const ask = async (
        method: string,
        url: string,
        options: { payload?: string; headers?: Record<string, string> } = {}
    ): Promise<{ status: number; headers: Record<string, string>; text: string }> => {
        const got = await core.inject({
            method,
            url,
            headers: {
                authorization: 'Bearer admin',
                ...(options.payload === undefined ? {} : { 'content-type': 'application/json' }),
                ...options.headers
            },
            ...(options.payload === undefined ? {} : { payload: options.payload })
        });
        return { status: got.statusCode, headers: got.headers as Record<string, string>, text: got.payload };
    };

    it('passes every answer of a server that does what it says, and finds the one that does not', async () => {
        await core.start();
        try {
            const check = contractCheck(openApi.document());
            const asked: [string, string, { payload?: string; headers?: Record<string, string> }?][] = [
                ['GET', '/api/things'],
                ['HEAD', '/api/things'],
                ['GET', '/api/things/1'],
                ['GET', '/api/things/x'],
                ['GET', '/api/things?limit=x'],
                ['POST', '/api/things', { payload: '{"name":"a"}' }],
                ['POST', '/api/things', { payload: '{' }],
                ['POST', '/api/things', { payload: '{}', headers: { 'content-type': 'text/plain' } }],
                ['GET', '/api/things', { headers: { authorization: '' } }],
                [
                    'POST',
                    '/api/things',
                    { payload: '{"name":"a"}', headers: { authorization: 'Bearer viewer' } }
                ],
                ['PUT', '/api/things/1', { payload: '{}' }],
                ['GET', '/api/auth/login'],
                ['POST', '/api/work'],
                ['GET', '/api/events'],
                ['GET', '/api/socket/1'],
                ['GET', '/api/files/a/b'],
                ['GET', '/api/files/a', { headers: { range: 'bytes=0-0' } }],
                ['GET', '/api/files/a', { headers: { range: 'bytes=9-' } }],
                ['GET', '/api/raw'],
                ['GET', '/api/nothing'],
                ['DELETE', '/api/things'],
                ['GET', '/api/openapi.json'],
                [
                    'POST',
                    '/api/upload',
                    { payload: 'x', headers: { 'content-type': 'application/octet-stream' } }
                ],
                [
                    'POST',
                    '/api/upload',
                    { payload: 'x'.repeat(99), headers: { 'content-type': 'application/octet-stream' } }
                ]
            ];
            for (const [method, url, options] of asked) {
                const got = await ask(method, url, options);
                check(method, url, got.status, got.headers, got.text);
            }
            const lie = await ask('GET', '/api/lie');
            expect(() => check('GET', '/api/lie', lie.status, lie.headers, lie.text)).to.throw(
                /\/data\/a must be number/
            );
            const good = await ask('GET', '/api/things/1');
            expect(() =>
                check('GET', '/api/things/1', 200, { ...good.headers, 'x-request-id': undefined }, good.text)
            ).to.throw(/X-Request-Id is missing/);
            expect(() => check('GET', '/api/things/1', 418, good.headers, good.text)).to.throw(
                /only 200, 304/
            );
            expect(() =>
                check(
                    'GET',
                    '/api/things/1',
                    200,
                    good.headers,
                    good.text.replace('"message"', '"extra":1,"message"')
                )
            ).to.throw(/additional properties/);
            expect(() =>
                check(
                    'GET',
                    '/api/things/1',
                    404,
                    good.headers,
                    '{"code":40410,"message":"","data":{"reason":"PLUGIN_NOT_FOUND"}}'
                )
            ).to.throw(/documents/);
            expect(() =>
                check(
                    'GET',
                    '/api/things/1',
                    404,
                    good.headers,
                    '{"code":40400,"message":"","data":{"reason":"NOT_FOUND"}}'
                )
            ).to.not.throw();
        } finally {
            await core.stop();
        }
    });

    it('serves the document bare, with a tag, to users who are logged in', async () => {
        const got = await ask('GET', '/api/openapi.json');
        expect(JSON.parse(got.text)).to.equal(JSON.parse(JSON.stringify(openApi.document())));
        expect([got.status, got.headers['content-type']]).to.equal([200, 'application/json; charset=utf-8']);
        const again = await ask('GET', '/api/openapi.json', {
            headers: { 'if-none-match': got.headers['etag'] ?? '' }
        });
        expect([again.status, again.text]).to.equal([304, '']);
        const stranger = await ask('GET', '/api/openapi.json', { headers: { authorization: '' } });
        expect([stranger.status, (JSON.parse(stranger.text) as { code: number }).code]).to.equal([
            401, 40100
        ]);
    });
});
