/** The pages in a real browser, on a real panel, over plain HTTP. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import type { Browser, Page } from 'playwright-core';

import { type Faults, noBrowser, openPage, startBrowser } from '../../support/browser.ts';
import { adminPassword, startPanel, type TestPanel } from '../../support/panel/panel.ts';
import { itUnless } from '../../support/skip.ts';
import { until } from '../../support/until.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const limitMs = 90_000;
const extensions = fileURLToPath(new URL('../../../extensions', import.meta.url));
// It runs in the browser; imported here, it would leave things on the global object.
const axe = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
const screens = [
    '/',
    '/hosts',
    '/hosts/new',
    '/hosts/1',
    '/hosts/1?tab=check',
    '/hosts/1?tab=access',
    '/hosts/1?tab=preview',
    '/certificates',
    '/certificates/1',
    '/p/dns-providers',
    '/engine',
    '/engine?tab=revisions',
    '/engine?tab=upstreams',
    '/engine?tab=log',
    '/engine?tab=config',
    '/p/cronjob',
    '/plugins',
    '/plugins?tab=catalogue',
    '/plugins/cronjob',
    '/plugins/cronjob?tab=settings',
    '/plugins/cronjob?tab=log',
    '/plugins/cronjob?tab=versions',
    '/users',
    '/users?tab=roles',
    '/audit',
    '/tasks',
    '/notifications',
    '/transfer',
    '/settings',
    '/account'
];

const logIn = async (page: Page, username: string, password: string): Promise<void> => {
    await page.goto('/');
    await page.getByLabel('User name').fill(username);
    await page.getByLabel('Password').fill(password);
    await page.getByRole('button', { name: 'Log in' }).click();
};
const isClean = ({ policy, errors, foreign }: Faults): void => {
    expect([policy, errors, foreign]).to.equal([[], [], []]);
};

describe('the pages in a browser', { timeout: limitMs }, () => {
    const itWithBrowser = itUnless(noBrowser, it);
    let panel: TestPanel;
    let browser: Browser;

    before({ timeout: limitMs }, async () => {
        panel = await startPanel({
            environment: {
                PORTICO_PLUGIN_DIRS: extensions,
                PORTICO_LOG_LEVEL: 'error'
            }
        });
        await until(async () => {
            const { data } = await panel.client.get('/api/plugins');
            const running = data.filter((each: { state: string }) => each.state === 'running');
            return ['webui', 'cronjob'].every((name) =>
                running.some((each: { name: string }) => each.name === name)
            );
        }, 'both plugins to run');
        await panel.client.post('/api/hosts', { domain: 'shop.example', upstream: '127.0.0.1:3000' });
        if (noBrowser === undefined) {
            browser = await startBrowser();
        }
    });
    after(async () => {
        await browser?.close();
        await panel.close();
    });

    itWithBrowser(
        'says what is wrong with a login, lets the right one in, and ends it in all tabs',
        async () => {
            const { page, faults } = await openPage(browser, panel.port);
            await logIn(page, 'admin', 'not the password');
            await page.getByRole('alert').getByText('The user name or the password is wrong').waitFor();
            await page.getByLabel('Password').fill(adminPassword);
            await page.getByRole('button', { name: 'Log in' }).click();
            await page.getByRole('heading', { name: 'Overview' }).waitFor();
            await page.reload();
            await page.getByRole('heading', { name: 'Overview' }).waitFor();
            await page.getByRole('button', { name: 'Log out' }).click();
            await page.getByRole('button', { name: 'Log in' }).waitFor();
            isClean(faults);
            await page.context().close();
        }
    );

    itWithBrowser('shows every screen without a violation, an error or a finding of axe', async () => {
        for (const [colorScheme, width] of [['light', 1280] as const, ['dark', 360] as const]) {
            const { page, faults } = await openPage(browser, panel.port, {
                colorScheme,
                viewport: { width, height: 800 },
                bypassCSP: false
            });
            await logIn(page, 'admin', adminPassword);
            await page.getByRole('heading', { name: 'Overview' }).waitFor();
            for (const screen of screens) {
                await page.goto(screen);
                await page.getByRole('heading', { level: 1 }).waitFor();
                await until(
                    async () => (await page.locator('[aria-busy=true]').count()) === 0,
                    `${screen} to be loaded`
                );
                expect(await page.getByRole('alert').allTextContents(), screen).to.equal([]);
                expect(await findings(page), `${screen} ${colorScheme} ${width}`).to.equal([]);
            }
            isClean(faults);
            await page.context().close();
        }
    });

    itWithBrowser('makes, runs and removes a task of a plugin by its generated page', async () => {
        const { page, faults } = await openPage(browser, panel.port);
        await logIn(page, 'admin', adminPassword);
        await page.getByRole('link', { name: 'Cron jobs' }).click();
        await page.getByRole('button', { name: 'New task' }).click();
        const dialog = page.getByRole('dialog', { name: 'New task' });
        await dialog.getByLabel('Name').fill('greet');
        await dialog.getByLabel('Schedule').fill('no schedule');
        await dialog.getByLabel('Command').fill('/bin/echo\nhello');
        await dialog.getByRole('button', { name: 'New task' }).click();
        await dialog.getByRole('alert').first().waitFor();
        expect(await dialog.getByLabel('Schedule').getAttribute('aria-invalid')).to.equal('true');
        await dialog.getByLabel('Schedule').fill('0 3 * * *');
        await dialog.getByRole('button', { name: 'New task' }).click();
        await page.getByRole('link', { name: 'greet' }).waitFor();
        await page.getByRole('button', { name: 'Run now' }).click();
        await page.getByText('Done: Run now').waitFor();
        await until(async () => {
            const { data } = await panel.client.get('/api/plugins/cronjob/runs');
            return data[0]?.state === 'succeeded';
        }, 'the run to end');
        await page.getByRole('navigation', { name: 'Cron jobs' }).getByRole('link', { name: 'Runs' }).click();
        await page.locator('.badge', { hasText: 'succeeded' }).waitFor();
        await page
            .getByRole('navigation', { name: 'Cron jobs' })
            .getByRole('link', { name: 'Tasks' })
            .click();
        await page.getByRole('button', { name: 'Remove' }).click();
        await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
        await page.getByText('No task yet').waitFor();
        isClean(faults);
        await page.context().close();
    });

    itWithBrowser('changes a setting, and takes it back to its default', async () => {
        const { page, faults } = await openPage(browser, panel.port);
        await logIn(page, 'admin', adminPassword);
        await page.getByRole('link', { name: 'Settings' }).click();
        const row = page.locator('.settings > div', { hasText: 'Retention days' });
        await row.getByRole('button', { name: 'Change' }).click();
        await page.getByRole('dialog').getByLabel('Retention days').fill('90');
        await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
        await row.getByText('90 days').waitFor();
        await row.getByRole('button', { name: 'Back to the default' }).click();
        await row.getByText('365 days').waitFor();
        isClean(faults);
        await page.context().close();
    });

    itWithBrowser('offers a viewer nothing that a viewer may not do', async () => {
        const token = await panel.tokenOf('viewer', 'vera');
        expect(token).to.be.a.string();
        const { page, faults } = await openPage(browser, panel.port);
        await logIn(page, 'vera', 'vera walks along the quay');
        await page.getByRole('link', { name: 'Hosts' }).first().click();
        await page.getByRole('link', { name: 'shop.example' }).waitFor();
        expect(await page.getByRole('button', { name: 'New' }).count()).to.equal(0);
        expect(await page.getByRole('button', { name: 'Remove' }).count()).to.equal(0);
        await page.goto('/plugins');
        await page.getByRole('link', { name: 'Cron jobs' }).first().waitFor();
        expect(await page.getByRole('button', { name: 'Disable' }).count()).to.equal(0);
        isClean(faults);
        await page.context().close();
    });

    itWithBrowser('shows a change that another client made, without a reload', async () => {
        const { page, faults } = await openPage(browser, panel.port);
        await logIn(page, 'admin', adminPassword);
        await page.getByRole('link', { name: 'Hosts' }).first().click();
        await page.getByRole('link', { name: 'shop.example' }).waitFor();
        await panel.client.post('/api/hosts', { domain: 'later.example', upstream: '127.0.0.1:3000' });
        await page.getByRole('link', { name: 'later.example' }).waitFor();
        isClean(faults);
        await page.context().close();
    });

    it('stays within its size, and has Chinese for every sentence', () => {
        const web = join(extensions, 'webui');
        const assets = readdirSync(join(web, 'pages/assets')).filter((name) => /\.(js|css)$/.test(name));
        const bytes = assets.map((name) => gzipSync(readFileSync(join(web, 'pages/assets', name))).length);
        expect(bytes.reduce((all, each) => all + each, 0)).to.be.below(120_000);
        expect(Math.max(...bytes)).to.be.below(40_000);

        const words = JSON.parse(readFileSync(join(web, 'web/src/words/zh.json'), 'utf8')) as object;
        const sources = readdirSync(join(web, 'web/src'), { recursive: true, encoding: 'utf8' });
        const sentences = sources
            .filter((name) => /\.tsx?$/.test(name))
            .flatMap((name) => [
                ...readFileSync(join(web, 'web/src', name), 'utf8').matchAll(/\bt\(\s*'([^']+)'/g)
            ])
            .map(([, sentence]) => sentence ?? '');
        expect(sentences.length).to.be.above(100);
        expect(sentences.filter((sentence) => !Object.hasOwn(words, sentence))).to.equal([]);
    });
});

/** Findings of axe, in a world of its own: the page's policy refuses a script that is added to it. */
async function findings(page: Page): Promise<string[]> {
    const session = await page.context().newCDPSession(page);
    const { frameTree } = await session.send('Page.getFrameTree');
    const { executionContextId } = await session.send('Page.createIsolatedWorld', {
        frameId: frameTree.frame.id
    });
    const { result, exceptionDetails } = await session.send('Runtime.evaluate', {
        contextId: executionContextId,
        awaitPromise: true,
        returnByValue: true,
        expression: `${axe}; axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa', 'best-practice'] }).then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html.slice(0, 120)).slice(0, 3).join(' | ')))`
    });
    await session.detach();
    return exceptionDetails === undefined ? (result.value as string[]) : [exceptionDetails.text];
}
