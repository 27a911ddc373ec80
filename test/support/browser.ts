/** A real Chromium on the panel's pages, under a name that is no secure context: that is how a panel is first opened. */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

/** What a page must never do; each list is empty at the end of a good test. */
export interface Faults {
    /** Violations of the content policy. */
    readonly policy: string[];
    /** Errors that no code caught. */
    readonly errors: string[];
    /** Requests to another origin. */
    readonly foreign: string[];
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
    const context = await browser.newContext({ baseURL: origin, ...options });
    const page = await context.newPage();
    const faults: Faults = { policy: [], errors: [], foreign: [] };
    await page.exposeFunction('tellViolation', (text: string) => faults.policy.push(text));
    await page.addInitScript(
        "document.addEventListener('securitypolicyviolation', (event) => tellViolation(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`))"
    );
    page.on('pageerror', (error) => faults.errors.push(error.message));
    page.on('request', (request) => {
        if (!request.url().startsWith(`${origin}/`) && !/^(data|blob):/.test(request.url())) {
            faults.foreign.push(request.url());
        }
    });
    return { page, faults };
}
