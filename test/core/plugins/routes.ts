import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { contract, defineErrors, definePlugin, errors, joi, reply, type Call } from '@portico/sdk';
import { defineEntity, p } from '@portico/sdk/db';
import { WebSocket } from 'ws';
import { createPluginRig, type PluginRig } from '../../support/plugin-host.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const failures = defineErrors({ TEAPOT: { code: 41850, message: 'I am a teapot' } });
const notes = defineEntity({ name: 'Note', tableName: 'probe_notes', properties: { id: p.integer().primary(), text: p.string(), hidden: p.string().hidden() } });

interface MathContract {
    add(input: { a: number; b: number }, call: Call): Promise<{ sum: number; caller: string; actor: string | null }>;
    count(input: { to: number }, call: Call): AsyncIterable<{ n: number }>;
}

const math = definePlugin({
    setup: () => ({
        add: async ({ a, b }: { a: number; b: number }, { plugin, actor }: Call) => ({ sum: a + b, caller: plugin, actor: actor?.username ?? null }),
        async* count({ to }: { to: number }, _call: Call) {
            for (let n = 0; n < to; n += 1) {
                yield { n };
            }
        }
    })
});

export const probe = definePlugin({
    settings: joi.object({ greeting: joi.string().default('Hello') }),
    requires: { math: contract<MathContract>() },
    entities: [notes],
    migrations: [{ name: '1', up: ['create table probe_notes (id integer primary key, text text not null, hidden text not null)'] }],
    setup(ctx) {
        ctx.route({ method: 'GET', path: '/hello/{name}', access: 'read', validate: { params: joi.object({ name: joi.string().max(5).required() }) }, handler: ({ params }) => ({ text: `${ctx.settings.greeting}, ${params.name}` }) });
        ctx.route({ method: 'POST', path: '/notes', access: 'write', validate: { payload: joi.object({ text: joi.string().required() }) }, async handler({ payload, audit }) {
            const note = await ctx.db.write(async (em) => em.create(notes, { text: payload.text, hidden: 'not to be seen' }));
            void audit;
            return reply.created(`/api/plugins/probe/notes/${note.id}`, note);
        } });
        ctx.route({ method: 'GET', path: '/notes', access: 'read', handler: async () => reply.list(await ctx.db.read((em) => em.find(notes, {})), { total: 1, next: 'abc' }) });
        ctx.route({ method: 'PUT', path: '/notes/{id}', access: 'write', validate: { params: joi.object({ id: joi.number().required() }), payload: joi.object({ text: joi.string() }) }, handler(request) {
            if (request.ifMatch === '1') {
                throw errors.stale(2);
            }
            request.audit({ resource: 'note', resourceId: request.params.id, after: { text: request.payload.text } });
            return { version: 7, ...request.payload };
        } });
        ctx.route({ method: 'GET', path: '/tea', access: 'read', handler: () => {
            throw failures.TEAPOT({ pot: 1 });
        } });
        ctx.route({ method: 'GET', path: '/bug', access: 'read', handler: () => {
            throw new Error('a secret of the inside');
        } });
        ctx.route({ method: 'GET', path: '/forged-failure', access: 'read', handler: () => {
            throw Object.assign(new Error('fine'), { '~portico': 'failure', code: 20000, reason: 'FINE', data: null });
        } });
        ctx.route({ method: 'GET', path: '/headers', access: 'read', handler: () => reply.with(1, { headers: { 'x-mine': 'yes', 'set-cookie': 'a=b', 'content-security-policy': 'none', 'Access-Control-Allow-Origin': '*' } }) });
        ctx.route({ method: 'GET', path: '/me', access: 'read', handler: async ({ actor }) => ({ can: actor.can('things:read'), own: actor.can('write'), things: (await ctx.api.call(actor, { id: 'things.list' })).data }) });
        ctx.route({ method: 'GET', path: '/refused', access: 'read', handler: async ({ actor }) => Promise.all(['things.wipe', 'auth.me', 'probe.get.tea', 'no.such'].map(async (id) => (await ctx.api.call(actor, { id })).code)) });
        ctx.route({ method: 'GET', path: '/forged', access: 'read', handler: async ({ actor }) => ctx.api.call({ ...actor, can: () => true, permissions: ['*'] }, { id: 'things.list' }) });
        let kept: { readonly actor: Parameters<typeof ctx.api.call>[0] } | null = null;
        ctx.route({ method: 'GET', path: '/kept', access: 'read', handler: async ({ actor }) => {
            const [before] = [kept];
            kept ??= { actor };
            return before === null ? null : ctx.api.call(before.actor, { id: 'things.list' });
        } });
        ctx.route({ method: 'GET', path: '/sum', access: 'read', handler: ({ actor }) => ctx.plugins.math.add({ a: 2, b: 3 }, { actor }) });
        ctx.route({ method: 'GET', path: '/count', access: 'read', async handler() {
            const seen: number[] = [];
            for await (const { n } of ctx.plugins.math.count({ to: 3 })) {
                seen.push(n);
            }
            return seen;
        } });
        ctx.stream({ path: '/ticks', access: 'read', async* handler({ signal, lastEventId }) {
            for (let n = Number(lastEventId ?? 0); n < 3 && !signal.aborted; n += 1) {
                yield { id: String(n), data: { n } };
            }
        } });
        ctx.upload({ method: 'PUT', path: '/upload', access: 'write', accepts: ['*/*'], maxBytes: 10, async handler({ body, type, length }) {
            let bytes = 0;
            for await (const chunk of body) {
                bytes += chunk.length;
            }
            return { bytes, type, length };
        } });
        ctx.download({ path: '/file', access: 'read', handler: () => ({ size: 10, type: 'text/plain', name: 'ten.txt', version: 'v1', async* open({ start, end }) {
            yield Buffer.from('0123456789'.slice(start, end ?? 10));
        } }) });
        ctx.http({ methods: ['PATCH', 'GET'], path: '/raw', access: 'write', raw: 'a protocol of its own', maxBytes: 100, async handler(request, { actor }) {
            const bytes = request.body === null ? 0 : (await request.arrayBuffer()).byteLength;
            return new Response(request.method === 'GET' ? '<script>alert(1)</script>' : null, { status: request.method === 'GET' ? 200 : 204, headers: { 'upload-offset': String(bytes), 'x-who': actor.username ?? '', 'set-cookie': 'a=b', 'x-auth': String(request.headers.get('authorization')), 'content-type': 'text/html' } });
        } });
        ctx.route({ method: 'POST', path: '/tickets', access: 'use', handler: ({ actor }) => ctx.tickets.issue(actor, { permission: 'use', data: { shell: 'sh' } }) });
        ctx.socket({ path: '/socket/{ticket}', access: { ticket: 'ticket', permission: 'use' }, validate: { params: joi.object({ ticket: joi.string().required() }) }, async handler(socket, { ticket, actor }) {
            await socket.send(JSON.stringify({ ticket, who: actor.username }));
            for await (const message of socket) {
                await socket.send(`echo ${String(message)}`);
            }
        } });
    }
});

