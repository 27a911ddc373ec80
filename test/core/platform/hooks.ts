import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createFaultyEngine } from '../../support/engine/faulty.ts';
import { adminPassword, startPanel, type TestPanel } from '../../support/panel/panel.ts';

export const lab = Lab.script();
const { after, afterEach, before, describe, it } = lab;

const plugin = { plugin: 'probe', version: '1.0.0' };
const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20));

describe('createCoreHooks', () => {
    let at: TestPanel;

    before(async () => {
        at = await startPanel({ driver: createFaultyEngine() });
    });
    afterEach(() => {
        at.panel.hooks.host.release('probe');
    });
    after(() => at.close());

    it('lets a plugin complete a host before it is validated, refuse it, and hear of it after the commit', async () => {
        const heard: string[] = [];
        const { host } = at.panel.hooks;
        host.tap(plugin, 'host.beforeSave', ({ host: body }) => ({
            before: null,
            host: { ...body, tags: ['from the plugin'] }
        }));
        host.tap(plugin, 'host.guard', ({ after }) =>
            after?.['domain'] === 'no.example' ? { refuse: 'Not this one' } : undefined
        );
        host.tap(
            plugin,
            'host.afterChange',
            ({ action, host: row }) => void heard.push(`${action} ${String(row['domain'])}`)
        );
        const made = await at.client.post('/api/hosts', { domain: 'yes.example', upstream: '127.0.0.1:9' });
        expect([made.status, made.data.tags]).to.equal([201, ['from the plugin']]);
        const refused = await at.client.post('/api/hosts', { domain: 'no.example', upstream: '127.0.0.1:9' });
        expect([refused.code, refused.message, refused.data]).to.equal([
            40920,
            'Not this one',
            { reason: 'REFUSED_BY_PLUGIN', plugin: 'probe', hook: 'host.guard' }
        ]);
        expect((await at.client.get('/api/hosts')).data).to.have.length(1);
        await settled();
        expect(heard).to.equal(['create yes.example']);
        await at.client.delete(`/api/hosts/${made.data.id}`);
        await settled();
        expect(heard.at(-1)).to.equal('delete yes.example');
    });

    it('lets a guard keep a user out as if the password were wrong, and a broken guard keep no user out', async () => {
        const wrong = await at.client.login('admin', 'not the password');
        const seen: object[] = [];
        const untap = at.panel.hooks.host.tap(plugin, 'auth.beforeLogin', (event) => {
            seen.push(event);
            return { refuse: 'Out of hours' };
        });
        const kept = await at.client.login('admin', adminPassword);
        expect([kept.status, kept.text]).to.equal([wrong.status, wrong.text]);
        expect(JSON.stringify(seen)).to.contain('admin').and.to.not.contain(adminPassword);
        untap();
        at.panel.hooks.host.tap(plugin, 'auth.beforeLogin', () => {
            throw new Error('broken');
        });
        expect((await at.client.login('admin', adminPassword)).status).to.equal(200);
    });
});
