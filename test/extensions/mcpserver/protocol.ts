/** Sessions, names and pages, what clients are told, and the conformance suite of the protocol. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { until } from '../../support/until.ts';
import { writeHelper } from './helper.ts';
import { base, createRig, type McpRig, watchTools } from './rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const limitMs = 60_000;
const path = `${base}/mcp`;
const revision = '2025-11-25';
const accept = 'application/json, text/event-stream';

let rig: McpRig;
let helper: ReturnType<typeof writeHelper>;
let token: string;

interface Sent {
    readonly bearer?: string | null;
    readonly session?: string;
    readonly headers?: Readonly<Record<string, string>>;
}

const post = (body: unknown, { bearer = token, session, headers = {} }: Sent = {}) =>
    rig.panel.client.call('POST', path, {
        token: bearer,
        body,
        headers: { accept, ...(session === undefined ? {} : { 'mcp-session-id': session }), ...headers }
    });
const rpc = (method: string, params: object = {}, id = 1): object => ({ jsonrpc: '2.0', id, method, params });
const initialize = rpc('initialize', {
    protocolVersion: revision,
    capabilities: {},
    clientInfo: { name: 'raw', version: '1' }
});
const begin = async (sent: Sent = {}): Promise<string> => {
    const { headers, text } = await post(initialize, sent);
    const session = headers['mcp-session-id'];
    if (typeof session !== 'string') {
        throw new Error(text);
    }
    await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, { ...sent, session });
    return session;
};
const end = (session: string): Promise<{ readonly code: number }> =>
    rig.panel.client.delete(`${base}/sessions/${session}`);
const sessions = async (): Promise<{ id: string }[]> => (await rig.panel.client.get(`${base}/sessions`)).data;
const endAll = async (): Promise<void> => {
    for (const { id } of await sessions()) {
        await end(id);
    }
};

describe('mcpserver: protocol', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        helper = writeHelper();
        rig = await createRig({ more: [helper.path] });
        await until(async () => (await rig.panel.client.get('/api/plugins/helper')).data.state === 'running');
        token = await rig.token(['hosts:read', 'helper:read', 'helper:write']);
    });
    after({ timeout: limitMs }, async () => {
        await rig?.close();
        helper.remove();
    });

    it('needs a bearer in every request, and says where OAuth clients begin', async () => {
        const session = await begin();
        for (const bearer of [null, 'pot_wrong', `poa_${'x'.repeat(43)}`]) {
            const answer = await post(rpc('tools/list'), { bearer, session });
            expect(answer.status).to.equal(401);
        }
        const { headers } = await post(initialize, { bearer: null });
        expect(headers['www-authenticate']).to.contain(`/.well-known/oauth-protected-resource${path}`);
        const forbidden = await rig.panel.client.post('/api/auth/tokens', {
            name: 'none',
            permissions: ['hosts:read']
        });
        expect((await post(initialize, { bearer: forbidden.data.token as string })).code).to.equal(40300);
        await end(session);
    });

    it('says what a token is called and when it ends, and of a session that there is none', async () => {
        const { client } = rig.panel;
        const view = await client.get(`${base}/introspection`, { token });
        const named = (await client.get('/api/auth/tokens')).data.find(
            ({ id }: { id: number }) => id === view.data.token.id
        );
        expect(view.data.token).to.equal({ id: named.id, name: named.name, expiresAt: named.expiresAt });
        expect(view.data.permissions).to.include('helper:write');
        expect((await client.get(`${base}/introspection`)).data.token).to.be.null();
    });

    it('takes a session id for no credential', async () => {
        const session = await begin();
        const other = await rig.token(['hosts:read']);
        for (const bearer of [other, await rig.panel.tokenOf('viewer')]) {
            expect((await post(rpc('tools/list'), { bearer, session })).status).to.equal(404);
            const gone = await rig.panel.client.call('DELETE', path, {
                token: bearer,
                headers: { 'mcp-session-id': session }
            });
            expect(gone.status).to.equal(404);
        }
        const viewer = await rig.panel.tokenOf('operator');
        expect((await rig.panel.client.get(`${base}/sessions`, { token: viewer })).data).to.equal([]);
        expect(
            (await rig.panel.client.delete(`${base}/sessions/${session}`, { token: viewer })).code
        ).to.equal(40400);
        // A viewer is let in, and finds no session of another user.
        expect(
            (
                await rig.panel.client.delete(`${base}/sessions/${session}`, {
                    token: await rig.panel.tokenOf('viewer')
                })
            ).code
        ).to.equal(40400);
        expect((await post(rpc('tools/list'), { session })).status).to.equal(200);
        expect(
            (await rig.panel.client.call('DELETE', path, { token, headers: { 'mcp-session-id': session } }))
                .status
        ).to.equal(200);
        expect((await post(rpc('tools/list'), { session })).status).to.equal(404);
        expect((await post(rpc('tools/list'))).status).to.equal(400);
        expect((await post(rpc('tools/list'), { session: crypto.randomUUID() })).status).to.equal(404);
    });

    it('speaks each revision with sessions that it names, and offers the newest of them to a client of another', async () => {
        for (const [asked, spoken] of [
            ['2025-11-25', '2025-11-25'],
            ['2025-06-18', '2025-06-18'],
            ['2025-03-26', '2025-03-26'],
            ['1999-01-01', '2025-11-25']
        ]) {
            const params = {
                protocolVersion: asked,
                capabilities: {},
                clientInfo: { name: 'raw', version: '1' }
            };
            const { headers, text } = await post(rpc('initialize', params));
            expect(text).to.include(`"protocolVersion":"${spoken}"`);
            const session = String(headers['mcp-session-id']);
            await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, { session });
            const version = { 'mcp-protocol-version': String(spoken) };
            const listed = await post(rpc('tools/list'), { session, headers: version });
            expect(listed.text).to.include('"hosts__list"');
            const row = (await sessions()).find(({ id }) => id === session);
            expect(row).to.include({ protocol: spoken });
            await end(session);
        }
    });

    it('limits the sessions of an actor, and leaves nothing of 300 that were opened and closed', async () => {
        await endAll();
        const open: string[] = [];
        for (let n = 0; n < 20; n += 1) {
            open.push(await begin());
        }
        expect((await post(initialize)).code).to.equal(42951);
        expect(await sessions()).to.have.length(20);
        expect((await post(initialize, { bearer: await rig.token(['hosts:read']) })).status).to.equal(200);
        await endAll();
        for (let n = 0; n < 300; n += 1) {
            const { headers } = await post(initialize);
            await rig.panel.client.call('DELETE', path, {
                token,
                headers: { 'mcp-session-id': String(headers['mcp-session-id']) }
            });
        }
        expect(await sessions()).to.equal([]);
    });

    it('answers only by names that the panel is known by, and to pages of its own', async () => {
        const tryFrom = async (headers: Readonly<Record<string, string>>): Promise<number> =>
            (await post(initialize, { headers })).code;
        const own = `127.0.0.1:${rig.panel.port}`;
        expect(await tryFrom({ host: 'evil.example' })).to.equal(40351);
        expect(await tryFrom({ host: '127.0.0.1.evil.example' })).to.equal(40351);
        expect(await tryFrom({ host: own, origin: 'http://evil.example' })).to.equal(40350);
        expect(await tryFrom({ host: own, origin: 'http://127.0.0.1:1' })).to.equal(40350);
        expect(await tryFrom({ host: own, origin: 'null' })).to.equal(40350);
        expect(await tryFrom({ host: own, origin: `http://${own}` })).to.equal(0);
        expect(await tryFrom({ host: 'localhost' })).to.equal(0);
        expect(await tryFrom({ host: '[::1]:8080' })).to.equal(0);
        await rig.panel.client.put('/api/settings', { 'panel.url': 'https://panel.example' });
        await rig.set({ hosts: ['agents.example'], origins: ['https://app.example'] });
        expect(await tryFrom({ host: 'panel.example', origin: 'https://panel.example' })).to.equal(0);
        expect(await tryFrom({ host: 'agents.example', origin: 'https://app.example' })).to.equal(0);
        expect(
            await tryFrom({ host: 'agents.example', origin: 'https://app.example.evil.example' })
        ).to.equal(40350);
        expect((await rig.panel.client.get(`${base}/status`)).data.url).to.equal(
            `https://panel.example${path}`
        );
        await rig.panel.client.put('/api/settings', { 'panel.url': null });
        await endAll();
    });

    it('refuses what is no message, and goes on', async () => {
        const session = await begin();
        const bodies: readonly unknown[] = [
            '{',
            '[]',
            '"x"',
            'null',
            '{"jsonrpc":"2.0"}',
            JSON.stringify(rpc('no/such')),
            Buffer.alloc(100_000, 0x5b)
        ];
        for (const body of bodies) {
            const answer = await post(body, { session, headers: { 'content-type': 'application/json' } });
            expect(answer.status, String(body).slice(0, 40)).to.be.below(500);
        }
        expect((await post('x', { session, headers: { 'content-type': 'text/plain' } })).status).to.equal(
            415
        );
        expect(
            (
                await post(Buffer.alloc(4_300_000, 0x20), {
                    session,
                    headers: { 'content-type': 'application/json' }
                })
            ).status
        ).to.equal(413);
        expect((await post(rpc('tools/list'), { session })).status).to.equal(200);
        await end(session);
    });

    it('answers a call that only reads as the library does, and leaves to the library what is of another form', async () => {
        const meta = {
            'io.modelcontextprotocol/protocolVersion': '2026-07-28',
            'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
            'io.modelcontextprotocol/clientCapabilities': {}
        };
        const stateless = (
            name: unknown,
            { params = {}, extra = {}, headers = {}, id = 7 as unknown } = {}
        ) =>
            post(
                {
                    ...rpc('tools/call', { name, ...params, _meta: { ...meta, ...extra } }),
                    id
                },
                {
                    headers: {
                        'mcp-protocol-version': '2026-07-28',
                        'mcp-method': 'tools/call',
                        'mcp-name': String(name),
                        ...headers
                    }
                }
            );
        const answerOf = ({ text }: { readonly text: string }) => JSON.parse(text);
        const reads: readonly (readonly [string, object])[] = [
            ['hosts__list', { arguments: { query: { limit: 1 } } }],
            ['hosts__list', { arguments: { query: { nonsense: 1 } } }],
            ['hosts__get', { arguments: { params: { id: 999_999 } } }],
            ['portico__find_tools', { arguments: { query: 'hosts' } }],
            ['portico__whoami', {}]
        ];
        for (const [name, params] of reads) {
            const [direct, library] = [
                answerOf(await stateless(name, { params })),
                answerOf(await stateless(name, { params, extra: { 'test/other': 1 } }))
            ];
            expect(direct, name).to.equal(library);
            expect(direct.result.resultType).to.equal('complete');
            expect(JSON.parse(direct.result.content[0].text)).to.equal(direct.result.structuredContent);
        }
        const codes = [
            await stateless('hosts__list', { headers: { 'mcp-name': 'hosts__get' } }),
            await stateless('hosts__list', { headers: { 'mcp-protocol-version': '2025-11-25' } }),
            await stateless('hosts__list', { params: { arguments: [] } }),
            await stateless('no__such'),
            await stateless('hosts__list', { id: null })
        ].map((answer) => answerOf(answer).error.code as number);
        expect(codes).to.equal([-32_020, -32_020, -32_602, -32_602, -32_600]);
        const listed = (await rig.panel.client.get(`${base}/calls?limit=10`)).data as { client: string }[];
        expect(listed.map(({ client }) => client)).to.equal(Array.from({ length: 10 }, () => 'raw'));
    });

    it('gives a client that comes back what it missed, by Last-Event-ID', async () => {
        await rig.set({ mode: 'write', approval: 'panel', approvalWaitSeconds: 2 });
        const session = await begin();
        const cut = rpc(
            'tools/call',
            {
                name: 'helper__note',
                arguments: { payload: { text: 'resumed' } },
                _meta: { progressToken: 7 }
            },
            42
        );
        const seen = await firstEvent(cut, session);
        expect(seen).to.match(/^\S+$/);
        const missed = await until(async () => {
            const text = await replay(session, seen);
            return text.includes('"id":42') ? text : null;
        });
        expect(missed).to.contain('42850');
        expect(await replay(session, 'unknown')).to.not.contain('"id":42');
        await end(session);
        await rig.set({ mode: 'read', approvalWaitSeconds: 30 });
    });

    for (const mode of ['auto', 'legacy'] as const) {
        it(`tells clients within two seconds that their tools are others (${mode})`, async () => {
            const session = await rig.panel.tokenOf('operator');
            const client = await rig.connect(session, mode);
            const isTold = await watchTools(client, mode);
            await isTold(() => rig.panel.client.put(`${base}/tools/hosts__list`, { enabled: false }));
            expect((await client.listTools()).tools.map(({ name }) => name)).to.not.include('hosts__list');
            await isTold(() => rig.panel.client.put(`${base}/tools/hosts__list`, { enabled: true }));
            await isTold(() => rig.panel.client.put('/api/plugins/helper', { enabled: false }));
            expect((await client.listTools()).tools.map(({ name }) => name)).to.not.include('helper__log');
            await isTold(() => rig.panel.client.put('/api/plugins/helper', { enabled: true }));
            await until(
                async () => (await rig.panel.client.get('/api/plugins/helper')).data.state === 'running'
            );
            await client.close();
        });
    }

    it(
        'passes the conformance suite of the protocol, as far as it needs no example tools',
        { timeout: 120_000 },
        async () => {
            const proxy = await openProxy();
            const port = (proxy.address() as AddressInfo).port;
            const bin = fileURLToPath(
                new URL(
                    '../../../node_modules/@modelcontextprotocol/conformance/dist/index.js',
                    import.meta.url
                )
            );
            try {
                for (const scenario of [
                    'server-initialize',
                    'ping',
                    'tools-list',
                    'resources-list',
                    'prompts-list',
                    'dns-rebinding-protection',
                    'server-sse-multiple-streams'
                ]) {
                    const { stdout, stderr } = await promisify(execFile)(process.execPath, [
                        bin,
                        'server',
                        '--url',
                        `http://127.0.0.1:${port}${path}`,
                        '--scenario',
                        scenario
                    ]).catch((error: unknown) => error as { stdout: string; stderr: string; code?: number });
                    expect(`${stdout}${stderr}`, scenario).to.match(/Passed: (\d+)\/\1, 0 failed/);
                }
            } finally {
                proxy.close();
                proxy.closeAllConnections();
            }
        }
    );
});

/** Sends a message, reads the first event of the answer, and tears the connection off. @returns the id of that event */
async function firstEvent(body: object, session: string): Promise<string> {
    const sent = request({
        host: '127.0.0.1',
        port: rig.panel.port,
        method: 'POST',
        path,
        headers: {
            accept,
            authorization: `Bearer ${token}`,
            'content-type': 'application/json',
            'mcp-session-id': session,
            'mcp-protocol-version': revision
        }
    });
    sent.on('error', () => undefined);
    sent.end(JSON.stringify(body));
    const [response] = await once(sent, 'response');
    let text = '';
    response.on('data', (chunk: Buffer) => (text += chunk.toString()));
    const id = await until(() => /^id: (\S+)$/m.exec(text)?.[1]);
    sent.destroy();
    return id;
}

