/** A panel whose data folder lies on a real, small file system that gets full. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { engineHome } from '../../core/src/engine/files/home.ts';
import { mountSmallDisk, noSmallDisk, type SmallDisk } from '../support/machine/small-disk.ts';
import type { Client } from '../support/panel/client.ts';
import { createPanelProcess, type PanelProcess } from '../support/panel/process.ts';
import { createPluginFolder, type PluginFolder, pluginModule } from '../support/plugins/folder.ts';
import { itUnless } from '../support/skip.ts';
import { until } from '../support/until.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
const onSmallDisk = itUnless(noSmallDisk, it);

const notesPlugin = pluginModule(
    `ctx.route({
        method: 'POST',
        path: '/notes',
        access: 'write',
        handler: () => ctx.db.write(async (em) => {
            await em.execute("insert into notes (text) values ('a')");
            return {};
        })
    });`,
    {
        more: "migrations: [{ name: '1', up: ['create table notes (id integer primary key, text text not null)'] }],"
    }
);
const promptMs = 5_000;

describe('a panel on a full disk', { timeout: 90_000 }, () => {
    let root: string;
    let plugins: PluginFolder;
    let disk: SmallDisk;
    let panel: PanelProcess;
    let client: Client;
    let hosts = 0;

    const promptly = async <T>(work: () => Promise<T>): Promise<T> => {
        const began = performance.now();
        const answer = await work();
        expect(performance.now() - began).to.be.below(promptMs);
        return answer;
    };
    const makeHost = () =>
        client.post('/api/hosts', { domain: `name-${(hosts += 1)}.full.test`, upstream: '127.0.0.1:8099' });
    /** Makes hosts until the space inside the panel's own files is used, too. */
    const useUp = async (): Promise<void> => {
        for (let answer = await makeHost(); answer.code !== 50700; answer = await makeHost()) {
            expect(answer.text).to.contain('"code":0');
        }
    };
    const makeNote = () => client.post('/api/plugins/notes/notes');
    const domains = async (): Promise<string[]> =>
        ((await client.get('/api/hosts?limit=100')).data as { domain: string }[]).map(({ domain }) => domain);

    before(async () => {
        if (noSmallDisk !== undefined) {
            return;
        }
        root = mkdtempSync(join(tmpdir(), 'portico-full-'));
        plugins = createPluginFolder();
        plugins.write('notes', notesPlugin);
        disk = mountSmallDisk(join(root, 'disk'), 32 * 1_048_576);
        panel = await createPanelProcess({
            dataDir: join(disk.folder, 'data'),
            environment: { PORTICO_PLUGIN_DIRS: plugins.path }
        });
        await panel.start();
        client = await panel.login();
        await until(
            async () => (await client.get('/api/plugins/notes')).data.state === 'running',
            'the plugin to run',
            60_000
        );
    });

    after(async () => {
        await panel?.close();
        plugins?.remove();
        disk?.close();
        if (root !== undefined) {
            rmSync(root, { recursive: true, force: true });
        }
    });

    onSmallDisk('answers 50700 at once, lets users in, and changes again once there is space', async () => {
        expect((await makeHost()).status).to.equal(201);
        expect((await makeNote()).text).to.contain('"code":0');
        const before = await domains();
        for (let round = 0; round < 2; round += 1) {
            disk.fill();
            await useUp();
            const kept = await domains();
            for (let attempt = 0; attempt < 5; attempt += 1) {
                expect(await promptly(makeHost)).to.include({ status: 507, code: 50700 });
                expect(await promptly(makeNote)).to.include({ status: 507, code: 50700 });
                const entered = await promptly(() => panel.login());
                expect((await entered.get('/api/auth/me')).status).to.equal(200);
                expect((await entered.post('/api/auth/logout')).status).to.equal(200);
                expect(await promptly(domains)).to.equal(kept);
            }
            expect((await client.get('/api/proxyengine/drift')).data).to.include({ drifted: false });
            disk.free();
            expect((await promptly(makeHost)).status).to.equal(201);
            expect((await promptly(makeNote)).code).to.equal(0);
        }
        expect((await domains()).length).to.be.at.least(before.length + 2);
    });

    onSmallDisk('ends in good time at SIGTERM, and starts again', async () => {
        disk.fill();
        await useUp();
        await promptly(() => panel.login());
        const began = performance.now();
        expect(await panel.end('SIGTERM'), panel.output).to.equal(0);
        expect(performance.now() - began).to.be.below(15_000);
        await panel.start();
        client = await promptly(() => panel.login());
        expect(await promptly(makeHost)).to.include({ code: 50700 });
        disk.free();
        expect((await promptly(makeHost)).status).to.equal(201);
    });

    onSmallDisk('answers 50700 while a folder of the engine is full, and the engine goes on', async () => {
        const { runtime } = engineHome(panel.dataDir, null);
        await panel.end('SIGTERM');
        process.kill(panel.enginePid() ?? 0, 'SIGKILL');
        const engineDisk = mountSmallDisk(runtime, 1_048_576, 64);
        try {
            await panel.start();
            client = await panel.login();
            await useUp();
            const kept = await domains();
            expect(await promptly(makeHost)).to.include({ status: 507, code: 50700 });
            expect(await domains()).to.equal(kept);
            expect((await client.get('/api/proxyengine/status')).data.state).to.equal('running');
            engineDisk.takeFiles(10_000);
            expect((await promptly(makeHost)).status).to.equal(201);
            expect((await client.get('/api/proxyengine/drift')).data).to.include({ drifted: false });
        } finally {
            await panel.end('SIGTERM');
            process.kill(panel.enginePid() ?? 0, 'SIGKILL');
            engineDisk.close();
        }
    });
});
