/** What the screens say of a plugin that fails again and again, and of a panel that loads no plugin at all. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itInBrowser } from '../../../support/browser.ts';
import { helloRoute, type PluginFolder, pluginModule } from '../../../support/plugins/folder.ts';
import { until } from '../../../support/until.ts';
import { extensionFolder, findings, finish, isSound, limitMs, type Rig, startRig, visit } from '../rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const reason = 'The till is out of paper';

describe('a plugin that fails, in a browser', { timeout: limitMs }, () => {
    const itWithBrowser = itInBrowser(it);
    let folder: PluginFolder;
    let rig: Rig;
    let fault: string;

    before({ timeout: limitMs }, async () => {
        folder = extensionFolder(['webui']);
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
        rig = await startRig(['webui'], { environment: { PORTICO_PLUGIN_DIRS: folder.path } });
        await until(async () => (await state()) === 'failed', 'the plugin to fail');
    });
    after(async () => {
        await rig.close();
        folder.remove();
    });

    const state = async (): Promise<string> => (await rig.panel.client.get('/api/plugins/till')).data.state;

    itWithBrowser('says why it is in quarantine, and lets it out once its cause is mended', async () => {
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
});
