/** The screens of the admin: engine, users and roles, audit, certificates, import, tasks; a state that must be kept in time; and an engine that another program changed. */
import { readFileSync, symlinkSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { readOrigin } from '../../../core/src/engine/caddy/origin.ts';
import { engineHome } from '../../../core/src/engine/files/home.ts';
import { itInBrowser } from '../../support/browser.ts';
import { createPluginFolder, type PluginFolder } from '../../support/plugins/folder.ts';
import { selfSigned } from '../../support/servers/self-signed.ts';
import { until } from '../../support/until.ts';
import { extensions, finish, isSound, limitMs, type Rig, startRig, visit } from './rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

/** A plugin with a state that goes back by itself unless a user keeps it. */
const trial = `import { definePlugin, joi, reply, taskSchema } from '@portico/sdk';
let state = { kept: 0, trial: null };
const payload = joi.object({ trialId: joi.string().required() });
const end = (kept) => ({ payload: { trialId } }) => {
    if (trialId !== state.trial?.id) throw new Error('another trial');
    state = { kept: state.kept + kept, trial: null };
    return state;
};
export default definePlugin({
    setup(ctx) {
        ctx.route({
            method: 'GET', path: '/state', id: 'state', access: 'read',
            ui: { role: 'card', deadline: { until: 'trial.until', question: 'Keep this state?', keep: 'trial.keep', undo: 'trial.undo', body: { trialId: 'trial.id' } } },
            returns: joi.object().unknown(),
            handler: () => state
        });
        ctx.route({ method: 'POST', path: '/begin', id: 'begin', access: 'write', ui: { title: 'Begin' }, handler: () => {
            state = { ...state, trial: { id: 'one', until: new Date(Date.now() + 60_000).toISOString() } };
            return state;
        } });
        ctx.route({
            method: 'POST', path: '/work', id: 'work', access: 'write', answers: 'task', ui: { title: 'Work' }, returns: taskSchema,
            handler: async ({ actor }) => reply.accepted(await ctx.task({ kind: 'work', access: 'read', actor }, ({ signal }) =>
                new Promise((_done, fail) => signal.addEventListener('abort', () => fail(signal.reason)))))
        });
        ctx.route({ method: 'POST', path: '/keep', id: 'keep', access: 'write', ui: { title: 'Keep' }, validate: { payload }, handler: end(1) });
        ctx.route({ method: 'POST', path: '/undo', id: 'undo', access: 'write', ui: { title: 'Undo' }, validate: { payload }, handler: end(0) });
    }
});
`;

describe('the screens of the admin', { timeout: 2 * limitMs }, () => {
    const itWithBrowser = itInBrowser(it);
    let rig: Rig;
    let folder: PluginFolder;

    before({ timeout: limitMs }, async () => {
        folder = createPluginFolder();
        symlinkSync(join(extensions, 'webui'), join(folder.path, 'webui'));
        folder.write('trial', trial, { manifest: { title: 'Trial' } });
        rig = await startRig(['webui', 'trial'], { environment: { PORTICO_PLUGIN_DIRS: folder.path } });
        const { client } = rig.panel;
        await client.post('/api/hosts', {
            domain: 'shop.example',
            upstream: '127.0.0.1:3000',
            notes: 'first'
        });
        await client.put('/api/hosts/1', { notes: 'second' });
        await client.put('/api/settings', { 'engine.driftRepair': false });
    });
    after(async () => {
        await rig.close();
        folder.remove();
    });

    itWithBrowser('shows what a revision changed, and brings the hosts back', async () => {
        const watched = await rig.open();
        const { page } = watched;
        await visit(page, '/engine?tab=revisions');
        const first = page.getByRole('row').filter({ hasText: 'admin' }).last();
        await first.getByRole('button', { name: 'See what changed' }).click();
        const dialog = page.getByRole('dialog', { name: 'Revision 1' });
        await dialog.locator('ins', { hasText: 'first' }).waitFor();
        await isSound(page, 'a revision');
        await dialog.getByRole('button', { name: 'Bring the hosts back to this' }).click();
        await page.getByRole('dialog', { name: 'Are you sure?' }).getByRole('button').last().click();
        await until(
            async () => (await rig.panel.client.get('/api/hosts/1')).data.notes === 'first',
            'the host to be as it was'
        );
        await finish(watched);
    });

    itWithBrowser('makes a role, gives it permissions in the matrix, and a user who has it', async () => {
        const { client } = rig.panel;
        const watched = await rig.open();
        const { page } = watched;
        await visit(page, '/users?tab=roles');
        await page.getByRole('button', { name: 'New role' }).click();
        await page.getByRole('dialog').getByLabel('Name', { exact: true }).fill('deployers');
        await page.getByRole('dialog').getByRole('button', { name: 'Make the role' }).click();
        await page.getByRole('checkbox', { name: 'deployers: hosts:read' }).check();
        await page.getByRole('checkbox', { name: 'deployers: hosts:write' }).check();
        expect(await page.getByRole('checkbox', { name: 'admin: hosts:read' }).isDisabled()).to.be.true();
        await page.getByRole('button', { name: 'Save' }).click();
        await page.getByText('Saved').waitFor();
        const { data: role } = await client.get('/api/users/roles/deployers');
        expect(role.permissions).to.equal(['hosts:read', 'hosts:write']);
        await visit(page, '/users');
        await page.getByRole('button', { name: 'New user' }).click();
        const dialog = page.getByRole('dialog', { name: 'New user' });
        await dialog.getByLabel('User name').fill('dora');
        await dialog.getByLabel('Password', { exact: true }).fill('short');
        await dialog.getByLabel('Role').selectOption('deployers');
        await dialog.getByRole('button', { name: 'Save' }).click();
        await dialog.getByRole('alert').first().waitFor();
        await dialog.getByLabel('Password', { exact: true }).fill('dora walks along the quay');
        await dialog.getByRole('button', { name: 'Save' }).click();
        await page.getByRole('cell', { name: 'dora', exact: true }).waitFor();
        await finish(watched);
    });

    itWithBrowser('shows before and after in the audit log, and that its chain holds', async () => {
        const watched = await rig.open();
        const { page } = watched;
        await visit(page, '/audit?resource=hosts');
        // The words of the operation; what the log itself says stands in the details.
        const update = page.getByRole('row').filter({ hasText: 'Change a host' }).first();
        await update.getByRole('button').click();
        const dialog = page.getByRole('dialog');
        await dialog.getByText('update hosts').waitFor();
        await dialog.locator('del', { hasText: 'first' }).waitFor();
        await dialog.locator('ins', { hasText: 'second' }).waitFor();
        await page.keyboard.press('Escape');
        await page.getByRole('button', { name: 'Verify' }).click();
        await page.getByText(/The chain of \d+ entries holds/).waitFor();
        await finish(watched);
    });

    itWithBrowser('takes a certificate in, says what is wrong with one, and hands it out', async () => {
        const pair = selfSigned(['shop.example', 'www.shop.example']);
        const watched = await rig.open();
        const { page } = watched;
        await visit(page, '/certificates');
        await page.getByRole('button', { name: 'New certificate' }).first().click();
        const dialog = page.getByRole('dialog', { name: 'New certificate' });
        await dialog.getByText('You have certificate and key').click();
        await dialog.getByLabel('Certificate with its chain').fill(pair.certificate);
        await dialog.getByLabel('Private key').fill('no key');
        await dialog.getByRole('button', { name: 'Upload it' }).click();
        await dialog.getByRole('alert').first().waitFor();
        await dialog.getByLabel('Private key').fill(pair.key);
        await dialog.getByLabel('Name in this panel').fill('Shop');
        await dialog.getByRole('button', { name: 'Upload it' }).click();
        await page.getByRole('link', { name: 'Shop' }).click();
        await page.getByText('www.shop.example').waitFor();
        const loaded = page.waitForEvent('download');
        await page.getByRole('button', { name: 'Download', exact: true }).click();
        expect((await loaded).suggestedFilename()).to.match(/\.pem$/);
        await finish(watched);
    });

    itWithBrowser('shows the plan of an import before it is done', async () => {
        const { client } = rig.panel;
        const { data: document } = await client.post('/api/import-export/export', { sections: ['hosts'] });
        document.sections.hosts[0].notes = 'imported';
        const watched = await rig.open();
        const { page } = watched;
        await visit(page, '/exchange');
        await page.getByLabel('Document', { exact: true }).setInputFiles({
            name: 'portico.json',
            mimeType: 'application/json',
            buffer: Buffer.from(JSON.stringify(document))
        });
        await page.getByRole('button', { name: 'See the plan' }).click();
        await page.getByRole('region', { name: 'The plan' }).getByText('shop.example').waitFor();
        await isSound(page, 'the plan');
        expect((await client.get('/api/hosts/1')).data.notes).to.not.equal('imported');
        await page.getByRole('button', { name: 'Import', exact: true }).click();
        await page.getByRole('dialog').getByRole('button', { name: 'Import' }).click();
        await until(
            async () => (await client.get('/api/hosts/1')).data.notes === 'imported',
            'the import to be done'
        );
        await visit(page, '/tasks');
        await page.locator('.badge', { hasText: 'succeeded' }).first().waitFor();
        await visit(page, '/exchange');
        const saved = page.waitForEvent('download');
        await page.getByRole('button', { name: 'Save the document' }).click();
        const { sections } = JSON.parse(readFileSync(await (await saved).path(), 'utf8'));
        expect(sections.hosts.map((each: { notes: string }) => each.notes)).to.equal(['imported']);
        await finish(watched);
    });

    itWithBrowser('shows the task that a button began, and cancels it', async () => {
        const watched = await rig.open();
        const { page } = watched;
        await visit(page, '/p/trial');
        await page.getByRole('button', { name: 'Work' }).click();
        const drawer = page.getByRole('complementary', { name: 'Tasks' });
        await drawer.getByRole('button', { name: 'Cancel the task' }).click();
        await page.getByRole('dialog').getByRole('button', { name: 'Cancel the task' }).click();
        await drawer.getByText('cancelled', { exact: true }).waitFor();
        await isSound(page, 'a task that was cancelled');
        const { data: tasks } = await rig.panel.client.get('/api/tasks?state=cancelled');
        expect(tasks.length).to.equal(1);
        await drawer.getByRole('button', { name: 'Close' }).click();
        await drawer.waitFor({ state: 'detached' });
        await finish(watched);
    });

    itWithBrowser('shows an API token once, and it may do what was ticked', async () => {
        const watched = await rig.open();
        const { page } = watched;
        await visit(page, '/account');
        await page.getByRole('button', { name: 'New token' }).click();
        const dialog = page.getByRole('dialog', { name: 'New token' });
        await dialog.getByLabel('Name').fill('reader');
        await dialog.getByRole('button', { name: 'Only read' }).click();
        await dialog.getByRole('button', { name: 'Make the token' }).click();
        await dialog.getByText('It is never shown again').waitFor();
        const token = (await dialog.locator('code').textContent()) ?? '';
        await isSound(page, 'a token that is shown once');
        const { client } = rig.panel;
        expect((await client.call('GET', '/api/hosts', { token })).status).to.equal(200);
        expect((await client.call('DELETE', '/api/hosts/1', { token })).status).to.equal(403);
        await dialog.getByRole('button', { name: 'I have kept it' }).click();
        const row = page.getByRole('row').filter({ hasText: 'reader' });
        await row.waitFor();
        expect(await page.content()).to.not.contain(token);
        await row.getByRole('button', { name: 'End' }).click();
        await page.getByRole('dialog').getByRole('button', { name: 'End it' }).click();
        await row.waitFor({ state: 'detached' });
        expect((await client.call('GET', '/api/hosts', { token })).status).to.equal(401);
        await finish(watched);
    });

    itWithBrowser('counts a state down that ends by itself, and keeps it when the user says so', async () => {
        const { client } = rig.panel;
        const watched = await rig.open();
        const { page } = watched;
        await visit(page, '/p/trial');
        expect(await page.getByRole('timer').count()).to.equal(0);
        await page.getByRole('button', { name: 'Begin' }).click();
        await page.getByText('Keep this state?').waitFor();
        const seconds = Number.parseInt((await page.getByRole('timer').textContent()) ?? '', 10);
        expect(seconds).to.be.between(1, 62);
        await until(
            async () => Number.parseInt((await page.getByRole('timer').textContent()) ?? '', 10) < seconds,
            'the time to go by'
        );
        await page.getByRole('button', { name: 'Keep it' }).click();
        await page.getByRole('timer').waitFor({ state: 'detached' });
        expect((await client.get('/api/plugins/trial/state')).data).to.equal({ kept: 1, trial: null });
        await finish(watched);
    });

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

    itWithBrowser(
        'shows by itself that another program changed the engine, with what differs, and an admin writes over it',
        async () => {
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
        }
    );

    itWithBrowser(
        'shows a viewer what differs in the engine, and does not offer to write over it',
        async () => {
            await rig.panel.tokenOf('viewer', 'vera');
            expect(await removeServers()).to.equal(200);
            await until(
                async () => (await rig.panel.client.get('/api/proxyengine/status')).data.drifted === true,
                'the drift to be noticed'
            );
            const watched = await rig.open({}, 'vera');
            const { page } = watched;
            await visit(page, '/engine');
            await page.getByRole('button', { name: 'See what differs' }).click();
            const dialog = page.getByRole('dialog', { name: 'What differs' });
            await dialog.getByText('apps/http/servers').first().waitFor();
            await isSound(page, 'what a viewer sees of what differs');
            expect(await dialog.getByRole('button', { name: 'Write over it' }).count()).to.equal(0);
            await finish(watched);
        }
    );
});
