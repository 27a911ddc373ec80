/** An engine that another program changed: what the screens say, and the way back to what the panel has. */
import { request } from 'node:http';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { readOrigin } from '../../../../core/src/engine/caddy/origin.ts';
import { engineHome } from '../../../../core/src/engine/files/home.ts';
import { itInBrowser } from '../../../support/browser.ts';
import { until } from '../../../support/until.ts';
import { finish, isSound, limitMs, type Rig, startRig, visit } from '../rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

describe('an engine that was changed from outside, in a browser', { timeout: limitMs }, () => {
    const itWithBrowser = itInBrowser(it);
    let rig: Rig;

    before({ timeout: limitMs }, async () => {
        rig = await startRig();
        const { client } = rig.panel;
        await client.put('/api/settings', { 'engine.driftRepair': false });
        await client.post('/api/hosts', { domain: 'shop.example', upstream: '127.0.0.1:3000' });
    });
    after(() => rig.close());

    /** Takes all sites from the engine, as a program with its admin socket can. */
    const removeServers = (): Promise<number> => {
        const folders = engineHome(rig.panel.config.dataDir, rig.panel.config.engineUser);
        return new Promise((done, failed) => {
            request(
                {
                    socketPath: folders.adminSocket,
                    method: 'DELETE',
                    path: '/config/apps/http/servers',
                    headers: { host: readOrigin(folders) }
                },
                (response) => {
                    response.resume();
                    done(response.statusCode ?? 0);
                }
            )
                .on('error', failed)
                .end();
        });
    };
    const isServed = async (): Promise<boolean> => {
        const { status, data } = await rig.panel.client.get('/api/proxyengine/config');
        return status === 200 && data.apps.http.servers !== undefined;
    };

    itWithBrowser('is shown by itself with what differs, and an admin writes over it', async () => {
        const watched = await rig.open();
        const { page } = watched;
        await visit(page, '/engine');
        expect(await isServed()).to.be.true();
        expect(await page.getByRole('alert').count()).to.equal(0);
        expect(await removeServers()).to.equal(200);
        const banner = page.getByRole('alert').filter({ hasText: 'Another program changed it' });
        await banner.waitFor();
        await isSound(page, 'an engine with drift');
        await visit(page, '/');
        await page.getByText('It does not run what the panel left').waitFor();
        await page.getByRole('link', { name: 'Engine' }).first().click();
        await banner.getByRole('button', { name: 'See what differs' }).click();
        const dialog = page.getByRole('dialog', { name: 'What differs' });
        await dialog.getByText('apps/http/servers').first().waitFor();
        await isSound(page, 'what differs');
        expect(await isServed()).to.be.false();
        await dialog.getByRole('button', { name: 'Write over it' }).click();
        await page.getByText('The engine runs what the panel has').waitFor();
        await banner.waitFor({ state: 'detached' });
        await until(isServed, 'the sites to be served again');
        await finish(watched);
    });

    itWithBrowser('is shown to a viewer, who is not offered to write over it', async () => {
        await rig.panel.tokenOf('viewer', 'vera');
        expect(await removeServers()).to.equal(200);
        await until(
            async () => (await rig.panel.client.get('/api/proxyengine/status')).data.drifted === true,
            'the drift to be noticed'
        );
        const watched = await rig.open(
            { colorScheme: 'dark', viewport: { width: 360, height: 800 } },
            'vera'
        );
        const { page } = watched;
        await visit(page, '/engine');
        await page.getByRole('button', { name: 'See what differs' }).click();
        const dialog = page.getByRole('dialog', { name: 'What differs' });
        await dialog.getByText('apps/http/servers').first().waitFor();
        await isSound(page, 'what differs on a phone');
        expect(await dialog.getByRole('button', { name: 'Write over it' }).count()).to.equal(0);
        await finish(watched);
    });
});
