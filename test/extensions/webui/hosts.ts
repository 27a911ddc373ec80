/** The screens of hosts: made, checked while typing, changed against another admin, copied, removed, and ten thousand of them. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import type { Page } from 'playwright-core';

import { itInBrowser } from '../../support/browser.ts';
import { until } from '../../support/until.ts';
import { finish, isSound, limitMs, type Rig, startRig, visit } from './rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

interface HostView {
    readonly id: number;
    readonly domain: string;
    readonly enabled: boolean;
    readonly version: number;
    readonly notes: string;
    readonly upstreams: readonly { readonly address: string }[];
    readonly advanced: readonly { readonly handler: string }[];
}

const many = 10_000;
/** A pause that a user notices. */
const longestMs = 100;

describe('the screens of hosts', { timeout: 2 * limitMs }, () => {
    const itWithBrowser = itInBrowser(it);
    let rig: Rig;

    before({ timeout: limitMs }, async () => {
        rig = await startRig();
    });
    after(() => rig.close());

    const hosts = async (): Promise<readonly HostView[]> => (await rig.panel.client.get('/api/hosts')).data;
    const hostOf = async (domain: string): Promise<HostView | undefined> =>
        (await hosts()).find((each) => each.domain === domain);

    itWithBrowser('makes a host by the keyboard alone, and says at once what is wrong with it', async () => {
        const watched = await rig.open();
        const { page } = watched;
        await page.getByRole('navigation', { name: 'Panel' }).getByRole('link', { name: 'Hosts' }).focus();
        await page.keyboard.press('Enter');
        await page.getByRole('link', { name: 'New host' }).first().focus();
        await page.keyboard.press('Enter');
        await page.getByLabel('Name', { exact: true }).focus();
        await page.keyboard.type('shop.example');
        await page.keyboard.press('Tab');
        await page.keyboard.press('Tab');
        await page.getByLabel('Address', { exact: true }).focus();
        await page.keyboard.type('no address at all:x');
        await page.getByText('to mend').waitFor();
        expect(await page.getByLabel('Address', { exact: true }).getAttribute('aria-invalid')).to.equal(
            'true'
        );
        expect(await hosts()).to.equal([]);
        await page.keyboard.press('Control+a');
        await page.keyboard.type('127.0.0.1:3000');
        await page.getByText('The engine takes it.').waitFor();
        await page.keyboard.press('Enter');
        await page.getByRole('heading', { name: 'shop.example' }).waitFor();
        await page.getByText('The engine serves the host').waitFor();
        await page.getByText('127.0.0.1:3000: the connection is refused').waitFor();
        expect((await hostOf('shop.example'))?.upstreams[0]?.address).to.equal('127.0.0.1:3000');
        await finish(watched);
    });

    itWithBrowser(
        'shows what differs before it saves, and whose state counts when another was faster',
        async () => {
            const watched = await rig.open();
            const { page } = watched;
            const host = await hostOf('shop.example');
            await visit(page, `/hosts/${host?.id}`);
            await page.getByText('Tags and notes').click();
            await page.getByLabel('Notes').fill('mine');
            await page.getByText('It does not need to reload.').waitFor();
            await page.getByRole('button', { name: 'Review and save' }).click();
            const question = page.getByRole('dialog', { name: 'Save these changes?' });
            await question.locator('ins', { hasText: 'mine' }).waitFor();
            await rig.panel.client.put(`/api/hosts/${host?.id}`, { notes: 'theirs' });
            await question.getByRole('button', { name: 'Save' }).click();
            const conflict = page.getByRole('dialog', { name: 'It was changed meanwhile' });
            await conflict.locator('del', { hasText: 'theirs' }).waitFor();
            expect((await hostOf('shop.example'))?.notes).to.equal('theirs');
            await conflict.getByRole('button', { name: 'Write mine' }).click();
            await until(async () => (await hostOf('shop.example'))?.notes === 'mine', 'the host to be saved');
            await page.getByRole('heading', { name: 'Is it reached?' }).waitFor();
            await finish(watched);
        }
    );

    itWithBrowser('lets the slower of two admins take what the faster one saved', async () => {
        const { id } = (await hostOf('shop.example')) ?? { id: 0 };
        const [slow, fast] = [await rig.open(), await rig.open()];
        for (const { page } of [slow, fast]) {
            await visit(page, `/hosts/${id}`);
            await page.getByText('Tags and notes').click();
        }
        await slow.page.getByLabel('Notes').fill('of the slow one');
        await fast.page.getByLabel('Notes').fill('of the fast one');
        await fast.page.getByRole('button', { name: 'Review and save' }).click();
        await fast.page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
        await fast.page.getByRole('heading', { name: 'Is it reached?' }).waitFor();
        await slow.page.getByText('Another user changed this host while you write.').waitFor();
        expect(await slow.page.getByLabel('Notes').inputValue()).to.equal('of the slow one');
        await slow.page.getByRole('button', { name: 'Review and save' }).click();
        await slow.page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
        const conflict = slow.page.getByRole('dialog', { name: 'It was changed meanwhile' });
        await conflict.locator('ins', { hasText: 'of the slow one' }).waitFor();
        await isSound(slow.page, 'the choice between two changes');
        await conflict.getByRole('button', { name: 'Take theirs' }).click();
        await slow.page.getByText('Tags and notes').click();
        expect(await slow.page.getByLabel('Notes').inputValue()).to.equal('of the fast one');
        expect((await hostOf('shop.example'))?.notes).to.equal('of the fast one');
        await finish(slow);
        await finish(fast);
    });

    itWithBrowser('says who gets in, and what the engine gets', async () => {
        const watched = await rig.open();
        const { page } = watched;
        const { id } = (await hostOf('shop.example')) ?? { id: 0 };
        await rig.panel.client.put(`/api/hosts/${id}`, { access: { deny: ['203.0.113.0/24'] } });
        await visit(page, `/hosts/${id}?tab=access`);
        await page.getByLabel('Address of the visitor').fill('203.0.113.7');
        await page.getByRole('button', { name: 'Who gets in?' }).click();
        await page.getByRole('heading', { name: 'Does not get in (403)' }).waitFor();
        await page.getByRole('navigation', { name: 'shop.example' }).getByText('For the engine').click();
        await page.locator('pre', { hasText: '127.0.0.1:3000' }).waitFor();
        // A handler in the engine's own language: nothing is sent while it is half written.
        await page.getByRole('navigation', { name: 'shop.example' }).getByText('Settings').click();
        const handlers = page.locator('details', { hasText: 'Handlers of the engine' });
        await handlers.locator('summary').click();
        const written = handlers.getByRole('textbox');
        await written.fill('[{ "handler": "headers", ');
        await page.getByRole('button', { name: 'Review and save' }).click();
        await handlers.getByRole('alert').getByText('This is not JSON').waitFor();
        expect((await hostOf('shop.example'))?.advanced).to.equal([]);
        await written.fill('[{ "handler": "headers", "response": { "set": { "X-Quay": ["7"] } } }]');
        await page.getByRole('button', { name: 'Review and save' }).click();
        await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
        await until(
            async () => (await hostOf('shop.example'))?.advanced[0]?.handler === 'headers',
            'the handler to be kept'
        );
        await visit(page, `/hosts/${id}?tab=preview`);
        await page.locator('pre', { hasText: 'X-Quay' }).waitFor();
        await finish(watched);
    });

    itWithBrowser('makes one host on a slow network, however often it is sent', async () => {
        const watched = await rig.open();
        const { page } = watched;
        await visit(page, '/hosts/new');
        await page.getByLabel('Name', { exact: true }).fill('slow.example');
        await page.getByLabel('Address', { exact: true }).fill('127.0.0.1:3000');
        await page.getByText('The engine takes it.').waitFor();
        const sent: string[] = [];
        await page.route('**/api/hosts', async (route) => {
            sent.push(route.request().method());
            await until(() => isImpatient, 'the user to press again');
            await route.continue();
        });
        let isImpatient = false;
        await page.getByLabel('Address', { exact: true }).press('Enter');
        await until(() => sent.includes('POST'), 'it to be sent');
        await page.getByLabel('Address', { exact: true }).press('Enter');
        await page.getByRole('button', { name: 'Create the host' }).press('Enter');
        isImpatient = true;
        await page.getByRole('heading', { name: 'slow.example' }).waitFor();
        expect(sent.filter((method) => method === 'POST')).to.equal(['POST']);
        await page.unrouteAll({ behavior: 'wait' });
        await rig.panel.client.delete(`/api/hosts/${(await hostOf('slow.example'))?.id}`);
        await finish(watched);
    });

    itWithBrowser('copies, disables and removes by the menu, and gives the focus back', async () => {
        const watched = await rig.open();
        const { page } = watched;
        await visit(page, '/hosts');
        const menu = (domain: string) => page.getByRole('button', { name: `Actions for ${domain}` });
        await menu('shop.example').focus();
        await page.keyboard.press('Enter');
        await page.getByRole('button', { name: 'Copy as …' }).waitFor();
        await page.keyboard.press('Escape');
        expect(await page.evaluate('document.activeElement.ariaLabel')).to.equal('Actions for shop.example');
        await menu('shop.example').click();
        await page.getByRole('button', { name: 'Copy as …' }).click();
        await page.getByLabel('Name of the copy').fill('copy.example');
        await page.getByRole('dialog').getByRole('button', { name: 'Copy', exact: true }).click();
        await page.getByRole('heading', { name: 'copy.example' }).waitFor();
        await visit(page, '/hosts');
        await menu('copy.example').click();
        await page.getByRole('button', { name: 'Disable', exact: true }).click();
        await until(async () => (await hostOf('copy.example'))?.enabled === false, 'the host to be disabled');
        await page.getByRole('checkbox', { name: 'Choose copy.example' }).check();
        await page
            .getByRole('group', { name: 'Chosen hosts' })
            .getByRole('button', { name: 'Remove' })
            .click();
        await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
        await until(async () => (await hostOf('copy.example')) === undefined, 'the host to be gone');
        expect(await hostOf('shop.example')).to.exist();
        await finish(watched);
    });

    itWithBrowser('scrolls through and filters ten thousand hosts without a long pause', async () => {
        await importHosts(rig, many);
        const watched = await rig.open();
        const { page } = watched;
        await visit(page, '/hosts');
        await page.getByText(`${many + 1} hosts`).waitFor();
        const work = await measureWork(page);
        await work();
        for (let at = 1; at <= 20; at += 1) {
            await page.evaluate(`new Promise((resolve) => {
                document.querySelector('.virtual').scrollTo(0, ${at * 2_000});
                requestAnimationFrame(() => requestAnimationFrame(resolve));
            })`);
            expect(await work(), `step ${at}`).to.be.below(longestMs);
        }
        const row = page.locator('.hosts tbody tr:not(.space)');
        await until(async () => (await row.last().textContent())?.includes('host-008'), 'the rows to come');
        expect(await row.count()).to.be.below(80);
        // The work of the browser's own clean-up falls into one filter or another: the best of three is the page's.
        const filters: number[] = [];
        for (const name of ['host-09999', 'host-09998', 'host-09997']) {
            await work();
            await page.getByLabel('Search').fill(name);
            await page.getByRole('link', { name: `${name}.example` }).waitFor();
            await page.getByText('1 host').waitFor();
            filters.push(await work());
        }
        expect(Math.min(...filters), 'the filter').to.be.below(longestMs);
        await isSound(page, 'ten thousand hosts');
        await finish(watched);
    });
});

