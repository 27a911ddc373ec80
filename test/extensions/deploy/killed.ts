import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { commandOf } from '../../support/panel/process.ts';
import { itUnless } from '../../support/skip.ts';
import { until } from '../../support/until.ts';
import { DeployProcessRig } from './support/process-rig.ts';
import { base, server, withoutSandbox } from './support/rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const real = itUnless(withoutSandbox, it);

const limitMs = 150_000;
let rig: DeployProcessRig;

describe('Deployments of a panel that is killed', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        if (withoutSandbox !== undefined) {
            return;
        }
        rig = await DeployProcessRig.start();
    });

    after({ timeout: limitMs }, async () => {
        await rig?.close();
    });

    real('end what was cut in a fetch, a command, a canary and a switch as the engine serves', async () => {
        rig.git.create('cut', {
            'package.json': '{"scripts":{"start":"node server.js"}}',
            'server.js': server('old')
        });
        const id = await rig.project({
            name: 'cut',
            source: { url: rig.git.url('cut') },
            host: { domain: 'cut.test' },
            run: { drainSeconds: 1 },
            health: { successes: 1 }
        });
        const old = await rig.serve(id);
        const stepRuns = (deployment: number, step: string) =>
            until(
                async () =>
                    (await rig.get(`/deployments/${deployment}`)).data.steps.find(
                        ({ name }: { name: string }) => name === step
                    ).state === 'running',
                step
            );
        const undone = async (deployment: number) => {
            const cut = await rig.over(deployment);
            expect([cut.state, cut.reason, cut.kept]).to.equal(['failed', 'PANEL_DIED', false]);
            expect((await rig.page('cut.test')).text).to.equal('old');
            const { data } = await rig.client.get('/api/plugins/deploy');
            expect(data.services.map(({ name }: { name: string }) => name)).to.equal([`p${id}-1-web-0`]);
        };
        // In a command before the start, and in the fetch of another project: the server never answers.
        const files = { 'package.json': '{"scripts":{"start":"node server.js"}}', 'server.js': server('x') };
        rig.git.create('hooked', files);
        const other = await rig.project({
            name: 'hooked',
            source: { url: rig.git.url('hooked') },
            hooks: { pre: [['sleep', '300']] }
        });
        const hooked = await rig.begin(other);
        await stepRuns(hooked.id, 'hooks');
        const commit = rig.git.commit('cut', { 'server.js': server('new') });
        rig.git.intercept = (request) =>
            request.method === 'POST' && request.url?.includes('/cut.git') === true;
        const fetching = await rig.begin(id, { commit });
        await stepRuns(fetching.id, 'fetch');
        await rig.killPanel();
        rig.git.intercept = () => false;
        await undone(fetching.id);
        await undone(hooked.id);
        // In a canary, which gets a share of the requests: the old release has all of them again.
        await rig.put(`/projects/${id}`, { canary: { weight: 50, seconds: 600 } });
        const canary = await rig.begin(id);
        await until(async () => (await rig.get(`/deployments/${canary.id}`)).data.state === 'canary');
        await until(async () => (await rig.page('cut.test')).text === 'new', 'the canary to answer');
        await rig.killPanel();
        for (let at = 0; at < 6; at += 1) {
            expect((await rig.page('cut.test')).text).to.equal('old');
        }
        await undone(canary.id);
        // Between the switch of the engine and the record of it: what the engine serves stays.
        await rig.put(`/projects/${id}`, { canary: null });
        const switched = await rig.serve(id);
        await rig.panel.end('SIGTERM');
        const names = readdirSync(rig.panel.dataDir, { recursive: true, encoding: 'utf8' });
        const file = names.find((name) => name.includes('deploy/') && name.endsWith('data.db')) ?? '';
        const database = new DatabaseSync(join(rig.panel.dataDir, file));
        database.exec(`update deploy_projects set live = ${old.id} where id = ${id}`);
        const { steps } = database
            .prepare('select steps from deploy_deployments where id = ?')
            .get(switched.id) as { steps: string };
        const cutSteps = (JSON.parse(steps) as { name: string; state: string }[]).map((step) =>
            step.name === 'switch'
                ? { ...step, state: 'running' }
                : step.name === 'drain'
                  ? { ...step, state: 'waiting' }
                  : step
        );
        database
            .prepare(
                "update deploy_deployments set state = 'releasing', finished_at = null, steps = ? where id = ?"
            )
            .run(JSON.stringify(cutSteps), switched.id);
        database.close();
        await rig.startPanel();
        expect(await rig.over(switched.id)).to.include({ state: 'live' });
        expect((await rig.get(`/projects/${id}`)).data).to.include({ state: 'live', live: switched.id });
        expect((await rig.page('cut.test')).text).to.equal('new');
    });

    real('go on serving, fail builds that were cut, and leave nothing of them', async () => {
        rig.git.create('app', {
            'package.json': '{"scripts":{"start":"node server.js"}}',
            'server.js': server('one')
        });
        const id = await rig.project({
            name: 'app',
            source: { url: rig.git.url('app') },
            host: { domain: 'app.test' },
            run: { drainSeconds: 1 },
            health: { successes: 1 }
        });
        await rig.serve(id);
        const folder = join(rig.folder, `projects/${id}`);
        await rig.put(`/projects/${id}`, { build: { commands: [['sleep', '300']] } });
        const building = await rig.begin(id);
        await until(
            async () => (await rig.get(`/deployments/${building.id}`)).data.steps[2].state === 'running'
        );
        await rig.panel.end('SIGKILL');
        expect((await rig.page('app.test')).text).to.equal('one');
        await rig.startPanel();
        const cut = await rig.over(building.id);
        expect([cut.state, cut.reason]).to.equal(['failed', 'PANEL_DIED']);
        expect([readdirSync(join(folder, 'builds')), readdirSync(join(folder, 'releases'))]).to.equal([
            [],
            ['1']
        ]);
        expect((await rig.get(`/projects/${id}`)).data.state).to.equal('live');

        // While a release is checked: it is undone, and its programs end.
        await rig.put(`/projects/${id}`, { build: { commands: [] }, health: { successes: 100 } });
        rig.git.commit('app', { 'server.js': server('two') });
        const checking = await rig.begin(id);
        await until(
            async () => (await rig.get(`/deployments/${checking.id}`)).data.steps[6].state === 'running'
        );
        await rig.killPanel();
        expect((await rig.over(checking.id)).reason).to.equal('PANEL_DIED');
        const { data: plugin } = await rig.client.get('/api/plugins/deploy');
        const names = plugin.services.map(({ name }: { name: string }) => name);
        expect(names.filter((name: string) => name.startsWith(`p${id}-`))).to.equal([`p${id}-1-web-0`]);
        expect(existsSync(join(folder, 'releases/3'))).to.be.false();
        expect((await rig.page('app.test')).text).to.equal('one');

        // An orderly end changes nothing, and begins the count of bad starts anew.
        await rig.panel.end('SIGTERM');
        expect((await rig.page('app.test')).text).to.equal('one');
        await rig.startPanel();

        // While the old release is drained: the switch was made, so it stays.
        await rig.put(`/projects/${id}`, { health: { successes: 1 }, run: { drainSeconds: 60 } });
        const draining = await rig.begin(id);
        await rig.page('app.test');
        await until(async () => (await rig.get(`/deployments/${draining.id}`)).data.state === 'live');
        await rig.killPanel();
        expect((await rig.over(draining.id)).state).to.equal('live');
        expect((await rig.page('app.test')).text).to.equal('two');
        await until(
            async () =>
                (await rig.client.get('/api/plugins/deploy')).data.services.filter(
                    ({ name }: { name: string }) => name.startsWith(`p${id}-`)
                ).length === 1
        );
        expect((await rig.get(`/projects/${id}`)).data).to.include({ state: 'live', live: draining.id });
        expect((await rig.client.get(`${base}/queue`)).data).to.equal({ running: [], waiting: [] });
    });

    real('begin their crons again, and leave nothing of one that was cut', async () => {
        const sleeps = 100_000 + process.pid; // found among the processes of the machine
        rig.git.create('timed', {
            'package.json': '{"scripts":{"start":"node server.js"}}',
            'server.js': server('timed')
        });
        const id = await rig.project({
            name: 'timed',
            source: { url: rig.git.url('timed') },
            host: { domain: 'timed.test' },
            run: { drainSeconds: 1, shared: ['data'] },
            health: { successes: 1 }
        });
        await rig.serve(id);
        const cron = await rig.post(`/projects/${id}/crons`, {
            ...{ name: 'tick', schedule: '* * * * * *' },
            command: ['sh', '-c', `echo ran >> /app/data/ran; exec sleep ${sleeps}`]
        });
        expect(cron.status, cron.text).to.equal(201);
        const file = join(rig.folder, `projects/${id}/shared/data/ran`);
        const runs = () => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').length - 1 : 0);
        const asleep = () =>
            readdirSync('/proc').filter(
                (name) => /^\d+$/.test(name) && commandOf(Number(name)).startsWith(`sleep\0${sleeps}\0`)
            ).length;
        await until(() => runs() === 1 && asleep() === 1, 'the cron to run');
        await rig.panel.end('SIGKILL');
        await until(() => asleep() === 0, 'the cut run to end');
        expect((await rig.page('timed.test')).text).to.equal('timed');
        await rig.startPanel();
        await until(() => runs() === 2 && asleep() === 1, 'the cron to run again');
        await rig.put(`/crons/${cron.data.id}`, { enabled: false });
        await until(() => asleep() === 0, 'the run to end with its cron');
        await rig.delete(`/projects/${id}`);
    });
});
