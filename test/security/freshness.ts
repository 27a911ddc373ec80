/** A session that was left open: what widens a user's reach wants the password or the second factor again. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createFaultyEngine } from '../support/engine/faulty.ts';
import type { Answer } from '../support/panel/client.ts';
import { startPanel, type TestPanel } from '../support/panel/panel.ts';
import { createPluginFolder, type PluginFolder, pluginModule } from '../support/plugins/folder.ts';

export const lab = Lab.script();
const { describe, it, before, after, afterEach } = lab;

describe('a session that did not prove itself lately', () => {
    let at: TestPanel;
    let ahead = 0;
    let apiToken = '';
    let plugins: PluginFolder;

    before(async () => {
        plugins = createPluginFolder();
        const settings = 'settings: joi.object({ roots: joi.array().items(joi.string()).default([]) }),';
        plugins.write('shelf', pluginModule('', { more: settings }));
        at = await startPanel({
            driver: createFaultyEngine(),
            clock: { now: () => Date.now() + ahead },
            environment: { PORTICO_PLUGIN_DIRS: plugins.path }
        });
        const made = await at.client.post('/api/auth/tokens', {
            name: 'ci',
            permissions: ['hosts:write', 'hosts:unsafe']
        });
        apiToken = made.data.token;
    });
    after(async () => {
        await at.close();
        plugins.remove();
    });
    afterEach(() => {
        ahead = 0;
    });

    const leaveOpen = (): void => {
        ahead = 20 * 60_000; // Longer than panel.stepUpMinutes, and shorter than the access token lives.
    };
    const stale = (answer: Answer, what: string): void => {
        expect([answer.status, answer.code], `${what}: ${answer.text.slice(0, 200)}`).to.equal([403, 40301]);
    };

    it('changes no setting that says who is believed, who may call or what is kept', async () => {
        const changes: Record<string, unknown> = {
            'panel.trustedProxies': ['10.0.0.1'],
            'panel.outboundAllow': ['10.0.0.0/8'],
            'panel.requireTotp': true,
            'panel.stepUpMinutes': 1440,
            'panel.corsOrigins': ['https://evil.example'],
            'panel.oauthRegistration': true,
            'panel.accessTokenMinutes': 1440,
            'panel.refreshTokenDays': 365,
            'audit.retentionDays': 1
        };
        const was = (await at.client.get('/api/settings')).data;
        leaveOpen();
        for (const [key, value] of Object.entries(changes)) {
            stale(await at.client.put(`/api/settings/${key}`, { value }), key);
            stale(
                await at.client.put('/api/settings', { 'engine.acmeEmail': 'a@b.test', [key]: value }),
                key
            );
        }
        expect((await at.client.get('/api/settings')).data).to.equal(was);
        expect(
            (await at.client.put('/api/settings', { 'panel.requireTotp': false })).status,
            'no change'
        ).to.equal(200);
        expect(
            (await at.client.put('/api/settings/engine.acmeEmail', { value: 'a@b.test' })).status
        ).to.equal(200);
        ahead = 0;
        expect(
            (await at.client.put('/api/settings', { 'panel.outboundAllow': ['10.0.0.0/8'] })).status
        ).to.equal(200);
    });

    it('sets no unsafe part of a host and opens no host that has one, but may look what would happen', async () => {
        const root = join(at.config.dataDir, '..', 'root');
        mkdirSync(root, { mode: 0o755 });
        const files = { domain: 'files.test', type: 'static', static: { root } };
        const { data: host } = await at.client.post('/api/hosts', files);
        const url = `/api/hosts/${host.id}`;
        leaveOpen();
        stale(await at.client.post('/api/hosts', { ...files, domain: 'more.test' }), 'create');
        stale(await at.client.post(`${url}/clone`, { domain: 'more.test' }), 'clone');
        stale(await at.client.put(url, { aliases: ['more.test'] }), 'another name');
        stale(
            await at.client.put(url, { type: 'proxy', static: null, upstream: '127.0.0.1:9' }),
            'take away'
        );
        expect((await at.client.get(url)).data).to.equal(host);
        const plan = await at.client.post('/api/hosts/validate', { ...files, domain: 'more.test' });
        expect(plan.status).to.equal(200);
        expect((await at.client.put(url, { notes: 'n' })).status, 'what is no unsafe part').to.equal(200);
        const automated = await at.client.put(url, { aliases: ['more.test'] }, { token: apiToken });
        expect(automated.status, 'an API token proves itself each time').to.equal(200);
    });

    it('brings no unsafe part back with a revision', async () => {
        const { data: host } = await at.client.post('/api/hosts', {
            domain: 'back.test',
            upstream: 'unix//run/back.sock'
        });
        const { data: revisions } = await at.client.get('/api/proxyengine/revisions?limit=1');
        await at.client.delete(`/api/hosts/${host.id}`);
        leaveOpen();
        stale(await at.client.post(`/api/proxyengine/revisions/${revisions[0].number}/restore`), 'restore');
        expect((await at.client.get('/api/hosts?q=back.test')).data).to.equal([]);
    });

    it('changes no settings of a plugin, whose reach they may widen, but switches it off', async () => {
        const url = '/api/plugins/shelf';
        const on = { enabled: true, settings: { roots: ['/srv'] } };
        expect((await at.client.put(url, on)).data.settings).to.equal({ roots: ['/srv'] });
        leaveOpen();
        stale(await at.client.put(url, { settings: { roots: ['/srv', '/etc'] } }), 'more');
        stale(await at.client.put(url, { settings: { roots: null } }), 'default');
        expect((await at.client.get(url)).data.settings).to.equal({ roots: ['/srv'] });
        expect((await at.client.put(url, on)).status, 'as they were read').to.equal(200);
        expect((await at.client.put(url, { enabled: false })).data.enabled).to.be.false();
    });
});
