/** The screens of containers and apps in a browser, beside a real engine: figures, logs and a terminal as they change; the catalogue, and an install. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itInBrowser, noBrowser } from '../../../support/browser.ts';
import { adminPassword } from '../../../support/panel/panel.ts';
import { until } from '../../../support/until.ts';
import { image, noEngine, registryAddress, TestEngine } from '../../container/engines.ts';
import { finish, isSound, limitMs, type Rig, startRig, visit } from '../rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const base = '/api/plugins/container';
const apps = '/api/plugins/appstore';
/** The image of an app, in the registry of the engine. */
const board = `${registryAddress}/apps/board`;
/** It says each line that it gets a second time, and counts meanwhile. */
const command = ['sh', '-c', 'n=0; while true; do n=$((n+1)); echo "tick $n"; sleep 0.2; done'];

describe('the screens of containers', { timeout: limitMs }, () => {
    const itWithEngine = itInBrowser(it, noBrowser ?? noEngine);
    let engine: TestEngine;
    let folder: string;
    let rig: Rig;
    let relay: AsyncDisposable | undefined;

    before({ timeout: limitMs }, async () => {
        if ((noBrowser ?? noEngine) !== undefined) {
            return;
        }
        folder = mkdtempSync(join(tmpdir(), 'portico-containers-'));
        engine = await TestEngine.start();
        rig = await startRig(['webui', 'container', 'appstore']);
        const { client } = rig.panel;
        const settings = { socket: engine.socket, stackFolder: join(folder, 'stacks') };
        const { status, text } = await client.put('/api/plugins/container', { settings });
        expect(status, text).to.equal(200);
        await until(async () => (await client.get(`${base}/engine`)).status === 200, 'the engine');
        const made = await client.post(`${base}/containers`, {
            name: 'clock',
            image,
            command,
            stopSeconds: 0
        });
        expect(made.status, made.text).to.be.below(300);
    });
    after(async () => {
        await rig?.close();
        await relay?.[Symbol.asyncDispose]();
        await engine?.close();
        rmSync(folder, { recursive: true, force: true });
    });

    itWithEngine('shows what runs with its figures, and a state that another client changes', async () => {
        const watched = await rig.open();
        const { page } = watched;
        await page
            .getByRole('navigation', { name: 'Panel' })
            .getByRole('link', { name: 'Containers' })
            .click();
        const row = page.getByRole('row').filter({ hasText: 'clock' });
        await row.getByText('running', { exact: true }).waitFor();
        await row.locator('meter').first().waitFor();
        await isSound(page, 'containers');
        await page.setViewportSize({ width: 390, height: 844 });
        await isSound(page, 'containers on a phone');
        await rig.panel.client.post(`${base}/containers/clock/pause`, {});
        await row.getByText('paused', { exact: true }).waitFor();
        await row.getByRole('button', { name: 'Go on' }).click();
        await row.getByText('running', { exact: true }).waitFor();
        await page.getByLabel('Search').fill('none of that name');
        await page.getByText('No container is here').waitFor();
        await finish(watched);
    });

    itWithEngine('follows a log, draws figures, and runs a command in a terminal', async () => {
        const watched = await rig.open({ colorScheme: 'dark', viewport: { width: 1440, height: 900 } });
        const { page } = watched;
        await visit(page, '/containers');
        await page.getByRole('link', { name: 'clock' }).click();
        await page.getByRole('img', { name: /^Memory\. / }).waitFor();
        await isSound(page, 'figures of a container');
        const parts = page.getByRole('navigation', { name: 'clock' });
        await parts.getByRole('link', { name: 'Log' }).click();
        const log = page.getByRole('log', { name: 'Log of clock' });
        const newest = async (): Promise<number> =>
            Number(/tick (\d+)/.exec((await log.locator('div').last().textContent()) ?? '')?.[1] ?? 0);
        await log
            .getByText(/tick \d+/)
            .first()
            .waitFor();
        const seen = await newest();
        await until(async () => (await newest()) > seen, 'the log to go on');
        await isSound(page, 'the log of a container');
        await parts.getByRole('link', { name: 'Terminal' }).click();
        await page.getByRole('button', { name: 'Open a terminal' }).click();
        const freshness = page.getByRole('dialog');
        const terminal = page.locator('.xterm-screen');
        await terminal.or(freshness).first().waitFor();
        if (await freshness.isVisible()) {
            await freshness.getByLabel('Password').fill(adminPassword);
            await freshness.getByRole('button', { name: 'Go on' }).click();
        }
        const typed = page.getByRole('textbox', { name: 'Terminal in clock' });
        const shown = async (): Promise<string> =>
            (await page.locator('.xterm-accessibility').textContent()) ?? '';
        await until(async () => (await shown()).includes('#'), 'the prompt');
        await typed.pressSequentially('echo "sum $((20 + 22))"\n');
        await until(async () => (await shown()).includes('sum 42'), 'the answer');
        await typed.pressSequentially('exit 3\n');
        await page.getByText('It has ended with 3.').waitFor();
        await isSound(page, 'a terminal in a container');
        await page.setViewportSize({ width: 390, height: 844 });
        await isSound(page, 'a terminal on a phone');
        await finish(watched);
    });

    itWithEngine(
        'installs an app of the catalogue after a look at what it comes to, and updates it after another',
        async () => {
            const { client } = rig.panel;
            for (const tag of ['1', '2']) {
                await engine.importImage(`${board}:${tag}`, tag);
                const pushed = await client.post(`${base}/images/push`, { image: `${board}:${tag}` });
                await until(async () => {
                    const { data } = await client.get(`/api/tasks/${pushed.data.id}`);
                    expect(data.error, pushed.text).to.be.null();
                    return data.state === 'succeeded';
                }, `${board}:${tag} to be pushed`);
            }
            const publish = async (tag: string, more = ''): Promise<void> => {
                const compose = `services: { web: { image: "${board}:${tag}", command: [sh, -c, "echo notices > /kept/index.html; exec busybox httpd -f -p 80 -h /kept"], stop_grace_period: 0s, volumes: ["kept:/kept"], ports: ["8080:80"]${more} } }
volumes: { kept: {} }`;
                const imported = await client.post(`${apps}/import`, {
                    kind: 'compose',
                    name: 'board',
                    files: { 'docker-compose.yml': compose }
                });
                expect(imported.status, imported.text).to.equal(201);
            };
            await publish('1');
            const watched = await rig.open();
            const { page } = watched;
            await visit(page, '/appstore');
            await isSound(page, 'the catalogue of apps');
            await page.getByRole('list', { name: 'Catalogue' }).getByRole('link', { name: 'board' }).click();
            await page.getByLabel('Name').fill('notices');
            await isSound(page, 'the form of an app');
            await page.getByRole('button', { name: 'Look at what it comes to' }).click();
            await page.getByText('This app is not signed').waitFor();
            await page.locator('ins', { hasText: board }).waitFor();
            await isSound(page, 'what an install comes to');
            await page.setViewportSize({ width: 390, height: 844 });
            await isSound(page, 'what an install comes to on a phone');
            const [answer] = await Promise.all([
                page.waitForResponse((each) => each.url().endsWith(`${apps}/installed`)),
                page.getByRole('button', { name: /nstall$/ }).click()
            ]);
            expect(answer.status(), await answer.text()).to.equal(202);
            expect(answer.request().postDataJSON()).to.include({ app: 'board', name: 'notices' });
            const app = async () => (await client.get(`${apps}/installed/notices`)).data;
            // The engine has a network of its own, in which the panel probes the app.
            await until(async () => (await engine.names()).includes('app-notices-web-1'), 'the app', limitMs);
            relay = await engine.relay(Number(new URL((await app()).url).port));
            await until(async () => (await app()).state === 'running', 'the app to be installed', limitMs);
            await page.setViewportSize({ width: 1_280, height: 800 });
            await visit(page, '/appstore?tab=updates');
            await page.getByText('All apps are up to date').waitFor();
            await isSound(page, 'no update');

            await publish('2', ', tmpfs: ["/cache"]');
            await visit(page, '/appstore?tab=updates');
            const update = page.getByRole('list', { name: 'Updates' }).getByRole('listitem');
            await update.locator('ins', { hasText: 'tmpfs at /cache' }).waitFor();
            await isSound(page, 'an update that exposes more');
            const consent = page.getByRole('dialog', { name: 'Update notices to 2?' });
            await update.getByRole('button', { name: 'Update …' }).click();
            await consent.getByText('This version asks for more than the one that runs.').waitFor();
            await consent.locator('ins', { hasText: 'tmpfs at /cache' }).waitFor();
            await isSound(page, 'the consent to an update');
            await consent.getByRole('button', { name: 'Cancel' }).click();
            await consent.waitFor({ state: 'detached' });
            expect(await app()).to.include({ version: '1', state: 'running' });
            await update.getByRole('button', { name: 'Update …' }).click();
            await consent.getByRole('button', { name: 'Agree and update' }).click();
            await until(
                async () => {
                    const { version, state } = await app();
                    return version === '2' && state === 'running';
                },
                'the update',
                limitMs
            );
            await visit(page, '/appstore?tab=updates');
            await page.getByText('All apps are up to date').waitFor();
            await finish(watched);
        }
    );

    itWithEngine('takes an image in from a file, by the generated page', async () => {
        const { client } = rig.panel;
        const archive = await fetch(
            `http://127.0.0.1:${rig.panel.port}${base}/images/${encodeURIComponent(image)}/save`,
            { headers: { authorization: `Bearer ${client.token}` } }
        );
        expect(archive.status).to.equal(200);
        const buffer = Buffer.from(await archive.arrayBuffer());
        await client.delete(`${base}/containers/clock?force=true`);
        await engine.ask('DELETE', `/images/${image}?force=true`);
        const watched = await rig.open();
        const { page } = watched;
        await visit(page, '/p/container?list=container.images');
        await page.getByRole('button', { name: 'Actions for Containers' }).click();
        await page.getByRole('button', { name: 'Load', exact: true }).click();
        const dialog = page.getByRole('dialog', { name: 'Load' });
        await dialog.getByLabel('File').setInputFiles({
            name: 'image.tar',
            mimeType: 'application/x-tar',
            buffer
        });
        await dialog.getByRole('button', { name: 'Load' }).click();
        await until(
            async () => (await client.get(`${base}/images`)).text.includes(image),
            'the image to be loaded'
        );
        await finish(watched);
    });
});
