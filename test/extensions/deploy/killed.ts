import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { ServicesRig } from '../../support/machine/services.ts';
import { createPanelProcess, type PanelProcess } from '../../support/panel/process.ts';
import { itUnless } from '../../support/skip.ts';
import { until } from '../../support/until.ts';
import { GitServer } from './git-server.ts';
import { base, DeployClient, makeAccount, server, withoutSandbox, writePackage } from './rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const real = itUnless(withoutSandbox, it);

const limitMs = 150_000;
let top: string;
let panel: PanelProcess;
let git: GitServer;
let account: { readonly name: string; remove(): void };
let rig: DeployClient;

const login = async (): Promise<void> => {
    rig = new DeployClient(await panel.login(), panel.httpPort);
    await until(async () => (await rig.get('/projects')).status === 200);
};

/** Kills the panel as a power failure would, and starts it again. */
async function killed(): Promise<void> {
    await panel.end('SIGKILL');
    await panel.start();
    await login();
}

async function end(): Promise<void> {
    await new ServicesRig(panel.dataDir).end();
    await panel.close();
    await git.close();
    account.remove();
    rmSync(top, { recursive: true, force: true });
}

describe('Deployments of a panel that is killed', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        if (withoutSandbox !== undefined) {
            return;
        }
        process.umask(0o022);
        top = mkdtempSync(join(tmpdir(), 'portico-deploy-killed-'));
        chmodSync(top, 0o755);
        account = makeAccount();
        git = new GitServer(join(top, 'git'));
        await git.start();
        panel = await createPanelProcess({ environment: { PORTICO_PLUGIN_DIRS: writePackage(top) } });
        try {
            await panel.start();
            await login();
            await rig.client.put('/api/plugins/deploy', { settings: { user: account.name } });
        } catch (error) {
            await end();
            throw error;
        }
    });

    after({ timeout: limitMs }, async () => {
        if (panel !== undefined) {
            await end();
        }
    });

    real('go on serving, fail builds that were cut, and leave nothing of them', async () => {
        git.create('app', {
            'package.json': '{"scripts":{"start":"node server.js"}}',
            'server.js': server('one')
        });
        const id = await rig.project({
            name: 'app',
            source: { url: git.url('app') },
            host: { domain: 'app.test' },
            run: { drainSeconds: 1 },
            health: { successes: 1 }
        });
        await rig.serve(id);
        const folder = join(top, 'releases', `projects/${id}`);
        await rig.put(`/projects/${id}`, { build: { commands: [['sleep', '300']] } });
        const building = await rig.begin(id);
        await until(
            async () => (await rig.get(`/deployments/${building.id}`)).data.steps[2].state === 'running'
        );
        await panel.end('SIGKILL');
        expect((await rig.page('app.test')).text).to.equal('one');
        await panel.start();
        await login();
        const cut = await rig.over(building.id);
        expect([cut.state, cut.reason]).to.equal(['failed', 'PANEL_DIED']);
        expect([readdirSync(join(folder, 'builds')), readdirSync(join(folder, 'releases'))]).to.equal([
            [],
            ['1']
        ]);
        expect((await rig.get(`/projects/${id}`)).data.state).to.equal('live');

        // While a release is checked: it is undone, and its programs end.
        await rig.put(`/projects/${id}`, { build: { commands: [] }, health: { successes: 100 } });
        git.commit('app', { 'server.js': server('two') });
        const checking = await rig.begin(id);
        await until(
            async () => (await rig.get(`/deployments/${checking.id}`)).data.steps[6].state === 'running'
        );
        await killed();
        expect((await rig.over(checking.id)).reason).to.equal('PANEL_DIED');
        const { data: plugin } = await rig.client.get('/api/plugins/deploy');
        expect(plugin.services.map(({ name }: { name: string }) => name)).to.equal([`p${id}-1-web-0`]);
        expect(existsSync(join(folder, 'releases/3'))).to.be.false();
        expect((await rig.page('app.test')).text).to.equal('one');

        // An orderly end changes nothing, and begins the count of bad starts anew.
        await panel.end('SIGTERM');
        expect((await rig.page('app.test')).text).to.equal('one');
        await panel.start();
        await login();

        // While the old release is drained: the switch was made, so it stays.
        await rig.put(`/projects/${id}`, { health: { successes: 1 }, run: { drainSeconds: 60 } });
        const draining = await rig.begin(id);
        await rig.page('app.test');
        await until(async () => (await rig.get(`/deployments/${draining.id}`)).data.state === 'live');
        await killed();
        expect((await rig.over(draining.id)).state).to.equal('live');
        expect((await rig.page('app.test')).text).to.equal('two');
        await until(async () => (await rig.client.get('/api/plugins/deploy')).data.services.length === 1);
        expect((await rig.get(`/projects/${id}`)).data).to.include({ state: 'live', live: draining.id });
        expect((await rig.client.get(`${base}/queue`)).data).to.equal({ running: [], waiting: [] });
    });
});
