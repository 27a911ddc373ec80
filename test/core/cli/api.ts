import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { codeOf } from '../../support/core/entrance.ts';
import {
    command,
    environmentOf,
    panelFolder,
    portico,
    type Ran,
    removeFolder,
    type RunningPanel,
    shim,
    startPanel
} from '../../support/panel/console.ts';
import { createPluginFolder, type PluginFolder, pluginModule } from '../../support/plugins/folder.ts';
import { until } from '../../support/until.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

describe('commands made from the API', { timeout: 180_000 }, () => {
    let dataDir: string;
    let panel: RunningPanel;
    let root: string;
    let plugins: PluginFolder;
    const run = (args: readonly string[], input?: string): Promise<Ran> =>
        command([...args, '--data-dir', dataDir], input === undefined ? {} : { input });
    /** What it says goes to the standard output of its process as it comes. */
    const logs = (...args: string[]): Promise<Ran> => portico(['logs', ...args, '--data-dir', dataDir]);
    const json = async (args: readonly string[], input?: string): Promise<unknown> => {
        const { code, stdout, stderr } = await run([...args, '--json'], input);
        expect(code, stderr).to.equal(0);
        return JSON.parse(stdout);
    };

    before(async () => {
        root = mkdtempSync(join(tmpdir(), 'portico-cli-api-'));
        dataDir = await panelFolder();
        plugins = createPluginFolder();
        plugins.write('speaker', pluginModule("ctx.log.info('canary line', { part: 'fields' });"));
        panel = await startPanel(dataDir, { env: { PORTICO_PLUGIN_DIRS: plugins.path } });
    });
    after(async () => {
        await panel.stop();
        removeFolder(dataDir);
        plugins.remove();
        rmSync(root, { recursive: true, force: true });
    });

    it('list their actions and what these take', async () => {
        const { code, stdout } = await run(['user']);
        expect(code).to.equal(0);
        expect(stdout).to.match(/^update <id> .*\[role=\]/m);
        expect(stdout).to.contain('    Create a user');
        expect(await run(['engine', 'nonsense'])).to.include({ code: 2 });
        expect((await run(['role', 'read'])).stderr).to.contain(
            '<name> is missing. It is: portico role read <name>'
        );
    });

    it('create, change, list and remove, and pass on what the panel refuses', async () => {
        const made = (await json(
            ['user', 'create', 'username=bob', 'role=viewer', '--input', '-'],
            JSON.stringify({ password: 'a quiet harbour at dusk' })
        )) as { id: number };
        expect(await json(['user', 'update', String(made.id), 'role=operator', 'disabled=true'])).to.include({
            role: 'operator',
            disabled: true
        });
        expect((await run(['user', 'list', 'q=bob'])).stdout).to.match(
            /^ID +USERNAME[\s\S]*\n\d+ +bob +operator/m
        );
        const refused = await run(['user', 'update', String(made.id), 'role=nonsense']);
        expect([refused.code, refused.stdout]).to.equal([1, '']);
        const typed = await run([
            'user',
            'create',
            'username=eve',
            'role=viewer',
            'password=a quiet harbour at dusk'
        ]);
        expect(typed.code).to.equal(2);
        expect(typed.stderr).to.contain('password is secret');
        expect((await run(['user', 'remove', String(made.id)])).code).to.equal(0);
        expect(await json(['user', 'list', 'q=bob'])).to.equal([]);
    });

    it('reads settings, the engine and its log', async () => {
        expect(await json(['setting', 'updateOne', 'audit.retentionDays', 'value=90'])).to.include({
            value: 90
        });
        expect(await json(['engine', 'drift'])).to.include('drifted');
        const { code, stderr } = await logs('--lines', '2');
        expect(code, stderr).to.equal(0);
    });

    it('follows the log of a plugin, and names one that is not there', async () => {
        expect((await run(['plugin', 'enable', 'speaker'])).code).to.equal(0);
        const { code, stdout, stderr } = await logs('speaker');
        expect(code, stderr).to.equal(0);
        expect(stdout).to.contain('canary line').and.contain('fields');
        const last = JSON.parse((await logs('speaker', '--lines', '1', '--json')).stdout) as object;
        expect(last).to.include(['at', 'level', 'message']);
        const followed = spawn(
            process.execPath,
            [shim, 'logs', 'speaker', '--follow', '--lines', '1', '--data-dir', dataDir],
            { env: environmentOf(), stdio: ['ignore', 'pipe', 'ignore'] }
        );
        let text = '';
        followed.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
        const count = (): number => text.split('canary line').length;
        await until(() => count() > 1, 'the last line is there');
        const before = count();
        await run(['plugin', 'disable', 'speaker']);
        await run(['plugin', 'enable', 'speaker']);
        await until(() => count() > before, 'the next line follows');
        followed.kill('SIGINT');
        await once(followed, 'close');
        const missing = await logs('nonsense');
        expect([missing.code, missing.stdout]).to.equal([1, '']);
        expect(missing.stderr).to.contain('nonsense');
    });

    it('set a second factor up, with a QR code in the terminal', async () => {
        const password = 'a quiet harbour at noon';
        const user = ['user', 'create', 'username=ann', 'role=viewer', 'mustChangePassword=false'];
        await json([...user, '--input', '-'], JSON.stringify({ password }));
        const wrong = await run(['totp', 'enrol', 'ann'], 'not the password');
        expect([wrong.code, wrong.stdout]).to.equal([1, '']);
        const { code, stdout, stderr } = await run(['totp', 'enrol', 'ann'], password);
        expect(code, stderr).to.equal(0);
        const secret = stdout.trimEnd().split('\n').at(-1) ?? '';
        expect(secret).to.match(/^[A-Z2-7]{32}$/);
        const { uri } = (await json(['totp', 'enrol', 'ann'], password)) as { uri: string };
        const rows = stdout.trimEnd().split('\n').slice(0, -1);
        // Two rows of the code in each line: 29 modules on a side, or more, and a border.
        expect(rows.length).to.be.above(16);
        expect(new Set(rows.map((row) => [...row].length)).size, 'a square').to.equal(1);
        expect(stdout).to.match(/^[█▀▄ \n]+\n[A-Z2-7]{32}\n$/);
        const newest = new URL(uri).searchParams.get('secret') ?? '';
        const confirm = (digits: string): ReturnType<typeof run> =>
            run(['totp', 'confirm', 'ann', '--code', digits], password);
        const refused = await confirm('000000');
        expect([refused.code, refused.stdout]).to.equal([1, '']);
        const done = await confirm(codeOf(newest, Date.now()));
        expect(done.code, done.stderr).to.equal(0);
        expect(done.stdout.trimEnd().split('\n')).to.have.length(10);
        const again = await run(['totp', 'enrol', 'ann'], password);
        expect([again.code, again.stderr]).to.equal([
            1,
            'portico: ann has a second factor already. Without its device: portico admin reset-password ann --disable-totp\n'
        ]);
    });

    it('are completed by bash: the first word, the second, and options', async () => {
        const { stdout: script } = await run(['completion', 'bash']);
        const complete = (...words: readonly string[]): string[] =>
            execFileSync(
                'bash',
                [
                    '-c',
                    `${script}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _portico; printf '%s\\n' "\${COMPREPLY[@]}"`,
                    'portico',
                    'portico',
                    ...words
                ],
                { encoding: 'utf8' }
            )
                .trimEnd()
                .split('\n');
        expect(complete('hos')).to.equal(['host']);
        expect(complete('host', 'create', '--in')).to.equal(['--input']);
        expect(complete('plugin', 'ins')).to.equal(['install']);
        expect(complete('logs', '--fo')).to.equal(['--follow']);
        expect(complete('token', 'create', '--per')).to.equal(['--permissions']);
        for (const shell of ['zsh', 'fish']) {
            const made = await run(['completion', shell]);
            expect([made.code, made.stdout.includes('permissions')], shell).to.equal([0, true]);
        }
        expect((await run(['completion', 'csh'])).code).to.equal(2);
    });

    it('ask the panel for its ports, so that the doctor does not call them taken', async () => {
        const { code, stdout, stderr } = await run(['doctor']);
        expect(code === 0 || code === 1, `${stdout}${stderr}`).to.be.true();
        for (const key of ['engine.httpPort', 'engine.httpsPort']) {
            const { value } = (await json(['setting', 'read', key])) as { value: number };
            expect(value).to.be.above(1024);
            expect(stdout).to.contain(`port ${value} is free, or held by the engine`);
        }
    });

    it('copies the panel while it runs, as a folder that can be restored', async () => {
        const [backup, restored] = [join(root, 'backup'), join(root, 'restored')];
        const { items } = (await json(['data', 'backup', backup])) as { items: string[] };
        expect(items).to.include(['database', 'audit-head', 'keys']);
        expect((await run(['data', 'backup', backup])).code).to.equal(2);
        expect((await command(['data', 'check', backup])).code).to.equal(0);
        expect((await portico(['data', 'restore', backup, '--data-dir', restored])).code).to.equal(0);
        expect(existsSync(join(restored, 'portico.db'))).to.be.true();
        expect((await run(['audit', 'verify'])).code).to.equal(0);
    });

    it('says plainly that no panel runs', async () => {
        const folder = await panelFolder();
        try {
            const { code, stderr } = await command(['host', 'list', '--data-dir', folder]);
            expect([code, stderr]).to.equal([
                1,
                `portico: No panel runs on ${folder}. Start it first: portico start\n`
            ]);
        } finally {
            removeFolder(folder);
        }
    });
});
