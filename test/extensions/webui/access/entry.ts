/** Who gets in, and what asks again: forced password, second factor, lock-out, a fresh login for a key, deliveries, and a tab that is not seen. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import type { Page } from 'playwright-core';

import { itInBrowser } from '../../../support/browser.ts';
import { codeOf } from '../../../support/core/entrance.ts';
import { noFirefox, startFirefox } from '../../../support/firefox.ts';
import { adminPassword } from '../../../support/panel/panel.ts';
import { selfSigned } from '../../../support/servers/self-signed.ts';
import { openReceiver, type Receiver } from '../../../support/servers/webhooks.ts';
import { itUnless } from '../../../support/skip.ts';
import { until } from '../../../support/until.ts';
import { findings, finish, isSound, limitMs, logIn, type Rig, startRig, visit } from '../rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const minuteMs = 60_000;

describe('getting in by the pages', { timeout: limitMs }, () => {
    const itWithBrowser = itInBrowser(it);
    let rig: Rig;
    let receiver: Receiver;
    let laterMs = 0;
    let piaPassword: string;

    before({ timeout: limitMs }, async () => {
        receiver = await openReceiver();
        rig = await startRig(['webui', 'cronjob'], { clock: { now: () => Date.now() + laterMs } });
        const { client } = rig.panel;
        await client.put('/api/settings', { 'panel.outboundAllow': ['127.0.0.1'] });
        await client.post('/api/certificates', {
            source: 'upload',
            name: 'Shop',
            ...selfSigned(['shop.example'])
        });
        piaPassword = await user('pia', false);
    });
    after(async () => {
        await rig.close();
        await receiver.close();
    });

    const user = async (username: string, mustChangePassword: boolean): Promise<string> => {
        const password = `${username} walks along the quay`;
        const { status } = await rig.panel.client.post('/api/users', {
            username,
            password,
            role: 'operator',
            mustChangePassword
        });
        expect(status).to.equal(201);
        return password;
    };
    const overview = (page: Page): Promise<void> => page.getByRole('heading', { name: 'Overview' }).waitFor();

    itWithBrowser('asks for a new password first, and lets in with it', async () => {
        const password = await user('nora', true);
        const watched = await rig.page();
        const { page } = watched;
        await logIn(page, 'nora', password);
        await page.getByRole('heading', { name: 'Change your password first' }).waitFor();
        await isSound(page, 'the forced password');
        await page.getByLabel('Present password').fill(password);
        await page.getByLabel('New password').fill('short');
        await page.getByRole('button', { name: 'Change the password' }).click();
        await page.getByRole('alert').first().waitFor();
        await page.getByLabel('New password').fill('nora sails across the bay');
        await page.getByRole('button', { name: 'Change the password' }).click();
        await overview(page);
        await finish(watched);
    });

    itWithBrowser('sets a second factor up, and asks for its code at the next login', async () => {
        const password = await user('otto', false);
        const watched = await rig.page();
        const { page } = watched;
        await logIn(page, 'otto', password);
        await overview(page);
        await visit(page, '/account');
        await page.getByRole('button', { name: 'Switch on' }).click();
        const dialog = page.getByRole('dialog');
        await dialog.getByLabel('Password').fill(password);
        await dialog.getByRole('button', { name: 'Begin' }).click();
        await dialog.getByRole('img', { name: 'QR code of the secret' }).waitFor();
        const secret = (await dialog.locator('code').first().textContent()) ?? '';
        await isSound(page, 'the second factor');
        await dialog.getByLabel('Code').fill(codeOf(secret, Date.now()));
        await dialog.getByRole('button', { name: 'Switch on' }).click();
        await dialog.getByText('Keep these recovery codes').waitFor();
        const recovery = (await dialog.locator('pre').first().innerText()).trim().split(/\s+/)[0] ?? '';
        await dialog.getByRole('button', { name: 'I have kept them' }).click();
        await page.getByRole('button', { name: 'Log out' }).click();

        await page.getByLabel('User name').fill('otto');
        await page.getByLabel('Password').fill(password);
        await page.getByRole('button', { name: 'Log in' }).click();
        const code = page.getByLabel('Code of the second factor, or a recovery code');
        await code.fill('000000');
        await page.getByRole('button', { name: 'Log in' }).click();
        const said = page.getByRole('alert').first();
        await until(
            async () => /required/.test((await said.textContent()) ?? 'required') === false,
            'the code to be refused'
        );
        expect(await findings(page)).to.equal([]);
        await code.fill(recovery);
        await page.getByRole('button', { name: 'Log in' }).click();
        await page.getByRole('heading', { name: 'Your account' }).waitFor();
        await finish(watched);
    });

    itWithBrowser('asks for the password again before it hands a key out', async () => {
        const watched = await rig.open();
        const { page } = watched;
        await visit(page, '/certificates/1');
        laterMs += 20 * minuteMs;
        await page.getByRole('button', { name: 'Actions for Shop' }).click();
        await page.getByRole('button', { name: 'Download with its key' }).click();
        const dialog = page.getByRole('dialog', { name: 'Is it you?' });
        await dialog.getByLabel('Password').fill('not the password');
        await dialog.getByRole('button', { name: 'Go on' }).click();
        await dialog.getByRole('alert').waitFor();
        await isSound(page, 'the question for the password');
        const loaded = page.waitForEvent('download');
        await dialog.getByLabel('Password').fill(adminPassword);
        await dialog.getByRole('button', { name: 'Go on' }).click();
        expect((await loaded).suggestedFilename()).to.match(/\.pem$/);
        laterMs = 0;
        await finish(watched);
    });

    itWithBrowser('shows what was sent, and sends it again', async () => {
        const { data: channel } = await rig.panel.client.post('/api/settings/channels', {
            name: 'Hook',
            type: 'webhook',
            url: receiver.url
        });
        await rig.panel.client.post(`/api/settings/channels/${channel.id}/test`);
        await until(() => receiver.received.length === 1, 'the test to arrive');
        const watched = await rig.open();
        const { page } = watched;
        await visit(page, '/notifications');
        await page.getByText('What was sent').first().click();
        await page.locator('.badge', { hasText: 'delivered' }).first().waitFor();
        await isSound(page, 'the deliveries');
        await page.getByRole('button', { name: 'Send again' }).click();
        await until(() => receiver.received.length === 2, 'it to arrive again');
        expect(receiver.received[1]?.body).to.equal(receiver.received[0]?.body);
        await finish(watched);
    });

    itWithBrowser(
        'gives its connection back when it was hidden for a while, and is up to date when it is seen',
        async () => {
            const watched = await rig.page();
            const { page } = watched;
            await page.clock.install();
            const ended: string[] = [];
            page.on('requestfailed', (request) => ended.push(new URL(request.url()).pathname));
            await logIn(page, 'admin', adminPassword);
            await overview(page);
            await page.getByRole('link', { name: 'Hosts' }).first().click();
            await page.getByRole('heading', { name: 'Hosts', level: 1 }).waitFor();
            const see = (isHidden: boolean): Promise<void> =>
                page.evaluate(
                    `Object.defineProperty(document, 'hidden', { configurable: true, value: ${isHidden} }); document.dispatchEvent(new Event('visibilitychange'))`
                );
            await see(true);
            await page.clock.fastForward(20_000);
            expect(ended).to.not.include('/api/events');
            await page.clock.fastForward(11_000);
            await until(() => ended.includes('/api/events'), 'the stream to be given back');
            await rig.panel.client.post('/api/hosts', {
                domain: 'unseen.example',
                upstream: '127.0.0.1:3000'
            });
            const again = page.waitForRequest('**/api/events');
            await see(false);
            await again;
            await page.getByRole('link', { name: 'unseen.example' }).waitFor();
            await finish(watched);
        }
    );

    itUnless(noFirefox, it)('lets in by Firefox, and shows and uses a generated page there', async () => {
        const firefox = await startFirefox();
        try {
            const page = await firefox.newPage();
            const write = async (selector: string, text: string): Promise<void> => {
                const field = await page.waitForSelector(selector, { timeout: limitMs });
                await field?.type(text);
            };
            const press = async (selector: string): Promise<void> => {
                await (await page.waitForSelector(selector, { timeout: limitMs }))?.click();
            };
            const fill = async (label: string, text: string): Promise<void> => {
                await page.waitForSelector('dialog label');
                const id = await page.$$eval(
                    'dialog label',
                    (labels, name) =>
                        labels.find(({ textContent }) => textContent.trim().startsWith(name))?.htmlFor,
                    label
                );
                await write(`[id="${id}"]`, text);
            };
            await page.goto(`http://panel.example:${rig.panel.port}/`);
            await write('input[autocomplete=username]', 'admin');
            await write('input[type=password]', 'x');
            await press('button[type=submit]');
            await page.waitForSelector('[role=alert]', { timeout: limitMs });
            await page.$eval('input[type=password]', (field) => field.select());
            await write('input[type=password]', adminPassword);
            await press('button[type=submit]');
            await press('a[href="/p/cronjob"]');
            await press('::-p-xpath(//main//button[normalize-space()="New task"])');
            await fill('Name', 'greet');
            await fill('Schedule', '0 3 * * *');
            await fill('Command', '/bin/echo');
            await press('dialog button[type=submit]');
            await page.waitForSelector('::-p-xpath(//main//a[contains(., "greet")])', { timeout: limitMs });
            const { data } = await rig.panel.client.get('/api/plugins/cronjob/tasks');
            expect(data.map(({ name }: { name: string }) => name)).to.include('greet');
        } finally {
            await firefox.close();
        }
    });

    itWithBrowser(
        'makes everyone set a second factor up where that is required, and shows the codes',
        async () => {
            const { client } = rig.panel;
            // An admin without one cannot ask it of the others.
            const { data: own } = await client.post('/api/auth/totp', { password: adminPassword });
            await client.put('/api/auth/totp', { code: codeOf(own.secret, Date.now()) });
            const { status, text } = await client.put('/api/settings', { 'panel.requireTotp': true });
            expect(status, text).to.equal(200);
            const watched = await rig.page();
            const { page } = watched;
            await logIn(page, 'pia', piaPassword);
            await page.getByRole('heading', { name: 'Set a second factor up first' }).waitFor();
            await page.getByLabel('Password').fill(piaPassword);
            await page.getByRole('button', { name: 'Begin' }).click();
            const secret = (await page.locator('main code').first().textContent()) ?? '';
            await isSound(page, 'the forced second factor');
            await page.getByLabel('Code').fill(codeOf(secret, Date.now()));
            await page.getByRole('button', { name: 'Switch on' }).click();
            await page.getByText('Keep these recovery codes').waitFor();
            await isSound(page, 'the recovery codes');
            await page.getByRole('button', { name: 'I have kept them' }).click();
            await overview(page);
            await finish(watched);
        }
    );

    itWithBrowser('says how long too many wrong passwords close an account', async () => {
        await user('quinn', false);
        const { client } = rig.panel;
        await until(
            async () => (await client.login('quinn', 'not the password')).status === 429,
            'the account to be closed'
        );
        const watched = await rig.page();
        const { page } = watched;
        await logIn(page, 'quinn', 'not the password');
        const said = page.getByRole('alert').getByText(/^Too many attempts\. Try again in \d+ s\.$/);
        await said.waitFor();
        await finish(watched);
    });
});
