import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import {
    type DocumentSource,
    readClientDocument
} from '../../../../../core/src/features/auth/oauth/client-document.ts';
import { createLog } from '../../../../../core/src/platform/log/log.ts';
import { Outbound } from '../../../../../core/src/platform/outbound/client.ts';
import { selfSigned } from '../../../../support/servers/self-signed.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const log = createLog({ level: 'silent' });
const redirects = ['https://agent.example/callback'];

let server: Server;
let source: DocumentSource;
let port: number;
/** What the server answers below a path. */
const answers: Record<string, { status?: number; headers?: Record<string, string>; body: unknown }> = {};
const asked: string[] = [];
const urlOf = (path: string): string => `https://agent.example:${port}${path}`;
const serve = (path: string, document: object, more: object = {}): string => {
    answers[path] = { body: { client_id: urlOf(path), redirect_uris: redirects, ...document }, ...more };
    return urlOf(path);
};
const faultOf = async (id: string, from = source): Promise<unknown> => {
    try {
        return await readClientDocument(from, id);
    } catch (error) {
        const { code, data } = error as {
            code: number;
            data: { errors: [{ path: string; message: string }] };
        };
        expect([code, data.errors[0].path]).to.equal([40001, 'client_id']);
        return data.errors[0].message;
    }
};

describe('readClientDocument', () => {
    before(async () => {
        const { certificate, key } = selfSigned(['agent.example']);
        server = createServer({ cert: certificate, key }, ({ url = '' }, response) => {
            asked.push(url);
            const { status = 200, headers = {}, body = '' } = answers[url] ?? { status: 404 };
            response.writeHead(status, { 'content-type': 'application/json', ...headers });
            response.end(typeof body === 'string' ? body : JSON.stringify(body));
        }).listen(0, '127.0.0.1');
        await once(server, 'listening');
        ({ port } = server.address() as AddressInfo);
        const outbound = new Outbound({
            allow: () => ['127.0.0.0/8'],
            log,
            resolve: async () => ['127.0.0.1']
        });
        source = { request: (url, options) => outbound.request(url, { ...options, ca: [certificate] }) };
    });
    after(async () => {
        server.closeAllConnections();
        server.close();
        await once(server, 'close');
    });

    it('reads who the client is and where it may be answered', async () => {
        const id = serve('/client.json', {
            client_name: 'Agent',
            token_endpoint_auth_method: 'none',
            logo_uri: 'x'
        });
        expect(await readClientDocument(source, id)).to.equal({ name: 'Agent', redirectUris: redirects });
    });

    it('refuses a document that is not the one of this client, or that no public client has', async () => {
        for (const [path, document] of [
            ['/other.json', { client_id: urlOf('/client.json') }],
            ['/secret.json', { token_endpoint_auth_method: 'client_secret_post' }],
            ['/key.json', { token_endpoint_auth_method: 'private_key_jwt' }],
            ['/script.json', { redirect_uris: ['javascript:alert(1)'] }],
            ['/plain.json', { redirect_uris: ['http://agent.example/callback'] }],
            ['/none.json', { redirect_uris: [] }]
        ] as const) {
            expect(await faultOf(serve(path, document)), path).to.be.a.string();
        }
        for (const [path, answer] of [
            ['/text', { body: 'not JSON' }],
            ['/null', { body: 'null' }],
            ['/twice', { body: `{"client_id":"${urlOf('/twice')}","client_id":"x","redirect_uris":[]}` }],
            ['/large', { body: 'x'.repeat(40_000) }],
            ['/moved', { status: 302, headers: { location: urlOf('/client.json') }, body: '' }],
            ['/missing', { status: 404, body: '' }]
        ] as const) {
            answers[path] = answer;
            expect(await faultOf(urlOf(path)), path).to.be.a.string();
        }
        expect(
            asked.filter((path) => path === '/client.json'),
            'a redirect is not followed'
        ).to.have.length(1);
    });

    it('asks for nothing but an https URL in its usual form', async () => {
        const before = asked.length;
        for (const id of [
            `https://agent.example:${port}`,
            `https://agent.example:${port}/`,
            `https://agent.example:${port}/a/../client.json`,
            `https://user@agent.example:${port}/client.json`,
            `https://agent.example:${port}/client.json#x`,
            `https://AGENT.example:${port}/client.json`,
            `https://agent.example:${port}/${'a'.repeat(2100)}`,
            'https://'
        ]) {
            expect(await faultOf(id), id).to.match(/usual form/);
        }
        expect(asked).to.have.length(before);
    });

    it('reaches neither this machine nor its neighbours, whatever their name', async () => {
        const guarded = new Outbound({
            allow: () => [],
            log,
            resolve: async (name) => [name === 'agent.example' ? '127.0.0.1' : '169.254.169.254']
        });
        const before = asked.length;
        for (const id of [
            'https://169.254.169.254/latest/meta-data',
            'https://metadata.example/client.json',
            urlOf('/client.json'),
            `https://127.0.0.1:${port}/client.json`,
            'https://[::1]/client.json',
            'https://192.168.0.1/client.json'
        ]) {
            expect(await faultOf(id, guarded), id).to.match(/cannot be read/);
        }
        expect(asked).to.have.length(before);
    });
});
