/** Sessions in a browser: two tabs, a login in time, a panel that starts anew, all hosts of a filter, texts of a plugin in Chinese, a plugin that fails again and again, and a panel that loads no plugin at all. */
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itInBrowser } from '../../../support/browser.ts';
import { adminPassword } from '../../../support/panel/panel.ts';
import {
    createPluginFolder,
    helloRoute,
    type PluginFolder,
    pluginModule
} from '../../../support/plugins/folder.ts';
import { until } from '../../../support/until.ts';
import { extensions, findings, finish, isSound, limitMs, type Rig, startRig, visit } from '../rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

/** Most time of the processor that a browser may take for a login. */
const longestLogInSeconds = 1.5;
const reason = 'The till is out of paper';
const tea = `import { defineErrors, definePlugin, joi } from '@portico/sdk';
const fail = defineErrors({ EMPTY: { code: 42250, message: 'The {pot} is empty' } });
export default definePlugin({
    setup(ctx) {
        ctx.assets({ folder: 'assets' });
        ctx.route({
            method: 'GET', path: '/cups', id: 'cups', access: 'read', ui: { title: 'Cups', empty: 'No cup yet' },
            returns: joi.array().items(joi.object({ title: joi.string().label('Kind of tea'), size: joi.string() })),
            handler: () => [{ title: 'Oolong', size: 'Kind of tea' }]
        });
        ctx.route({
            method: 'POST', path: '/cups', id: 'makeCup', access: 'read', ui: { title: 'New cup' },
            validate: { payload: joi.object({ notes: joi.object({}).unknown().label('Notes') }) },
            returns: joi.any(),
            handler({ payload }) {
                if (payload.notes === undefined) {
                    throw fail.EMPTY({ pot: 'teapot' });
                }
                return payload;
            }
        });
    }
});
`;

