import { realpathSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { startPanel, type TestPanel } from '../../../support/panel/panel.ts';
import { startUpstream, type TestUpstream } from '../../../support/servers/upstream.ts';
import { until } from '../../../support/until.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const puppets = realpathSync(join(import.meta.dirname, '../../../fixtures/puppets'));

describe('the hook engine.collect', { timeout: 90_000 }, () => {
    let panel: TestPanel;
    let upstream: TestUpstream;

    const guarded = (): Promise<string | undefined> =>
        new Promise((resolve, reject) => {
            get(
                { host: '127.0.0.1', port: panel.httpPort, headers: { host: 'guarded.test' }, agent: false },
                (answer) => {
                    answer.resume();
                    resolve(answer.headers['x-waf'] as string | undefined);
                }
            ).on('error', reject);
        });
    const put = (body: object) => panel.client.put('/api/plugins/puppet-waf', body);
    const checks = async (): Promise<
        readonly { readonly name: string; readonly state: string; readonly evidence: string }[]
    > => (await panel.client.get('/api/plugins/puppet-waf')).data.health.checks;
    const revision = async (): Promise<number> =>
        (await panel.client.get('/api/proxyengine/status')).data.revision;

    before({ timeout: 60_000 }, async () => {
        upstream = await startUpstream('up');
        panel = await startPanel({ environment: { PORTICO_PLUGIN_DIRS: puppets } });
        await panel.panel.settled();
        expect(
            (await panel.client.post('/api/hosts', { domain: 'guarded.test', upstream: upstream.address }))
                .status
        ).to.equal(201);
    });
    after({ timeout: 60_000 }, async () => {
        await panel.close();
        await upstream.close();
    });

    it('is asked when the plugin starts, when its settings change, and when it asks', async () => {
        expect(await guarded()).to.equal('first');
        expect((await put({ settings: { header: 'second' } })).data.state).to.equal('running');
        expect(await guarded()).to.equal('second');
        const { data } = await panel.client.post('/api/plugins/puppet-waf/ask', { header: 'third' });
        expect(data.outcomes).to.have.length(1);
        expect([data.outcomes[0].plugin, data.outcomes[0].ok]).to.equal(['puppet-waf', true]);
        expect(await guarded()).to.equal('third');
        const {
            data: [newest]
        } = await panel.client.get('/api/proxyengine/revisions?limit=1');
        expect(newest.by.map(({ plugin }: { plugin: string }) => plugin)).to.equal(['puppet-waf']);
    });

    it("keeps the last good one when the tap fails or the engine refuses, and says so in the plugin's health", async () => {
        const now = await revision();
        expect((await put({ settings: { header: 'throws' } })).data.state).to.equal('running');
        expect(await guarded()).to.equal('third');
        expect(
            ['its earlier ones stay', 'The rules cannot be read'].map((text) =>
                panel.lines.some((line) => line.includes(text))
            )
        ).to.equal([true, true]);
        expect((await put({ settings: { header: 'fine', handler: 'no_such_handler' } })).data.state).to.equal(
            'running'
        );
        expect(await guarded()).to.equal('third');
        expect(await revision()).to.equal(now);
        // Health is looked at again after ten seconds.
        const [check] = await until(
            async () => (await checks()).length > 0 && checks(),
            'its health shows it'
        );
        expect([check?.name, check?.state]).to.equal(['engine.collect', 'failed']);
        expect(check?.evidence).to.match(/no_such_handler/);
    });

    it('keeps it when the plugin falls, through an apply, and through a restart of the panel', async () => {
        expect((await put({ settings: { header: 'falls', handler: 'headers' } })).data.state).to.equal(
            'failed'
        );
        await panel.client.post('/api/hosts', { domain: 'other.test', upstream: upstream.address });
        expect(await guarded()).to.equal('third');
        await panel.restart();
        await panel.panel.settled();
        expect(await guarded()).to.equal('third');
    });

    it('goes when an admin disables the plugin, and the answer says what went', async () => {
        await put({ enabled: true, settings: { header: 'again' } });
        await until(async () => (await guarded()) === 'again', 'it gives one again');
        const { data, message } = await put({ enabled: false });
        expect(data.state).to.equal('disabled');
        expect(message).to.equal('The engine serves without what puppet-waf gave it: handlers');
        expect(await guarded()).to.be.undefined();
        expect((await put({ enabled: false })).message).to.equal('ok');
        expect((await put({ enabled: true })).data.state).to.equal('running');
        expect(await guarded()).to.equal('again');
    });

    it('costs nothing when the panel starts and nothing has changed', async () => {
        const now = await revision();
        await panel.restart();
        await panel.panel.settled();
        expect(await revision()).to.equal(now);
        expect(await guarded()).to.equal('again');
    });
});
