/** The routes as tools, over both generations of the protocol, with the official client. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { type Client, ProtocolError } from '@modelcontextprotocol/client';

import { pluginModule } from '../../support/plugins/folder.ts';
import { until } from '../../support/until.ts';
import { orders, writeHelper } from './helper.ts';
import { base, contentOf, createRig, type McpRig, type ToolData, watchTools } from './rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const limitMs = 60_000;
const modes = ['auto', 'legacy'] as const;
const all = ['hosts:read', 'hosts:write', 'helper:read', 'helper:write', 'audit:read'];

let rig: McpRig;
let helper: ReturnType<typeof writeHelper>;
let token: string;

const names = async (client: Client): Promise<string[]> => {
    const found: string[] = [];
    let cursor: string | undefined;
    do {
        const page = await client.listTools(cursor === undefined ? {} : { cursor });
        found.push(...page.tools.map(({ name }) => name));
        cursor = page.nextCursor;
    } while (cursor !== undefined);
    return found;
};
const call = async (client: Client, name: string, args: object = {}): Promise<ToolData> =>
    contentOf(await client.callTool({ name, arguments: { ...args } }));
const unknown = async (work: Promise<unknown>): Promise<void> => {
    const error = await work.then(
        () => null,
        (failure: unknown) => failure
    );
    expect(error).to.be.instanceOf(ProtocolError);
    expect((error as ProtocolError).code).to.equal(-32_602);
};
const get = async (path: string): Promise<ToolData> => (await rig.panel.client.get(`${base}${path}`)).data;

describe('mcpserver: tools', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        helper = writeHelper();
        helper.write(
            'many',
            pluginModule(`
                for (let n = 0; n < 50; n += 1) {
                    ctx.route({ method: 'GET', path: '/' + n, id: 'read' + n, access: 'read', summary: 'One of many', handler: () => ({ n }) });
                }`)
        );
        rig = await createRig({ more: [helper.path] });
        for (const name of ['helper', 'many']) {
            await until(
                async () => (await rig.panel.client.get(`/api/plugins/${name}`)).data.state === 'running'
            );
        }
        token = await rig.token(all);
    });
    after({ timeout: limitMs }, async () => {
        await rig?.close();
        helper.remove();
    });

    for (const mode of modes) {
        it(`lists what reads, calls it as the user, and records the call (${mode})`, async () => {
            const client = await rig.connect(token, mode);
            const { tools } = await client.listTools();
            const list = tools.find(({ name }) => name === 'hosts__list');
            expect(list?.annotations).to.include({
                readOnlyHint: true,
                destructiveHint: false,
                openWorldHint: false
            });
            expect(list?.inputSchema).to.include({ type: 'object', additionalProperties: false });
            const listed = tools.map(({ name }) => name);
            expect(listed).to.equal([...listed].sort());
            expect(listed).to.include([
                'portico__whoami',
                'portico__find_tools',
                'portico__plan',
                'helper__log'
            ]);
            for (const name of [
                'hosts__create',
                'users__list',
                'mcpserver__approvals',
                'auth__me',
                'helper__text'
            ]) {
                expect(listed, name).to.not.include(name);
                await unknown(call(client, name));
            }
            const [refused] = await get('/calls?limit=1');
            expect(refused).to.include({ tool: 'helper__text', route: null, code: 40400 });
            const audited = await rig.panel.client.get('/api/audit?resource=mcpserver.tools&limit=1');
            expect(audited.data[0]).to.include({ resourceId: 'helper__text', outcome: 'failure' });
            expect(audited.data[0].actor.tokenId).to.equal(refused.tokenId);
            const result = await client.callTool({ name: 'hosts__list', arguments: { query: { limit: 5 } } });
            const rest = await rig.panel.client.get('/api/hosts?limit=5', { token });
            expect(contentOf(result)).to.include({ status: 200, code: 0, data: rest.data, next: null });
            const [text] = result.content;
            expect(JSON.parse(text?.type === 'text' ? text.text : '')).to.equal(contentOf(result));
            const [last] = await get('/calls?limit=1');
            expect(last).to.include({
                tool: 'hosts__list',
                route: 'hosts.list',
                code: 0,
                client: 'test agent',
                username: 'admin'
            });
            const { data } = await rig.panel.client.get('/api/audit?resource=mcpserver.tools&limit=1');
            expect(data[0]).to.include({
                action: 'call',
                resource: 'mcpserver.tools',
                resourceId: 'hosts__list',
                outcome: 'success'
            });

            expect(data[0].actor).to.include({
                username: 'admin',
                tokenId: last.tokenId,
                plugin: 'mcpserver'
            });
            await client.close();
        });

        it(`refuses arguments that the route does not know (${mode})`, async () => {
            const client = await rig.connect(token, mode);
            const attempts = [
                { headers: { 'x-role': 'admin' } },
                { params: { id: 1 } },
                { query: { limit: 5, admin: true } },
                { payload: {} },
                { query: 'limit=5' }
            ];
            for (const args of attempts) {
                const result = await client.callTool({ name: 'hosts__list', arguments: args });
                expect(contentOf(result).code, JSON.stringify(args)).to.equal(40001);
                expect(result.isError).to.be.true();
            }
            expect(await call(client, 'hosts__get', { params: { id: 999 } })).to.include({
                code: 40400,
                status: 404
            });
            expect(await call(client, 'hosts__get')).to.include({ code: 40400 });
            await client.close();
        });
    }

    for (const mode of modes) {
        it(`tells an agent when its user loses a permission or gets it again (${mode})`, async () => {
            const { client: admin } = rig.panel;
            const role = `agents-${mode}`;
            const held = ['mcpserver:use', 'hosts:read', 'helper:read'];
            await admin.post('/api/users/roles', { name: role, permissions: held });
            await admin.post('/api/users/roles', { name: `${role}-less`, permissions: ['mcpserver:use'] });
            const session = await rig.panel.tokenOf(role, role);
            const { data: document } = await admin.post('/api/import-export/export', { sections: ['roles'] });
            const agent = await rig.token(['hosts:read', 'helper:read'], session);
            const client = await rig.connect(agent, mode);
            const isTold = await watchTools(client, mode);
            const { data: users } = await admin.get(`/api/users?q=${role}`);
            const give = (given: string) => admin.put(`/api/users/${users[0].id}`, { role: given });
            await isTold(() => give(`${role}-less`));
            expect(await names(client)).to.not.include(['hosts__list', 'helper__log']);
            await isTold(() => give(role));
            expect(await names(client)).to.include(['hosts__list', 'helper__log']);
            await isTold(() =>
                admin.put(`/api/users/roles/${role}`, { permissions: ['mcpserver:use', 'hosts:read'] })
            );
            expect(await names(client))
                .to.include('hosts__list')
                .and.to.not.include('helper__log');
            await isTold(async () => {
                const { data: task } = await admin.post('/api/import-export/import', {
                    document,
                    mode: 'merge'
                });
                await until(
                    async () => (await admin.get(`/api/tasks/${task.id}`)).data.state === 'succeeded'
                );
            });
            expect(await names(client)).to.include(['hosts__list', 'helper__log']);
            await client.close();
        });
    }

    it('narrows the tools by the address, by patterns and by switches', async () => {
        const narrow = await rig.connect(token, 'auto', { query: '?areas=hosts,audit' });
        expect((await names(narrow)).filter((name) => !/^(hosts|audit|portico)__/.test(name))).to.equal([]);
        await unknown(call(narrow, 'helper__log'));
        await rig.set({ mode: 'write', tools: ['hosts.*', '*.log', 'users.create'] });
        const reading = await rig.connect(token, 'auto', { query: '?effect=read' });
        expect(await names(reading))
            .to.include('hosts__list')
            .and.to.not.include(['hosts__create', 'helper__rows']);
        const whole = await rig.connect(rig.panel.client.token ?? '', 'auto');
        await rig.set({ tools: ['*'] });
        const every = await names(whole);
        expect(every.length).to.be.above(100);
        expect(every).to.equal([...new Set(every)].sort());
        // The client reads all pages by itself.
        const page = await rig.panel.client.call('POST', `${base}/mcp`, {
            headers: {
                accept: 'application/json, text/event-stream',
                'mcp-protocol-version': '2026-07-28',
                'mcp-method': 'tools/list'
            },
            body: {
                ...{ jsonrpc: '2.0', id: 1, method: 'tools/list' },
                params: {
                    _meta: {
                        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
                        'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
                        'io.modelcontextprotocol/clientCapabilities': {}
                    }
                }
            }
        });
        const { tools, nextCursor } = JSON.parse(page.text).result;
        expect([tools.map(({ name }: ToolData) => name), typeof nextCursor]).to.equal([
            every.slice(0, 100),
            'string'
        ]);
        await rig.set({ tools: ['hosts.*', '*.log', 'users.create'] });
        const client = await rig.connect(token, 'auto');
        expect(await names(client))
            .to.include(['hosts__create', 'helper__log'])
            .and.to.not.include(['audit__list']);
        await rig.panel.client.put(`${base}/tools/hosts__create`, { enabled: false });
        expect(await names(client)).to.not.include('hosts__create');
        await unknown(call(client, 'hosts__create', { payload: {} }));
        await rig.panel.client.put(`${base}/tools/hosts__create`, { enabled: true });
        await rig.set({ mode: 'read', tools: ['*'] });
    });

    it('offers what is dangerous only where it is named, and asks in the panel even so', async () => {
        await rig.set({ mode: 'write', approval: 'none', approvalWaitSeconds: 0, tools: ['*', 'helper.*'] });
        const powerful = await rig.token(['helper:read', 'helper:write', 'helper:wreck']);
        const client = await rig.connect(powerful, 'auto', { answer: () => 'accept' });
        expect(await names(client))
            .to.include('helper__log')
            .and.to.not.include('helper__wreck');
        await rig.set({ tools: ['*', 'helper.wreck', 'helper.fresh', 'helper.shown'] });
        expect(await names(client))
            .to.include('helper__wreck')
            .and.to.not.include(['helper__fresh', 'helper__shown']);
        for (const [name, approval, code] of [
            ['helper__wreck', 'none', 40001],
            ['helper__wreck', 'client', 40001],
            ['helper__wreck', 'panel', 0],
            ['helper__log', 'panel', 40001],
            ['helper__log', 'none', 0],
            ['helper__log', null, 0]
        ] as const) {
            const made = await rig.panel.client.put(`${base}/tools/${name}`, { approval });
            expect(made.code, `${name} ${approval}`).to.equal(code);
        }
        const answer = await call(client, 'helper__wreck');
        expect(answer).to.include({ code: 42850 });
        expect(answer.approval).to.include({ state: 'pending', dangerous: true });
        await rig.panel.client.put(`${base}/tools/helper__wreck`, { approval: null });
        await rig.set({ mode: 'read', approval: 'panel', approvalWaitSeconds: 30, tools: ['*'] });
    });

    for (const mode of modes) {
        it(`reads nothing dangerous before it is approved (${mode})`, async () => {
            await rig.set({ tools: ['*', 'helper.peek'], approval: 'none', approvalWaitSeconds: 0 });
            const { client: admin } = rig.panel;
            const done = async (): Promise<string[]> =>
                (await admin.get('/api/plugins/helper/done')).data.done.filter(
                    (name: string) => name === 'peek'
                );
            const peeked = (await done()).length;
            const powerful = await rig.token(['helper:read', 'helper:wreck']);
            const client = await rig.connect(powerful, mode, { answer: () => 'accept' });
            const { code, approval } = await call(client, 'helper__peek');
            expect([code, approval.state, approval.effect]).to.equal([42850, 'pending', 'read']);
            expect(await done()).to.have.length(peeked);
            await expect(client.readResource({ uri: 'portico://api/plugins/helper/peek' })).to.reject();
            expect(await done()).to.have.length(peeked);
            await admin.post(`${base}/approvals/${approval.id}/approve`, { hash: approval.hash });
            const answer = await call(client, 'helper__peek');
            expect(answer).to.include({ status: 200, code: 0, data: { seen: true } });
            expect(answer.approval).to.include({ id: approval.id, state: 'executed' });
            expect(await done()).to.have.length(peeked + 1);
            await client.close();
            await rig.set({ tools: ['*'], approval: 'panel', approvalWaitSeconds: 30 });
        });
    }

    it("lets a reader's agent do nothing that the reader cannot", async () => {
        await rig.set({ mode: 'write', approval: 'none', callsPerMinute: 6_000 });
        const session = await rig.panel.tokenOf('viewer');
        const narrow = await rig.token(['hosts:read']);
        for (const [bearer, mode] of [
            [session, 'auto'],
            [session, 'legacy'],
            [narrow, 'auto']
        ] as const) {
            const client = await rig.connect(bearer, mode);
            const offered = new Set(await names(client));
            const { data: tools } = await rig.panel.client.get(`${base}/tools?limit=500`);
            // Cancelling one's own tasks needs no permission.
            const writes = (tools as { name: string; effect: string; permission: string | null }[]).filter(
                ({ effect, permission }) => effect !== 'read' && permission !== null
            );
            expect(writes.length).to.be.above(20);
            for (const { name } of writes) {
                expect(offered.has(name), name).to.be.false();
                await unknown(call(client, name, { params: { id: 1 }, payload: {} }));
            }
            const plan = await call(client, 'portico__plan', {
                tool: 'hosts__create',
                arguments: { payload: {} }
            });
            expect(plan.code).to.equal(40400);
            await client.close();
        }
        expect((await rig.panel.client.get('/api/hosts')).data).to.equal([]);
        await rig.set({ mode: 'read', approval: 'panel', callsPerMinute: 120 });
    });

    it('takes texts of a log for data, whatever they order', async () => {
        await rig.set({ mode: 'write', approvalWaitSeconds: 0 });
        const client = await rig.connect(token, 'legacy');
        const earlier = await names(client);
        const host = { type: 'redirect', domain: 'kept.example', redirect: { to: 'https://example.com' } };
        await rig.panel.client.post('/api/hosts', host);
        const log = await call(client, 'helper__log');
        expect(log.data).to.equal({ lines: [orders] });
        expect(log.approval).to.be.undefined();
        expect(await names(client)).to.equal(earlier);
        await unknown(call(client, 'root__shell'));
        // An agent that obeys gets no further than a question to a person.
        const { data: hosts } = await rig.panel.client.get('/api/hosts');
        const obeyed = await call(client, 'hosts__remove', { params: { id: hosts[0].id } });
        expect(obeyed).to.include({ code: 42850 });
        expect((await rig.panel.client.get('/api/hosts')).data).to.have.length(1);
        await rig.panel.client.delete(`/api/hosts/${hosts[0].id}`);
        await rig.set({ mode: 'read', approvalWaitSeconds: 30 });
    });

    it('cuts a long result at a whole item, with the cursor that goes on behind it', async () => {
        await rig.set({ resultBytes: 8_192 });
        const client = await rig.connect(token, 'auto');
        const seen: number[] = [];
        let cursor: string | null = null;
        do {
            const query: object = cursor === null ? {} : { cursor };
            const result = await client.callTool({ name: 'helper__rows', arguments: { query } });
            const { data, next } = contentOf(result) as { data: { id: number }[]; next: string | null };
            expect(JSON.stringify(contentOf(result)).length).to.be.at.most(8_192);
            seen.push(...data.map(({ id }) => id));
            cursor = next;
        } while (cursor !== null);
        // One row is longer than any result may be: the cursor goes on behind it.
        expect(seen).to.equal(Array.from({ length: 200 }, (_, id) => id).filter((id) => id !== 150));
        const { _meta: meta } = await client.callTool({ name: 'helper__rows', arguments: {} });
        expect(meta?.['portico/truncated']).to.include({ of: 200 });
        const read = async (path: string) =>
            (await client.readResource({ uri: `portico://api/plugins/helper/${path}` })).contents[0];
        const page = await read('rows');
        const { data, next } = JSON.parse(page !== undefined && 'text' in page ? page.text : '');
        expect(page?._meta?.['portico/truncated']).to.equal({ items: data.length, of: 200 });
        const rest = await read(`rows?limit=200&cursor=${encodeURIComponent(next)}`);
        expect(JSON.parse(rest !== undefined && 'text' in rest ? rest.text : '').data[0].id).to.equal(
            data.length
        );
        expect(await read('long')).to.include({
            text: 'y'.repeat(8_192),
            _meta: { 'portico/truncated': { bytes: 8_192 } }
        });
        await rig.set({ resultBytes: 262_144 });
    });

    it('reads what was approved once, and gives no cursor that skips what is cut', async () => {
        await rig.set({ tools: ['*', 'helper.peeks'], approvalWaitSeconds: 0, resultBytes: 8_192 });
        const client = await rig.connect(await rig.token(['helper:read', 'helper:wreck']), 'auto');
        const read = async (query: object): Promise<ToolData> => {
            const { approval } = await call(client, 'helper__peeks', { query });
            const { id, hash } = approval;
            await rig.panel.client.post(`${base}/approvals/${id}/approve`, { hash });
            return client.callTool({ name: 'helper__peeks', arguments: { query } });
        };
        const whole = await read({ limit: 80 });
        const { data, next } = contentOf(whole);
        expect(whole._meta['portico/truncated']).to.equal({ items: data.length, of: 80 });
        expect(next).to.be.null();
        const page = contentOf(await read({ limit: data.length - 1 }));
        expect([page.data.length, typeof page.next]).to.equal([data.length - 1, 'string']);
        expect(contentOf(await read({ limit: 10, cursor: page.next })).data[0].id).to.equal(data.length - 1);
        const { done } = (await rig.panel.client.get('/api/plugins/helper/done')).data;
        expect(done.filter((name: string) => name === 'peeks')).to.have.length(3);
        await rig.set({ tools: ['*'], approvalWaitSeconds: 30, resultBytes: 262_144 });
    });

    it('limits calls a minute and at once, for each token', async () => {
        await rig.set({ callsPerMinute: 3 });
        const limited = await rig.token(['hosts:read', 'helper:read']);
        const client = await rig.connect(limited, 'auto');
        const codes: number[] = [];
        for (let n = 0; n < 8; n += 1) {
            codes.push((await call(client, 'hosts__list')).code as number);
        }
        expect(codes.slice(0, 3)).to.equal([0, 0, 0]);
        expect(codes).to.include(42950);
        const guessing = await rig.connect(await rig.token(['hosts:read']), 'auto');
        for (let n = 0; n < 3; n += 1) {
            await unknown(call(guessing, 'no__such'));
        }
        expect((await call(guessing, 'hosts__list')).code).to.equal(42950);
        expect(
            await call(await rig.connect(await rig.token(['hosts:read']), 'auto'), 'hosts__list')
        ).to.include({ code: 0 });
        await rig.set({ callsPerMinute: 120, parallelCalls: 1 });
        const stop = new AbortController();
        const first = client.callTool({ name: 'helper__wait', arguments: {} }, { signal: stop.signal });
        const isUnderWay = async (): Promise<boolean> =>
            (await rig.panel.client.get('/api/plugins/helper/done')).data.done.includes('wait');
        await until(isUnderWay, 'the call to be under way');
        expect((await call(client, 'hosts__list')).code).to.equal(42950);
        stop.abort();
        await expect(first).to.reject();
        await until(async () => (await call(client, 'hosts__list')).code === 0, 'the call to have ended');
        await rig.set({ parallelCalls: 8 });
    });

    it('says which tools there are, what was called, what a token may, and how clients are set up', async () => {
        const { client: admin } = rig.panel;
        const client = await rig.connect(token, 'auto');
        await call(client, 'hosts__list');
        await call(client, 'hosts__get', { params: { id: 999 } });

        const writes = await get('/tools?q=CREATE&area=hosts&effect=write');
        expect(writes.find(({ name }: ToolData) => name === 'hosts__create')).to.include({
            ...{ route: 'hosts.create', permission: 'hosts:write', effect: 'write', dangerous: false },
            ...{ enabled: true, approval: null, allowed: false }
        });
        expect(writes.filter(({ name }: ToolData) => !/^hosts__.*create/i.test(name))).to.equal([]);
        const narrow = await rig.token(['mcpserver:read', 'hosts:read']);
        const own = await admin.get(`${base}/tools?limit=500&effect=read`, { token: narrow });
        const allowed = own.data.filter((tool: ToolData) => tool.allowed).map(({ name }: ToolData) => name);
        expect(allowed).to.include('hosts__list').and.to.not.include(['users__list', 'helper__log']);
        const page = await admin.get(`${base}/tools?limit=2`);
        const next = /<([^>]+)>; rel="next"/.exec(String(page.headers['link']))?.[1] ?? '';
        const shown = [...page.data, ...(await admin.get(next)).data].map(({ name }: ToolData) => name);
        expect([shown.length, shown]).to.equal([4, [...new Set(shown)].sort()]);
        expect((await admin.put(`${base}/tools/no__such`, { enabled: false })).code).to.equal(40400);

        const failed = await get('/calls?tool=hosts__get&outcome=failure&limit=1');
        expect(failed[0]).to.include({ tool: 'hosts__get', code: 40400, client: 'test agent' });
        expect(await get('/calls?tool=hosts__get&outcome=success')).to.equal([]);
        const newest = await admin.get(`${base}/calls?limit=1`);
        const older = /<([^>]+)>; rel="next"/.exec(String(newest.headers['link']))?.[1] ?? '';
        expect((await admin.get(older)).data[0].tool).to.equal('hosts__list');
        expect(await get('/calls?from=2100-01-01T00:00:00Z')).to.equal([]);
        expect(await get('/calls?to=2000-01-01T00:00:00Z')).to.equal([]);
        const operator = await rig.panel.tokenOf('operator');
        expect((await admin.get(`${base}/calls`, { token: operator })).data).to.equal([]);

        const { data: may } = await admin.get(`${base}/introspection`, { token });
        expect(may.actor).to.include({ username: 'admin', role: 'admin' });
        expect(may.tools).to.include('hosts__list').and.to.not.include('hosts__create');
        expect(may.limits).to.equal({ callsPerMinute: 120, parallelCalls: 8, resultBytes: 262_144 });
        const status = await get('/status');
        expect(status.mode).to.equal('read');
        expect(status.protocols).to.equal(['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26']);
        expect([status.tools > 10, status.callsToday > 1]).to.equal([true, true]);

        const clients = await get('/clients');
        const address = `http://127.0.0.1:${rig.panel.port}${base}/mcp`;
        for (const { id, format, text } of clients as { id: string; format: string; text: string }[]) {
            expect(text, id).to.include(address);
            if (format === 'json') {
                expect(JSON.parse(text), id).to.be.an.object();
            }
        }
        const keyed = clients.filter(({ text }: ToolData) => text.includes('PORTICO_TOKEN'));
        expect([clients.length > 5, keyed.length > 3]).to.equal([true, true]);
    });

    it('finds tools by words, and plans without a change', async () => {
        await rig.set({ mode: 'write' });
        const client = await rig.connect(token, 'auto');
        const found = await call(client, 'portico__find_tools', { query: 'create a host' });
        expect(found.data[0]).to.include({ name: 'hosts__create', effect: 'write' });
        const payload = {
            type: 'redirect',
            domain: 'planned.example',
            redirect: { to: 'https://example.com' }
        };
        const plan = await call(client, 'portico__plan', { tool: 'hosts__create', arguments: { payload } });
        expect(plan.data).to.include({ method: 'POST', path: '/api/hosts', permission: 'hosts:write' });
        expect(plan.data.validated).to.include({ code: 0 });
        expect(await call(client, 'portico__plan', { tool: 5 })).to.include({ code: 40001 });
        expect((await call(client, 'portico__whoami')).data.actor).to.include({
            username: 'admin',
            kind: 'token'
        });
        expect((await rig.panel.client.get('/api/hosts')).data).to.equal([]);
        await rig.set({ mode: 'read' });
    });

    it('reads resources, and nothing that the token may not read', async () => {
        const client = await rig.connect(token, 'auto');
        expect((await client.listResources()).resources.map(({ uri }) => uri)).to.equal([
            'portico://openapi',
            'portico://whoami'
        ]);
        expect((await client.listResourceTemplates()).resourceTemplates[0]?.uriTemplate).to.equal(
            'portico://api/{+path}'
        );
        const read = async (uri: string): Promise<string> => {
            const [content] = (await client.readResource({ uri })).contents;
            return content !== undefined && 'text' in content ? content.text : '';
        };
        expect(JSON.parse(await read('portico://openapi'))).to.include({ openapi: '3.1.0' });
        expect(JSON.parse(await read('portico://whoami')).actor).to.include({ username: 'admin' });
        expect(JSON.parse(await read('portico://api/hosts?limit=1'))).to.include({ code: 0, data: [] });
        expect(await read('portico://api/plugins/helper/text')).to.equal('hello');
        for (const uri of [
            'portico://api/users',
            'portico://api/auth/me',
            'portico://api/plugins/mcpserver/approvals',
            'file:///etc/passwd',
            'portico://api/hosts/999'
        ]) {
            await expect(read(uri), uri).to.reject();
        }
    });

    it('has prompts of its own, of the admin and of plugins', async () => {
        const client = await rig.connect(token, 'legacy');
        const { client: admin } = rig.panel;
        const made = {
            name: 'hello',
            title: 'Hello',
            arguments: [{ name: 'who', required: true }],
            text: 'Greet {{who}}, {{nobody}}.'
        };
        expect(await admin.post(`${base}/prompts`, made)).to.include({ status: 201 });
        expect((await admin.post(`${base}/prompts`, made)).code).to.equal(40900);
        expect((await admin.put(`${base}/prompts/unhealthy`, { title: 'x' })).code).to.equal(40900);
        const listed = (await client.listPrompts()).prompts.map(({ name }) => name);
        expect(listed).to.equal(['explain_host', 'hello', 'helper_notes', 'review_changes', 'unhealthy']);
        const text = async (name: string, args: Record<string, string>): Promise<string> => {
            const { messages } = await client.getPrompt({ name, arguments: args });
            const content = messages[0]?.content;
            return content?.type === 'text' ? content.text : '';
        };
        expect(await text('hello', { who: '{{nobody}} $&' })).to.equal('Greet {{nobody}} $&, {{nobody}}.');
        expect(await text('helper_notes', { topic: 'tea' })).to.equal('Write about tea.');
        await expect(text('hello', {})).to.reject();
        await expect(text('hello', { who: 'x', other: 'y' })).to.reject();
        await admin.put(`${base}/prompts/hello`, { text: 'Bye {{who}}' });
        expect(await text('hello', { who: 'Ann' })).to.equal('Bye Ann');
        expect((await admin.delete(`${base}/prompts/hello`)).code).to.equal(0);
        await expect(text('hello', { who: 'Ann' })).to.reject();
    });
});
