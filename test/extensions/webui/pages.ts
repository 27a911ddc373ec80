/** The pages in a real browser, on a real panel, over plain HTTP. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import type { Locator } from 'playwright-core';

import { hostWords, wordedFields } from '../../../extensions/webui/web/src/pages/hosts/form/words.ts';
import { itInBrowser, noBrowser } from '../../support/browser.ts';
import { adminPassword } from '../../support/panel/panel.ts';
import { selfSigned } from '../../support/servers/self-signed.ts';
import { until } from '../../support/until.ts';
import { png } from '../appstore/publisher.ts';
import { type Instance, noPostgresql, startPostgresql } from '../database/instances.ts';
import { pullOf, signed } from '../deploy/forges/deliveries.ts';
import { GitServer } from '../deploy/support/git-server.ts';
import { everyPlugin, furnish } from './furnish.ts';
import { type GeneratedScreen, generatedScreens } from './generated-screens.ts';
import {
    areFormsSound,
    extensions,
    finish,
    isSound,
    limitMs,
    openAxe,
    type Rig,
    startRig,
    visit,
    walk
} from './rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const screens = [
    '/',
    '/hosts',
    '/hosts/new',
    '/hosts/1',
    '/hosts/1?tab=check',
    '/hosts/1?tab=access',
    '/hosts/1?tab=preview',
    '/certificates',
    '/certificates/1',
    '/dns-providers',
    '/monitoring',
    '/database',
    '/deploy',
    '/deploy/1',
    '/engine',
    '/engine?tab=revisions',
    '/engine?tab=upstreams',
    '/engine?tab=log',
    '/engine?tab=config',
    '/p/cronjob',
    '/plugins',
    '/plugins?tab=catalogue',
    '/plugins/cronjob',
    '/plugins/cronjob?tab=settings',
    '/plugins/cronjob?tab=log',
    '/plugins/cronjob?tab=versions',
    '/users',
    '/users?tab=roles',
    '/audit',
    '/tasks',
    '/notifications',
    '/exchange',
    '/settings',
    '/account'
];

/** Most bytes of parts that are loaded when they are first shown. */
const lazyBytes: Readonly<Record<string, number>> = { chart: 30_000, code: 150_000, terminal: 95_000 };
const lazyBytesOf = (name: string): number | undefined => lazyBytes[name.split('-')[0] ?? ''];
const callback = 'http://127.0.0.1:3118/callback';
/** What a machine, or a thing of this test, may lack; the page of an extension then says so. */
const missing = new RegExp(
    [
        'There is no container engine',
        'No release of this deployment is kept',
        'systemd did not answer',
        'The journal cannot be read',
        'The panel may not change the rules of the kernel',
        'is not installed',
        'The panel does not run this server',
        'It must be a token or an app, and say which forge it is for'
    ].join('|')
);

/** Waits until a release says in words why it does not serve: which reason it is depends on the machine. */
const saysWhy = (where: Locator, reason: string): Promise<void> =>
    where.locator(`.failure[title="${reason}"]`, { hasText: /^[A-Z][a-z]* ./ }).waitFor();

