/** The page of the file manager, in a real browser: folders, the editor against a newer version, an upload that was broken, a terminal. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import type { Browser, FrameLocator, Page } from 'playwright-core';

import { type Faults, noBrowser, openPage, startBrowser } from '../../support/browser.ts';
import { adminPassword, startPanel, type TestPanel } from '../../support/panel/panel.ts';
import { itUnless } from '../../support/skip.ts';
import { until } from '../../support/until.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const limitMs = 120_000;
const extensions = fileURLToPath(new URL('../../../extensions', import.meta.url));

describe('the page of the file manager', { timeout: limitMs }, () => {
    const itWithBrowser = itUnless(noBrowser, it);
    let folder: string;
    let root: string;
    let panel: TestPanel;
    let browser: Browser;

    before({ timeout: limitMs }, async () => {
        folder = mkdtempSync(join(tmpdir(), 'portico-files-page-'));
        root = join(folder, 'root');
        const plugins = join(folder, 'plugins');
        mkdirSync(join(root, 'site'), { recursive: true });
        mkdirSync(plugins);
        for (const name of ['webui', 'filemanager']) {
            symlinkSync(join(extensions, name), join(plugins, name));
        }
        writeFileSync(join(root, 'site/settings.json'), '{ "color": "red" }\n');
        writeFileSync(join(root, 'site/picture.bin'), Buffer.from([0, 1, 2, 255]));
        panel = await startPanel({
            environment: { PORTICO_PLUGIN_DIRS: plugins, PORTICO_LOG_LEVEL: 'error' }
        });
        await panel.client.put('/api/plugins/filemanager', {
            settings: { roots: [{ name: 'main', path: root, roles: [] }], terminalShell: 'sh' }
        });
        await until(async () => {
            const { data } = await panel.client.get('/api/plugins');
            return data.filter((each: { state: string }) => each.state === 'running').length === 2;
        }, 'both plugins to run');
        if (noBrowser === undefined) {
            browser = await startBrowser();
        }
    });
    after(async () => {
        await browser?.close();
        await panel?.close();
        rmSync(folder, { recursive: true, force: true });
    });

    const open = async (
        at: Readonly<Record<string, string>> = {}
    ): Promise<{ page: Page; frame: FrameLocator; faults: Faults }> => {
        const { page, faults } = await openPage(browser, panel.port);
        await page.goto('/');
        await page.getByLabel('User name').fill('admin');
        await page.getByLabel('Password').fill(adminPassword);
        await page.getByRole('button', { name: 'Log in' }).click();
        await page.getByRole('heading', { name: 'Overview' }).waitFor();
        const query = new URLSearchParams(
            Object.keys(at).length === 0 ? {} : { at: new URLSearchParams(at).toString() }
        );
        await page.goto(`/p/filemanager/browser?${query}`);
        return { page, frame: page.frameLocator('iframe'), faults };
    };
    const isClean = (faults: Faults): void => {
        expect(faults).to.equal({ policy: [], errors: [], foreign: [] });
    };

    itWithBrowser(
        'shows folders, makes, renames and removes, and keeps its place in the address',
        async () => {
            const { page, frame, faults } = await open();
            await frame.getByRole('button', { name: 'site', exact: true }).click();
            await frame.getByRole('button', { name: 'settings.json', exact: true }).waitFor();
            await page.reload();
            await frame.getByRole('button', { name: 'settings.json', exact: true }).waitFor();
            await frame.getByRole('button', { name: 'New folder' }).click();
            await frame.getByRole('dialog').getByLabel('Name of the new folder').fill('drafts');
            await frame.getByRole('dialog').getByRole('button', { name: 'Create' }).click();
            await frame.getByRole('button', { name: 'Rename drafts' }).click();
            await frame.getByRole('dialog').getByLabel('New name of drafts').fill('posts');
            await frame.getByRole('dialog').getByLabel('New name of drafts').press('Enter');
            await frame.getByRole('button', { name: 'Remove posts' }).click();
            await page.getByRole('dialog').getByText('Files: Remove this?').waitFor();
            await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
            await until(
                async () => (await frame.getByRole('button', { name: 'posts', exact: true }).count()) === 0,
                'the folder to go'
            );
            const saved = page.waitForEvent('download');
            await frame.getByRole('button', { name: 'Download settings.json' }).click();
            expect((await saved).suggestedFilename()).to.equal('settings.json');
            isClean(faults);
            await page.context().close();
        }
    );

    itWithBrowser('edits a file, and does not overwrite a newer one without asking', async () => {
        const file = join(root, 'site/settings.json');
        const { page, frame, faults } = await open({
            view: 'file',
            root: 'main',
            path: 'site/settings.json'
        });
        const text = frame.getByRole('textbox', { name: 'site/settings.json' });
        await text.waitFor();
        await text.press('Control+a');
        await text.pressSequentially('{}');
        await frame.getByText('Not saved yet').waitFor();
        await text.press('Control+s');
        await page.getByText('Saved').first().waitFor();
        await until(() => readFileSync(file, 'utf8') === '{}', 'the file to be written');
        await text.press('Control+a');
        await text.pressSequentially('mine');
        writeFileSync(file, 'theirs');
        await frame.getByRole('button', { name: 'Save' }).click();
        await frame.getByRole('alert').getByText('The file was changed meanwhile.').waitFor();
        expect(readFileSync(file, 'utf8')).to.equal('theirs');
        await frame.getByRole('button', { name: 'Take theirs' }).click();
        await until(async () => (await text.textContent()) === 'theirs', 'their text to be shown');
        await text.press('End');
        await text.pressSequentially(' and mine');
        writeFileSync(file, 'theirs again');
        await frame.getByRole('button', { name: 'Save' }).click();
        await frame.getByRole('button', { name: 'Write mine' }).click();
        await until(() => readFileSync(file, 'utf8') === 'theirs and mine', 'my text to be written');
        await frame.getByRole('button', { name: 'Close' }).click();
        await frame.getByRole('button', { name: 'picture.bin', exact: true }).click();
        await frame.getByText('This file is not text').waitFor();
        isClean(faults);
        await page.context().close();
    });

    itWithBrowser('sends a file, and goes on with it where the network broke', async () => {
        const bytes = Buffer.alloc(20 * 1024 * 1024, 'portico');
        const { page, frame, faults } = await open({ root: 'main', path: 'site' });
        const sent: number[] = [];
        let broken = 0;
        await page.route('**/api/plugins/filemanager/uploads/*', async (route) => {
            const request = route.request();
            if (request.method() === 'PATCH') {
                sent.push(Number(request.headers()['upload-offset']));
                if (sent.length === 2) {
                    broken += 1;
                    return route.abort('connectionreset');
                }
            }
            return route.continue();
        });
        await frame.getByLabel('Upload').setInputFiles({
            name: 'large.bin',
            mimeType: 'application/octet-stream',
            buffer: bytes
        });
        await frame.getByRole('button', { name: 'large.bin', exact: true }).waitFor({ timeout: 60_000 });
        expect(broken).to.equal(1);
        expect(sent.slice(0, 3)).to.equal([0, 8 * 1024 * 1024, 8 * 1024 * 1024]);
        expect(readFileSync(join(root, 'site/large.bin')).equals(bytes)).to.be.true();
        isClean({ ...faults, errors: [] });
        await page.context().close();
    });

    itWithBrowser('opens a terminal that follows its size and tells the exit code', async () => {
        const { page, frame, faults } = await open({ view: 'terminal', root: 'main', path: '' });
        const terminal = frame.getByRole('textbox', { name: 'Terminal' });
        await terminal.waitFor();
        await frame.locator('.xterm-rows, .xterm-screen').first().waitFor();
        await terminal.pressSequentially('stty size; printf "\\033[31mred\\033[0m\\n"\n');
        await until(
            async () => /\n?\d+ \d+/.test((await frame.locator('.xterm-accessibility').textContent()) ?? ''),
            'the size to be printed'
        );
        const [, rows, columns] =
            /(\d+) (\d+)/.exec((await frame.locator('.xterm-accessibility').textContent()) ?? '') ?? [];
        expect([Number(rows) > 10, Number(columns) > 40]).to.equal([true, true]);
        await terminal.pressSequentially('exit 7\n');
        await frame.getByText('The shell has ended with 7.').waitFor();
        await terminal.press('Control+Shift+Escape');
        expect(
            await frame.getByRole('button', { name: 'Close' }).evaluate((each) => each.matches(':focus'))
        ).to.equal(true);
        isClean(faults);
        await page.context().close();
    });
});
