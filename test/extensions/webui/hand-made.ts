/**
 * Screens of plugins that are made by hand: the tree of a snapshot and its restore, the assistant with its approvals; the form of a DNS
 * provider; and what generated pages ask for.
 */
import { createHash, randomBytes } from 'node:crypto';
import {
    copyFileSync,
    existsSync,
    mkdirSync,
    mkdtempSync,
    readFileSync,
    rmSync,
    symlinkSync,
    writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itInBrowser, noBrowser } from '../../support/browser.ts';
import { pluginPackage } from '../../support/registry/packages.ts';
import { ModelServer } from '../../support/servers/model.ts';
import { until } from '../../support/until.ts';
import { extensions, finish, isSound, limitMs, type Rig, startRig, visit } from './rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const noRestic = existsSync('/usr/bin/restic') ? undefined : 'restic is not installed';

/** Writes the plugin whose generated page asks for files, values and choices. */
function writeShelf(folder: string): void {
    mkdirSync(folder);
    const portico = { name: 'shelf', title: 'Shelf', sdk: '^1.0.0', permissions: { write: 'Change' } };
    writeFileSync(join(folder, 'package.json'), JSON.stringify(pluginPackage('shelf', '1.0.0', { portico })));
    copyFileSync(new URL('../../fixtures/pages/shelf.js', import.meta.url), join(folder, 'index.js'));
}

