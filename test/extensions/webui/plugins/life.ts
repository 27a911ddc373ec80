/** The life of a plugin by its screens: from the catalogue over consent, an upgrade that asks for more and the way back, to its removal. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itInBrowser } from '../../../support/browser.ts';
import { publishVersion } from '../../../support/plugins/versioned.ts';
import { packageArchive } from '../../../support/registry/archive.ts';
import { pluginPackage } from '../../../support/registry/packages.ts';
import { type NpmRegistry, startNpmRegistry } from '../../../support/servers/npm-registry.ts';
import { until } from '../../../support/until.ts';
import { finish, isSound, limitMs, type Rig, startRig, visit } from '../rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

interface PluginView {
    readonly state: string;
    readonly version: string;
    readonly capabilities: { readonly granted: Readonly<Record<string, unknown>> };
}

describe('the screens of plugins', { timeout: 2 * limitMs }, () => {
    const itWithBrowser = itInBrowser(it);
    let rig: Rig;
    let npm: NpmRegistry;

    before({ timeout: limitMs }, async () => {
        npm = await startNpmRegistry();
        await publishVersion(npm, '1.0.0', { manifest: { title: 'Rows', capabilities: { exec: ['git'] } } });
        rig = await startRig(['webui'], {
            environment: { PORTICO_NPM_REGISTRY: npm.url, PORTICO_LOG_LEVEL: 'info' }
        });
    });
    after(async () => {
        await rig.close();
        await npm.stop();
    });

    const view = async (): Promise<PluginView> => (await rig.panel.client.get('/api/plugins/rows')).data;
    const runs = (version: string): Promise<unknown> =>
        until(
            async () => {
                const { state, version: present } = await view();
                return state === 'running' && present === version;
            },
            `version ${version} to run`,
            limitMs
        );

    itWithBrowser('installs a package after a look at what it asks for', async () => {
        const watched = await rig.open();
        const { page } = watched;
        await visit(page, '/plugins?tab=catalogue');
        await page.getByLabel('A package by its name').fill('@acme/portico-plugin-rows@1.0.0');
        await page.getByRole('button', { name: 'Look at it' }).click();
        const dialog = page.getByRole('dialog', { name: 'Install Rows 1.0.0' });
        await dialog.getByText('Rows asks for this').waitFor();
        await dialog.getByText('git', { exact: true }).waitFor();
        await isSound(page, 'the question for consent');
        expect((await rig.panel.client.get('/api/plugins/rows')).status).to.equal(404);
        await dialog.getByRole('button', { name: 'Grant it and go on' }).click();
        await runs('1.0.0');
        expect((await view()).capabilities.granted).to.equal({ exec: ['git'] });
        await finish(watched);
    });

    itWithBrowser(
        'asks again when an upgrade wants more, and spells out what the way back does',
        async () => {
            await rig.panel.client.post('/api/plugins/rows/rows', { text: 'old' });
            await publishVersion(npm, '2.0.0', {
                migrations: 2,
                manifest: { title: 'Rows', capabilities: { exec: ['git', 'tar'], network: ['*'] } }
            });
            const watched = await rig.open();
            const { page } = watched;
            await visit(page, '/plugins?tab=catalogue');
            await page.getByLabel('A package by its name').fill('@acme/portico-plugin-rows@2.0.0');
            await page.getByRole('button', { name: 'Look at it' }).click();
            const upgrade = page.getByRole('dialog', { name: 'Upgrade Rows to 2.0.0' });
            await upgrade.getByText('Rows asks for more than it has').waitFor();
            await upgrade.getByText('far-reaching').waitFor();
            await upgrade.getByRole('button', { name: 'Grant it and go on' }).click();
            await runs('2.0.0');
            await rig.panel.client.post('/api/plugins/rows/rows', { text: 'new' });

            await visit(page, '/plugins/rows?tab=versions');
            await page.getByRole('button', { name: 'Go back to it …' }).click();
            const back = page.getByRole('dialog', { name: 'Go back to Rows 1.0.0' });
            const go = back.getByRole('button', { name: 'Go back' });
            await back.getByRole('alert').waitFor();
            expect(await go.isDisabled()).to.be.true();
            await back.getByText('Everything that was written since the upgrade is lost.').click();
            await until(() => go.isEnabled(), 'the way back to be open');
            await go.click();
            await runs('1.0.0');
            expect((await rig.panel.client.get('/api/plugins/rows/rows')).data.rows).to.equal(['old']);
            await finish(watched);
        }
    );

    itWithBrowser('installs an archive that is uploaded, shows its log, and uninstalls it', async () => {
        const packageJson = pluginPackage('other', '1.0.0', {
            portico: { name: 'other', title: 'Other', sdk: '^1.0.0' }
        });
        const code = `import { definePlugin, joi } from '@portico/sdk';
export default definePlugin({
    setup(ctx) {
        ctx.log.info('Hello from the archive');
        ctx.route({ method: 'GET', path: '/cups', id: 'cups', access: 'read', returns: joi.array().items(joi.object({ name: joi.string() })), handler: () => [] });
        ctx.route({
            method: 'POST', path: '/cups', id: 'makeCup', access: 'read', ui: { title: 'New cup' },
            validate: { payload: joi.object({ name: joi.string().required().label('Name') }) }, handler: () => ({})
        });
    }
});`;
        const watched = await rig.open();
        const { page } = watched;
        await visit(page, '/plugins');
        await page.getByLabel('Archive of a plugin').setInputFiles({
            name: 'other.tgz',
            mimeType: 'application/gzip',
            buffer: Buffer.from(packageArchive(packageJson, { 'index.js': code }))
        });
        const dialog = page.getByRole('dialog', { name: 'Install Other 1.0.0' });
        await dialog.getByText('uploaded').waitFor();
        await dialog.getByRole('button', { name: 'Go on' }).click();
        await page.getByRole('link', { name: 'Other' }).first().waitFor();
        await visit(page, '/plugins/other?tab=log');
        await page.getByRole('log').getByText('Hello from the archive').first().waitFor();
        await page.getByLabel('Filter').fill('no such line');
        await page.getByText('No line fits').waitFor();
        const user = await rig.open();
        await visit(user.page, '/p/other');
        await user.page.getByRole('button', { name: 'New cup' }).click();
        await user.page.getByRole('dialog').getByLabel('Name').fill('blue');
        await page.getByRole('button', { name: 'Uninstall' }).click();
        await page.getByLabel('Delete its data and settings for ever').check();
        await page.getByRole('dialog').getByRole('button', { name: 'Uninstall' }).click();
        await until(
            async () => (await rig.panel.client.get('/api/plugins/other')).status === 404,
            'the plugin to be gone'
        );
        // The open page says so, and what was typed is still there.
        await user.page.getByText('This plugin does not run now, or was removed.').waitFor();
        const form = user.page.getByRole('dialog');
        await form.getByRole('button', { name: 'New cup' }).click();
        await form.getByRole('alert').waitFor();
        expect(await form.getByLabel('Name').inputValue()).to.equal('blue');
        const gone = /^\/api\/(openapi\.json$|plugins\/other)/;
        await finish(user, gone);
        await finish(watched, gone);
    });
});
