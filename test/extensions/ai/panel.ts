/** The assistant in a real panel with the real engine: it finds out why a host does not serve, proposes the change, makes it when it is approved, and it is taken back. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { createServer, get, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { startPanel, type TestPanel } from '../../support/panel/panel.ts';
import { ModelServer } from '../../support/servers/model.ts';
import { until } from '../../support/until.ts';
import { writeHelper } from '../mcpserver/helper.ts';
import { type Any, dataOf, type Event, namesOf, textOf } from './rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const base = '/api/plugins/ai';
const patient = { timeout: 240_000 };
const folder = join(import.meta.dirname, '../../../extensions/ai');

describe('the assistant in a panel', patient, () => {
    let root: string;
    let panel: TestPanel;
    let model: ModelServer;
    let site: Server;
    let operator: string;
    const helper = writeHelper();

    const call = async (method: string, path: string, body?: unknown, token = operator): Promise<Any> =>
        panel.client.call(method, path, { token, ...(body === undefined ? {} : { body }) });
    const running = (): Promise<unknown> =>
        until(
            async () => {
                const { data } = await panel.client.get('/api/plugins');
                return data.some(({ name, state }: Any) => name === 'ai' && state === 'running');
            },
            'the plugin to run',
            60_000
        );
    const stream = async (path: string, body: object = {}): Promise<Event[]> => {
        const response = await fetch(`http://127.0.0.1:${panel.port}${base}${path}`, {
            method: 'POST',
            headers: { authorization: `Bearer ${operator}`, 'content-type': 'application/json' },
            body: JSON.stringify(body)
        });
        const text = await response.text();
        expect(response.status, text).to.equal(200);
        return [...text.matchAll(/^event: (.*)\ndata: (.*)$/gm)].map(([, event, data]) => ({
            event: event ?? '',
            data: JSON.parse(data ?? 'null') as Any
        }));
    };
    /** What a visitor of the site gets. */
    const visit = (): Promise<string> =>
        new Promise((resolve, reject) => {
            get(
                {
                    host: '127.0.0.1',
                    port: panel.httpPort,
                    path: '/',
                    headers: { host: 'shop.test' },
                    agent: false
                },
                (response) => {
                    let body = '';
                    response.on('data', (chunk: Buffer) => (body += chunk.toString()));
                    response.on('end', () => resolve(`${response.statusCode} ${body}`));
                }
            ).on('error', reject);
        });
    const visited = (what: string): Promise<unknown> =>
        until(async () => (await visit()).startsWith(what) || null, `the visitor to get ${what}`);

    before(patient, async () => {
        root = mkdtempSync(join(tmpdir(), 'portico-ai-'));
        mkdirSync(join(root, 'extensions'));
        symlinkSync(folder, join(root, 'extensions', 'ai'));
        model = await new ModelServer().open();
        site = createServer((_request, response) => response.end('hello'));
        await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
        panel = await startPanel({
            environment: { PORTICO_PLUGIN_DIRS: `${join(root, 'extensions')}:${helper.path}` }
        });
        await running();
        const granted = await panel.client.put('/api/plugins/ai', {
            grants: {
                network: ['*', '127.0.0.1'],
                api: { read: ['*'], write: ['*'] },
                taps: ['audit.recorded']
            }
        });
        expect(granted.code, granted.text).to.equal(0);
        await running();
        operator = await panel.tokenOf('operator', 'olga');
        const made = await panel.client.post(`${base}/providers`, {
            name: 'Local',
            baseUrl: `http://127.0.0.1:${model.port}/v1`,
            model: 'model-large'
        });
        expect(made.code, made.text).to.equal(0);
    });
    after(patient, async () => {
        await panel?.close();
        await model?.close();
        await new Promise((resolve) => site?.close(resolve) ?? resolve(null));
        rmSync(root, { recursive: true, force: true });
        helper.remove();
    });

    it('finds the cause, proposes, waits, changes, and is taken back by its version', patient, async () => {
        const { port } = site.address() as AddressInfo;
        // An address where nothing listens.
        const host = await panel.client.post('/api/hosts', {
            domain: 'shop.test',
            upstreams: [{ address: '127.0.0.1:1' }],
            ssl: false
        });
        expect(host.code, host.text).to.equal(0);
        const id = String(host.data.id);
        await visited('502');
        const { data: conversation } = await call('POST', `${base}/conversations`, { title: 'The shop' });
        const upstreams = (address: string): object => ({ upstreams: [{ address }] });
        model.say(
            { text: 'I look at the hosts.', calls: [{ name: 'hosts__list', input: {} }] },
            {
                calls: [
                    { name: 'hosts__get', input: { params: { id } } },
                    { name: 'proxyengine__status', input: {} }
                ]
            },
            {
                text: 'Nothing listens on port 1.',
                calls: [
                    {
                        name: 'hosts__update',
                        input: { params: { id }, payload: upstreams(`127.0.0.1:${port}`) }
                    }
                ]
            }
        );
        const events = await stream(`/conversations/${conversation.id}/messages`, {
            text: 'Why does the host shop.test not serve? Mend it.'
        });
        expect(namesOf(events)).to.equal([
            'start',
            'call',
            'result',
            'call',
            'result',
            'call',
            'result',
            'call',
            'approval',
            'usage',
            'end'
        ]);
        expect(textOf(events)).to.include('Nothing listens on port 1.');
        const names = model.questions[0]?.body.tools.map((tool: Any) => tool.function.name);
        expect(names).to.include(['hosts__list', 'hosts__get', 'hosts__update', 'proxyengine__status']);
        const size = JSON.stringify(model.questions[0]?.body.tools).length;
        expect(size).to.be.below(65_536);
        const approval = dataOf(events, 'approval');
        expect(approval.plan).to.include({ method: 'PUT', permission: 'hosts:write', etag: '1' });
        expect(approval.plan.validated.code).to.equal(0);
        expect(approval.plan.changes.map(({ path }: Any) => path)).to.include('upstreams');
        expect((await visit()).slice(0, 3)).to.equal('502');
        const approved = await call('POST', `${base}/approvals/${approval.id}/approve`, {
            hash: approval.hash
        });
        expect(approved.data?.answer.code, approved.text).to.equal(0);
        await visited('200 hello');
        model.say({ text: 'It serves again.' });
        expect(textOf(await stream(`/conversations/${conversation.id}/continue`))).to.equal(
            'It serves again.'
        );
        const { data: entries } = await panel.client.get(`/api/audit?resource=hosts&limit=1`);
        expect(entries[0]).to.include({ action: 'update', outcome: 'success' });
        expect(entries[0].actor).to.include({ username: 'olga', plugin: 'ai' });
        const [change] = (await call('GET', `${base}/changes`)).data;
        const undone = await call('POST', `${base}/changes/${change.id}/undo`);
        expect(undone.data?.answer.code, undone.text).to.equal(0);
        expect((await panel.client.get(`/api/hosts/${id}`)).data).to.include({ version: 3 });
        await visited('502');
        expect((await call('POST', `${base}/changes/${change.id}/undo`)).code).to.equal(40952);
        // What is dangerous is off until it is switched on by its name, and asks even then.
        const { data: tools } = await panel.client.get(`${base}/tools?effect=write&limit=500`);
        const [dangerous] = tools.filter((tool: Any) => tool.dangerous);
        expect(dangerous).to.include({ enabled: false, approval: 'ask' });
        const auto = await panel.client.put(`${base}/tools/${dangerous.id}`, { approval: 'auto' });
        expect(auto.code).to.equal(40001);
        const on = await panel.client.put(`${base}/tools/${dangerous.id}`, { enabled: true });
        expect(on.data).to.include({ enabled: true, approval: 'ask' });
    });

    it(
        'brings a removed host back by the revision before, while that is the newest change',
        patient,
        async () => {
            const make = async (domain: string): Promise<string> => {
                const { data } = await panel.client.post('/api/hosts', {
                    domain,
                    upstreams: [{ address: '127.0.0.1:1' }],
                    ssl: false
                });
                return String(data.id);
            };
            const remove = async (id: string): Promise<Any> => {
                const { data: conversation } = await call('POST', `${base}/conversations`, {});
                model.say({ calls: [{ name: 'hosts__remove', input: { params: { id } } }] });
                const events = await stream(`/conversations/${conversation.id}/messages`, {
                    text: 'Remove this host'
                });
                const approval = dataOf(events, 'approval');
                expect(approval.effect).to.equal('destructive');
                const approved = await call('POST', `${base}/approvals/${approval.id}/approve`, {
                    hash: approval.hash
                });
                expect(approved.data?.answer.code, approved.text).to.equal(0);
                expect((await panel.client.get(`/api/hosts/${id}`)).code).to.equal(40400);
                return (await call('GET', `${base}/changes`)).data[0];
            };
            const first = await make('first.test');
            const change = await remove(first);
            expect(change.undoable).to.be.true();
            const undone = await call('POST', `${base}/changes/${change.id}/undo`);
            expect(undone.data?.answer.code, undone.text).to.equal(0);
            expect((await panel.client.get(`/api/hosts/${first}`)).data.domain).to.equal('first.test');
            const second = await remove(first);
            await make('later.test');
            expect((await call('POST', `${base}/changes/${second.id}/undo`)).code).to.equal(40952);
        }
    );

    it(
        'follows the work that a read starts to its result, and ends it with the answer',
        patient,
        async () => {
            const { data: conversation } = await call('POST', `${base}/conversations`, {});
            const ask = (): Promise<Event[]> =>
                stream(`/conversations/${conversation.id}/messages`, {
                    text: 'Do the long work of the helper'
                });
            const measure = (steps: number) => ({
                calls: [{ name: 'helper__measure', input: { payload: { steps } } }]
            });
            model.say(measure(2), { text: 'Measured.' });
            const events = await ask();
            expect(dataOf(events, 'result')).to.include({ status: 200, code: 0, data: { steps: 2 } });
            expect(textOf(events)).to.equal('Measured.');
            model.say(measure(100_000));
            const endless = ask();
            const task = await until(async () => {
                const { data } = await panel.client.get('/api/tasks?state=running');
                return data.find(({ kind }: Any) => kind === 'helper.work') ?? null;
            }, 'the work to run');
            expect(
                (await call('POST', `${base}/conversations/${conversation.id}/stop`)).data.stopped
            ).to.be.true();
            expect(dataOf(await endless, 'end').reason).to.equal('stopped');
            await until(
                async () => (await panel.client.get(`/api/tasks/${task.id}`)).data.state === 'cancelled',
                'the work to be cancelled'
            );
        }
    );

    it('keeps approvals over a restart of the panel, and uses each once', patient, async () => {
        const { data } = await panel.client.post('/api/hosts', {
            domain: 'third.test',
            upstreams: [{ address: '127.0.0.1:1' }],
            ssl: false
        });
        const { data: conversation } = await call('POST', `${base}/conversations`, {});
        model.say({
            calls: [
                {
                    name: 'hosts__update',
                    input: { params: { id: String(data.id) }, payload: { notes: 'x' } }
                }
            ]
        });
        const events = await stream(`/conversations/${conversation.id}/messages`, {
            text: 'Change the notes of the host'
        });
        const approval = dataOf(events, 'approval');
        await panel.restart();
        await running();
        const approved = await call('POST', `${base}/approvals/${approval.id}/approve`, {
            hash: approval.hash
        });
        expect(approved.data?.answer.code, approved.text).to.equal(0);
        const again = await call('POST', `${base}/approvals/${approval.id}/approve`, {
            hash: approval.hash
        });
        expect(again.code).to.equal(40950);
    });
});
