/** A real Chromium on the panel's pages, under a name that is no secure context: that is how a panel is first opened. */
import { existsSync, mkdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import type { script } from '@hapi/lab';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

import { type It, itUnless, type Register } from './skip.ts';

/** What a page must never do; each list is empty at the end of a good test. */
export interface Faults {
    /** Violations of the content policy. */
    readonly policy: string[];
    /** Errors that no code caught. */
    readonly errors: string[];
    /** Requests to another origin. */
    readonly foreign: string[];
    /** What the panel answered 404 for, by path: a page asks only for what there is. */
    readonly missing: string[];
}

/** A page, and what went wrong in it. */
export interface WatchedPage {
    readonly page: Page;
    readonly faults: Faults;
}

const binary =
    process.env['PORTICO_CHROMIUM'] ??
    (process.env['PATH'] ?? '')
        .split(delimiter)
        .map((folder) => join(folder, 'chromium'))
        .find((path) => existsSync(path));

/** Why tests of the pages cannot run here; undefined when they can. */
export const noBrowser = binary === undefined ? 'chromium is not installed' : undefined;

const wanted = process.env['PORTICO_TEST_PICTURES'];
const pictures = wanted ?? fileURLToPath(new URL('../../.cache/pictures', import.meta.url));
/** Whether a picture of every screen is wanted. */
export const keepsPictures = wanted !== undefined;
const openPages = new Set<Page>();
const longestMs = 60_000;

/** Registers tests in the browser. One that fails says where the pictures are of the pages that were open. @param reason - why they cannot run */
export function itInBrowser(it: It, reason: string | undefined = noBrowser): Register {
    const register = itUnless(reason, it);
    return (title, action) =>
        register(title, async (flags: script.Flags): Promise<void> => {
            try {
                await action(flags);
            } catch (error) {
                const kept = await takePictures(title);
                throw error instanceof Error && kept.length > 0
                    ? Object.assign(error, { message: `${error.message}\nPictures: ${kept.join(' ')}` })
                    : error;
            }
        });
}

/** Takes a picture of every page that is open, and closes it. */
function takePictures(title: string): Promise<string[]> {
    return Promise.all(
        [...openPages].map(async (page, index) => {
            const path = await takePicture(page, `${title} ${index + 1}`);
            await page.context().close();
            return path;
        })
    );
}

async function takePicture(page: Page, title: string): Promise<string> {
    const path = join(pictures, `${title.replaceAll(/\W+/g, '-')}.png`);
    mkdirSync(pictures, { recursive: true });
    await page.screenshot({ path, fullPage: true });
    return path;
}

/** Keeps a picture of a screen where `PORTICO_TEST_PICTURES` names a folder for it. */
export async function keepPicture(page: Page, title: string): Promise<void> {
    if (keepsPictures) {
        await takePicture(page, title);
    }
}

/** Starts the browser. */
export function startBrowser(): Promise<Browser> {
    return chromium.launch({
        ...(binary === undefined ? {} : { executablePath: binary }),
        args: [
            '--no-sandbox',
            '--disable-gpu',
            '--disable-quic',
            '--no-first-run',
            '--disable-background-networking',
            '--disable-component-update',
            '--disable-sync',
            '--host-resolver-rules=MAP panel.example 127.0.0.1'
        ]
    });
}

/** Opens a page of the panel in a context of its own. */
export async function openPage(
    browser: Browser,
    port: number,
    options: BrowserContextOptions = {}
): Promise<WatchedPage> {
    const origin = `http://panel.example:${port}`;
    const context = await browser.newContext({ baseURL: origin, reducedMotion: 'reduce', ...options });
    // A busy machine needs its time; what does not come at all is found all the same.
    context.setDefaultTimeout(longestMs);
    const page = await context.newPage();
    openPages.add(page);
    page.once('close', () => openPages.delete(page));
    const faults: Faults = { policy: [], errors: [], foreign: [], missing: [] };
    await page.exposeFunction('tellViolation', (text: string) => faults.policy.push(text));
    await page.addInitScript(
        "document.addEventListener('securitypolicyviolation', (event) => tellViolation(`${event.violatedDirective} ${event.blockedURI} ${event.sample} ${event.sourceFile}:${event.lineNumber}:${event.columnNumber}`))"
    );
    page.on('pageerror', (error) => faults.errors.push(error.message));
    page.on('request', (request) => {
        if (!request.url().startsWith(`${origin}/`) && !/^(data|blob):/.test(request.url())) {
            faults.foreign.push(request.url());
        }
    });
    page.on('response', (response) => {
        if (response.status() === 404) {
            faults.missing.push(new URL(response.url()).pathname);
        }
    });
    return { page, faults };
}