describe('the screens of plugins that are made by hand', { timeout: 2 * limitMs }, () => {
    const itWithBrowser = itInBrowser(it);
    let root: string;
    let rig: Rig;
    let model: ModelServer;

    before({ timeout: limitMs }, async () => {
        root = mkdtempSync(join(tmpdir(), 'portico-hand-'));
        mkdirSync(join(root, 'plugins'));
        ['webui', 'ai', 'backup'].forEach((name) =>
            symlinkSync(join(extensions, name), join(root, 'plugins', name))
        );
        writeShelf(join(root, 'plugins/shelf'));
        model = await new ModelServer().open();
        rig = await startRig(['webui', 'ai', 'backup', 'shelf'], {
            environment: { PORTICO_PLUGIN_DIRS: join(root, 'plugins') }
        });
    });
    after(async () => {
        await rig.close();
        await model.close();
        rmSync(root, { recursive: true, force: true });
    });

    itInBrowser(it, noBrowser ?? noRestic)(
        'brings a file back that was chosen in the tree of a snapshot',
        async () => {
            const { client } = rig.panel;
            const source = join(root, 'source');
            mkdirSync(join(source, 'etc/web'), { recursive: true });
            writeFileSync(join(source, 'etc/web/site.conf'), 'listen 80');
            writeFileSync(join(source, 'other.txt'), 'other');
            const base = '/api/plugins/backup';
            const { data: making } = await client.post(`${base}/repositories`, {
                name: 'Disk',
                type: 'local',
                path: join(root, 'repository'),
                password: 'correct horse battery'
            });
            const task = await until(async () => {
                const { data } = await client.get(`/api/tasks/${making.id}`);
                return data.state === 'succeeded' ? data : null;
            }, 'the repository');
            const { data: plan } = await client.post(`${base}/plans`, {
                name: 'Nightly',
                repositoryId: task.result.repositoryId,
                sources: [{ type: 'folder', path: source }]
            });
            const { data: run } = await client.post(`${base}/plans/${plan.id}/run`, {});
            await until(
                async () => (await client.get(`${base}/runs/${run.id}`)).data.state === 'succeeded',
                'the run',
                limitMs
            );

            const watched = await rig.open();
            const { page } = watched;
            await visit(page, '/backup');
            await isSound(page, 'the snapshots');
            await page.getByRole('region', { name: 'Snapshots' }).getByRole('link').first().click();
            await page.getByRole('button', { name: `Open ${source}` }).click();
            await page.getByRole('button', { name: 'Open etc', exact: true }).click();
            await page.getByRole('button', { name: 'Open web', exact: true }).click();
            await page.getByRole('checkbox', { name: 'Choose site.conf' }).check();
            await page.getByRole('checkbox', { name: 'Choose web' }).check();
            expect(await page.getByRole('checkbox', { name: 'Choose site.conf' }).isDisabled()).to.be.true();
            await isSound(page, 'the tree');
            await page.getByRole('button', { name: 'Restore 1 …' }).click();
            const dialog = page.getByRole('dialog', { name: 'Restore' });
            const target = join(root, 'back');
            await dialog.getByLabel('Folder', { exact: true }).fill(target);
            await dialog.getByRole('button', { name: 'Restore', exact: true }).click();
            const restored = join(target, source, 'etc/web/site.conf');
            await until(() => existsSync(restored), 'the file to be back', limitMs);
            expect(readFileSync(restored, 'utf8')).to.equal('listen 80');
            expect(existsSync(join(target, source, 'other.txt'))).to.be.false();
            await page.getByLabel('Find by name, as *.conf').fill('*.conf');
            await page.keyboard.press('Enter');
            await page.getByText('etc/web/site.conf').waitFor();
            await finish(watched);
        }
    );

    itWithBrowser(
        'answers as it thinks, and changes a host only after an approval of that very call',
        async () => {
            const { client } = rig.panel;
            const granted = await client.put('/api/plugins/ai', {
                grants: {
                    network: ['*', '127.0.0.1'],
                    api: { read: ['*'], write: ['*'] },
                    taps: ['audit.recorded']
                }
            });
            expect(granted.code, granted.text).to.equal(0);
            const { data: host } = await client.post('/api/hosts', {
                domain: 'shop.example',
                upstream: '127.0.0.1:3000'
            });
            await until(
                async () =>
                    (
                        await client.post('/api/plugins/ai/providers', {
                            name: 'Local',
                            baseUrl: `http://127.0.0.1:${model.port}/v1`,
                            model: 'model-large'
                        })
                    ).status === 201,
                'the provider'
            );
            model.say(
                {
                    text: 'I would say who owns it:\n```sh\ncurl -I http://shop.example\n```',
                    calls: [
                        {
                            name: 'hosts__update',
                            input: { params: { id: String(host.id) }, payload: { notes: 'Of the shop' } }
                        }
                    ]
                },
                { text: 'Now the host says it.' }
            );
            const watched = await rig.open();
            const { page } = watched;
            await visit(page, '/assistant');
            await isSound(page, 'the assistant');
            await page.getByLabel('Your question').fill('Change the notes of the host shop.example');
            await page.keyboard.press('Enter');
            const approval = page.getByRole('region', { name: 'Approval of hosts.update' });
            await approval.locator('ins', { hasText: 'Of the shop' }).waitFor();
            await page.locator('.message pre', { hasText: 'curl -I' }).waitFor();
            await isSound(page, 'an approval');
            expect((await client.get(`/api/hosts/${host.id}`)).data.notes).to.equal('');
            await approval.getByRole('button', { name: 'Approve' }).click();
            await page.getByText('Now the host says it.').waitFor();
            expect((await client.get(`/api/hosts/${host.id}`)).data.notes).to.equal('Of the shop');
            expect(await approval.count()).to.equal(0);
            await page.reload();
            await page.getByText('Now the host says it.').waitFor();
            await finish(watched);
        }
    );

    itWithBrowser(
        'makes a DNS provider by the fields of its type, and keeps its key through a change',
        async () => {
            const { client } = rig.panel;
            const watched = await rig.open();
            const { page } = watched;
            await visit(page, '/dns-providers');
            await page.getByRole('button', { name: 'New provider' }).first().click();
            const dialog = page.getByRole('dialog', { name: 'New provider' });
            await dialog.getByLabel('Type').selectOption('rfc2136');
            await dialog.getByLabel('Name in this panel').fill('Own zone');
            await dialog.getByLabel('Name server').fill('127.0.0.1:53');
            await dialog.getByLabel('Key name').fill('portico.');
            await dialog.getByLabel('Key', { exact: true }).fill('c2VjcmV0LW9mLXRzaWctd2l0aC1sZW5ndGg=');
            await isSound(page, 'the form of a provider');
            await dialog.getByRole('button', { name: 'Save' }).click();
            await page.getByRole('cell', { name: 'Own zone' }).waitFor();
            await page.getByRole('button', { name: 'Change' }).click();
            const change = page.getByRole('dialog', { name: 'Change Own zone' });
            expect(await change.getByLabel(/^Key( optional)?$/).inputValue()).to.equal('');
            await change.getByLabel('Name in this panel').fill('The zone');
            await change.getByRole('button', { name: 'Save' }).click();
            await page.getByRole('cell', { name: 'The zone' }).waitFor();
            const { data } = await client.get('/api/dns-providers');
            expect(data[0].credentials).to.equal({ nameserver: true, keyName: true, keySecret: true });
            await page.getByRole('button', { name: 'Test' }).click();
            const test = page.getByRole('dialog', { name: 'Test The zone' });
            await test.getByLabel('Name to try').fill('example.com');
            await test.getByRole('button', { name: 'Test' }).click();
            await test.getByText('_acme-challenge.example.com').waitFor();
            await test.locator('.badge.bad').first().waitFor();
            await finish(watched);
        }
    );

    itWithBrowser(
        'asks on a generated page for a file, within its limit, and shows how far it is',
        async () => {
            const watched = await rig.open();
            const { page } = watched;
            await visit(page, '/p/shelf');
            await page.getByRole('button', { name: 'Actions for Shelf' }).click();
            await page.getByRole('button', { name: 'Send the cover' }).click();
            const dialog = page.getByRole('dialog', { name: 'Send the cover' });
            const send = dialog.getByRole('button', { name: 'Send the cover' });
            await dialog.getByText('At most 4 MiB · image/png').waitFor();
            await dialog.getByLabel('Book').fill('one');
            await send.click();
            await dialog.getByRole('alert').getByText('Choose a file').waitFor();
            const file = dialog.getByLabel('File');
            const bytes = randomBytes(4 * 1024 * 1024);
            const cover = { name: 'cover.bin', mimeType: 'text/plain', buffer: bytes };
            await file.setInputFiles({
                ...cover,
                buffer: Buffer.concat([bytes, bytes.subarray(0, 1024 ** 2)])
            });
            await dialog
                .getByRole('alert')
                .getByText('This file has 5 MiB, which is more than 4 MiB')
                .waitFor();
            await isSound(page, 'the form of a file');
            await file.setInputFiles(cover);
            await dialog.getByLabel('Book').fill('on');
            await send.click();
            await page.locator('[aria-invalid=true]').waitFor();
            await dialog.getByRole('progressbar', { name: 'Sent' }).waitFor();
            await dialog.getByLabel('Book').fill('one');
            await send.click();
            await page.getByText('Done: Send the cover').waitFor();
            const { data } = await rig.panel.client.get('/api/plugins/shelf/turns');
            const sha256 = createHash('sha256').update(bytes).digest('hex');
            expect(data.kept).to.equal({ id: 'one', type: 'application/octet-stream', sha256 });
            await finish(watched);
        }
    );

    itWithBrowser('asks on a generated page what a read needs, and shows what it answers', async () => {
        const watched = await rig.open();
        const { page } = watched;
        const open = async (name: string) => {
            await page.getByRole('button', { name: 'Actions for Shelf' }).click();
            await page.getByRole('button', { name, exact: true }).click();
            const dialog = page.getByRole('dialog', { name });
            return { dialog, go: dialog.locator('footer').getByRole('button', { name, exact: true }) };
        };
        await visit(page, '/p/shelf');
        const find = await open('Find');
        await find.dialog.getByLabel('Text').fill('w');
        await find.go.click();
        await find.dialog.locator('[aria-invalid=true]').waitFor();
        await find.dialog.getByLabel('Text').fill('wi');
        await find.dialog.getByLabel('Shelves').fill('a b\nc');
        await find.go.click();
        await find.dialog.getByRole('cell', { name: 'Winds' }).waitFor();
        await isSound(page, 'what was found');
        await find.dialog.getByLabel('Text').fill('nothing');
        await find.go.click();
        await find.dialog.getByText('No such book').waitFor();
        await page.keyboard.press('Escape');

        const measure = await open('Measure');
        await measure.dialog.getByLabel('Book').fill('two');
        await measure.go.click();
        await measure.dialog.getByText('Pages').waitFor();
        await page.keyboard.press('Escape');

        const excerpt = await open('Excerpt');
        await excerpt.dialog.getByLabel('Book').fill('one');
        const saved = page.waitForEvent('download');
        await excerpt.go.click();
        expect(readFileSync(await (await saved).path(), 'utf8')).to.equal('Tides');

        const aloud = await open('Read aloud');
        await aloud.dialog.getByLabel('Book').fill('one');
        await aloud.go.click();
        await aloud.dialog.getByText('Tides', { exact: true }).waitFor();
        await aloud.dialog.getByText('reading', { exact: true }).waitFor();
        await isSound(page, 'an answer that was written');
        await finish(watched);
    });

    itWithBrowser(
        'leads to items that several parameters name, offers the choice in a path, and goes back',
        async () => {
            const watched = await rig.open();
            const { page } = watched;
            await visit(page, '/p/shelf');
            await page.getByRole('link', { name: 'Tides' }).click();
            await page.getByText('stands at a b').waitFor();
            await page.getByRole('button', { name: 'Turn' }).click();
            const turn = page.getByRole('dialog', { name: 'Turn' });
            await turn.getByLabel('Way').selectOption({ label: 'To the right' });
            await turn.getByRole('button', { name: 'Turn' }).click();
            await page.getByText('Done: Turn').waitFor();
            await page.getByRole('link', { name: 'It tastes of salt' }).click();
            await page.getByText('It tastes of salt').first().waitFor();
            await isSound(page, 'an item that stands alone');
            await page.getByRole('button', { name: 'Forget' }).click();
            const forget = page.getByRole('dialog', { name: 'Forget' });
            await forget.getByText('Forget this note?').waitFor();
            await forget.getByLabel('Always').check();
            await forget.getByRole('button', { name: 'Forget' }).click();
            await page.getByText('Done: Forget').waitFor();
            await page.getByRole('link', { name: '← Notes' }).click();
            await page.getByText('stands at a b').waitFor();
            const { data } = await rig.panel.client.get('/api/plugins/shelf/turns');
            expect(data.turns).to.equal(['one right', 'salt true']);
            await finish(watched);
        }
    );
});
