/** The author's way to a page of a plugin: the commands and the code of the docs, in a real browser. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import type { Browser } from 'playwright-core';

import { noBrowser, openPage, startBrowser } from '../support/browser.ts';
import { blocksOf, readPage, root as repository } from '../support/docs/markdown.ts';
import { environmentOf, portico, shim } from '../support/panel/console.ts';
import { itUnless } from '../support/skip.ts';
import { until } from '../support/until.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const run = promisify(execFile);
const limitMs = 240_000;

describe('docs/plugins/first-page.md', { timeout: limitMs }, () => {
    const itWithBrowser = itUnless(noBrowser, it);
    const blocks = blocksOf(readPage('docs/plugins/first-page.md'));
    const block = (name: string): string => blocks.find((each) => each.name === name)?.text ?? '';
    let folder: string;
    let plugin: string;
    let env: NodeJS.ProcessEnv;
    let dev: ChildProcess | undefined;
    let browser: Browser | undefined;

    const npm = async (...args: readonly string[]): Promise<string> => {
        const { NODE_TEST_CONTEXT: _inside, ...inherited } = process.env;
        try {
            return (await run('npm', [...args], { cwd: plugin, env: { ...inherited, ...env } })).stdout;
        } catch (error) {
            const { stdout, stderr } = error as { stdout: string; stderr: string };
            throw new Error(stdout + stderr);
        }
    };

    before({ timeout: limitMs }, async () => {
        folder = mkdtempSync(join(tmpdir(), 'portico-page-'));
        plugin = join(folder, 'tea');
        env = { PATH: `${join(repository, 'node_modules/.bin')}${delimiter}${process.env['PATH']}` };
        const [create = ''] = block('create').split('\n');
        const answer = await portico(create.split(' ').slice(1), { cwd: folder, env });
        expect(answer).to.include({ code: 0 });
        // What a registry would give lies in the checkout too: so this needs no network.
        const file = join(plugin, 'package.json');
        const written = JSON.parse(readFileSync(file, 'utf8')) as { devDependencies: Record<string, string> };
        for (const name of ['@types/node', 'typescript']) {
            written.devDependencies[name] = `file:${join(repository, 'node_modules', name)}`;
        }
        writeFileSync(file, JSON.stringify(written, null, 2));
        await npm('install', '--offline', '--loglevel=error');
    });

    after(async () => {
        await browser?.close();
        dev?.kill('SIGTERM');
        await until(() => dev === undefined || dev.exitCode !== null, 'the panel to end');
        rmSync(folder, { recursive: true, force: true });
    });

    it('shows the manifest that the template has, and one that a panel accepts', async () => {
        const { readManifest } = await import('../../registry/src/index.ts');
        const { portico: manifest } = JSON.parse(readFileSync(join(plugin, 'package.json'), 'utf8')) as {
            portico: { contributes: object };
        };
        expect(JSON.parse(block('manifest'))).to.equal(manifest.contributes);
        const more = JSON.parse(block('uses')) as object;
        const packageJson = { name: 'tea', version: '1.0.0', portico: { ...manifest, ...more } };
        expect(readManifest(packageJson, new Set())).to.include('plugin');
    });

    it('has tests that check the page against the operations', async () => {
        expect(block('test/page.test.ts').trim()).to.equal(
            readFileSync(join(plugin, 'test/page.test.ts'), 'utf8').trim()
        );
        expect(await npm('test')).to.match(/pass 3/);
        const page = join(plugin, 'assets/greet.js');
        const text = readFileSync(page, 'utf8');
        writeFileSync(page, text.replace('tea.hello', 'tea.hallo'));
        await expect(npm('test')).to.reject(/tea\.hallo/);
        writeFileSync(page, text.replace('query: { name }', 'query: { nom: name }'));
        await expect(npm('test')).to.reject(/nom/);
        writeFileSync(page, text);
    });

    itWithBrowser('leads to the page in the panel, and to the changed one after a save', async () => {
        let said = '';
        dev = spawn(process.execPath, [shim, 'plugin', 'dev', plugin], {
            cwd: folder,
            env: { ...environmentOf(), TMPDIR: folder }
        });
        [dev.stdout, dev.stderr].forEach((stream) =>
            stream?.on('data', (chunk: Buffer) => (said += chunk.toString()))
        );
        await until(() => /Ctrl\+C/.test(said), 'the panel to start');
        const [, port = '', password = ''] =
            /^Pages: http:\/\/127\.0\.0\.1:(\d+)\/p\/tea, as admin with the password (\S+)$/m.exec(said) ??
            [];
        expect(password, said).to.not.equal('');

        browser = await startBrowser();
        const { page, faults } = await openPage(browser, Number(port));
        await page.goto('/p/tea');
        await page.getByLabel('User name').fill('admin');
        await page.getByLabel('Password').fill(password);
        await page.getByRole('button', { name: 'Log in' }).click();
        await page.getByRole('heading', { level: 1, name: 'The plugin tea' }).waitFor();
        await page
            .getByRole('navigation', { name: 'Panel' })
            .getByRole('link', { name: 'Greetings' })
            .click();
        const frame = page.frameLocator('iframe');
        await frame.getByLabel('Name').fill('Zoe');
        await frame.getByRole('button', { name: 'Greet' }).click();
        await frame.getByRole('status').getByText('Hello, Zoe').waitFor();

        const from = said.length;
        writeFileSync(join(plugin, 'assets/page.js'), block('assets/page.js'));
        await until(() => /is running/.test(said.slice(from)), 'the plugin to be reloaded');
        await page.reload();
        await page.getByRole('heading', { level: 1, name: 'Tea at four' }).waitFor();
        await frame.getByRole('button', { name: 'Greet Ben' }).click();
        await page.getByRole('dialog').getByRole('button', { name: 'Greet' }).click();
        await page.getByText('Hello, Ben').waitFor();
        // While the plugin is reloaded, its operations are in no document for a moment, in which the open page may ask for them.
        const missing = faults.missing.filter((path) => path !== '/api/openapi.json');
        expect({ ...faults, missing }).to.equal({ policy: [], errors: [], foreign: [], missing: [] });
        const types = readFileSync(join(plugin, 'page-operations.d.ts'), 'utf8');
        expect(types.match(/readonly "tea\./g)).to.have.length(1);
        expect(types).to.contain(
            'readonly "tea.hello": { readonly query?: { readonly "name"?: string; }; readonly data: { readonly "text": string; } };'
        );
        expect(await npm('test')).to.match(/pass 3/);
    });
});