/** What a stream that goes on behind an event brings within a moment. */
async function replay(session: string, lastEventId: string): Promise<string> {
    const controller = new AbortController();
    let text = '';
    let timer: NodeJS.Timeout | undefined;
    try {
        const response = await fetch(rig.url(), {
            signal: controller.signal,
            headers: {
                accept: 'text/event-stream',
                authorization: `Bearer ${token}`,
                'mcp-session-id': session,
                'mcp-protocol-version': revision,
                'last-event-id': lastEventId
            }
        });
        timer = setTimeout(() => controller.abort(), 300);
        const decoder = new TextDecoder();
        for await (const chunk of response.body ?? []) {
            text += decoder.decode(chunk as Uint8Array, { stream: true });
        }
    } catch {
        // The stream goes on until it is left.
    } finally {
        clearTimeout(timer);
    }
    return text;
}

/** The suite sends no bearer: this adds it, and changes nothing else. */
async function openProxy(): Promise<Server> {
    const server = createServer((incoming, outgoing) => {
        const onward = request(
            {
                host: '127.0.0.1',
                port: rig.panel.port,
                method: incoming.method,
                path: incoming.url,
                headers: { ...incoming.headers, authorization: `Bearer ${token}` }
            },
            (answer) => {
                outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
                answer.pipe(outgoing);
            }
        );
        onward.on('error', () => outgoing.destroy());
        outgoing.on('close', () => onward.destroy());
        incoming.pipe(onward);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return server;
}
