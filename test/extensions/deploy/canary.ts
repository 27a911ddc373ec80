import { rmSync, writeFileSync } from 'node:fs';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itInBrowser, noBrowser, openPage, startBrowser } from '../../support/browser.ts';
import { itUnless } from '../../support/skip.ts';
import { until } from '../../support/until.ts';
import { enter, finish, isSound, visit } from '../webui/rig.ts';
import { DeployRig, server, withoutSandbox } from './support/rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const real = itUnless(withoutSandbox, it);
const inBrowser = itInBrowser(it, noBrowser ?? withoutSandbox);

const limitMs = 180_000;
let rig: DeployRig;

describe('A canary', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        if (withoutSandbox === undefined) {
            rig = await DeployRig.start({}, ['monitoring', 'webui']);
        }
    });

    after({ timeout: limitMs }, async () => {
        await rig?.close();
    });

    const bothAnswer = (): Promise<unknown> => {
        const seen = new Set<string>();
        return until(
            async () => seen.add((await rig.page('canary.test')).text).size === 2,
            'the old and the new release to answer'
        );
    };

    real('gets its share, and is taken back when it is sick or a rule fires', async () => {
        const sick = 'if (require("node:fs").existsSync("/app/data/sick")) { response.statusCode = 500; }';
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
        for (const build of [{ kind: 'static' }, { kind: 'commands' }]) {
            const { code, text } = await rig.put(`/projects/${id}`, { build });
            expect(code).to.equal(40001);
            expect(text).to.contain('It is for programs');
        }
        const idle: readonly (readonly [object, string])[] = [
            [{ host: null }, 'canary'],
            [{ canary: null, build: { kind: 'static' }, run: { command: ['node'] } }, 'run.command'],
            [{ canary: null, build: { kind: 'commands' }, run: { port: 8_000 } }, 'run.port']
        ];
        for (const [change, path] of idle) {
            const { code, data } = await rig.put(`/projects/${id}`, change);
            expect([code, data.errors[0].path]).to.equal([40001, path]);
        }
        await rig.serve(id);
        rig.git.commit('canary', { 'server.js': server('new', sick) });
        const begun = await rig.begin(id);
        await until(async () => (await rig.get(`/deployments/${begun.id}`)).data.state === 'canary');
        await bothAnswer();
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
    });

    inBrowser('is taken back, and another one promoted, on the page of its project', async () => {
        const { data: projects } = await rig.get('/projects');
        const { id } = projects.find(({ name }: { name: string }) => name === 'canary');
        const { data: project } = await rig.get(`/projects/${id}`);
        const canary = { ...project.canary, seconds: 600 };
        expect((await rig.put(`/projects/${id}`, { canary })).status).to.equal(200);
        const browser = await startBrowser();
        try {
            const watched = await openPage(browser, rig.panel.port);
            const { page } = watched;
            await enter(page, rig.client);
            await visit(page, `/deploy/${id}`);
            const newest = page.getByRole('list', { name: 'Releases' }).getByRole('article').first();
            const begin = async (): Promise<number> => {
                await page.getByRole('button', { name: 'Deploy', exact: true }).click();
                await newest.locator('.badge', { hasText: 'canary' }).waitFor();
                await bothAnswer();
                return (await rig.get(`/projects/${id}/deployments`)).data[0].id;
            };
            const aborted = await begin();
            await isSound(page, 'a canary');
            await newest.getByRole('button', { name: 'Take it back' }).click();
            await newest.getByText('The canary was taken back').waitFor();
            expect((await rig.over(aborted)).reason).to.equal('CANARY_REVERTED');
            expect((await rig.page('canary.test')).text).to.equal('old');

            const again = await begin();
            await newest.getByRole('button', { name: 'Give it all requests' }).click();
            await newest.locator('.badge.good', { hasText: 'live' }).waitFor();
            expect((await rig.over(again)).state).to.equal('live');
            expect(await rig.log(again)).to.contain('The plugin monitoring does not run');
            for (let at = 0; at < 10; at += 1) {
                expect((await rig.page('canary.test')).text).to.equal('new');
            }
            await finish(watched);
        } finally {
            await browser.close();
        }
    });
});