describe('the pages in a browser', { timeout: 2 * limitMs }, () => {
    const itWithBrowser = itInBrowser(it);
    let rig: Rig;
    let folder: string;
    let server: Instance | null = null;
    let question: string;

    before({ timeout: limitMs }, async () => {
        folder = mkdtempSync(join(tmpdir(), 'portico-pages-'));
        rig = await startRig(['webui', ...everyPlugin]);
        const { client } = rig.panel;
        server = noPostgresql === undefined ? await startPostgresql() : null;
        await furnish(client, folder, server);
        const { data: agent } = await client.post('/api/auth/oauth/clients', {
            name: 'Agent',
            redirectUris: [callback]
        });
        question = `/oauth/authorize?${new URLSearchParams({
            response_type: 'code',
            client_id: agent.clientId,
            redirect_uri: callback,
            scope: 'mcpserver:use hosts:write users:write',
            code_challenge: 'x'.repeat(43),
            code_challenge_method: 'S256',
            resource: `http://panel.example:${rig.panel.port}/api/plugins/mcpserver/mcp`
        })}`;
        const made = await client.post('/api/plugins/deploy/projects', {
            name: 'shop',
            source: { url: 'https://127.0.0.1:1/shop.git' },
            previews: { domain: 'pr-{number}.shop.example' }
        });
        expect(made.status, made.text).to.equal(201);
        await client.post('/api/hosts', { domain: 'shop.example', upstream: '127.0.0.1:3000' });
        await client.post('/api/certificates', {
            source: 'upload',
            name: 'Shop',
            ...selfSigned(['shop.example'])
        });
        await client.post('/api/settings/channels', {
            name: 'Pager',
            type: 'webhook',
            url: 'http://pager.example/'
        });
    });
    after(async () => {
        await rig?.close();
        await server?.close();
        rmSync(folder, { recursive: true, force: true });
    });

    itWithBrowser(
        'says what is wrong with a login, lets the right one in, and ends it in all tabs',
        async () => {
            const watched = await rig.page();
            const { page } = watched;
            await page.goto('/');
            // By the keyboard alone.
            const name = page.getByLabel('User name');
            const tab = (): Promise<void> => page.keyboard.press('Tab');
            await name.waitFor();
            await until(async () => {
                await tab();
                return name.evaluate((field) => field.matches(':focus'));
            }, 'the keyboard to reach the name');
            await page.keyboard.type('admin');
            await tab();
            await page.keyboard.type('not the password');
            await page.keyboard.press('Enter');
            await page.getByRole('alert').getByText('The user name or the password is wrong').waitFor();
            await page.keyboard.press('Control+a');
            await page.keyboard.type(adminPassword);
            await page.keyboard.press('Enter');
            await page.getByRole('heading', { name: 'Overview' }).waitFor();
            await page.reload();
            await page.getByRole('heading', { name: 'Overview' }).waitFor();
            await page.getByRole('button', { name: 'Log out' }).click();
            await page.getByRole('button', { name: 'Log in' }).waitFor();
            await finish(watched);
        }
    );

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
        await saysWhy(release, data[0].reason);
        await release.getByRole('button', { name: 'Show the log' }).click();
        const log = release.getByRole('log', { name: 'Log of #1' });
        await log.getByText(`failed: ${data[0].reason}`, { exact: true }).waitFor();
        await isSound(page, 'a release that failed');
        // The audit log has the words of the route, and asks for the parts of those plugins alone that it shows.
        const asked: (string | null)[] = [];
        page.on('request', (request) => {
            const { pathname, searchParams } = new URL(request.url());
            if (pathname === '/api/openapi.json') {
                asked.push(searchParams.get('tag'));
            }
        });
        await visit(page, '/audit?resource=project');
        await page.getByRole('row').getByText('Deploy a project').waitFor();
        expect(asked).to.include(['panel', 'deploy']);
        expect(asked).to.not.include('monitoring');
        expect(asked).to.not.include(null);
        // A part that is gone costs no other words.
        await page.route('**/api/openapi.json?tag=deploy', (route) =>
            route.fulfill({
                status: 404,
                json: { code: 40_400, message: 'There is no such tag', data: null }
            })
        );
        await visit(page, '/audit');
        await page.getByRole('row').getByText('Log in', { exact: true }).first().waitFor();
        await page.getByRole('row').getByText('Project: deploy').waitFor();
        await finish(watched, /^\/api\/openapi\.json$/);
    });

    itWithBrowser('lets code of a fork run only once exactly its commit was approved', async () => {
        const { client } = rig.panel;
        const { data: hook } = await client.post('/api/plugins/deploy/projects/1/hook');
        const pull = async (commit: string, action: 'opened' | 'pushed'): Promise<void> => {
            const [event, body] = pullOf('gitea', { number: 7, commit, action, fork: true });
            const headers = {
                'content-type': 'application/json',
                ...signed('gitea', event, body, hook.secret)
            };
            const sent = await client.call('POST', new URL(hook.url, 'http://panel.example').pathname, {
                token: null,
                body,
                headers
            });
            expect(sent.data?.preview?.state, sent.text).to.equal('awaiting-approval');
        };
        const preview = async (): Promise<{
            commit: string;
            approvedCommit: string | null;
            state: string;
            deploymentId: number | null;
        }> => (await client.get('/api/plugins/deploy/projects/1/previews')).data[0];
        const [seen, newer] = ['a'.repeat(40), 'b'.repeat(40)];
        await pull(seen, 'opened');
        await rig.panel.tokenOf('viewer', 'petra');
        const looker = await rig.open({}, 'petra');
        await visit(looker.page, '/deploy/1');
        await looker.page.getByText('waits for approval').waitFor();
        expect(await looker.page.getByRole('button', { name: /Approve|End/ }).count()).to.equal(0);
        await finish(looker);

        const watched = await rig.open();
        const { page } = watched;
        await visit(page, '/deploy/1');
        const row = page.getByRole('row').filter({ hasText: '#7' });
        await isSound(page, 'a preview that waits for approval');
        await row.getByRole('button', { name: 'Approve …' }).click();
        const question = page.getByRole('dialog');
        await question.getByText(seen).waitFor();
        await isSound(page, 'the approval of a fork');
        // The fork moves on while the admin looks at what was there.
        await pull(newer, 'pushed');
        await question.getByRole('button', { name: 'Approve', exact: true }).click();
        await page.getByText('The head of the pull request is another commit now').waitFor();
        expect(await preview()).to.include({
            commit: newer,
            approvedCommit: null,
            state: 'awaiting-approval'
        });
        await row.getByText(newer.slice(0, 8)).waitFor();
        await row.getByRole('button', { name: 'Approve …' }).click();
        await question.getByText(newer).waitFor();
        await question.getByRole('button', { name: 'Approve', exact: true }).click();
        await row.getByText('failed').waitFor();
        expect((await preview()).approvedCommit).to.equal(newer);
        await row.getByRole('button', { name: 'What happened' }).click();
        const { data: attempt } = await client.get(
            `/api/plugins/deploy/deployments/${(await preview()).deploymentId}`
        );
        await saysWhy(question, attempt.reason);
        await question.getByRole('log', { name: 'Log' }).getByText(`failed: ${attempt.reason}`).waitFor();
        await isSound(page, 'how a preview went');
        await page.keyboard.press('Escape');
        await row.getByRole('button', { name: 'Revoke' }).click();
        await question.getByRole('button', { name: 'Revoke' }).click();
        await row.getByText('waits for approval').waitFor();
        expect((await preview()).approvedCommit).to.be.null();
        await row.getByRole('button', { name: 'End' }).click();
        await question.getByRole('button', { name: 'End' }).click();
        await row.getByText('is over').waitFor();
        expect((await preview()).state).to.equal('closed');
        await finish(watched);
    });

    itWithBrowser('shows every screen without a violation, an error or a finding of axe', async () => {
        const watched = await rig.open();
        const axe = await openAxe(watched.page);
        for (const screen of [...screens, question]) {
            await walk(watched.page, screen);
            await isSound(watched.page, screen.split('&')[0] ?? '', { axe });
        }
        await finish(watched);
    });

    itWithBrowser('shows every page that is made of the routes of an extension', async () => {
        const left: GeneratedScreen[] = [];
        for (const plugin of everyPlugin) {
            const all = await generatedScreens(rig.panel.client, plugin);
            expect(all.length, plugin).to.be.above(0);
            left.push(...all);
        }
        // All that is wrong is told at once: the way to the last page is long.
        const faults: string[] = [];
        const seen = new Set<string>();
        const offered = left.flatMap(({ buttons }) => buttons).filter(({ hasForm }) => hasForm);
        const forms = [...new Set(offered.map(({ id }) => id))];
        expect(forms.length).to.be.above(30);
        const look = async (): Promise<void> => {
            const watched = await rig.open();
            const { page } = watched;
            // A hundred rows that are alike take axe seven seconds of the processor, and tell it no more than a dozen.
            await page.route(/\/api\/plugins\/\w+\/tools(\?|$)/, (route) => {
                const url = new URL(route.request().url());
                url.searchParams.set('limit', '12');
                return route.continue({ url: url.href });
            });
            const axe = await openAxe(page);
            for (let screen = left.shift(); screen !== undefined; screen = left.shift()) {
                try {
                    await walk(page, screen.address);
                    await isSound(page, screen.address, { missing, axe, isBrief: true });
                    await areFormsSound(page, screen, axe, seen);
                } catch (error) {
                    faults.push((error as Error).message);
                }
            }
            // No rules were applied.
            await finish(watched, /^\/api\/plugins\/firewall\/ruleset$/);
        };
        await Promise.all([look(), look()]);
        expect(faults).to.equal([]);
        expect([...seen]).to.only.include(forms);
    });

    itInBrowser(it, noBrowser ?? noPostgresql)(
        'runs statements in the console of a database, and shows their rows, their plans and their faults',
        async () => {
            const { client } = rig.panel;
            const [{ id }] = (await client.get('/api/plugins/database/servers')).data;
            const made = await client.post(`/api/plugins/database/servers/${id}/databases`, {
                name: 'harbour'
            });
            expect(made.status, made.text).to.equal(201);
            const watched = await rig.open();
            const { page } = watched;
            await visit(page, '/database');
            await page.getByRole('link', { name: 'orders' }).click();
            await page.getByRole('combobox', { name: 'Database' }).selectOption('harbour');
            const statement = page.getByRole('textbox', { name: 'Statement' });
            const type = async (sql: string): Promise<void> => {
                await statement.press('Control+a');
                await statement.pressSequentially(sql);
            };
            await statement.waitFor();
            await type('create table ports (name text, depth int)');
            await page.getByRole('button', { name: 'Run' }).click();
            await page
                .getByRole('alert')
                .getByText(/^This console only reads/)
                .waitFor();
            await page.getByLabel('May change things').check();
            await page.getByRole('button', { name: 'Run' }).click();
            await page
                .getByRole('navigation', { name: 'Tables' })
                .getByRole('button', { name: 'ports' })
                .waitFor();
            await type("insert into ports values ('Oslo', 14), ('Kiel', null)");
            await statement.press('Control+Enter');
            await page.getByText('2 rows were changed').waitFor();
            await page.getByLabel('May change things').uncheck();
            await page.getByRole('button', { name: 'ports' }).click();
            await page.getByRole('cell', { name: 'Oslo' }).waitFor();
            await page.getByRole('cell', { name: 'null' }).waitFor();
            await isSound(page, 'the console of a database');
            await page.getByRole('button', { name: 'Explain' }).click();
            await page.locator('pre', { hasText: 'Seq Scan' }).waitFor();
            await page.getByText('Your own statements').click();
            await page.getByRole('button', { name: /^insert into ports/ }).click();
            await until(
                async () => (await statement.textContent())?.includes('Kiel'),
                'the statement to be back'
            );
            // What is not installed comes with the command that installs it.
            await visit(page, '/p/database?list=database.servers&id=1');
            const lack = page.locator('.failure', { hasText: 'pg_stat_statements is not installed' });
            await lack.locator('code').getByText('shared_preload_libraries').waitFor();
            await lack.getByRole('button', { name: 'Copy' }).click();
            await page.getByText('Copied').waitFor();
            await finish(watched);
        }
    );

    itWithBrowser('makes, runs and removes a task of a plugin by its generated page', async () => {
        const watched = await rig.open();
        const { page } = watched;
        await page.getByRole('link', { name: 'Cron jobs' }).click();
        await page.getByRole('button', { name: 'New task' }).click();
        const dialog = page.getByRole('dialog', { name: 'New task' });
        await dialog.getByLabel('Name').fill('greet');
        await dialog.getByLabel('Schedule').fill('no schedule');
        await dialog.getByLabel('Command').fill('/bin/echo\nhello');
        await dialog.getByRole('button', { name: 'New task' }).click();
        await dialog.getByRole('alert').first().waitFor();
        expect(await dialog.getByLabel('Schedule').getAttribute('aria-invalid')).to.equal('true');
        await dialog.getByText(/^Request [\w-]+$/).waitFor();
        await until(
            () => dialog.getByLabel('Schedule').evaluate((field) => field.matches(':focus')),
            'the wrong field to get the focus'
        );
        await dialog.getByLabel('Schedule').fill('0 3 * * *');
        await dialog.getByText('At 03:00').waitFor();
        await dialog.locator('.times time').nth(4).waitFor();
        expect(await dialog.locator('.times time').count()).to.equal(5);
        await dialog.getByRole('button', { name: 'New task' }).click();
        await page.getByRole('link', { name: 'greet' }).waitFor();
        const task = page.getByRole('row').filter({ hasText: 'greet' });
        await task.getByRole('button', { name: 'Run now' }).click();
        const run = page.getByRole('dialog', { name: 'Run now' });
        await run.getByRole('button', { name: 'Run now' }).click();
        await page.getByText('Done: Run now').waitFor();
        await until(async () => {
            const { data } = await rig.panel.client.get('/api/plugins/cronjob/runs');
            return data[0]?.state === 'succeeded';
        }, 'the run to end');
        await page.getByRole('navigation', { name: 'Cron jobs' }).getByRole('link', { name: 'Runs' }).click();
        await page.locator('.badge', { hasText: 'succeeded' }).waitFor();
        await page.getByRole('search').getByLabel('State').selectOption('failed');
        await page.locator('.badge', { hasText: 'succeeded' }).waitFor({ state: 'detached' });
        // The filter is in the address, so that it outlives a reload and can be sent.
        await page.reload();
        expect(await page.getByRole('search').getByLabel('State').inputValue()).to.equal('failed');
        await page.locator('.empty').waitFor();
        await page.getByRole('search').getByLabel('State').selectOption('succeeded');
        await page.locator('.badge', { hasText: 'succeeded' }).waitFor();
        await page
            .getByRole('navigation', { name: 'Cron jobs' })
            .getByRole('link', { name: 'Tasks' })
            .click();
        await page.getByRole('link', { name: 'greet' }).click();
        await page.getByRole('button', { name: 'Change' }).click();
        const change = page.getByRole('dialog');
        await change.getByLabel('Schedule').fill('30 4 * * *');
        await change.getByRole('button', { name: 'Save' }).click();
        await page.getByText('30 4 * * *').first().waitFor();
        const { data: tasks } = await rig.panel.client.get('/api/plugins/cronjob/tasks?q=greet');
        expect(tasks.map((each: { schedule: string }) => each.schedule)).to.equal(['30 4 * * *']);
        await page.getByRole('link', { name: '← Tasks' }).click();
        await task.getByRole('button', { name: 'Remove' }).click();
        await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
        await task.waitFor({ state: 'detached' });
        // A list comes page by page.
        await visit(page, '/p/ai?list=ai.tools');
        const rows = page.getByRole('row');
        const more = page.getByRole('button', { name: 'Show more' });
        await more.waitFor();
        const first = await rows.count();
        await more.click();
        await rows.nth(first).waitFor();
        await finish(watched);
    });

    itWithBrowser('shows the icon of an app, which needs a login', async () => {
        const { client } = rig.panel;
        const repositories = new GitServer(join(folder, 'repositories'));
        await repositories.start();
        const { capabilities } = (await client.get('/api/plugins/appstore')).data;
        const grants = { ...capabilities.granted, network: ['*', '127.0.0.1'] };
        expect((await client.put('/api/plugins/appstore', { grants })).status).to.equal(200);
        try {
            repositories.create('apps', {
                'Apps/Photos/icon.png': png,
                'Apps/Photos/docker-compose.yml':
                    'name: photos\nservices: { photos: { image: "example/photos:2.1" } }\nx-casaos: { main: photos, title: { en_us: Photos }, tagline: { en_us: Shows photos } }\n'
            });
            const source = { kind: 'casaos', url: repositories.url('apps'), acceptUnsigned: true };
            const made = await client.post('/api/plugins/appstore/sources', { name: 'casa', ...source });
            expect(made.status, made.text).to.equal(201);
            await client.post('/api/plugins/appstore/sources/casa/sync');
            const icon = '/api/plugins/appstore/apps/casa/photos/icon';
            await until(async () => (await client.get(icon)).status === 200, 'the icon to be there');
            expect((await client.call('GET', icon, { token: null })).status).to.equal(401);
            const watched = await rig.open();
            const { page } = watched;
            await visit(page, '/appstore');
            const picture = page.getByRole('listitem').filter({ hasText: 'Photos' }).locator('img.picture');
            await picture.waitFor();
            await until(
                () => picture.evaluate((image) => (image as { naturalWidth?: number }).naturalWidth! > 0),
                'the icon to be drawn'
            );
            await finish(watched);
        } finally {
            await repositories.close();
        }
    });

    itWithBrowser('changes a setting, and takes it back to its default', async () => {
        const watched = await rig.open();
        const { page } = watched;
        await page.getByRole('link', { name: 'Settings' }).click();
        const row = page.locator('.settings > div', { hasText: 'Retention days' });
        await row.getByRole('button', { name: 'Change' }).click();
        await page.getByRole('dialog').getByLabel('Retention days').fill('90');
        await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
        await row.getByText('90 days').waitFor();
        await row.getByRole('button', { name: 'Back to the default' }).click();
        await row.getByText('365 days').waitFor();
        await finish(watched);
    });

    itWithBrowser('offers a viewer nothing that a viewer may not do', async () => {
        await rig.panel.tokenOf('viewer', 'vera');
        const watched = await rig.open({}, 'vera');
        const { page } = watched;
        await page.getByRole('link', { name: 'Hosts' }).first().click();
        await page.getByRole('link', { name: 'shop.example' }).waitFor();
        expect(await page.getByRole('link', { name: 'New host' }).count()).to.equal(0);
        expect(await page.getByRole('button', { name: /Actions for/ }).count()).to.equal(0);
        await page.goto('/plugins');
        await page.getByRole('link', { name: 'Cron jobs' }).first().waitFor();
        expect(await page.getByRole('button', { name: 'Disable' }).count()).to.equal(0);
        await finish(watched);
    });

    itWithBrowser('shows a change that another client made, without a reload', async () => {
        const watched = await rig.open();
        const { page } = watched;
        await page.getByRole('link', { name: 'Hosts' }).first().click();
        await page.getByRole('link', { name: 'shop.example' }).waitFor();
        await rig.panel.client.post('/api/hosts', { domain: 'later.example', upstream: '127.0.0.1:3000' });
        await page.getByRole('link', { name: 'later.example' }).waitFor();
        await finish(watched);
    });

    it('stays within its size, and has Chinese for every sentence', () => {
        const web = join(extensions, 'webui');
        const assets = join(web, 'pages/assets');
        const names = readdirSync(assets).filter((name) => /\.(js|css)$/.test(name));
        const { bytes, whole } = sizesIn(assets);
        const html = readFileSync(join(web, 'pages/index.html'), 'utf8');
        const first = [...html.matchAll(/\/assets\/([^"]+)"/g)].map(([, name]) => String(name));
        const login = new Set(first.flatMap((name) => [...whole(name)]));
        expect(bytes(login), 'the login').to.be.below(60_000);
        // A part that is loaded when it is first shown, with what comes with it.
        const lazy = new Set<string>();
        for (const name of names) {
            const own = whole(name).difference(login);
            const most = lazyBytesOf(name);
            if (most !== undefined) {
                expect(bytes(own), name).to.be.below(most);
                own.forEach((each) => lazy.add(each));
            }
        }
        for (const name of names) {
            const all = new Set([...login, ...whole(name)]);
            const isLazy = !all.isDisjointFrom(lazy);
            expect(bytes(all), `a screen with ${name}`).to.be.below(isLazy ? 250_000 : 120_000);
            if (!lazy.has(name)) {
                expect(bytes([name]), name).to.be.below(40_000);
            }
        }
        const files = join(extensions, 'filemanager/assets');
        const ofFiles = sizesIn(files);
        const page = ofFiles.whole('page.js');
        for (const [part, most] of [
            ['terminal', 95_000],
            ['code', 150_000]
        ] as const) {
            const name = readdirSync(files).find((each) => each.startsWith(`${part}-`)) ?? part;
            const lazy = [...ofFiles.whole(name)].filter((each) => !page.has(each));
            expect(ofFiles.bytes(lazy), part).to.be.between(10_000, most);
        }

        const words = JSON.parse(readFileSync(join(web, 'web/src/words/zh.json'), 'utf8')) as object;
        const sources = readdirSync(join(web, 'web/src'), { recursive: true, encoding: 'utf8' });
        const sentences = sources
            .filter((name) => /\.tsx?$/.test(name))
            .flatMap((name) => [
                ...readFileSync(join(web, 'web/src', name), 'utf8').matchAll(/\bt\(\s*'([^']+)'/g)
            ])
            .map(([, sentence]) => sentence ?? '')
            .concat(wordedFields.flatMap((path) => hostWords(path) ?? []).filter((each) => each !== ''));
        expect(sentences.length).to.be.above(100);
        expect(sentences.filter((sentence) => !Object.hasOwn(words, sentence))).to.equal([]);
    });
});

/** Sizes of built files, as they are sent. */
function sizesIn(folder: string): {
    bytes(names: Iterable<string>): number;
    /** A file with all that it imports at once. */
    whole(name: string): Set<string>;
} {
    const whole = (name: string, seen = new Set<string>()): Set<string> => {
        if (!seen.has(name)) {
            seen.add(name);
            const text = readFileSync(join(folder, name), 'utf8');
            [...text.matchAll(/(?:from|import)"\.\/([^"]+)"/g)].forEach(([, next]) =>
                whole(String(next), seen)
            );
        }
        return seen;
    };
    return {
        bytes: (names) =>
            [...names].reduce((all, name) => all + gzipSync(readFileSync(join(folder, name))).length, 0),
        whole
    };
}