describe('sessions in a browser', { timeout: 2 * limitMs }, () => {
    const itWithBrowser = itInBrowser(it);
    let rig: Rig;
    let folder: PluginFolder;
    let fault: string;

    before({ timeout: limitMs }, async () => {
        folder = createPluginFolder();
        symlinkSync(join(extensions, 'webui'), join(folder.path, 'webui'));
        const place = folder.write('tea', tea, {
            manifest: { title: 'Tea', contributes: { locales: { zh: 'assets/zh.json' } } }
        });
        mkdirSync(join(place, 'assets'));
        writeFileSync(
            join(place, 'assets/zh.json'),
            JSON.stringify({
                Tea: '茶',
                'Kind of tea': '茶的种类',
                Cups: '杯',
                Hosts: '不许',
                'The {pot} is empty': '{pot} 是空的'
            })
        );
        fault = join(folder.path, 'fault');
        writeFileSync(fault, '');
        folder.write(
            'till',
            pluginModule(
                `if (existsSync(${JSON.stringify(fault)})) { throw new Error('${reason}'); }\n${helloRoute}`,
                { head: "import { existsSync } from 'node:fs';" }
            ),
            { manifest: { title: 'Till' } }
        );
        rig = await startRig(['webui', 'tea'], { environment: { PORTICO_PLUGIN_DIRS: folder.path } });
        await until(async () => (await state()) === 'failed', 'the plugin to fail');
    });
    after(async () => {
        await rig.close();
        folder.remove();
    });

    const state = async (): Promise<string> => (await rig.panel.client.get('/api/plugins/till')).data.state;

    itWithBrowser(
        'says why a plugin is in quarantine, and lets it out once its cause is mended',
        async () => {
            const watched = await rig.open();
            const { page } = watched;
            await page.getByText(reason).waitFor();
            await visit(page, '/plugins/till');
            await page.getByRole('alert').getByText(reason).waitFor();
            const again = page.getByRole('button', { name: 'Try again' });
            for (let attempt = 2; attempt <= 3; attempt += 1) {
                await again.click();
                await page
                    .getByText(`It did not start: ${reason}`)
                    .nth(attempt - 2)
                    .waitFor();
            }
            expect(await state()).to.equal('quarantined');
            await page.getByText('it failed too often').waitFor();
            await page.getByRole('alert').getByText(reason).waitFor();
            await isSound(page, 'a plugin in quarantine');
            await visit(page, '/plugins');
            const row = page.getByRole('row').filter({ hasText: 'Till' });
            await row.getByText('quarantined').waitFor();
            await row.getByText(reason).waitFor();
            await isSound(page, 'plugins with one in quarantine');

            rmSync(fault);
            await row.getByRole('button', { name: 'Try again' }).click();
            await row.getByText('running').waitFor();
            await row.getByRole('link', { name: 'Till' }).click();
            await page.getByRole('heading', { level: 1, name: 'Till' }).waitFor();
            expect(await page.getByText('it failed too often').count()).to.equal(0);
            await finish(watched);
        }
    );

    itWithBrowser(
        'shows the texts of a plugin in Chinese, and leaves its values and the panel’s words',
        async () => {
            const watched = await rig.page({ locale: 'zh-CN' });
            const { page } = watched;
            await page.goto('/');
            await page.locator('input[autocomplete=username]').fill('admin');
            await page.locator('input[type=password]').fill('not the password');
            await page.locator('form button[type=submit]').click();
            await page.getByRole('alert').getByText('用户名或密码错误').waitFor();
            await page.locator('input[type=password]').fill(adminPassword);
            await page.locator('form button[type=submit]').click();
            await page.getByRole('link', { name: '茶', exact: true }).click();
            await page.getByRole('columnheader', { name: '茶的种类' }).waitFor();
            await page.getByRole('cell', { name: 'Kind of tea' }).waitFor();
            expect(await page.getByRole('link', { name: '不许' }).count()).to.equal(0);
            await page.getByRole('button', { name: 'New cup' }).click();
            await page.getByRole('dialog').locator('button[type=submit]').click();
            await page.getByRole('dialog').getByText('teapot 是空的').waitFor();
            await finish(watched);
        }
    );

    itWithBrowser('sends no form while a text in it is not JSON, and says so at its field', async () => {
        const watched = await rig.open();
        const { page } = watched;
        const bodies: (string | null)[] = [];
        page.on('request', (request) => {
            if (request.method() === 'POST' && request.url().endsWith('/api/plugins/tea/cups')) {
                bodies.push(request.postData());
            }
        });
        await visit(page, '/p/tea');
        await page.getByRole('button', { name: 'New cup' }).click();
        const form = page.getByRole('dialog');
        const notes = form.getByRole('textbox', { name: 'Notes' });
        await notes.fill('{"sweet": true}');
        await notes.fill('{"sweet": ');
        await form.getByRole('button', { name: 'New cup' }).click();
        await form.getByRole('alert').getByText('This is not JSON').waitFor();
        await notes.and(page.locator(':focus')).waitFor();
        await form.locator('.code[aria-invalid=true]').waitFor();
        expect(await findings(page)).to.equal([]);
        await notes.fill('{"sweet": false}');
        await form.getByText('As JSON', { exact: true }).waitFor();
        await form.getByRole('button', { name: 'New cup' }).click();
        await form.waitFor({ state: 'detached' });
        expect(bodies).to.equal(['{"notes":{"sweet":false}}']);
        await finish(watched);
    });

    itWithBrowser('keeps two tabs in that refresh at once, and ends both by one log-out', async () => {
        const watched = await rig.page();
        const { page } = watched;
        await page.goto('/');
        await page.getByRole('checkbox').check();
        await logInHere(page);
        const second = await page.context().newPage();
        await second.goto('/hosts');
        await second.getByRole('heading', { name: 'Hosts', level: 1 }).waitFor();
        for (let round = 1; round <= 3; round += 1) {
            await Promise.all([page.reload(), second.reload()]);
            await page.getByRole('heading', { name: 'Overview' }).waitFor();
            await second.getByRole('heading', { name: 'Hosts', level: 1 }).waitFor();
        }
        await page.getByRole('button', { name: 'Log out' }).click();
        await second.getByRole('button', { name: 'Log in' }).waitFor();
        await page.getByRole('button', { name: 'Log in' }).waitFor();
        await finish(watched);
    });

    itWithBrowser('logs in with its proof of work within its time', async () => {
        const watched = await rig.page();
        const { page } = watched;
        await page.goto('/');
        await page.getByLabel('User name').fill('admin');
        await page.getByLabel('Password').fill(adminPassword);
        const session = await page.context().newCDPSession(page);
        await session.send('Performance.enable');
        // Time of the processor, its worker included: a busy machine makes the wall's time longer, not this one.
        const spent = async (): Promise<number> =>
            (await session.send('Performance.getMetrics')).metrics.find(({ name }) => name === 'ProcessTime')
                ?.value ?? Number.NaN;
        const before = await spent();
        await page.getByRole('button', { name: 'Log in' }).click();
        await page.getByRole('heading', { name: 'Overview' }).waitFor();
        expect((await spent()) - before).to.be.between(0.01, longestLogInSeconds);
        await finish(watched);
    });

    itWithBrowser(
        'lets the same user log in again over an open page whose session has ended, and loses nothing typed',
        async () => {
            await rig.panel.tokenOf('operator', 'olga');
            const { data: users } = await rig.panel.client.get('/api/users');
            const { id } = users.find(({ username }: { username: string }) => username === 'olga');
            const watched = await rig.open({}, 'olga');
            const { page } = watched;
            await visit(page, '/hosts/new');
            await page.getByLabel('Name', { exact: true }).fill('typed.example');
            await page.getByLabel('Address', { exact: true }).fill('127.0.0.1:3000');
            await page.getByText('The engine takes it.').waitFor();
            expect((await rig.panel.client.delete(`/api/users/${id}/sessions`)).code).to.equal(0);
            await page.getByRole('button', { name: 'Create the host' }).click();
            const dialog = page.getByRole('dialog', { name: 'Your session has ended' });
            const logInAgain = async (password: string): Promise<void> => {
                await dialog.getByLabel('Password').fill(password);
                await dialog.getByRole('button', { name: 'Log in' }).click();
            };
            await logInAgain('not the password');
            await dialog.getByRole('alert').getByText('The user name or the password is wrong').waitFor();
            expect(await findings(page)).to.equal([]);
            await logInAgain('olga walks along the quay');
            await page.getByRole('heading', { name: 'typed.example', level: 1 }).waitFor();
            expect(await dialog.count()).to.equal(0);
            await page.getByRole('link', { name: 'Hosts' }).first().click();
            await page.getByRole('link', { name: 'typed.example' }).waitFor();
            await rig.panel.client.post('/api/hosts', {
                domain: 'live.example',
                upstream: '127.0.0.1:3000'
            });
            await page.getByRole('link', { name: 'live.example' }).waitFor();
            await finish(watched);
        }
    );

    itWithBrowser('says that the panel is away while it starts anew, and goes on live', async () => {
        const watched = await rig.open();
        const { page } = watched;
        await visit(page, '/hosts');
        const restarted = rig.panel.restart();
        await page.getByText('The panel does not answer').waitFor();
        await restarted;
        await page.getByText('The panel does not answer').waitFor({ state: 'detached', timeout: limitMs });
        await rig.panel.client.post('/api/hosts', { domain: 'after.example', upstream: '127.0.0.1:3000' });
        await page.getByRole('link', { name: 'after.example' }).waitFor();
        await finish(watched);
    });

    itWithBrowser('chooses all hosts of a filter, also those that were not scrolled to', async () => {
        const { client } = rig.panel;
        const { data: document } = await client.post('/api/import-export/export', { sections: ['hosts'] });
        const made = Array.from({ length: 250 }, (_each, index) => ({
            domain: `many-${index}.example`,
            upstream: '127.0.0.1:3000',
            enabled: false
        }));
        const { data: task } = await client.post('/api/import-export/import', {
            document: { ...document, sections: { hosts: [...document.sections.hosts, ...made] } },
            mode: 'merge'
        });
        await until(
            async () => (await client.get(`/api/tasks/${task.id}`)).data.state === 'succeeded',
            'the import',
            limitMs
        );
        const watched = await rig.open();
        const { page } = watched;
        await visit(page, '/hosts?q=many-');
        await page.getByText('250 hosts').waitFor();
        await page.getByRole('checkbox', { name: 'Choose many-0.example' }).check();
        await page.getByRole('button', { name: 'Choose all 250 of the filter' }).click();
        await page.getByText('250 chosen').waitFor();
        await page
            .getByRole('group', { name: 'Chosen hosts' })
            .getByRole('button', { name: 'Remove' })
            .click();
        await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
        await page.getByText('Done for 250 hosts').waitFor();
        const left = (await client.get('/api/hosts')).data as { readonly domain: string }[];
        expect(left.filter(({ domain }) => domain.startsWith('many-'))).to.equal([]);
        expect(left.map(({ domain }) => domain)).to.include('after.example');
        await finish(watched);
    });

    itWithBrowser('says on the open page and on a new one that the panel is in safe mode', async () => {
        const watched = await rig.open();
        const { page } = watched;
        await visit(page, '/plugins');
        await rig.panel.restart({ safeMode: true });
        await page.getByRole('alert').getByText('PORTICO_SAFE_MODE is set').waitFor();
        await isSound(page, 'safe mode on an open page');
        // This screen was not loaded before, and no plugin serves its file now.
        await page.getByRole('link', { name: 'Users' }).click();
        await page.getByRole('heading', { name: 'This screen could not be loaded' }).waitFor();
        await isSound(page, 'a screen that is not served');
        await page.getByRole('button', { name: 'Load the panel anew' }).click();
        await page.getByText('The panel runs in safe mode').waitFor();
        await page.getByText('portico plugin list').waitFor();
        expect(await findings(page)).to.equal([]);

        await rig.panel.restart();
        await until(
            async () => (await rig.panel.client.get('/')).text.includes('id="root"'),
            'the pages to be served again'
        );
        await page.reload();
        await page.getByRole('heading', { name: 'Users', level: 1 }).waitFor();
        await finish(watched, /^\/(assets\/|favicon)/);
    });

    async function logInHere(page: Awaited<ReturnType<Rig['page']>>['page']): Promise<void> {
        await page.getByLabel('User name').fill('admin');
        await page.getByLabel('Password').fill(adminPassword);
        await page.getByRole('button', { name: 'Log in' }).click();
        await page.getByRole('heading', { name: 'Overview' }).waitFor();
    }
});