let rig: PluginRig;
const base = '/api/plugins/probe';

describe('a plugin\'s routes', () => {
    before(async () => {
        rig = await createPluginRig();
        await rig.run(math, { name: 'math' });
        await rig.run(probe, { capabilities: { api: { read: ['things.list', 'auth.me'], write: ['*'] } }, manifest: { permissions: { use: 'Use it' } } });
    });

    after(() => rig.close());

    it('answer in the envelope, with input validated in the plugin\'s realm', async () => {
        const hello = await rig.ask('viewer', 'GET', `${base}/hello/Ann`);
        expect([hello.status, hello.text]).to.equal([200, '{"code":0,"message":"ok","data":{"text":"Hello, Ann"}}']);
        const long = await rig.ask('viewer', 'GET', `${base}/hello/Annabel`);
        expect([long.status, long.code]).to.equal([404, 40400]);
        const wrong = await rig.ask('admin', 'POST', `${base}/notes`, { txt: 1 });
        expect([wrong.code, wrong.data.reason, wrong.data.errors.map((each: { path: string }) => each.path)]).to.equal([40001, 'VALIDATION_FAILED', ['text', 'txt']]);
        expect((await rig.ask('viewer', 'GET', `${base}/tea?x=1`)).code).to.equal(40001);
    });

    it('ask for the permission that is the plugin\'s own', async () => {
        expect((await rig.ask(null, 'GET', `${base}/tea`)).code).to.equal(40100);
        const refused = await rig.ask('viewer', 'POST', `${base}/notes`, { text: 'x' });
        expect([refused.code, refused.data.permission]).to.equal([40300, 'probe:write']);
    });

    it('keep hidden columns hidden, give lists their headers, and put every change on record once', async () => {
        const before = rig.http.recorded.length;
        const made = await rig.ask('admin', 'POST', `${base}/notes`, { text: 'one' });
        expect([made.status, made.headers.get('location'), made.data]).to.equal([201, `${base}/notes/1`, { id: 1, text: 'one' }]);
        const list = await rig.ask('viewer', 'GET', `${base}/notes`);
        expect(list.data).to.equal([{ id: 1, text: 'one' }]);
        expect(list.headers.get('x-total-count')).to.equal('1');
        expect(list.headers.get('link')).to.contain('cursor=abc');
        expect(list.headers.get('etag')).to.be.a.string();
        const put = await rig.ask('admin', 'PUT', `${base}/notes/1`, { text: 'two' });
        expect([put.status, put.headers.get('etag')]).to.equal([200, '"7"']);
        expect(rig.http.recorded.slice(before).map(({ action, resource, resourceId = null, after: now = null, outcome, status }) => [action, resource, resourceId, now, outcome, status])).to.equal([
            ['create', 'probe', null, null, 'success', 201],
            ['update', 'note', 1, { text: 'two' }, 'success', 200]
        ]);
    });

    it('answer a retry with the first answer, and never keep a refused body for it', async () => {
        const key = { 'idempotency-key': 'k-1' };
        expect((await rig.ask('admin', 'POST', `${base}/notes`, { txt: 1 }, key)).code).to.equal(40001);
        const first = await rig.ask('admin', 'POST', `${base}/notes`, { text: 'kept' }, key);
        const second = await rig.ask('admin', 'POST', `${base}/notes`, { text: 'kept' }, key);
        expect([first.status, second.status, second.text]).to.equal([201, 201, first.text]);
    });

    it('fail in their own words, and without the inside of a bug', async () => {
        const tea = await rig.ask('viewer', 'GET', `${base}/tea`);
        expect([tea.status, tea.text]).to.equal([418, '{"code":41850,"message":"I am a teapot","data":{"reason":"TEAPOT","pot":1}}']);
        const stale = await rig.ask('admin', 'PUT', `${base}/notes/1`, { text: 'x' }, { 'if-match': '"1"' });
        expect([stale.code, stale.data.version]).to.equal([41200, 2]);
        const bug = await rig.ask('viewer', 'GET', `${base}/bug`);
        expect([bug.status, bug.code, bug.text.includes('secret of the inside')]).to.equal([500, 50000, false]);
        expect(rig.http.lines.some((line) => line.includes('a secret of the inside') && line.includes('"plugin":"probe"'))).to.be.true();
        expect((await rig.ask('viewer', 'GET', `${base}/forged-failure`)).code).to.equal(50000);
    });

    it('carry the sandbox on everything, and nothing that acts beyond the answer', async () => {
        for (const path of ['/headers', '/tea', '/none', '/file']) {
            const { headers } = await rig.ask('viewer', 'GET', `${base}${path}`);
            expect(headers.get('content-security-policy')).to.contain('sandbox');
            expect([headers.get('set-cookie'), headers.get('access-control-allow-origin')]).to.equal([null, null]);
        }
        expect((await rig.ask('viewer', 'GET', `${base}/headers`)).headers.get('x-mine')).to.equal('yes');
    });

    it('act as the asker: never more than the asker may, never as a copy, never after the request', async () => {
        expect((await rig.ask('admin', 'GET', `${base}/me`)).data).to.equal({ can: true, own: true, things: [{ for: 'admin', via: 'probe' }] });
        const viewer = await rig.ask('viewer', 'GET', `${base}/me`);
        expect([viewer.data.can, viewer.data.things.reason]).to.equal([false, 'FORBIDDEN']);
        expect((await rig.ask('admin', 'GET', `${base}/refused`)).data).to.equal([40301, 40400, 40400, 40400]);
        expect((await rig.ask('admin', 'GET', `${base}/forged`)).code).to.equal(40304);
        await rig.ask('admin', 'GET', `${base}/kept`);
        expect((await rig.ask('viewer', 'GET', `${base}/kept`)).code).to.equal(40304);
    });

    it('reach a partner\'s contract for the asker, values and series', async () => {
        expect((await rig.ask('viewer', 'GET', `${base}/sum`)).data).to.equal({ sum: 5, caller: 'probe', actor: 'viewer' });
        expect((await rig.ask('viewer', 'GET', `${base}/count`)).data).to.equal([0, 1, 2]);
    });

    it('stream events, take uploads, give ranges, and speak foreign protocols', async () => {
        const ticks = await rig.ask('viewer', 'GET', `${base}/ticks`, undefined, { 'last-event-id': '1' });
        expect(ticks.text).to.equal(': open\n\nid: 1\ndata: {"n":1}\n\nid: 2\ndata: {"n":2}\n\n');
        const upload = await rig.ask('admin', 'PUT', `${base}/upload`, '12345', { 'content-type': 'text/x-any' });
        expect(upload.data).to.equal({ bytes: 5, type: 'text/x-any', length: 5 });
        expect((await rig.ask('admin', 'PUT', `${base}/upload`, '12345678901', { 'content-type': 'text/x-any' })).code).to.equal(41300);
        const range = await rig.ask('viewer', 'GET', `${base}/file`, undefined, { range: 'bytes=2-4' });
        expect([range.status, range.text, range.headers.get('content-range')]).to.equal([206, '234', 'bytes 2-4/10']);
        const raw = await rig.ask('admin', 'PATCH', `${base}/raw`, 'abc');
        expect([raw.status, raw.headers.get('upload-offset'), raw.headers.get('x-who'), raw.headers.get('set-cookie'), raw.headers.get('x-auth')]).to.equal([204, '3', 'admin', null, 'null']);
        expect((await rig.ask('admin', 'GET', `${base}/raw`)).headers.get('content-security-policy')).to.contain('sandbox');
    });

    it('let a socket in by a one-time ticket alone, with what it was issued with', async () => {
        expect((await rig.ask('viewer', 'POST', `${base}/tickets`)).code).to.equal(40300);
        const { data } = await rig.ask('admin', 'POST', `${base}/tickets`);
        const connect = async (ticket: string): Promise<string[]> => new Promise((resolve, reject) => {
            const messages: string[] = [];
            const socket = new WebSocket(`${rig.url.replace('http', 'ws')}${base}/socket/${ticket}`);
            socket.on('error', reject);
            socket.on('open', () => socket.send('hi'));
            socket.on('message', (message) => messages.push(String(message)) === 2 && (socket.close(), resolve(messages)));
        });
        expect(await connect(data.ticket as string)).to.equal(['{"ticket":{"shell":"sh"},"who":"admin"}', 'echo hi']);
        await expect(connect(data.ticket as string)).to.reject(/401/);
        await expect(connect('guess')).to.reject(/401/);
    });
});
