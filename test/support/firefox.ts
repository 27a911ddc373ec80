/** A real Firefox on the panel's pages, over WebDriver BiDi. */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

import puppeteer, { type Browser } from 'puppeteer-core';

const binary =
    process.env['PORTICO_FIREFOX'] ??
    (process.env['PATH'] ?? '')
        .split(delimiter)
        .map((folder) => join(folder, 'firefox-esr'))
        .find((path) => existsSync(path));

/** Why tests in Firefox cannot run here; undefined when they can. */
export const noFirefox = binary === undefined ? 'firefox-esr is not installed' : undefined;

/** Starts the browser. It knows `panel.example` as this machine, which is no secure context. */
export function startFirefox(): Promise<Browser> {
    return puppeteer.launch({
        browser: 'firefox',
        ...(binary === undefined ? {} : { executablePath: binary }),
        headless: true,
        args: ['--width=1280', '--height=900'],
        defaultViewport: null,
        extraPrefsFirefox: { 'network.dns.localDomains': 'panel.example' }
    });
}
