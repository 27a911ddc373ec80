import { rmSync, writeFileSync } from 'node:fs';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itUnless } from '../../support/skip.ts';
import { until } from '../../support/until.ts';
import { DeployRig, server, withoutSandbox } from './support/rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const real = itUnless(withoutSandbox, it);

const limitMs = 180_000;
let rig: DeployRig;

describe('A canary', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        if (withoutSandbox === undefined) {
            rig = await DeployRig.start({}, ['monitoring']);
        }
    });

    after({ timeout: limitMs }, async () => {
        await rig?.close();
    });

    real(
        'gets its share, is taken back when it is sick or a rule fires, and is promoted on a word',
        async () => {
            const sick =
                'if (require("node:fs").existsSync("/app/data/sick")) { response.statusCode = 500; }';
            rig.git.create('canary', {
                'package.json': '{"scripts":{"start":"node server.js"}}',
                'server.js': server('old')
            });
            const id = await rig.project({
                name: 'canary',
                source: { url: rig.git.url('canary') },
                host: { domain: 'canary.test' },
                run: { drainSeconds: 1, shared: ['data'] },
                health: { successes: 1 },
                canary: { weight: 50, seconds: 60, failures: 2 }
            });
            await rig.serve(id);
            rig.git.commit('canary', { 'server.js': server('new', sick) });
            const begun = await rig.begin(id);
            await until(async () => (await rig.get(`/deployments/${begun.id}`)).data.state === 'canary');
            const seen = new Set<string>();
            await until(
                async () => seen.add((await rig.page('canary.test')).text).size === 2,
                'both to answer'
            );
            writeFileSync(`${rig.folder}/projects/${id}/shared/data/sick`, '');
            const reverted = await rig.over(begun.id);
            expect([reverted.state, reverted.reason]).to.equal(['failed', 'CANARY_REVERTED']);
            for (let at = 0; at < 10; at += 1) {
                expect(await rig.page('canary.test')).to.equal({ status: 200, text: 'old' });
            }
            expect((await rig.post(`/projects/${id}/canary/promote`)).status).to.equal(404);

            rmSync(`${rig.folder}/projects/${id}/shared/data/sick`);
            const rules = '/api/plugins/monitoring/rules';
            await rig.client.put('/api/plugins/monitoring', { settings: { intervalSeconds: 2 } });
            const alarm = { name: 'alarm', metric: 'memory.usedPercent', threshold: 0, forSeconds: 0 };
            const { data: rule } = await rig.client.post(rules, { ...alarm, enabled: false });
            const canary = { weight: 50, seconds: 60, failures: 2, rules: [rule.id] };
            expect((await rig.put(`/projects/${id}`, { canary })).status).to.equal(200);
            const alarming = await rig.begin(id);
            await until(async () => (await rig.get(`/deployments/${alarming.id}`)).data.state === 'canary');
            await rig.client.put(`${rules}/${rule.id}`, { enabled: true });
            const taken = await rig.over(alarming.id);
            expect([taken.state, taken.reason]).to.equal(['failed', 'CANARY_REVERTED']);
            expect(await rig.log(alarming.id)).to.contain(`Rule ${rule.id} of monitoring fired`);
            await rig.client.put('/api/plugins/monitoring', { enabled: false });

            const aborted = await rig.begin(id);
            await until(async () => (await rig.get(`/deployments/${aborted.id}`)).data.state === 'canary');
            await until(async () => (await rig.post(`/projects/${id}/canary/abort`)).status === 200);
            expect((await rig.over(aborted.id)).reason).to.equal('CANARY_REVERTED');
            expect((await rig.page('canary.test')).text).to.equal('old');

            const again = await rig.begin(id);
            await until(async () => (await rig.get(`/deployments/${again.id}`)).data.state === 'canary');
            await until(async () => (await rig.post(`/projects/${id}/canary/promote`)).status === 200);
            expect((await rig.over(again.id)).state).to.equal('live');
            expect(await rig.log(again.id)).to.contain('The plugin monitoring does not run');
            for (let at = 0; at < 10; at += 1) {
                expect((await rig.page('canary.test')).text).to.equal('new');
            }
        }
    );
});