/** Brings hosts in by one import, disabled: the engine is not what is measured. */
async function importHosts({ panel: { client } }: Rig, count: number): Promise<void> {
    const { data: document } = await client.post('/api/import-export/export', { sections: ['hosts'] });
    const hosts = document.sections.hosts as Record<string, unknown>[];
    const made = Array.from({ length: count }, (_each, index) => ({
        domain: `host-${String(index).padStart(5, '0')}.example`,
        upstream: '127.0.0.1:3000',
        enabled: false
    }));
    const { status, data, text } = await client.post('/api/import-export/import', {
        document: { ...document, sections: { hosts: [...hosts, ...made] } },
        mode: 'merge'
    });
    expect(status, text).to.equal(202);
    await until(
        async () => (await client.get(`/api/tasks/${data.id}`)).data.state === 'succeeded',
        'the import to end',
        limitMs
    );
}

/**
 * Tells how long the page worked since the last time, in milliseconds of the processor: a busy machine makes the wall's time longer, not
 * this one.
 */
async function measureWork(page: Page): Promise<() => Promise<number>> {
    const session = await page.context().newCDPSession(page);
    await session.send('Performance.enable', { timeDomain: 'threadTicks' });
    let before = 0;
    return async () => {
        const { metrics } = await session.send('Performance.getMetrics');
        const now = (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? 0) * 1_000;
        const spent = now - before;
        before = now;
        return spent;
    };
}
