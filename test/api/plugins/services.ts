import { cpSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { identify, isAlive } from '../../../core/src/platform/process/process-identity.ts';
import { ServicesRig } from '../../support/machine/services.ts';
import { startPanel, type TestPanel } from '../../support/panel/panel.ts';
import { createPluginFolder, type PluginFolder, pluginModule } from '../../support/plugins/folder.ts';
import { until } from '../../support/until.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const limitMs = 60_000;
const code = pluginModule(`
    ctx.onStart(async () => {
        await ctx.services.put('web', { file: 'sleep', args: ['600'] });
        await ctx.services.start('web');
    });
`);
const capabilities = { exec: ['sleep'], services: true };

let folder: PluginFolder;
let panel: TestPanel;
let rig: ServicesRig;

const detail = async () => (await panel.client.get('/api/plugins/keeps')).data;
const put = (body: object) => panel.client.put('/api/plugins/keeps', body);

/** Puts the plugin into the panel's folder of plugins, in the place of what is there, as a package of another name; null: nothing. */
async function place(name: string | null): Promise<void> {
    const extensions = join(panel.config.dataDir, 'extensions');
    rmSync(extensions, { recursive: true, force: true });
    mkdirSync(extensions, { recursive: true });
    if (name !== null) {
        const written = folder.write('keeps', code, {
            manifest: { capabilities },
            package: `@acme/${name}`,
            folder: name
        });
        cpSync(written, join(extensions, name), { recursive: true });
    }
    await panel.restart();
    await panel.panel.settled();
}

describe('GET /api/plugins/{name} with services', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        folder = createPluginFolder();
        panel = await startPanel();
        rig = new ServicesRig(panel.config.dataDir);
        await place('keeps');
    });

    after({ timeout: limitMs }, async () => {
        await rig.end();
        await panel.close();
        folder.remove();
    });

    it('shows what a plugin keeps running over disable and restart, and stops it when its grant is taken away', async () => {
        expect((await put({ enabled: true, grants: capabilities })).status).to.equal(200);
        const [service] = (await detail()).services;
        expect(service).to.include({ name: 'web', state: 'running', exits: 0, program: 'sleep', user: null });
        const program = identify(service.pid) ?? { pid: 0, ticks: 0 };
        expect((await detail()).health.checks.map(({ name }: { name: string }) => name)).to.include(
            'services'
        );

        await put({ enabled: false });
        expect((await detail()).services[0]).to.include({ state: 'running', pid: program.pid });
        await panel.restart();
        await panel.panel.settled();
        expect((await detail()).services[0]).to.include({ state: 'running', pid: program.pid });
        await put({ enabled: true });
        expect((await detail()).services[0].pid).to.equal(program.pid);

        await put({ enabled: false });
        await put({ grants: { services: true } });
        await until(() => !isAlive(program));
        expect((await detail()).services[0]).to.include({ state: 'stopped', pid: null });
    });

    it('gives them to the package that takes over the record, and they go on', async () => {
        expect((await put({ grants: capabilities, enabled: true })).status).to.equal(200);
        const [{ pid }] = (await detail()).services;
        const program = identify(pid) ?? { pid: 0, ticks: 0 };
        await place('another');
        const fresh = await detail();
        expect([fresh.state, fresh.services, fresh.adoptable]).to.equal(['disabled', [], '@acme/keeps']);
        expect(isAlive(program)).to.be.true();
        const { data } = await put({ adopt: true, enabled: true });
        expect(data.state).to.equal('running');
        expect(data.services.map((each: { pid: number }) => each.pid)).to.equal([program.pid]);
        expect(isAlive(program)).to.be.true();
    });

    it('ends them, and removes what is kept of them, when the plugin is uninstalled with its data', async () => {
        const [{ pid }] = (await detail()).services;
        const program = identify(pid) ?? { pid: 0, ticks: 0 };
        await place(null);
        expect(isAlive(program)).to.be.true();
        const units = join(panel.config.dataDir, 'services/units');
        expect(readdirSync(units)).to.have.length(1);
        expect((await panel.client.delete('/api/plugins/keeps?purge=true')).status).to.equal(200);
        expect(isAlive(program)).to.be.false();
        expect(readdirSync(units)).to.equal([]);
    });
});
