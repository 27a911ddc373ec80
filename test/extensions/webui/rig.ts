/** A panel with all extensions, a browser on it, and what every test of the pages asks. */
import { readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';

import { expect } from '@hapi/code';
import type { Browser, BrowserContextOptions, Frame, Page } from 'playwright-core';

import {
    keepPicture,
    keepsPictures,
    noBrowser,
    openPage,
    startBrowser,
    type WatchedPage
} from '../../support/browser.ts';
import type { Client } from '../../support/panel/client.ts';
import {
    adminPassword,
    startPanel,
    type TestPanel,
    type TestPanelOptions
} from '../../support/panel/panel.ts';
import { createPluginFolder, type PluginFolder } from '../../support/plugins/folder.ts';
import { until } from '../../support/until.ts';
import type { GeneratedScreen } from './generated-screens.ts';

/** Where the extensions are. */
export const extensions = fileURLToPath(new URL('../../../extensions', import.meta.url));

/** Longest that one test of the pages may take. */
export const limitMs = 180_000;

const startMs = 60_000;
// It runs in the browser; imported here, it would leave things on the global object.
const axe = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
// A frame lies in the main landmark of the panel's page, below its heading.
const rulesOfPages = ['landmark-one-main', 'page-has-heading-one', 'region'];
// Pictures are for people, and as large as their screens.
const desktop = keepsPictures ? { width: 1_440, height: 900 } : { width: 1_280, height: 800 };
const phone = keepsPictures ? { width: 390, height: 844 } : { width: 360, height: 800 };
const briefly = new Map([
    [desktop, 'light' as const],
    [phone, 'dark' as const]
]);
const isWide =
    "[document.documentElement, ...document.querySelectorAll('dialog[open]')].some((each) => each.scrollWidth > each.clientWidth)";
const rules = ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa', 'best-practice'];

/** A folder for PORTICO_PLUGIN_DIRS with these extensions alone, to which a test adds plugins of its own. */
export function extensionFolder(names: readonly string[]): PluginFolder {
    const folder = createPluginFolder();
    names.forEach((name) => symlinkSync(join(extensions, name), join(folder.path, name)));
    return folder;
}

/** Runs axe: all its rules, or that of contrast alone. @param where - the part of the document that is looked at, as a selector; without it all of it */
interface Look {
    (what: 'all' | 'contrast', where?: string): Promise<string[]>;
    close(): Promise<void>;
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
            await enter(watched.page, panel.client, username);
            await watched.page.goto('/');
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

/** Lets a page in by the API, in each tab once: the form of the login is tried where the login is what a test is about. */
export async function enter(page: Page, client: Client, username = 'admin'): Promise<void> {
    await page.addInitScript(await entrance(client, username));
}

/** Logs in by the API. Answers with the script that lets a tab in before its first document is loaded. */
export async function entrance(client: Client, username = 'admin'): Promise<string> {
    const password = username === 'admin' ? adminPassword : `${username} walks along the quay`;
    const { data, text } = await client.login(username, password);
    expect(data?.refreshToken, text).to.be.a.string();
    return `if (window === top && sessionStorage.getItem('portico.test') === null) {
        sessionStorage.setItem('portico.test', 'in');
        sessionStorage.setItem('portico.refresh', ${JSON.stringify(data.refreshToken)});
    }`;
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

/** Goes to a screen by its address, and waits until it is loaded. */
export async function visit(page: Page, screen: string): Promise<void> {
    await page.goto(screen);
    await loaded(page, screen);
}

/** Goes from screen to screen as a link does, and waits until the new one is loaded. Its heading must get the focus. */
export async function walk(page: Page, screen: string): Promise<void> {
    const before = new URL(page.url());
    await page.evaluate(`new Promise((done) => {
        document.activeElement.blur();
        history.pushState(null, '', ${JSON.stringify(screen)});
        requestAnimationFrame(() => requestAnimationFrame(done));
    })`);
    if (new URL(screen, before).pathname !== before.pathname) {
        await until(
            () => page.evaluate("document.activeElement.localName === 'h1'"),
            `${screen} to get the focus`
        );
    }
    await loaded(page, screen);
}

async function loaded(page: Page, screen: string): Promise<void> {
    await page.getByRole('heading', { level: 1 }).waitFor();
    await until(async () => (await page.locator('[aria-busy=true]').count()) === 0, `${screen} to be loaded`);
}

/** How a screen is looked at. */
export interface LookAt {
    /** What a machine may lack, and the screen then says. */
    readonly missing?: RegExp;
    /**
     * Two forms instead of four: light on a desktop by all rules, dark on a phone by its width and its contrast. For pages that are made of the
     * same parts as many others.
     */
    readonly isBrief?: boolean;
    /** Axe, where it is in the page already: a walk that loads no new document puts it there once. */
    readonly axe?: Look;
}

/**
 * Fails when a screen shows a failure, has a finding of axe, or is wider than the window: on a desktop and on a phone, light and dark. Then it
 * is as it was.
 */
export async function isSound(
    page: Page,
    screen: string,
    { missing = /^$/, isBrief = false, axe: open }: LookAt = {}
): Promise<void> {
    const before = page.viewportSize() ?? desktop;
    const failures = await page.locator('.failure[role=alert]').allTextContents();
    expect(
        failures.filter((text) => !missing.test(text)),
        screen
    ).to.equal([]);
    const look = open ?? (await openAxe(page));
    for (const size of [desktop, phone]) {
        await page.setViewportSize(size);
        // What measures itself, such as a chart, follows the window a moment later.
        await until(async () => !(await page.evaluate(isWide)), `${screen} to fit into ${size.width} px`);
        const schemes = isBrief ? [briefly.get(size)] : (['light', 'dark'] as const);
        for (const [index, colorScheme = null] of schemes.entries()) {
            await page.emulateMedia({ colorScheme });
            await keepPicture(page, `${screen} ${size.width} ${colorScheme}`);
            // Another scheme changes colours alone.
            const isWhole = index === 0 && !(isBrief && size === phone);
            const found = await look(isWhole ? 'all' : 'contrast');
            expect(found, `${screen}, ${size.width} px, ${colorScheme}`).to.equal([]);
        }
    }
    if (open === undefined) {
        await look.close();
    }
    await page.emulateMedia({ colorScheme: null });
    await page.setViewportSize(before);
}

/** Fails when a generated page offers other forms than its routes say. Opens each that was not looked at before, and looks at it. @param seen - ids of the operations whose forms were looked at */
export async function areFormsSound(
    page: Page,
    { address, buttons }: GeneratedScreen,
    axe: Look,
    seen: Set<string>
): Promise<void> {
    const shown = page.locator('main section .row.spread > .button.primary');
    const titles = buttons.map(({ title }) => title);
    let found: readonly string[] = [];
    await until(
        async () => {
            found = await shown.allTextContents();
            return isDeepStrictEqual(found, titles);
        },
        () => `${address} to have the buttons ${titles.join(', ')}; it has ${found.join(', ')}`,
        startMs
    );
    for (const [index, { id, hasForm }] of buttons.entries()) {
        if (hasForm && !seen.has(id)) {
            seen.add(id);
            await shown.nth(index).click();
            await isFormSound(page, id, axe);
        }
    }
}

/** Looks at the form that a dialog holds, on a phone, and closes it. */
async function isFormSound(page: Page, id: string, axe: Look): Promise<void> {
    const dialog = page.getByRole('dialog');
    await dialog.locator('form footer').waitFor({ timeout: startMs });
    await until(
        async () => (await page.locator('[aria-busy=true]').count()) === 0,
        `the form of ${id} to be loaded`,
        startMs
    );
    const before = page.viewportSize() ?? desktop;
    await page.setViewportSize(phone);
    await until(async () => !(await page.evaluate(isWide)), `the form of ${id} to fit`, startMs);
    await keepPicture(page, `${id} form`);
    // The page behind it was looked at already, and no user reaches it now.
    expect(await axe('all', 'dialog[open]'), `the form of ${id}`).to.equal([]);
    await page.setViewportSize(before);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
}

/** Findings of axe in the page as it is, or in a sandboxed frame of it. */
export async function findings(page: Page, frame: Frame | null = null): Promise<string[]> {
    const look = await openAxe(page, frame);
    return look('all').finally(look.close);
}

/** Puts axe into a world of its own in the page: the page's policy refuses a script that is added to it. It goes with the document. */
export async function openAxe(page: Page, frame: Frame | null = null): Promise<Look> {
    // A sandboxed frame runs in a process of its own: it needs a session of its own, whose tree begins with it.
    const session = await page.context().newCDPSession(frame ?? page);
    const { frameTree } = await session.send('Page.getFrameTree');
    const { executionContextId } = await session.send('Page.createIsolatedWorld', {
        frameId: frameTree.frame.id
    });
    const evaluate = async (expression: string): Promise<unknown> => {
        const { result, exceptionDetails } = await session.send('Runtime.evaluate', {
            contextId: executionContextId,
            awaitPromise: true,
            returnByValue: true,
            expression
        });
        return exceptionDetails === undefined ? result.value : [exceptionDetails.text];
    };
    await evaluate(`${axe}; undefined`);
    const off = Object.fromEntries(
        (frame === null ? [] : rulesOfPages).map((id) => [id, { enabled: false }])
    );
    const runs = {
        all: { runOnly: rules, rules: off },
        contrast: { runOnly: { type: 'rule', values: ['color-contrast'] } }
    };
    const look = async (what: keyof typeof runs, where = ':root'): Promise<string[]> =>
        (await evaluate(
            `axe.run(${JSON.stringify(where)}, ${JSON.stringify({ ...runs[what], preload: false, resultTypes: ['violations'] })}).then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html.slice(0, 120)).slice(0, 3).join(' | ')))`
        )) as string[];
    return Object.assign(look, { close: () => session.detach() });
}
