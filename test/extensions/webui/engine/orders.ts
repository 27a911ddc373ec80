/** An order at a real authority (Pebble) by the screens of certificates: its progress, what comes of it, and what the authority refuses. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import type { Page } from 'playwright-core';

import { itInBrowser, noBrowser } from '../../../support/browser.ts';
import { type Bind, noBind, startBind } from '../../../support/servers/bind.ts';
import { type Pebble, startPebble } from '../../../support/servers/pebble.ts';
import { finish, isSound, limitMs, type Rig, startRig, visit } from '../rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const none = noBrowser ?? noBind;

describe('orders of certificates in a browser', { timeout: limitMs }, () => {
    const itWithBrowser = itInBrowser(it, none);
    let rig: Rig;
    let bind: Bind;
    let pebble: Pebble;

    before({ timeout: limitMs }, async () => {
        if (none !== undefined) {
            return;
        }
        bind = await startBind();
        pebble = await startPebble({ dns: `${bind.address}:53` });
        rig = await startRig();
        const { client } = rig.panel;
        await client.put('/api/settings', {
            'panel.outboundAllow': ['127.0.0.1'],
            'dns.nameservers': [bind.address],
            'certificates.caRoots': pebble.root
        });
        const { status } = await client.post('/api/dns-providers', {
            name: 'Own zone',
            type: 'rfc2136',
            credentials: bind.credentials,
            isDefault: true
        });
        expect(status).to.equal(201);
    });
    after(async () => {
        await rig?.close();
        await pebble?.close();
        await bind?.close();
    });

    const order = async (page: Page, name: string): Promise<void> => {
        await visit(page, '/certificates');
        await page.getByRole('button', { name: 'New certificate' }).first().click();
        const dialog = page.getByRole('dialog', { name: 'New certificate' });
        await dialog.getByLabel('Names that it covers').fill(name);
        await dialog.getByRole('combobox', { name: /^DNS provider/ }).selectOption('Own zone');
        await dialog.getByText('Advanced').click();
        await dialog.getByLabel('Address of its directory').fill(pebble.directory);
        await dialog.getByLabel('E-mail').fill('harbour@example.test');
        await dialog.getByRole('button', { name: 'Order it' }).click();
    };

    itWithBrowser('show their progress, and then the certificate', async () => {
        let goOn = (): void => undefined;
        const held = new Promise<null>((resolve) => (goOn = () => resolve(null)));
        pebble.answer = (method, path) => (method === 'POST' && path.includes('order') ? held : null);
        const watched = await rig.open();
        const { page } = watched;
        await order(page, 'shop.example.test');
        const task = page.getByRole('complementary', { name: 'Tasks' });
        await task.getByRole('progressbar', { name: 'Progress' }).waitFor();
        await isSound(page, 'an order under way');
        goOn();
        await task.getByText('succeeded').waitFor({ timeout: 60_000 });
        await task.getByText('Log').click();
        await task.getByRole('log').locator('div').first().waitFor();
        await isSound(page, 'an order that is done');
        await task.getByRole('button', { name: 'Close' }).click();
        await page.getByRole('link', { name: 'shop.example.test' }).click();
        await page.getByRole('heading', { name: 'Validity' }).waitFor();
        await page.getByText(/Pebble/).waitFor();
        const { data } = await rig.panel.client.get('/api/certificates');
        expect(data.length).to.equal(1);
        await page.getByText(data[0].fingerprint256).waitFor();
        await page.getByRole('button', { name: 'Renew now' }).waitFor();
        await isSound(page, 'a certificate that was ordered');
        await finish(watched);
    });

    itWithBrowser('say what the authority refused, and are renewed once it does not', async () => {
        pebble.answer = (method, path) =>
            method === 'POST' && path.includes('order')
                ? {
                      status: 429,
                      headers: { 'retry-after': '7200' },
                      body: {
                          type: 'urn:ietf:params:acme:error:rateLimited',
                          detail: 'too many orders this week',
                          status: 429
                      }
                  }
                : null;
        const watched = await rig.open({ colorScheme: 'dark', viewport: { width: 360, height: 800 } });
        const { page } = watched;
        await order(page, 'limited.example.test');
        const task = page.getByRole('complementary', { name: 'Tasks' });
        await task.getByText('too many orders this week').waitFor({ timeout: 60_000 });
        await isSound(page, 'an order that was refused');
        await task.getByRole('button', { name: 'Close' }).click();
        await page.getByRole('link', { name: 'limited.example.test' }).click();
        const said = page.getByRole('alert').filter({ hasText: 'too many orders this week' });
        await said.getByText(/Next try/).waitFor();
        await isSound(page, 'a certificate that was refused');
        expect(await page.getByRole('button', { name: 'Download' }).count()).to.equal(0);
        pebble.answer = null;
        await page.getByRole('button', { name: 'Renew now' }).click();
        await task.getByText('succeeded').waitFor({ timeout: 60_000 });
        await said.waitFor({ state: 'detached' });
        await page.getByText(/Pebble/).waitFor();
        await page.getByRole('button', { name: 'Download' }).waitFor();
        await finish(watched);
    });
});
