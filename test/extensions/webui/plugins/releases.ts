/** The timeline of a project: a deployment that fails is a release with its reason and its log. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { itInBrowser } from '../../../support/browser.ts';
import { finish, isSound, limitMs, type Rig, startRig, visit } from '../rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

describe('the timeline of releases', { timeout: limitMs }, () => {
    const itWithBrowser = itInBrowser(it);
    let rig: Rig;

    before({ timeout: limitMs }, async () => {
        rig = await startRig(['webui', 'deploy']);
        const { status, text } = await rig.panel.client.post('/api/plugins/deploy/projects', {
            name: 'shop',
            source: { url: 'https://127.0.0.1:1/shop.git' }
        });
        expect(status, text).to.equal(201);
    });
    after(() => rig.close());

    itWithBrowser('shows why a deployment failed, and its log', async () => {
        const watched = await rig.open();
        const { page } = watched;
        await visit(page, '/deploy');
        await page.getByRole('link', { name: 'shop' }).click();
        await page.getByText('Nothing was deployed yet').waitFor();
        await page.getByRole('button', { name: 'Deploy', exact: true }).click();
        const release = page.getByRole('list', { name: 'Releases' }).getByRole('article');
        await release.getByText('failed', { exact: true }).first().waitFor();
        const { data } = await rig.panel.client.get('/api/plugins/deploy/projects/1/deployments');
        expect(data.map(({ state }: { state: string }) => state)).to.equal(['failed']);
        await release.locator('.failure').getByText(data[0].reason).waitFor();
        await release.getByRole('button', { name: 'Show the log' }).click();
        const log = release.getByRole('log', { name: 'Log of #1' });
        await log.getByText(`failed: ${data[0].reason}`, { exact: true }).waitFor();
        await isSound(page, 'a release that failed');
        await page.setViewportSize({ width: 360, height: 800 });
        await isSound(page, 'a release that failed on a phone');
        await finish(watched);
    });
});
