/** Pages that plugins bring, in a real browser: what a frame reaches by the bridge, and what it does not reach. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import type { FrameLocator, Page } from 'playwright-core';
import type { Browser, ElementHandle, Frame } from 'puppeteer-core';

import { type Faults, itInBrowser } from '../../../support/browser.ts';
import { noFirefox, startFirefox } from '../../../support/firefox.ts';
import { adminPassword, type TestPanel } from '../../../support/panel/panel.ts';
import { createPluginFolder, type PluginFolder } from '../../../support/plugins/folder.ts';
import { itUnless } from '../../../support/skip.ts';
import { until } from '../../../support/until.ts';
import { entrance, extensions, limitMs, type Rig, startRig } from '../rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const waitMs = 60_000;

const manifest = {
    title: 'Probe',
    permissions: { write: 'Change' },
    capabilities: { api: { read: ['hosts.list'] }, public: [] },
    contributes: {
        pages: [
            {
                id: 'main',
                title: 'Probe page',
                access: 'read',
                entry: 'assets/page.js',
                uses: ['hosts.list']
            },
            { id: 'silent', title: 'Silent page', access: 'read', entry: 'assets/silent.js', place: 'tab' },
            { id: 'card', title: 'Probe card', access: 'read', entry: 'assets/card.js', place: 'dashboard' },
            { id: 'near', title: 'Probe near', access: 'read', entry: 'assets/near.js', place: 'host' }
        ]
    }
};
const code = `
import { definePlugin, joi } from '@portico/sdk';

const state = { calls: 0, most: 0, running: 0, removed: 0, kept: '' };
export default definePlugin({
    setup(ctx) {
        ctx.assets({ folder: 'assets' });
        const route = (method, path, id, access, more) =>
            ctx.route({ method, path, id, access, summary: id, returns: joi.any(), ...more });
        route('GET', '/state', 'state', 'read', { handler: () => state });
        route('GET', '/slow/{n}', 'slow', 'read', {
            validate: { params: joi.object({ n: joi.number().required() }) },
            async handler() {
                state.running += 1;
                state.most = Math.max(state.most, state.running);
                await new Promise((resolve) => setTimeout(resolve, 40));
                state.running -= 1;
                state.calls += 1;
                return null;
            }
        });
        route('PUT', '/kept/{name}', 'keep', 'write', {
            validate: { params: joi.object({ name: joi.string().required() }), payload: joi.object({ text: joi.string().required() }) },
            handler({ params, payload }) { state.kept = params.name + payload.text; return { kept: state.kept }; }
        });
        route('DELETE', '/kept', 'remove', 'write', { ui: { confirm: 'Remove what is kept?' }, handler() { state.removed += 1; return null; } });
        route('POST', '/guarded', 'guarded', 'write', { stepUp: true, answers: 'done', handler: () => ({ done: true }) });
        ctx.stream({
            path: '/ticks', id: 'ticks', access: 'read', summary: 'ticks',
            async *handler() { for (let n = 1; n <= 3; n += 1) { yield { event: 'tick', data: { n } }; } yield { event: 'end', data: { n: 0 } }; }
        });
        ctx.download({
            path: '/file', id: 'file', access: 'read', summary: 'file',
            handler: () => ({ name: 'probe.txt', type: 'text/plain', size: 15, open: () => new Blob(['from the plugin']).stream() })
        });
    }
});`;
/** The page runs what the test says, with the panel as \`panel\`, and writes what comes of it. */
const page = `
import { connect, PanelError } from '@portico/sdk/page';

const panel = await connect();
const attempt = async (name, work) => {
    const line = document.createElement('p');
    line.id = name;
    line.textContent = await work().then((value) => JSON.stringify(value), (error) => (error instanceof PanelError ? error.reason : 'blocked ' + error.name));
    document.body.append(line);
};
const button = (text, press) => {
    const element = document.createElement('button');
    element.textContent = text;
    element.onclick = () => attempt('after-' + text, press);
    document.body.append(element);
};
document.body.append(Object.assign(document.createElement('h2'), { textContent: 'Hello from a frame' }));
await attempt('context', async () => [panel.context.language, panel.context.scheme, panel.context.permissions, panel.context.place]);
await attempt('call', async () => (await panel.call('probe.keep', { path: { name: 'a b ' }, body: { text: 'c' } })).data);
await attempt('uses', async () => (await panel.call('hosts.list')).data.map(({ domain }) => domain));
await attempt('refused', () => panel.call('users.list'));
await attempt('invalid', () => panel.call('probe.keep', { path: { name: 'x' }, body: {} }));
await attempt('missing', () => panel.call('probe.none'));
await attempt('events', async () => { const all = []; for await (const { event, data } of panel.follow('probe.ticks')) { all.push(event + data.n); } return all; });
await attempt('bytes', async () => await (await panel.call('probe.file')).data.text());
await attempt('sdk', async () => document.querySelector('script[type=importmap]') !== null && getComputedStyle(document.documentElement).getPropertyValue('--portico-accent') !== '');
await attempt('fetch', () => fetch('/api/plugins'));
await attempt('away', () => fetch('https://example.com/'));
await attempt('storage', async () => localStorage.length);
await attempt('cookie', async () => document.cookie);
await attempt('parent', async () => parent.document.title);
await attempt('socket', () => new Promise((resolve, reject) => { const socket = new WebSocket('ws://' + location.host + '/api/x'); socket.onerror = () => reject(new TypeError('refused')); socket.onopen = resolve; }));
await attempt('foreign socket', () => panel.open('/api/plugins/other/talk', () => undefined).closed);
await attempt('eval', async () => new Function('return 1')());
button('many', async () => {
    const start = performance.now();
    await Promise.all(Array.from({ length: 30 }, (_, n) => panel.call('probe.slow', { path: { n } })));
    const took = performance.now() - start;
    return [(await panel.call('probe.state')).data.most, took];
});
button('remove', () => panel.call('probe.remove'));
button('guard', async () => (await panel.call('probe.guarded', { body: {} })).data);
button('file', () => panel.download('probe.file'));
button('say', async () => { await panel.title('A better title'); await panel.toast('It is done'); return panel.confirm('Go on with it?', 'Go on'); });
button('place', async () => { await panel.navigate('chapter=2'); return panel.context.location; });
button('leave', async () => { location.href = 'https://example.com/?' + (await panel.call('probe.state')).data.kept; });
panel.onContext(({ location }) => void (document.body.dataset.at = location));
await attempt('end', async () => true);
`;

