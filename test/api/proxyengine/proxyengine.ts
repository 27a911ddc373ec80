import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { maskText } from '../../../core/src/engine/wire/mask.ts';
import type { Answer } from '../../support/panel/client.ts';
import { startPanel, type TestPanel } from '../../support/panel/panel.ts';
import { startUpstream, type TestUpstream } from '../../support/servers/upstream.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const secrets = ['top-secret-header', 'top-secret-advanced', '$2b$', '$2a$'];

describe('/api/proxyengine', { timeout: 60_000 }, () => {
    let panel: TestPanel;
    let upstream: TestUpstream;
    let viewer: string;
    let operator: string;
    const get = (path: string, token?: string): Promise<Answer> =>
        panel.client.get(`/api/proxyengine${path}`, token === undefined ? {} : { token });
    const post = (path: string, token?: string): Promise<Answer> =>
        panel.client.post(`/api/proxyengine${path}`, undefined, token === undefined ? {} : { token });

    before(async () => {
        upstream = await startUpstream('up');
        panel = await startPanel();
        viewer = await panel.tokenOf('viewer');
        operator = await panel.tokenOf('operator');
        for (const body of [
            { domain: 'a.test', upstream: upstream.address },
            {
                domain: 'b.test',
                upstream: upstream.address,
                headers: {
                    request: [{ op: 'set', name: 'authorization', value: 'top-secret-header' }],
                    response: []
                },
                access: { basicAuth: [{ username: 'ann', password: 'a long enough password' }] },
                advanced: [{ handler: 'headers', response: { set: { 'x-key': ['top-secret-advanced'] } } }]
            }
        ]) {
            expect((await panel.client.post('/api/hosts', body)).status).to.equal(201);
        }
    });

    after(async () => {
        await panel.close();
        await upstream.close();
    });

    it('GET /status tells the process, the hashes and the last apply', async () => {
        const { status, data } = await get('/status', viewer);
        expect(status).to.equal(200);
        expect(data).to.include({
            state: 'running',
            running: true,
            wanted: 'running',
            autoReload: true,
            pending: 0,
            message: null
        });
        expect(data.configuration.running).to.equal(data.configuration.wanted);
        expect(data.lastApply.result).to.equal('applied');
        expect(data.version).to.be.a.string();
    });

    it('answers without a token, or without the permission, with the reason', async () => {
        expect(await panel.client.get('/api/proxyengine/status', { token: null })).to.include({
            status: 401,
            code: 40100
        });
        for (const path of [
            '/start',
            '/stop',
            '/restart',
            '/reload',
            '/drift/overwrite',
            '/revisions/1/restore'
        ]) {
            const refused = await post(path, viewer);
            expect(refused).to.include({ status: 403, code: 40300 });
            expect(refused.data).to.include({ reason: 'FORBIDDEN', permission: 'engine:control' });
        }

        expect(await get('/logs', viewer)).to.include({ status: 403, code: 40300 });
    });

    it('masks secrets for users without engine:secrets, and not for an admin whose session is fresh', async () => {
        for (const path of ['/config', '/config/desired', '/revisions/2']) {
            const masked = await get(path, viewer);
            expect(masked.status).to.equal(200);
            expect(masked.text).to.contain(maskText);
            for (const secret of secrets) {
                expect(masked.text).to.not.contain(secret);
            }

            expect((await get(path)).text).to.contain('top-secret-header');
        }

        expect((await get('/config', viewer)).text).to.contain('"handler":"reverse_proxy"');
    });

    it('lists revisions page by page, and refuses a cursor that it did not give', async () => {
        const first = await get('/revisions?limit=1', viewer);
        expect(first.data.map(({ number }: { number: number }) => number)).to.equal([2]);
        expect(first.headers['x-total-count']).to.equal('2');
        const link = /<([^>]+)>; rel="next"/.exec(String(first.headers['link']))?.[1] ?? '';
        const second = await panel.client.get(link.replace(/^https?:\/\/[^/]+/, ''));
        expect(second.data.map(({ number }: { number: number }) => number)).to.equal([1]);
        expect(second.headers['link']).to.be.undefined();
        expect(await get('/revisions?cursor=bm9uc2Vuc2U')).to.include({ status: 400, code: 40001 });
        expect(await get('/revisions/9')).to.include({ status: 404, code: 40400 });
        expect(await get('/revisions/0')).to.include({ status: 404, code: 40400 });
    });

    it('shows drift and overwrites it', async () => {
        expect((await get('/drift', viewer)).data).to.equal({
            drifted: false,
            config: [],
            table: [],
            more: false
        });
        expect((await post('/drift/overwrite', operator)).data).to.include({ state: 'running', error: null });
    });

    it('stops and starts, says what was so already, and puts each on record', async () => {
        expect((await post('/start', operator)).data).to.include({ changed: false, state: 'running' });
        const stopped = await post('/stop', operator);
        expect(stopped.message).to.equal('The engine is stopped');
        expect(stopped.data).to.include({ changed: true, state: 'stopped' });
        expect((await post('/stop', operator)).data).to.include({ changed: false });
        expect(await post('/reload', operator)).to.include({ status: 503, code: 50301 });
        expect((await get('/config')).data).to.be.null();
        const host = await panel.client.put('/api/hosts/1', { maintenance: true });
        expect(host.data).to.include({ state: 'pending', maintenance: true });
        await panel.restart();
        expect((await get('/status')).data).to.include({ state: 'stopped', wanted: 'stopped', pending: 1 });
        expect((await post('/start', operator)).data).to.equal({
            changed: true,
            state: 'running',
            pending: 0,
            error: null
        });
        expect((await panel.client.get('/api/hosts/1')).data.state).to.equal('applied');
        const { data } = await panel.client.get('/api/audit?resource=proxyengine&limit=50');
        const actions = data
            .filter(({ outcome }: { outcome: string }) => outcome === 'success')
            .map(({ action }: { action: string }) => action);
        expect(actions).to.equal(['start', 'stop', 'stop', 'start', 'overwrite']);
    });

    it('restores a revision and says so in rows, engine and record', async () => {
        await panel.client.delete('/api/hosts/2');
        const { data, headers } = await post('/revisions/2/restore');
        expect(data).to.include({ applied: true, changed: 2 });
        expect(headers['x-engine-reload']).to.match(/^(true|false)$/);
        const { data: host } = await panel.client.get('/api/hosts/2');
        expect(host).to.include({ id: 2, domain: 'b.test', state: 'applied' });
        expect((await panel.client.get('/api/hosts/1')).data).to.include({ maintenance: false });
        expect((await panel.client.get('/api/audit?action=restore')).data[0]).to.include({
            resource: 'proxyengine',
            resourceId: 2,
            outcome: 'success'
        });
    });

    it('does not let an operator bring back what only an admin may set', async () => {
        await panel.client.delete('/api/hosts/2');
        const refused = await post('/revisions/2/restore', operator);
        expect(refused).to.include({ status: 403, code: 40300 });
        expect(refused.data.permission).to.equal('hosts:unsafe');
        expect((await panel.client.get('/api/hosts/2')).status).to.equal(404);
    });

    it('streams the last lines of the log and ends, unless it is asked to follow', async () => {
        const { status, headers, text } = await get('/logs?lines=5', operator);
        expect(status).to.equal(200);
        expect(headers['content-type']).to.match(/^text\/event-stream/);
        const lines = text.split('\n').filter((line) => line.startsWith('data:'));
        expect(lines.length).to.be.between(0, 6);
        expect(await get('/logs?lines=many', operator)).to.include({ status: 400, code: 40001 });
    });

    it('tells upstreams as the engine sees them', async () => {
        const { status, data } = await get('/upstreams', viewer);
        expect(status).to.equal(200);
        expect(data).to.be.an.array();
    });
});
