import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { WebSocket } from 'ws';

import { createPluginRig, type PluginRig } from '../../../../support/plugins/host.ts';
import { math, probe } from '../../../../support/plugins/probe.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

let rig: PluginRig;
const base = '/api/plugins/probe';

describe("a plugin's routes", () => {
    before(async () => {
        rig = await createPluginRig();
        await rig.run(math, { name: 'math' });
        await rig.run(probe, {
            capabilities: {
                api: { read: ['things.list', 'auth.me'], write: ['*'] },
                taps: ['backup.collect']
            },
            manifest: { permissions: { use: 'Use it' } }
        });
    });

    after(() => rig.close());

    it("answer in the envelope, with input validated in the plugin's guest runtime", async () => {
        const hello = await rig.ask('viewer', 'GET', `${base}/hello/Ann`);
        expect([hello.status, hello.text]).to.equal([
            200,
            '{"code":0,"message":"ok","data":{"text":"Hello, Ann"}}'
        ]);
        const long = await rig.ask('viewer', 'GET', `${base}/hello/Annabel`);
        expect([long.status, long.code]).to.equal([404, 40400]);
        const wrong = await rig.ask('admin', 'POST', `${base}/notes`, { txt: 1 });
        expect([
            wrong.code,
            wrong.data.reason,
            wrong.data.errors.map((each: { path: string }) => each.path)
        ]).to.equal([40001, 'VALIDATION_FAILED', ['text', 'txt']]);
        expect((await rig.ask('viewer', 'GET', `${base}/tea?x=1`)).code).to.equal(40001);
    });

    it("ask for the permission that is the plugin's own", async () => {
        expect((await rig.ask(null, 'GET', `${base}/tea`)).code).to.equal(40100);
        const refused = await rig.ask('viewer', 'POST', `${base}/notes`, { text: 'x' });
        expect([refused.code, refused.data.permission]).to.equal([40300, 'probe:write']);
    });

    it('keep hidden columns hidden, give lists their headers, and put every change on record once', async () => {
        const before = rig.http.recorded.length;
        const made = await rig.ask('admin', 'POST', `${base}/notes`, { text: 'one' });
        expect([made.status, made.headers.get('location'), made.data]).to.equal([
            201,
            `${base}/notes/1`,
            { id: 1, text: 'one' }
        ]);
        const list = await rig.ask('viewer', 'GET', `${base}/notes`);
        expect(list.data).to.equal([{ id: 1, text: 'one' }]);
        expect(list.headers.get('x-total-count')).to.equal('1');
        expect(list.headers.get('link')).to.contain('cursor=abc');
        expect(list.headers.get('etag')).to.be.a.string();
        const put = await rig.ask('admin', 'PUT', `${base}/notes/1`, { text: 'two' });
        expect([put.status, put.headers.get('etag')]).to.equal([200, '"7"']);
        expect(
            rig.http.recorded
                .slice(before)
                .map(({ action, resource, resourceId = null, after: now = null, outcome, status }) => [
                    action,
                    resource,
                    resourceId,
                    now,
                    outcome,
                    status
                ])
        ).to.equal([
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
        expect([tea.status, tea.text]).to.equal([
            418,
            '{"code":41850,"message":"I am a teapot","data":{"reason":"TEAPOT","pot":1}}'
        ]);
        const stale = await rig.ask('admin', 'PUT', `${base}/notes/1`, { text: 'x' }, { 'if-match': '"1"' });
        expect([stale.code, stale.data.version]).to.equal([41200, 2]);
        const bug = await rig.ask('viewer', 'GET', `${base}/bug`);
        expect([bug.status, bug.code, bug.text.includes('secret of the inside')]).to.equal([
            500,
            50000,
            false
        ]);
        expect(
            rig.http.lines.some(
                (line) => line.includes('a secret of the inside') && line.includes('"plugin":"probe"')
            )
        ).to.be.true();
        expect((await rig.ask('viewer', 'GET', `${base}/forged-failure`)).code).to.equal(50000);
    });

    it('carry the sandbox on everything, and nothing that acts beyond the answer', async () => {
        for (const path of ['/headers', '/tea', '/none', '/file']) {
            const { headers } = await rig.ask('viewer', 'GET', `${base}${path}`);
            expect(headers.get('content-security-policy')).to.contain('sandbox');
            expect([headers.get('set-cookie'), headers.get('access-control-allow-origin')]).to.equal([
                null,
                null
            ]);
        }
        expect((await rig.ask('viewer', 'GET', `${base}/headers`)).headers.get('x-mine')).to.equal('yes');
    });

    it('act as the asker: never more than the asker may, never as a copy, never after the request', async () => {
        expect((await rig.ask('admin', 'GET', `${base}/me`)).data).to.equal({
            can: true,
            own: true,
            things: [{ for: 'admin', via: 'probe' }]
        });
        const viewer = await rig.ask('viewer', 'GET', `${base}/me`);
        expect([viewer.data.can, viewer.data.things.reason]).to.equal([false, 'FORBIDDEN']);
        expect((await rig.ask('admin', 'GET', `${base}/refused`)).data).to.equal([
            40301, 40400, 40400, 40400
        ]);
        expect((await rig.ask('admin', 'GET', `${base}/forged`)).code).to.equal(40304);
        // The second reads its actor for the first time when its request is over.
        for (const path of ['kept', 'unread']) {
            await rig.ask('admin', 'GET', `${base}/${path}`);
            expect((await rig.ask('viewer', 'GET', `${base}/${path}`)).code).to.equal(40304);
        }
    });

    it("reach a partner's contract for the asker, values and series", async () => {
        expect((await rig.ask('viewer', 'GET', `${base}/sum`)).data).to.equal({
            sum: 5,
            caller: 'probe',
            actor: 'viewer'
        });
        expect((await rig.ask('viewer', 'GET', `${base}/count`)).data).to.equal([0, 1, 2]);
    });

    it('stream events, take uploads, give ranges, and speak foreign protocols', async () => {
        const ticks = await rig.ask('viewer', 'GET', `${base}/ticks`, undefined, { 'last-event-id': '1' });
        expect(ticks.text).to.equal(': open\n\nid: 1\ndata: {"n":1}\n\nid: 2\ndata: {"n":2}\n\n');
        const upload = await rig.ask('admin', 'PUT', `${base}/upload`, '12345', {
            'content-type': 'text/x-any'
        });
        expect(upload.data).to.equal({ bytes: 5, type: 'text/x-any', length: 5 });
        expect(
            (await rig.ask('admin', 'PUT', `${base}/upload`, '12345678901', { 'content-type': 'text/x-any' }))
                .code
        ).to.equal(41300);
        const range = await rig.ask('viewer', 'GET', `${base}/file`, undefined, { range: 'bytes=2-4' });
        expect([range.status, range.text, range.headers.get('content-range')]).to.equal([
            206,
            '234',
            'bytes 2-4/10'
        ]);
        const raw = await rig.ask('admin', 'PATCH', `${base}/raw`, 'abc');
        expect([
            raw.status,
            raw.headers.get('upload-offset'),
            raw.headers.get('x-who'),
            raw.headers.get('set-cookie'),
            raw.headers.get('x-auth')
        ]).to.equal([204, '3', 'admin', null, 'null']);
        expect(
            (await rig.ask('admin', 'GET', `${base}/raw`)).headers.get('content-security-policy')
        ).to.contain('sandbox');
    });

    it('let a socket in by a one-time ticket alone, with what it was issued with', async () => {
        expect((await rig.ask('viewer', 'POST', `${base}/tickets`)).code).to.equal(40300);
        const { data } = await rig.ask('admin', 'POST', `${base}/tickets`);
        const connect = async (ticket: string): Promise<string[]> =>
            new Promise((resolve, reject) => {
                const messages: string[] = [];
                const socket = new WebSocket(`${rig.url.replace('http', 'ws')}${base}/socket/${ticket}`);
                socket.on('error', reject);
                socket.on('open', () => socket.send('hi'));
                socket.on(
                    'message',
                    (message) => messages.push(String(message)) === 2 && (socket.close(), resolve(messages))
                );
            });
        expect(await connect(data.ticket as string)).to.equal([
            '{"ticket":{"name":"sh"},"who":"admin"}',
            'echo hi'
        ]);
        await expect(connect(data.ticket as string)).to.reject(/401/);
        await expect(connect('guess')).to.reject(/401/);
    });
});
