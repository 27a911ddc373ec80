import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import type { Client } from '../../../support/panel/client.ts';
import { createPanelProcess, type PanelProcess } from '../../../support/panel/process.ts';
import {
    createPluginFolder,
    helloRoute,
    type PluginFolder,
    pluginModule
} from '../../../support/plugins/folder.ts';
import { until } from '../../../support/until.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

const limitMs = 90_000;
let folder: PluginFolder;
let panel: PanelProcess;

async function start(options: { readonly node?: readonly string[] } = {}): Promise<void> {
    panel = await createPanelProcess({ environment: { PORTICO_PLUGIN_DIRS: folder.path }, ...options });
}

async function stateOf(client: Client, name: string): Promise<readonly unknown[]> {
    const { data } = await client.get(`/api/plugins/${name}`);
    return [data.state, data.failure?.code ?? null];
}

async function reaches(client: Client, name: string, state: string): Promise<void> {
    await until(async () => (await stateOf(client, name))[0] === state, `${name} to be ${state}`);
}

describe('a panel with plugins', { timeout: limitMs }, () => {
    beforeEach(() => {
        folder = createPluginFolder();
    });
    afterEach({ timeout: limitMs }, async () => {
        await panel.close();
        folder.remove();
    });

    it('calls no plugin failed when it stops in the middle of its boot', async () => {
        const mark = join(folder.path, 'mark');
        folder.write(
            'base',
            pluginModule(
                `ctx.onStart(async (signal) => {
                    writeFileSync(${JSON.stringify(mark)}, '');
                    await new Promise((resolve) => signal.addEventListener('abort', resolve));
                });`,
                { head: `import { writeFileSync } from 'node:fs';` }
            )
        );
        folder.write('upper', pluginModule(helloRoute, { more: 'requires: { base: contract() },' }), {
            manifest: { requires: { base: '^1.0.0' } }
        });
        await start();
        panel.launch();
        await until(() => existsSync(mark), 'base to start');
        await panel.end('SIGTERM');
        expect(panel.output).to.not.contain('REQUIREMENT_FAILED');
    });

    it('opens its door in safe mode after three starts that a plugin blocked, and tries again at the next one', async () => {
        const mark = join(folder.path, 'mark');
        folder.write(
            'blocker',
            pluginModule('', {
                head: `import { existsSync, writeFileSync } from 'node:fs';\nwriteFileSync(${JSON.stringify(mark)}, '');\nwhile (!existsSync(${JSON.stringify(`${mark}-free`)})) {}`
            })
        );
        folder.write('sound', pluginModule(helloRoute));
        await start();
        for (let attempt = 0; attempt < 3; attempt += 1) {
            rmSync(mark, { force: true });
            panel.launch();
            await until(() => existsSync(mark), 'the import');
            await panel.end('SIGKILL');
        }
        rmSync(mark, { force: true });
        await panel.start();
        const client = await panel.login();
        const list = await client.get('/api/plugins');
        expect(list.headers['x-portico-safe-mode']).to.equal('1');
        expect(list.message).to.contain('the last three starts');
        expect(
            list.data
                .filter(({ origin }: { origin: string }) => origin === 'folder')
                .map(({ name, state }: { name: string; state: string }) => [name, state])
        ).to.equal([
            ['blocker', 'resolved'],
            ['sound', 'resolved']
        ]);
        const { code, message } = await client.get('/api/plugins/sound/hello');
        expect([code, message]).to.equal([50300, list.message]);
        expect(existsSync(mark)).to.be.false();
        const disabled = await client.put('/api/plugins/blocker', { enabled: false });
        expect([disabled.data.state, disabled.message]).to.equal(['disabled', list.message]);

        expect(await panel.end('SIGTERM')).to.equal(0);
        await panel.start();
        const again = await panel.login();
        await reaches(again, 'sound', 'running');
        expect((await again.get('/api/plugins')).headers['x-portico-safe-mode']).to.be.undefined();
        expect(await stateOf(again, 'blocker')).to.equal(['disabled', null]);
        expect((await again.get('/api/plugins/sound/hello')).data).to.equal({ text: 'Hello' });
    });

    it('puts the plugin that ended three starts in quarantine, and loads the others', async () => {
        folder.write('suicidal', pluginModule('', { head: 'process.exit(7);' }));
        folder.write('sound', pluginModule(helloRoute));
        await start();
        for (let attempt = 0; attempt < 3; attempt += 1) {
            panel.launch();
            await until(() => !panel.running, 'its end');
        }
        await panel.start();
        const client = await panel.login();
        await reaches(client, 'sound', 'running');
        expect((await client.get('/api/plugins')).headers['x-portico-safe-mode']).to.be.undefined();
        expect(await stateOf(client, 'suicidal')).to.equal(['quarantined', 'PROCESS_EXITED']);
        expect(readdirSync(join(panel.dataDir, 'plugin-incidents'))).to.equal([]);
    });

    it('stops a plugin that throws an uncaught error, and lets the panel and the others go on', async () => {
        const ways = {
            timer: "setTimeout(() => { throw new Error('from a timer'); }, 5);",
            promise: "void Promise.reject(new Error('from a promise'));",
            emitter: "setTimeout(() => new EventEmitter().emit('error', new Error('from an emitter')), 5);",
            nothing: 'setImmediate(() => { throw null; });'
        };
        for (const [name, code] of Object.entries(ways)) {
            folder.write(
                name,
                pluginModule(
                    `ctx.route({ method: 'POST', path: '/crash', access: 'write', handler: () => { ${code} return { ok: true }; } });`,
                    { head: "import { EventEmitter } from 'node:events';" }
                )
            );
        }
        folder.write('early', pluginModule("setTimeout(() => { throw new Error('from setup'); }, 300);"));
        folder.write('sound', pluginModule(helloRoute));
        await start();
        await panel.start();
        const client = await panel.login();
        for (const name of Object.keys(ways)) {
            await reaches(client, name, 'running');
            await client.post(`/api/plugins/${name}/crash`, {}).catch(() => undefined);
        }
        await reaches(client, 'early', 'failed');
        for (const name of ['timer', 'promise', 'emitter', 'nothing', 'early']) {
            await reaches(client, name, 'failed');
            expect(await stateOf(client, name)).to.equal(['failed', 'UNCAUGHT']);
            expect((await client.get(`/api/plugins/${name}/crash`)).code).to.equal(50303);
        }
        expect((await client.get('/api/plugins/timer')).data.failure).to.include({
            stage: 'running',
            message: 'from a timer'
        });
        expect((await client.get('/api/plugins/sound/hello')).data).to.equal({ text: 'Hello' });
        expect((await client.put('/api/plugins/timer', { enabled: true })).data.state).to.equal('running');
        expect(panel.running).to.be.true();
    });

    it('still ends by an error of its own', async () => {
        folder.write('sound', pluginModule(helloRoute));
        await start({
            node: [
                '--import',
                'data:text/javascript,process.once("SIGUSR2", () => { setImmediate(() => { throw new Error("nobody\'s") }) })'
            ]
        });
        await panel.start();
        panel.signal('SIGUSR2');
        await until(() => !panel.running, 'its end');
        expect(panel.output).to.contain('an uncaught error');
    });

    it('knows after a kill in the middle of enabling what was decided', async () => {
        const mark = join(folder.path, 'mark');
        folder.write(
            'slow',
            pluginModule(
                `ctx.onStart(async () => { writeFileSync(${JSON.stringify(mark)}, String(Date.now())); await new Promise((resolve) => setTimeout(resolve, existsSync(${JSON.stringify(`${mark}-fast`)}) ? 10 : 20_000)); });\n${helloRoute}`,
                { head: "import { existsSync, writeFileSync } from 'node:fs';" }
            )
        );
        await start();
        await panel.start();
        const client = await panel.login();
        await until(() => existsSync(mark), 'the start');
        const early = client.get('/api/plugins/slow/hello').then(
            ({ code }) => code,
            () => 'cut'
        );
        expect(await Promise.race([early, new Promise((done) => setTimeout(done, 300, 'waits'))])).to.equal(
            'waits'
        );
        await panel.end('SIGKILL');
        expect(await early).to.equal('cut');
        rmSync(mark);
        await panel.start();
        const second = await panel.login();
        void second.put('/api/plugins/slow', { enabled: false }).catch(() => undefined);
        await until(
            async () => (await second.get('/api/plugins/slow')).data.enabled === false,
            'the decision'
        );
        await reaches(second, 'slow', 'disabled'); // long before its start would have ended
        await panel.end('SIGKILL');
        rmSync(mark, { force: true });
        await panel.start();
        const third = await panel.login();
        await reaches(third, 'slow', 'disabled');
        expect(existsSync(mark)).to.be.false();
        expect(await panel.end('SIGTERM')).to.equal(0); // a good start: those before it no longer count
        await panel.start();
        const again = await panel.login();
        void again.put('/api/plugins/slow', { enabled: true }).catch(() => undefined);
        await until(() => existsSync(mark), 'the start');
        await panel.end('SIGKILL');
        writeFileSync(`${mark}-fast`, '');
        await panel.start();
        const fourth = await panel.login();
        // Without a wait for its start: the request itself waits.
        expect((await fourth.get('/api/plugins/slow/hello')).data).to.equal({ text: 'Hello' });
        expect((await fourth.get('/api/audit/verify')).data).to.include({ holds: true });
        expect(readFileSync(mark, 'utf8')).to.match(/^\d+$/);
    });

    it('loads nothing when it is told so', async () => {
        folder.write(
            'sound',
            pluginModule(helloRoute, {
                head: `import { writeFileSync } from 'node:fs';\nwriteFileSync(${JSON.stringify(join(folder.path, 'mark'))}, '');`
            })
        );
        panel = await createPanelProcess({
            environment: { PORTICO_PLUGIN_DIRS: folder.path, PORTICO_SAFE_MODE: '1' }
        });
        await panel.start();
        const client = await panel.login();
        const list = await client.get('/api/plugins');
        expect(list.message).to.contain('PORTICO_SAFE_MODE');
        expect((await client.get('/api/plugins/sound/hello')).code).to.equal(50300);
        expect((await client.get('/api/plugins/unknown/hello')).code).to.equal(50300);
        expect((await client.put('/api/plugins/sound', { enabled: false })).data.state).to.equal('disabled');
        expect((await client.put('/api/plugins/sound', { enabled: true })).data.state).to.equal('resolved');
        expect(existsSync(join(folder.path, 'mark'))).to.be.false();
    });
});
