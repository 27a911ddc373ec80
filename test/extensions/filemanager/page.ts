/** The page of the file manager, in a real browser: folders, the editor against a newer version, an upload that was broken, a terminal. */
import { execFileSync } from 'node:child_process';
import {
    existsSync,
    mkdirSync,
    mkdtempSync,
    readFileSync,
    rmSync,
    statSync,
    symlinkSync,
    writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import type { BrowserContextOptions, FrameLocator, Locator, Page } from 'playwright-core';

import { type Faults, itInBrowser, keepPicture } from '../../support/browser.ts';
import { adminPassword, type TestPanel } from '../../support/panel/panel.ts';
import { until } from '../../support/until.ts';
import { enter, extensions, findings, openAxe, type Rig, startRig } from '../webui/rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const limitMs = 300_000;

describe('the page of the file manager', { timeout: limitMs }, () => {
    const itWithBrowser = itInBrowser(it);
    let folder: string;
    let root: string;
    let rig: Rig;
    let panel: TestPanel;

    before({ timeout: limitMs }, async () => {
        folder = mkdtempSync(join(tmpdir(), 'portico-files-page-'));
        root = join(folder, 'root');
        const plugins = join(folder, 'plugins');
        mkdirSync(join(root, 'site'), { recursive: true });
        mkdirSync(plugins);
        mkdirSync(join(folder, 'other'));
        mkdirSync(join(folder, 'kept'));
        for (const name of ['webui', 'filemanager']) {
            symlinkSync(join(extensions, name), join(plugins, name));
        }
        writeFileSync(join(root, 'site/settings.json'), '{ "color": "red" }\n');
        writeFileSync(join(root, 'site/picture.bin'), Buffer.from([0, 1, 2, 255]));
        rig = await startRig(['webui', 'filemanager'], { environment: { PORTICO_PLUGIN_DIRS: plugins } });
        ({ panel } = rig);
        await panel.client.put('/api/plugins/filemanager', {
            settings: {
                roots: [
                    { name: 'main', path: root, roles: [], versions: 5, quotaBytes: 100_000_000 },
                    { name: 'other', path: join(folder, 'other'), roles: [] },
                    { name: 'kept', path: join(folder, 'kept'), roles: [], readOnly: true }
                ],
                shares: true,
                terminalShell: 'sh'
            }
        });
        await until(
            async () => (await panel.client.get('/api/plugins/filemanager')).data.state === 'running',
            'the file manager to run with its settings'
        );
    });
    after(async () => {
        await rig?.close();
        rmSync(folder, { recursive: true, force: true });
    });

    const open = async (
        at: Readonly<Record<string, string>> = {},
        options: BrowserContextOptions = {}
    ): Promise<{ page: Page; frame: FrameLocator; faults: Faults }> => {
        const { page, faults } = await rig.page(options);
        await enter(page, panel.client);
        const query = new URLSearchParams(
            Object.keys(at).length === 0 ? {} : { at: new URLSearchParams(at).toString() }
        );
        await page.goto(`/p/filemanager/browser?${query}`);
        return { page, frame: page.frameLocator('iframe'), faults };
    };
    const remove = (path: string) =>
        panel.client.delete(`/api/plugins/filemanager/files?${new URLSearchParams({ root: 'main', path })}`);
    /** Ends the sessions of all pages that were opened; the test's own stays. */
    const endSessions = async (): Promise<void> => {
        const { data } = await panel.client.get('/api/auth/sessions');
        const others = data.filter(({ current }: { current: boolean }) => !current);
        expect(others).to.not.be.empty();
        for (const { id } of others) {
            expect((await panel.client.delete(`/api/auth/sessions/${id}`)).code).to.equal(0);
        }
    };
    const isClean = (faults: Faults): void => {
        expect(faults).to.equal({ policy: [], errors: [], foreign: [], missing: [] });
    };

    itWithBrowser(
        'shows folders, makes, renames and removes, puts back what was removed or empties the trash, and keeps its place in the address',
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
            await frame
                .getByRole('navigation', { name: 'Screens' })
                .getByRole('button', { name: 'Trash' })
                .click();
            await frame.getByRole('button', { name: 'Put back posts' }).click();
            await frame.getByText('The trash is empty.').waitFor();
            expect(existsSync(join(root, 'site/posts'))).to.be.true();
            await remove('site/posts');
            await page.reload();
            await frame.getByRole('button', { name: 'Empty the trash' }).click();
            await page
                .getByRole('dialog')
                .getByText('Files: Remove what is in the trash for good?')
                .waitFor();
            await page.getByRole('dialog').getByRole('button').last().click();
            await frame.getByText('The trash is empty.').waitFor();
            expect((await panel.client.get('/api/plugins/filemanager/trash')).data).to.equal([]);
            expect(existsSync(join(root, 'site/posts'))).to.be.false();
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

    itWithBrowser(
        'sends a file, and goes on with it where the network broke, the token ended or the session did',
        async () => {
            // A little more than one part: the second one breaks, then the panel refuses its token, and then its session has ended. It is sent again each time.
            const bytes = Buffer.alloc(8 * 1024 * 1024 + 65_536, 'portico');
            const file = join(folder, 'large.bin');
            writeFileSync(file, bytes);
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
                    if (sent.length === 3) {
                        const { authorization = '', ...headers } = request.headers();
                        return route.continue({
                            headers: { ...headers, authorization: `${authorization}x` }
                        });
                    }
                    if (sent.length === 4) {
                        await endSessions();
                    }
                }
                return route.continue();
            });
            await frame.getByLabel('Upload').setInputFiles(file);
            const login = page.getByRole('dialog', { name: 'Your session has ended' });
            await login.getByLabel('Password').fill(adminPassword);
            await login.getByRole('button', { name: 'Log in' }).click();
            await frame.getByRole('button', { name: 'large.bin', exact: true }).waitFor({ timeout: 60_000 });
            expect(broken).to.equal(1);
            expect(sent).to.equal([0, ...Array.from({ length: 4 }, () => 8 * 1024 * 1024)]);
            expect(readFileSync(join(root, 'site/large.bin')).equals(bytes)).to.be.true();
            isClean({ ...faults, errors: [] });
            await page.context().close();
        }
    );

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

    itWithBrowser('moves and copies what is selected, and says what became of each', async () => {
        mkdirSync(join(root, 'many'));
        ['a', 'b', 'c'].forEach((name) => writeFileSync(join(root, `many/${name}.txt`), name));
        writeFileSync(join(folder, 'other/b.txt'), 'taken');
        const { page, frame, faults } = await open({ root: 'main', path: 'many' });
        await frame.getByRole('checkbox', { name: 'Select all' }).check();
        await frame.getByText('3 selected').waitFor();
        await frame.getByRole('checkbox', { name: 'Select c.txt' }).uncheck();
        await frame.getByRole('button', { name: 'Move', exact: true }).click();
        const dialog = frame.getByRole('dialog', { name: 'Move' });
        await dialog.getByLabel('To the root').selectOption('other');
        await dialog.getByLabel('Into the folder').fill('');
        await dialog.getByRole('button', { name: 'Move' }).click();
        await page.getByRole('dialog').getByText('Do this with all of these entries?').waitFor();
        await page.getByRole('dialog').getByRole('button').last().click();
        await frame.getByText('1 done, 0 left out, 1 failed').waitFor();
        await frame.getByText('Failed (40900)').waitFor();
        expect([
            existsSync(join(root, 'many/a.txt')),
            readFileSync(join(folder, 'other/a.txt'), 'utf8')
        ]).to.equal([false, 'a']);
        rmSync(join(folder, 'other/b.txt'));
        await frame.getByRole('button', { name: 'Try the failed ones again' }).click();
        await page.getByRole('dialog').getByRole('button').last().click();
        await frame.getByText('1 done, 0 left out, 0 failed').waitFor();
        expect(readFileSync(join(folder, 'other/b.txt'), 'utf8')).to.equal('b');

        writeFileSync(join(root, 'many/d.txt'), 'd', { mode: 0o600 });
        await page.reload();
        await frame.getByRole('checkbox', { name: 'Select all' }).check();
        const selection = frame.getByRole('group', { name: 'Selected entries' });
        await selection.getByRole('button', { name: 'Permissions' }).click();
        await frame.getByRole('dialog').getByRole('textbox').fill('640');
        await frame.getByRole('dialog').getByRole('button', { name: 'Set' }).click();
        await page.getByRole('dialog').getByRole('button').last().click();
        await frame.getByText('2 done, 0 left out, 0 failed').waitFor();
        const bits = ['c', 'd'].map((name) => statSync(join(root, `many/${name}.txt`)).mode & 0o777);
        expect(bits).to.equal([0o640, 0o640]);

        await frame.getByRole('checkbox', { name: 'Select all' }).check();
        await selection.getByRole('button', { name: 'Make an archive' }).click();
        await frame.getByRole('dialog').getByRole('textbox').fill('many.tar.gz');
        await frame.getByRole('dialog').getByRole('button', { name: 'Create' }).click();
        await frame.getByRole('button', { name: 'many.tar.gz', exact: true }).waitFor();
        const packed = execFileSync('tar', ['-tzf', join(root, 'many/many.tar.gz')], { encoding: 'utf8' });
        expect(packed.trim().split('\n').sort()).to.equal(['c.txt', 'd.txt']);
        expect(await findings(page)).to.equal([]);
        isClean(faults);
        await page.context().close();
    });

    itWithBrowser(
        'shows a file, its checksum and its versions, restores one, and unpacks a part of an archive',
        async () => {
            mkdirSync(join(root, 'docs/sub'), { recursive: true });
            for (const [name, text] of [
                ['one.txt', 'first'],
                ['sub/two.txt', 'second']
            ] as const) {
                writeFileSync(join(root, 'docs', name), text);
            }
            execFileSync('tar', [
                '-czf',
                join(root, 'docs.tar.gz'),
                '-C',
                join(root, 'docs'),
                'one.txt',
                'sub/two.txt'
            ]);
            const put = await panel.client.call(
                'PUT',
                '/api/plugins/filemanager/content?root=main&path=docs/one.txt',
                {
                    body: 'newer',
                    headers: { 'content-type': 'application/octet-stream' }
                }
            );
            expect(put.status).to.equal(200);
            const { page, frame, faults } = await open({
                view: 'details',
                root: 'main',
                path: 'docs/one.txt'
            });
            await frame.getByRole('region', { name: 'Preview' }).getByText('newer').first().waitFor();
            await frame.getByRole('button', { name: 'Calculate' }).click();
            await frame.getByText(/^[0-9a-f]{64}$/).waitFor();
            await frame
                .getByRole('button', { name: /^Restore the version/ })
                .first()
                .click();
            await until(
                () => readFileSync(join(root, 'docs/one.txt'), 'utf8') === 'first',
                'the version to be back'
            );
            await frame.getByRole('button', { name: 'Add to the favourites' }).click();
            await frame
                .getByRole('navigation', { name: 'Screens' })
                .getByRole('button', { name: 'Favourites' })
                .click();
            await frame.getByRole('button', { name: 'Take one.txt from the favourites' }).click();
            await frame.getByText('Nothing is marked.').waitFor();

            await page.goto(
                `/p/filemanager/browser?${new URLSearchParams({ at: 'view=details&root=main&path=docs.tar.gz' })}`
            );
            await frame.getByRole('checkbox', { name: 'sub/two.txt' }).check();
            await frame.getByRole('button', { name: 'Unpack 1 entries' }).click();
            await frame.getByRole('dialog').getByLabel('Unpack into the folder').fill('unpacked');
            await frame.getByRole('dialog').getByRole('button', { name: 'Unpack' }).click();
            await until(() => existsSync(join(root, 'unpacked/sub/two.txt')), 'the entry to be unpacked');
            expect(existsSync(join(root, 'unpacked/one.txt'))).to.be.false();
            isClean(faults);
            await page.context().close();
        }
    );

    itWithBrowser(
        'finds a text in files, makes a public link and ends it, and offers no change of a read-only root',
        async () => {
            writeFileSync(join(root, 'site/notes.txt'), 'nothing\nthe Needle is here\n');
            writeFileSync(join(folder, 'kept/old.txt'), 'kept');
            const { page, frame, faults } = await open({ view: 'search', root: 'main', path: 'site' });
            await frame.getByLabel('Search in main:site').fill('needle');
            await frame.getByLabel('What').selectOption('content');
            await frame.getByRole('button', { name: 'Find' }).click();
            await frame.getByText('the Needle is here').waitFor();
            await frame.getByRole('button', { name: 'site/notes.txt' }).click();
            await frame.getByRole('button', { name: 'Make a public link' }).click();
            await frame.getByRole('dialog').getByLabel('Most downloads').fill('2');
            await frame.getByRole('dialog').getByRole('button', { name: 'Make' }).click();
            const address = frame.getByLabel('The address of the link.');
            await address.waitFor();
            const got = await panel.client.call(
                'GET',
                new URL(await address.inputValue(), 'http://x').pathname,
                {
                    token: null
                }
            );
            expect(got.text).to.include('the Needle is here');
            await frame
                .getByRole('navigation', { name: 'Screens' })
                .getByRole('button', { name: 'Public links' })
                .click();
            await frame.getByText('1/2 downloads').waitFor();
            await frame.getByRole('button', { name: 'End the link to site/notes.txt' }).click();
            await page.getByRole('dialog').getByRole('button').last().click();
            await frame.getByText('Nothing is shared.').waitFor();

            await page.goto(`/p/filemanager/browser?${new URLSearchParams({ at: 'root=kept' })}`);
            await frame.getByText('Read only').waitFor();
            await frame.getByRole('button', { name: 'Details old.txt' }).waitFor();
            const changing = ['New folder', 'Rename old.txt', 'Remove old.txt'];
            const counts = await Promise.all(
                changing.map((name) => frame.getByRole('button', { name, exact: true }).count())
            );
            expect(counts).to.equal([0, 0, 0]);
            isClean(faults);
            await page.context().close();
        }
    );

    itWithBrowser(
        'has no finding of axe, no width of its own and no empty space on any screen, also on a phone',
        async () => {
            await panel.client.post('/api/plugins/filemanager/favourites', { root: 'main', path: 'site' });
            writeFileSync(join(root, 'site/gone.txt'), 'gone');
            await remove('site/gone.txt');
            const desktop = { width: 1_440, height: 900 };
            const phone = { width: 390, height: 844 };
            const { page, frame, faults } = await open({ root: 'main' }, { viewport: desktop });
            const screens: [Readonly<Record<string, string>>, (frame: FrameLocator) => Locator][] = [
                [{ root: 'main', path: '' }, (at) => at.getByRole('button', { name: /^Details/ })],
                [
                    { view: 'details', root: 'main', path: 'site/settings.json' },
                    (at) => at.getByText(/No earlier content|Restore/)
                ],
                [{ view: 'details', root: 'main', path: 'site' }, (at) => at.getByText('Count')],
                [
                    { view: 'details', root: 'main', path: 'docs.tar.gz' },
                    (at) => at.getByRole('list', { name: 'Entries' })
                ],
                [{ view: 'search', root: 'main', path: 'site' }, (at) => at.getByText('Find')],
                [{ view: 'favourites', root: 'main', path: '' }, (at) => at.getByText('Take away')],
                [{ view: 'shares', root: 'main', path: '' }, (at) => at.getByText(/Nothing is shared|until/)],
                [{ view: 'trash', root: 'main', path: '' }, (at) => at.getByText('Put back')],
                [
                    { view: 'terminals', root: 'main', path: '' },
                    (at) => at.getByText(/No terminal is open|since/)
                ]
            ];
            for (const [at, content] of screens) {
                const location = new URLSearchParams(at).toString();
                await page.setViewportSize(desktop);
                await page.emulateMedia({ colorScheme: 'light' });
                await page.goto(`/p/filemanager/browser?${new URLSearchParams({ at: location })}`);
                await content(frame).first().waitFor();
                const inside = page.frames().find((each) => each !== page.mainFrame()) ?? null;
                expect(inside).to.not.be.null();
                const axe = await openAxe(page, inside);
                const fits = async (height: number): Promise<void> => {
                    const isWide = () =>
                        frame
                            .locator('body')
                            .evaluate(
                                ({ ownerDocument: { documentElement } }) =>
                                    documentElement.scrollWidth > documentElement.clientWidth
                            );
                    await until(async () => !(await isWide()), `${location} to fit`);
                    // The frame follows its content a moment later.
                    await until(
                        async () => ((await page.locator('iframe').boundingBox())?.height ?? 0) < 2 * height,
                        `${location} to have no empty space`
                    );
                    expect([location, await axe('all')]).to.equal([location, []]);
                };
                await fits(desktop.height);
                expect([location, await findings(page)]).to.equal([location, []]);
                await keepPicture(page, `files ${location} wide`);
                await page.setViewportSize(phone);
                await page.emulateMedia({ colorScheme: 'dark' });
                await until(
                    () =>
                        frame
                            .locator('html')
                            .evaluate((html) =>
                                html.ownerDocument.defaultView
                                    ?.getComputedStyle(html)
                                    .colorScheme.includes('dark')
                            ),
                    `${location} to be dark`
                );
                await fits(phone.height);
                await axe.close();
                await keepPicture(page, `files ${location} phone`);
            }
            isClean(faults);
            await page.context().close();
        }
    );
});