const said = async (frame: FrameLocator, name: string): Promise<unknown> => {
    const text = (await frame.locator(`[id="${name}"]`).first().textContent()) ?? '';
    try {
        return JSON.parse(text) as unknown;
    } catch {
        return text;
    }
};

describe('pages that plugins bring', { timeout: limitMs }, () => {
    const itWithBrowser = itInBrowser(it);
    let folder: PluginFolder;
    let files: string;
    let rig: Rig;
    let panel: TestPanel;

    before({ timeout: limitMs }, async () => {
        folder = createPluginFolder();
        files = mkdtempSync(join(tmpdir(), 'portico-frames-'));
        for (const name of ['webui', 'filemanager']) {
            symlinkSync(join(extensions, name), join(folder.path, name));
        }
        const place = folder.write('probe', code, { manifest });
        mkdirSync(join(place, 'assets'));
        writeFileSync(join(place, 'assets/page.js'), page);
        writeFileSync(join(place, 'assets/silent.js'), 'document.body.textContent = "I say nothing";');
        writeFileSync(
            join(place, 'assets/card.js'),
            "import { connect } from '@portico/sdk/page';\nawait connect();\ndocument.body.textContent = 'A card of a plugin';\ndocument.body.style.height = '300px';"
        );
        writeFileSync(
            join(place, 'assets/near.js'),
            "import { connect } from '@portico/sdk/page';\nconst { context } = await connect();\ndocument.body.textContent = `At host ${context.host}`;"
        );
        rig = await startRig(['webui', 'probe', 'filemanager'], {
            environment: { PORTICO_PLUGIN_DIRS: folder.path }
        });
        ({ panel } = rig);
        await panel.client.post('/api/hosts', { domain: 'shop.example', upstream: '127.0.0.1:3000' });
        await panel.client.put('/api/plugins/filemanager', {
            settings: { roots: [{ name: 'main', path: files, roles: [] }], terminalShell: 'sh' }
        });
        await until(
            async () => (await panel.client.get('/api/plugins/filemanager/roots')).data?.length === 1,
            'the file manager to have its root'
        );
    });
    after(async () => {
        await rig?.close();
        folder.remove();
        rmSync(files, { recursive: true, force: true });
    });

    const open = async (): Promise<{ page: Page; frame: FrameLocator; faults: Faults }> => {
        const { page, faults } = await rig.open();
        await page.getByRole('link', { name: 'Probe page' }).click();
        const frame = page.frameLocator('iframe[title="Probe page"]');
        await frame.locator('#end').waitFor();
        return { page, frame, faults };
    };

    itWithBrowser('reach by the bridge what the plugin may, and nothing by themselves', async () => {
        const { page, frame, faults } = await open();
        expect(await said(frame, 'context')).to.equal(['en', 'light', ['read', 'write'], 'nav']);
        expect(await said(frame, 'call')).to.equal({ kept: 'a b c' });
        expect(await said(frame, 'uses')).to.equal(['shop.example']);
        expect(await said(frame, 'refused')).to.equal('NOT_ALLOWED');
        expect(await said(frame, 'missing')).to.equal('NOT_ALLOWED');
        expect(await said(frame, 'invalid')).to.equal('VALIDATION_FAILED');
        expect(await said(frame, 'events')).to.equal(['tick1', 'tick2', 'tick3', 'end0']);
        expect(await said(frame, 'bytes')).to.equal('from the plugin');
        expect(await said(frame, 'sdk')).to.equal(true);
        for (const way of ['fetch', 'away', 'storage', 'cookie', 'parent', 'socket', 'eval']) {
            expect(await said(frame, way), way).to.match(/^blocked /);
        }
        expect(await said(frame, 'foreign socket')).to.equal('NOT_ALLOWED');
        expect(faults.errors).to.equal([]);
        await page.context().close();
    });

    itWithBrowser(
        'let the panel ask before what cannot be undone, and for the password where a route wants it',
        async () => {
            const { page, frame } = await open();
            await frame.getByRole('button', { name: 'remove' }).click();
            await page.getByRole('dialog').getByText('Probe page: Remove what is kept?').waitFor();
            await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
            expect(await said(frame, 'after-remove')).to.equal('CANCELLED');
            expect((await panel.client.get('/api/plugins/probe/state')).data.removed).to.equal(0);

            await page.route('**/probe/guarded', (route) =>
                route.fulfill({
                    status: 403,
                    contentType: 'application/json',
                    body: '{"code":40301,"message":"prove it","data":{"reason":"STEP_UP_REQUIRED"}}'
                })
            );
            await frame.getByRole('button', { name: 'guard' }).click();
            const dialog = page.getByRole('dialog', { name: 'Is it you?' });
            await dialog.getByLabel('Password').fill(adminPassword);
            await page.unroute('**/probe/guarded');
            await dialog.getByRole('button', { name: 'Go on' }).click();
            expect(await said(frame, 'after-guard')).to.equal({ done: true });
            await page.context().close();
        }
    );

    itWithBrowser('run four calls at a time, and begin twenty in a second', async () => {
        const { page, frame } = await open();
        await frame.getByRole('button', { name: 'many' }).click();
        const [most, took] = (await said(frame, 'after-many')) as [number, number];
        expect(most).to.equal(4);
        // Four at a time alone, thirty calls of 40 ms would be over in a third of this.
        expect(took).to.be.above(1_000);
        await page.context().close();
    });

    itWithBrowser('set a title, tell, ask, keep their place in the address, and save files', async () => {
        const { page, frame } = await open();
        await frame.getByRole('button', { name: 'say' }).click();
        await page.getByRole('heading', { level: 1, name: 'A better title' }).waitFor();
        await page.getByText('It is done').waitFor();
        await page.getByRole('dialog').getByRole('button', { name: 'Go on' }).click();
        expect(await said(frame, 'after-say')).to.equal(true);
        await frame.getByRole('button', { name: 'place' }).click();
        await until(async () => page.url().endsWith('?at=chapter%3D2'), 'the address to change');
        await frame.locator('body[data-at="chapter=2"]').waitFor();
        const saved = page.waitForEvent('download');
        await frame.getByRole('button', { name: 'file' }).click();
        expect((await saved).suggestedFilename()).to.equal('probe.txt');
        await page.context().close();
    });

    itWithBrowser('cannot lead the frame away with what they know', async () => {
        const { page, frame, faults } = await open();
        await frame.getByRole('button', { name: 'leave' }).click();
        await until(
            async () => faults.policy.some((each) => /^frame-src https:\/\/example\.com/.test(each)),
            'the policy to stop it'
        );
        await page.context().close();
    });

    itWithBrowser('stand on the overview in a card as high as they want', async () => {
        const { page } = await rig.open();
        await page.frameLocator('iframe[title="Probe card"]').getByText('A card of a plugin').waitFor();
        await until(
            async () => (await page.locator('iframe[title="Probe card"]').boundingBox())?.height === 300,
            'the frame to be as high as the page'
        );
        await page.context().close();
    });

    itWithBrowser('stand at each host, and know which one it is', async () => {
        const { page } = await rig.open();
        const [{ id }] = (await panel.client.get('/api/hosts')).data;
        await page.goto(`/hosts/${id}`);
        await page.frameLocator('iframe[title="Probe near"]').getByText(`At host ${id}`).waitFor();
        await page.context().close();
    });

    itWithBrowser('are found by the command palette, with screens, hosts and actions', async () => {
        const { page, faults } = await rig.open();
        const find = async (text: string): Promise<void> => {
            await page.keyboard.press('Control+k');
            const field = page.getByRole('combobox', { name: 'Screen, host or action' });
            await field.fill(text);
            await page.getByRole('listbox').getByRole('option').first().waitFor();
            await field.press('Enter');
        };
        await find('shop');
        await page.getByRole('heading', { level: 1, name: 'shop.example' }).waitFor();
        await find('probe p');
        await page.getByRole('heading', { level: 1, name: 'Probe page' }).waitFor();
        await find('log o');
        await page.getByRole('button', { name: 'Log in' }).waitFor();
        expect(faults.errors).to.equal([]);
        await page.context().close();
    });

    describe('in Firefox', () => {
        const itInFirefox = itUnless(noFirefox, it);
        let firefox: Browser;
        before({ timeout: limitMs }, async () => {
            if (noFirefox === undefined) {
                firefox = await startFirefox();
            }
        });
        after(() => firefox?.close());
        const open = async (place: string): Promise<Frame> => {
            const tab = await firefox.newPage();
            await tab.evaluateOnNewDocument(await entrance(panel.client));
            await tab.goto(`http://panel.example:${panel.port}${place}`);
            const element = await tab.waitForSelector('iframe', { timeout: waitMs });
            const frame = await element?.contentFrame();
            if (!frame) {
                throw new Error(`There is no frame at ${place}`);
            }
            return frame;
        };
        const openFiles = (at: string): Promise<Frame> =>
            open(`/p/filemanager/browser?${new URLSearchParams({ at })}`);
        const find = async (frame: Frame, selector: string): Promise<ElementHandle> => {
            const found = await frame.waitForSelector(selector, { timeout: waitMs });
            if (!found) {
                throw new Error(`There is no ${selector}`);
            }
            return found;
        };
        const press = async (frame: Frame, name: string): Promise<void> =>
            (await find(frame, `::-p-xpath(//button[not(@disabled)][.="${name}"])`)).click();

        itInFirefox('reach the same, and nothing more', async () => {
            const frame = await open('/p/probe/main');
            await find(frame, '#end');
            const read = (name: string): Promise<string> =>
                frame.$eval(`[id="${name}"]`, (each) => each.textContent);
            expect(JSON.parse(await read('call'))).to.equal({ kept: 'a b c' });
            expect(JSON.parse(await read('uses'))).to.equal(['shop.example']);
            expect(JSON.parse(await read('events'))).to.equal(['tick1', 'tick2', 'tick3', 'end0']);
            expect(JSON.parse(await read('bytes'))).to.equal('from the plugin');
            expect(await read('refused')).to.equal('NOT_ALLOWED');
            for (const way of ['fetch', 'away', 'storage', 'cookie', 'parent', 'socket', 'eval']) {
                expect(await read(way), way).to.match(/^blocked /);
            }
        });

        itInFirefox('save a file that was edited, and do not overwrite a newer one unasked', async () => {
            const file = join(files, 'notes.txt');
            writeFileSync(file, 'kept');
            const frame = await openFiles('view=file&root=main&path=notes.txt');
            // Puppeteer looks again when the document changes, and does not see what changes in a shadow root.
            const text = await until(() => frame.$('.code >>> .cm-content'), 'the editor', waitMs);
            await text.type('mine ');
            await press(frame, 'Save');
            await find(frame, '::-p-xpath(//button[@disabled][.="Save"])');
            expect(readFileSync(file, 'utf8')).to.equal('mine kept');
            await text.type('and ');
            writeFileSync(file, 'theirs');
            await press(frame, 'Save');
            await find(frame, '[role=alert]');
            expect(readFileSync(file, 'utf8')).to.equal('theirs');
            await press(frame, 'Write mine');
            await until(() => readFileSync(file, 'utf8') === 'mine and kept', 'my text to be written');
        });

        itInFirefox('open a terminal with colours, a size that follows and an exit code', async () => {
            const frame = await openFiles('view=terminal&root=main&path=');
            const field = await find(frame, 'textarea[aria-label="Terminal"]');
            const columns = async (): Promise<number | null> => {
                await field.type('echo "columns: $(stty size)."\n');
                const text = await frame.$eval('.xterm-accessibility', (each) => each.textContent);
                const last = [...text.matchAll(/columns: \d+ (\d+)\./g)].at(-1);
                return last === undefined ? null : Number(last[1]);
            };
            await field.type('printf "\\033[31mred\\033[0m\\n"\n');
            await find(frame, '::-p-xpath(//*[contains(@class, "xterm-fg-1")][.="red"])');
            const before = await until(columns, 'the size to be printed');
            expect(before).to.be.above(40);
            await frame.page().setViewport({ width: 700, height: 700 });
            await until(async () => ((await columns()) ?? before) < before, 'the terminal to follow');
            await field.type('exit 7\n');
            await find(frame, '::-p-text(The shell has ended with 7.)');
        });
    });

    itWithBrowser('are replaced by the generated page when they say nothing', async () => {
        const { page } = await rig.open();
        await page.goto('/p/probe');
        const loaded = page.waitForResponse(/\/silent\.js/);
        await page.getByRole('link', { name: 'Silent page' }).click();
        expect((await loaded).status()).to.equal(200);
        await page.getByRole('status').getByText('The page Silent page does not answer').waitFor();
        expect(await page.locator('iframe').count()).to.equal(0);
        await page.context().close();
    });
});
