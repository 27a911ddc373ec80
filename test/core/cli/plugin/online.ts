import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import {
    auditOf,
    command,
    environmentOf,
    panelFolder,
    type Ran,
    removeFolder,
    type RunningPanel,
    shim,
    startPanel
} from '../../../support/panel/console.ts';
import {
    createPluginFolder,
    helloRoute,
    type PluginFolder,
    pluginModule
} from '../../../support/plugins/folder.ts';
import { publishVersion, versionedPackage } from '../../../support/plugins/versioned.ts';
import { packageArchive } from '../../../support/registry/archive.ts';
import { type NpmRegistry, startNpmRegistry } from '../../../support/servers/npm-registry.ts';
import { until } from '../../../support/until.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const limitMs = 240_000;
const network = { capabilities: { network: ['api.example.org'] } };

describe('portico plugin with a running panel', { timeout: limitMs }, () => {
    let dataDir: string;
    let folder: PluginFolder;
    let npm: NpmRegistry;
    let panel: RunningPanel;
    let place: string;

    const run = (...args: string[]): Promise<Ran> => command(['plugin', ...args, '--data-dir', dataDir]);
    const json = async (...args: string[]): Promise<Record<string, unknown>> => {
        const { code, stdout, stderr } = await run(...args, '--json');
        if (stdout === '') {
            throw new Error(`${args.join(' ')} exits with ${code}: ${stderr}`);
        }
        return JSON.parse(stdout) as Record<string, unknown>;
    };
    const shown = async (name: string): Promise<Record<string, unknown> | undefined> =>
        ((await json('list'))['plugins'] as Record<string, unknown>[]).find(
            (plugin) => plugin['name'] === name
        );
    const archive = (version: string, options: object): string => {
        const path = join(place, `${version}.tgz`);
        writeFileSync(path, packageArchive(...versionedPackage(version, options)));
        return path;
    };

    before(async () => {
        [dataDir, npm, folder, place] = [
            await panelFolder(),
            await startNpmRegistry(),
            createPluginFolder(),
            mkdtempSync(join(tmpdir(), 'portico-archives-'))
        ];
        folder.write('base', pluginModule(helloRoute));
        folder.write('top', pluginModule(helloRoute), { manifest: { requires: { base: '^1.0.0' } } });
        folder.write('broken', pluginModule('', { head: "throw new Error('broken at \\u001b[2Jimport');" }));
        panel = await startPanel(dataDir, {
            env: { PORTICO_PLUGIN_DIRS: folder.path, PORTICO_NPM_REGISTRY: npm.url }
        });
        await until(
            async () =>
                (await shown('top'))?.['state'] === 'running' &&
                (await shown('broken'))?.['state'] === 'failed',
            'the plugins to run'
        );
    });
    after(async () => {
        await panel?.stop();
        await npm?.stop();
        folder?.remove();
        removeFolder(dataDir);
        rmSync(place, { recursive: true, force: true });
    });

    it('lists what runs, and why one does not', async () => {
        const { code, stdout, stderr } = await run('list');
        expect([code, stderr]).to.equal([0, '']);
        expect(stdout).to.match(/\nbase +1\.0\.0 +running +yes +@acme\/portico-plugin-base\n/);
        expect(stdout)
            .to.match(
                /\nbroken +1\.0\.0 +failed +yes .*\n {4}Failed: its code was not loaded \(IMPORT_FAILED\): .*broken at .*import/
            )
            .and.not.include('\u001b');
        expect(await json('list')).to.include({ isRunning: true, safeMode: false, message: null });
    });

    it("disables and enables, refuses what would break another one, and puts each on record as the console's", async () => {
        expect(await run('disable', 'base')).to.equal({
            code: 1,
            stdout: '',
            stderr: 'portico: base is required by top. With --cascade that is disabled first\n'
        });
        expect(await run('disable', 'nobody')).to.equal({
            code: 1,
            stdout: '',
            stderr: 'portico: There is no plugin named nobody\n'
        });
        expect(await shown('base')).to.include({ state: 'running' });
        expect(await run('disable', 'base', '--cascade')).to.equal({
            code: 0,
            stdout: '',
            stderr: 'base is disabled. Disabled with what requires it: top.\n'
        });
        expect(auditOf(dataDir).at(-1)).to.include({
            action: 'disable',
            resource: 'plugins',
            resource_id: 'base',
            outcome: 'success',
            actor_id: null,
            username: null
        });
        expect(auditOf(dataDir).at(-1)?.['user_agent']).to.match(/^portico-console \(/);
        const enabled = await run('enable', 'top', '--cascade');
        expect(enabled).to.equal({
            code: 0,
            stdout: '',
            stderr: 'base runs, in version 1.0.0.\ntop runs, in version 1.0.0.\n'
        });
        const broken = await run('enable', 'broken');
        expect([broken.code, broken.stdout]).to.equal([1, '']);
        expect(broken.stderr).to.match(/^broken has failed: its code was not loaded \(IMPORT_FAILED\): /);
    });

    it('installs from the registry, tells how far it is, and upgrades when the admin agrees', async () => {
        await publishVersion(npm, '1.0.0');
        await publishVersion(npm, '2.0.0', { manifest: network });
        const first = await run('install', '@acme/portico-plugin-rows@1.0.0');
        expect([first.code, first.stdout], first.stderr).to.equal([0, '']);
        expect(first.stderr).to.match(
            /^ {2}asking the registry\n {2}fetching\n[^]*@acme\/portico-plugin-rows 1\.0\.0 is installed\. rows runs, in version 1\.0\.0\.\n$/
        );
        const refused = await run('install', '@acme/portico-plugin-rows');
        expect([refused.code, refused.stdout]).to.equal([1, '']);
        expect(refused.stderr)
            .to.include(
                '  network      Hosts that it connects to, or has programs connect to: api.example.org\n'
            )
            .and.include('portico plugin install @acme/portico-plugin-rows --grant-all\n');
        expect(await shown('rows')).to.include({ version: '1.0.0', state: 'running' });
        const upgraded = await json('install', '@acme/portico-plugin-rows', '--grant-all');
        expect(upgraded).to.include({
            name: 'rows',
            version: '2.0.0',
            from: '1.0.0',
            state: 'running',
            enabled: true
        });
        expect((upgraded['capabilities'] as { missing: unknown }).missing).to.be.null();
        npm.intercept = (_request, response) => response.destroy() !== null;
        expect(await json('install', '@acme/portico-plugin-rows@1.0.0')).to.include({
            from: '2.0.0',
            version: '1.0.0',
            state: 'running'
        });
        expect(await json('install', '@acme/portico-plugin-rows@2.0.0')).to.include({
            from: '1.0.0',
            version: '2.0.0',
            state: 'running'
        });
        npm.intercept = null;
        expect((await run('install', '@acme/portico-plugin-rows@2.0.0', '--restore-data')).stderr).to.equal(
            'portico: rows 2.0.0 is installed already\n'
        );
        expect((await run('install', '@acme/portico-plugin-rows@9')).stderr).to.include('rows');
        expect(await json('install', '@acme/portico-plugin-rows', '--disabled')).to.include({
            from: '2.0.0',
            state: 'disabled',
            enabled: false
        });
        const { code } = (await (await fetch(`${panel.url}/api/plugins/rows/word`)).json()) as {
            code: number;
        };
        expect(code).to.equal(40411);
        expect(await json('enable', 'rows')).to.include({ state: 'running' });
        expect((await run('list', '--available')).stdout).to.match(
            /\nrows +2\.0\.0 +2\.0\.0 +@acme\/portico-plugin-rows/
        );
        expect(await run('remove', 'rows', '--purge')).to.include({ code: 0, stdout: '' });
        expect(await shown('rows')).to.be.undefined();
    });

    it('keeps a plugin disabled until its wishes are agreed to, and enables it then', async () => {
        await publishVersion(npm, '1.0.0', { name: 'greedy', manifest: network });
        const waits = await run('install', '@acme/portico-plugin-greedy');
        expect(waits.code).to.equal(0);
        expect(waits.stderr)
            .to.include(
                'greedy is disabled.\nThe plugin asks for this, and no admin has agreed to it yet:\n  network '
            )
            .and.include('portico plugin enable greedy --grants \'{"network":["api.example.org"]}\'');
        const refused = await run('enable', 'greedy');
        expect([
            refused.code,
            refused.stderr.includes('To agree to everything: portico plugin enable greedy --grant-all')
        ]).to.equal([1, true]);
        expect(await json('enable', 'greedy', '--grants', '{}')).to.include({ state: 'running' });
        await run('remove', 'greedy', '--purge');
        expect(await json('install', '@acme/portico-plugin-greedy', '--grant-all')).to.include({
            state: 'running',
            from: null
        });
        await run('remove', 'greedy', '--purge');
        expect(
            await json(
                'install',
                '@acme/portico-plugin-greedy',
                '--grants',
                '{"network":["api.example.org"]}',
                '--disabled'
            )
        ).to.include({ state: 'disabled', enabled: false });
        expect(await json('enable', 'greedy')).to.include({ state: 'running' });
        await run('remove', 'greedy', '--purge');
    });

    it('installs an archive, and another version of it that asks for more', async () => {
        const first = await run('install', archive('1.0.0', { name: 'sent' }));
        expect(first.code, first.stderr).to.equal(0);
        const second = archive('2.0.0', { name: 'sent', manifest: network });
        expect((await run('install', second)).code).to.equal(1);
        const failing = archive('2.1.0', { name: 'sent', manifest: network, fault: 'setup' });
        const failed = await run('install', failing, '--grant-all');
        expect([failed.code, failed.stderr.includes('SETUP_FAILED')]).to.equal([1, true]);
        const kept = await shown('sent');
        expect([
            kept?.['version'],
            kept?.['state'],
            (kept?.['capabilities'] as { granted: unknown }).granted
        ]).to.equal(['1.0.0', 'running', {}]);
        expect((await run('install', second, '--integrity', 'sha512-AAAA')).code).to.equal(1);
        const upgraded = await json('install', second, '--grant-all');
        expect([
            upgraded['version'],
            upgraded['state'],
            (upgraded['capabilities'] as { granted: unknown }).granted
        ]).to.equal(['2.0.0', 'running', { network: ['api.example.org'] }]);
        await run('remove', 'sent', '--purge');
        expect((await run('install', join(place, 'absent.tgz'))).stderr).to.include(
            'absent.tgz cannot be read'
        );
        writeFileSync(join(place, 'empty.tgz'), '');
        expect((await run('install', join(place, 'empty.tgz'))).code).to.equal(1);
    });

    it('leaves the task running when the command no longer waits for it', async () => {
        await publishVersion(npm, '1.0.0', { name: 'slow' });
        let asked: () => void = () => undefined;
        const reached = new Promise<void>((resolve) => {
            asked = resolve;
        });
        let go: () => void = () => undefined;
        const gate = new Promise<void>((resolve) => {
            go = resolve;
        });
        npm.intercept = (_request, _response, pass) => {
            asked();
            void gate.then(() => pass((body) => body)).catch(() => undefined);
            return true;
        };
        const child = spawn(
            process.execPath,
            [shim, 'plugin', 'install', '@acme/portico-plugin-slow', '--data-dir', dataDir],
            { env: environmentOf(), stdio: ['ignore', 'ignore', 'pipe'] }
        );
        let said = '';
        child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
        const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
        await reached;
        await until(() => said.includes('asking the registry'), 'it to say where it is');
        child.kill('SIGINT');
        expect(await ended).to.equal(1);
        expect(said).to.match(
            /"Install @acme\/portico-plugin-slow" goes on in the panel as task \d+: GET \/api\/tasks\/\d+ shows its progress/
        );
        npm.intercept = null;
        go();
        await until(async () => (await shown('slow'))?.['state'] === 'running', 'the task to install it');
        await run('remove', 'slow', '--purge');
    });

    it('says when the panel is in safe mode', async () => {
        await panel.stop();
        panel = await startPanel(dataDir, {
            env: { PORTICO_PLUGIN_DIRS: folder.path, PORTICO_NPM_REGISTRY: npm.url, PORTICO_SAFE_MODE: '1' }
        });
        const { stdout, stderr } = await until(async () => {
            const listed = await run('list');
            return listed.stderr.includes('Safe mode') && listed;
        }, 'the list in safe mode');
        expect(stderr).to.include('Safe mode: no plugin is loaded, because PORTICO_SAFE_MODE is set');
        expect(stdout).to.match(/\nbase +1\.0\.0 +resolved +yes/);
        expect(await json('list')).to.include({ isRunning: true, safeMode: true });
        expect((await run('disable', 'broken')).stderr).to.match(/^broken is disabled\. Safe mode: /);
        expect((await run('install', '@acme/portico-plugin-rows')).stderr).to.include('Safe mode');
    });
});
