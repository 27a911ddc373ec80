/** A panel with all extensions, a browser on it, and what every test of the pages asks. */
import { readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect } from '@hapi/code';
import type { Browser, BrowserContextOptions, Frame, Page } from 'playwright-core';

import { keepPicture, noBrowser, openPage, startBrowser, type WatchedPage } from '../../support/browser.ts';
import {
    adminPassword,
    startPanel,
    type TestPanel,
    type TestPanelOptions
} from '../../support/panel/panel.ts';
import { createPluginFolder, type PluginFolder } from '../../support/plugins/folder.ts';
import { until } from '../../support/until.ts';

/** Where the extensions are. */
export const extensions = fileURLToPath(new URL('../../../extensions', import.meta.url));

/** Longest that one test of the pages may take. */
export const limitMs = 180_000;

const startMs = 60_000;
// It runs in the browser; imported here, it would leave things on the global object.
const axe = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
// A frame lies in the main landmark of the panel's page, below its heading.
const rulesOfPages = ['landmark-one-main', 'page-has-heading-one', 'region'];
const rules = ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa', 'best-practice'];

/** A folder for PORTICO_PLUGIN_DIRS with these extensions alone, to which a test adds plugins of its own. */
export function extensionFolder(names: readonly string[]): PluginFolder {
    const folder = createPluginFolder();
    names.forEach((name) => symlinkSync(join(extensions, name), join(folder.path, name)));
    return folder;
}

/** A panel and a browser. */
export interface Rig {
    readonly panel: TestPanel;
    /** Opens a page that is not logged in. */
    page(options?: BrowserContextOptions): Promise<WatchedPage>;
    /** Opens the pages in a context of its own, logged in as `admin` unless another user is named. */
    open(options?: BrowserContextOptions, username?: string): Promise<WatchedPage>;
    close(): Promise<void>;
}

/** Starts both. @param plugins - that must run before the first test; without `PORTICO_PLUGIN_DIRS` they are the extensions that the panel has */
export async function startRig(
    plugins: readonly string[] = ['webui'],
    more: TestPanelOptions = {}
): Promise<Rig> {
    const folder = extensionFolder(more.environment?.['PORTICO_PLUGIN_DIRS'] === undefined ? plugins : []);
    const panel = await startPanel({
        ...more,
        environment: {
            PORTICO_PLUGIN_DIRS: folder.path,
            PORTICO_LOG_LEVEL: 'error',
            ...more.environment
        }
    });
    await until(
        async () => {
            const { data } = await panel.client.get('/api/plugins');
            const running = data.filter((each: { state: string }) => each.state === 'running');
            return plugins.every((name) => running.some((each: { name: string }) => each.name === name));
        },
        'the plugins to run',
        startMs
    );
    const browser: Browser | null = noBrowser === undefined ? await startBrowser() : null;
    const open = (options?: BrowserContextOptions): Promise<WatchedPage> => {
        if (browser === null) {
            throw new Error(noBrowser);
        }
        return openPage(browser, panel.port, options);
    };
    return {
        panel,
        page: open,
        async open(options, username = 'admin') {
            const watched = await open(options);
            await logIn(
                watched.page,
                username,
                username === 'admin' ? adminPassword : `${username} walks along the quay`
            );
            await watched.page.getByRole('heading', { name: 'Overview' }).waitFor();
            return watched;
        },
        async close() {
            await browser?.close();
            await panel.close();
            folder.remove();
        }
    };
}

/** Fills the login in. @param at - the address that the user came to */
export async function logIn(page: Page, username: string, password = adminPassword, at = '/'): Promise<void> {
    await page.goto(at);
    await page.getByLabel('User name').fill(username);
    await page.getByLabel('Password').fill(password);
    await page.getByRole('button', { name: 'Log in' }).click();
}

/** Fails when a page did what no page may do, and closes it. @param gone - paths that the page asks for though they are gone: that is what the test is about */
export async function finish({ page, faults }: WatchedPage, gone = /^$/): Promise<void> {
    expect({ ...faults, missing: faults.missing.filter((path) => !gone.test(path)) }).to.equal({
        policy: [],
        errors: [],
        foreign: [],
        missing: []
    });
    await page.context().close();
}

/** Goes to a screen and waits until it is loaded. */
export async function visit(page: Page, screen: string): Promise<void> {
    await page.goto(screen);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await until(async () => (await page.locator('[aria-busy=true]').count()) === 0, `${screen} to be loaded`);
}

/** Fails when a screen shows a failure, has a finding of axe, or is wider than the window. */
export async function isSound(page: Page, screen: string): Promise<void> {
    await keepPicture(page, screen);
    expect(await page.locator('.failure[role=alert]').allTextContents(), screen).to.equal([]);
    expect(await findings(page), screen).to.equal([]);
    const isWide = await page.evaluate(
        'document.documentElement.scrollWidth > document.documentElement.clientWidth'
    );
    expect(isWide, `${screen} is wider than the window`).to.be.false();
}

/** Findings of axe in the page, or in a sandboxed frame of it, in a world of its own: the page's policy refuses a script that is added to it. */
export async function findings(page: Page, frame: Frame | null = null): Promise<string[]> {
    // A sandboxed frame runs in a process of its own: it needs a session of its own, whose tree begins with it.
    const session = await page.context().newCDPSession(frame ?? page);
    const off = Object.fromEntries(
        (frame === null ? [] : rulesOfPages).map((id) => [id, { enabled: false }])
    );
    const { frameTree } = await session.send('Page.getFrameTree');
    const { executionContextId } = await session.send('Page.createIsolatedWorld', {
        frameId: frameTree.frame.id
    });
    const { result, exceptionDetails } = await session.send('Runtime.evaluate', {
        contextId: executionContextId,
        awaitPromise: true,
        returnByValue: true,
        expression: `${axe}; axe.run(document, { runOnly: ${JSON.stringify(rules)}, rules: ${JSON.stringify(off)} }).then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html.slice(0, 120)).slice(0, 3).join(' | ')))`
    });
    await session.detach();
    return exceptionDetails === undefined ? (result.value as string[]) : [exceptionDetails.text];
}
