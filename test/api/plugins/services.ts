import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { identify, isAlive } from '../../../core/src/platform/process-identity.ts';
import { ServicesRig } from '../../support/machine/services.ts';
import { startPanel, type TestPanel } from '../../support/panel/panel.ts';
import { createPluginFolder, type PluginFolder, pluginModule } from '../../support/plugins/folder.ts';
import { until } from '../../support/until.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const limitMs = 60_000;
const code = pluginModule(`
    ctx.onStart(() => ctx.services.put('web', { file: 'sleep', args: ['600'] }));
`);
const capabilities = { exec: ['sleep'], services: true };

let folder: PluginFolder;
let panel: TestPanel;
let rig: ServicesRig;

const detail = async () => (await panel.client.get('/api/plugins/keeps')).data;
const put = (body: object) => panel.client.put('/api/plugins/keeps', body);

describe('GET /api/plugins/{name} with services', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        folder = createPluginFolder();
        panel = await startPanel();
        rig = new ServicesRig(panel.config.dataDir);
        const to = join(panel.config.dataDir, 'extensions', 'keeps');
        mkdirSync(to, { recursive: true });
        cpSync(folder.write('keeps', code, { manifest: { capabilities } }), to, { recursive: true });
        await panel.restart();
        await panel.panel.settled();
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
});
