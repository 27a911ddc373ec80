/** A stream on an open page goes on where it was: over an upgrade of its plugin, and over a restart of the panel. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import type { Page, Request } from 'playwright-core';

import { itInBrowser } from '../../../support/browser.ts';
import { pluginModule } from '../../../support/plugins/folder.ts';
import { pluginPackage } from '../../../support/registry/packages.ts';
import { type NpmRegistry, startNpmRegistry } from '../../../support/servers/npm-registry.ts';
import { until } from '../../../support/until.ts';
import { finish, limitMs, type Rig, startRig, visit } from '../rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const packageName = '@acme/portico-plugin-counter';
const path = '/api/plugins/counter/counts';

/** A page keeps 2,000 lines: at this pace those of minutes, also on a busy machine. It counts from the number after the one that its reader saw last, and says which version counts. */
const counter = (version: string): string =>
    pluginModule(`ctx.stream({
        path: '/counts', id: 'counts', access: 'read', summary: 'Count', ui: { title: 'Counts' },
        async *handler({ lastEventId, signal }) {
            for (let n = Number(lastEventId ?? 0) + 1; !signal.aborted; n += 1) {
                yield { id: String(n), event: 'count', data: { text: n + ' by ${version}' } };
                await new Promise((resolve) => setTimeout(resolve, 200));
            }
        }
    });`);

describe('a stream on an open page', { timeout: 2 * limitMs }, () => {
    const itWithBrowser = itInBrowser(it);
    let rig: Rig;
    let npm: NpmRegistry;

    before({ timeout: limitMs }, async () => {
        npm = await startNpmRegistry();
        for (const version of ['1.0.0', '2.0.0']) {
            const manifest = { name: 'counter', title: 'Counter', sdk: '^1.0.0' };
            await npm.publish(pluginPackage('counter', version, { portico: manifest }), {
                'index.js': counter(version)
            });
        }
        rig = await startRig(['webui'], { environment: { PORTICO_NPM_REGISTRY: npm.url } });
        await install('1.0.0');
    });
    after(async () => {
        await rig.close();
        await npm.stop();
    });

    const install = async (version: string): Promise<void> => {
        const { status, text } = await rig.panel.client.post('/api/plugins', {
            package: packageName,
            version
        });
        expect(status, text).to.equal(202);
        await until(
            async () => {
                const { data } = await rig.panel.client.get('/api/plugins/counter');
                return data?.state === 'running' && data.version === version;
            },
            `version ${version} to run`,
            limitMs
        );
    };
    /** The numbers on the page, in their order. */
    const shown = async (page: Page): Promise<number[]> =>
        (await page.getByRole('log').locator('div').allTextContents())
            .map((line) => Number.parseInt(line, 10))
            .filter((number) => !Number.isNaN(number));
    const isWhole = (numbers: readonly number[]): void => {
        expect(numbers).to.equal(numbers.map((_number, index) => index + 1));
    };
    /** What the user may do, as the panel answers it again and again until this is done. */
    const permissionsUntil = async (done: Promise<void>): Promise<readonly (readonly string[])[]> => {
        const answers: (readonly string[])[] = [];
        let isDone = false;
        void done.finally(() => (isDone = true));
        await until(async () => {
            const { status, data } = await rig.panel.client.get('/api/auth/me');
            if (status === 200) {
                answers.push(data.permissions);
            }
            return isDone;
        }, 'the panel to be there again');
        return answers;
    };
    /** Waits for a request that says which event its reader saw last. */
    const resumed = async (page: Page): Promise<Request> =>
        page.waitForRequest(
            (request) =>
                new URL(request.url()).pathname === path &&
                Number(request.headers()['last-event-id'] ?? '0') > 0,
            { timeout: limitMs }
        );

    itWithBrowser('loses and repeats nothing over an upgrade and a restart', async () => {
        const watched = await rig.open();
        const { page } = watched;
        await visit(page, '/p/counter');
        await page.getByRole('button', { name: 'Follow: Counts' }).click();
        await page.getByText('3 by 1.0.0', { exact: true }).waitFor();

        const again = resumed(page);
        await install('2.0.0');
        const lastSeen = Number((await again).headers()['last-event-id']);
        // The old version may have told more before it let go.
        const line = page.getByRole('log').getByText(/ by 2\.0\.0$/);
        await line.nth(2).waitFor({ timeout: limitMs });
        expect(Number.parseInt((await line.first().textContent()) ?? '', 10)).to.be.above(lastSeen);
        isWhole(await shown(page));

        const afterRestart = resumed(page);
        const restarting = rig.panel.restart();
        const permissions = permissionsUntil(restarting);
        const seen = Number((await afterRestart).headers()['last-event-id']);
        await restarting;
        await until(async () => Math.max(...(await shown(page))) > seen + 3, 'it to go on', limitMs);
        isWhole(await shown(page));
        await page.getByText('The panel does not answer').waitFor({ state: 'detached' });
        // What a user may do shrinks for no moment: a page would take away what is open on it.
        expect((await permissions).every((each) => each.includes('counter:read'))).to.be.true();
        await finish(watched);
    });
});
