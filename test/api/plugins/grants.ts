import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { startPanel, type TestPanel } from '../../support/panel/panel.ts';
import {
    createPluginFolder,
    helloRoute,
    type PluginFolder,
    pluginModule
} from '../../support/plugins/folder.ts';
import { until } from '../../support/until.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const limitMs = 60_000;
const runner = pluginModule(`
    ctx.route({ method: 'POST', path: '/run/{program}', access: 'write', validate: { params: joi.object({ program: joi.string().required() }) }, async handler({ params }) {
        const { code } = await ctx.exec(params.program, []);
        return { code };
    } });
    ctx.route({ method: 'GET', path: '/hosts', access: 'read', handler: async () => ({ hosts: (await ctx.hosts.list()).length }) });
    ctx.route({ method: 'POST', path: '/linger', access: 'write', async handler() {
        const child = await ctx.spawn('sleep', ['600']);
        return { pid: child.pid };
    } });
`);
const asks = { exec: ['true', 'sleep'], hosts: 'read' };
const guard = pluginModule(`ctx.hooks.tap('host.guard', () => undefined);\n${helloRoute}`);

let folder: PluginFolder;
let panel: TestPanel;

const get = (path: string) => panel.client.get(path);
const post = (path: string) => panel.client.post(path, {});
const put = (name: string, body: object) => panel.client.put(`/api/plugins/${name}`, body);

/** Puts a package where an admin must decide about it. */
function place(
    name: string,
    code: string,
    capabilities: object,
    options: { readonly package?: string; readonly version?: string; readonly folder?: string } = {}
): void {
    const from = folder.write(name, code, { manifest: { capabilities }, ...options });
    const to = join(panel.config.dataDir, 'extensions', options.folder ?? name);
    mkdirSync(to, { recursive: true });
    cpSync(from, to, { recursive: true });
}

async function restart(): Promise<void> {
    await panel.restart();
    await panel.panel.settled();
}

describe('PUT /api/plugins/{name} with grants', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        folder = createPluginFolder();
        panel = await startPanel();
        place('runner', runner, asks);
        place('reader', pluginModule(helloRoute), { logs: ['access'] });
        place('guard', guard, { taps: ['host.guard'] });
        place(
            'modest',
            pluginModule(`ctx.onStart(async () => {});\n${helloRoute}`, {
                more: 'settings: joi.object({ key: joi.secret(), n: joi.number() }),'
            }),
            {}
        );
        await restart();
    });
    after({ timeout: limitMs }, async () => {
        await panel.close();
        folder.remove();
    });

    it('finds what lies in the data folder, and lets it wait for an admin', async () => {
        for (const name of ['runner', 'guard', 'modest']) {
            const { data } = await get(`/api/plugins/${name}`);
            expect([data.state, data.enabled, data.origin, data.settingsSchema]).to.equal([
                'disabled',
                false,
                'data',
                null
            ]);
        }
        expect((await get('/api/plugins/runner')).data.capabilities).to.equal({
            asked: asks,
            granted: {},
            missing: asks
        });
        expect((await put('modest', { enabled: true })).data.state).to.equal('running'); // it asks for nothing
    });

    it('asks for consent before more than was agreed to, with the difference, and changes nothing', async () => {
        const { headers } = await get('/api/plugins/runner');
        const refused = await put('runner', { enabled: true });
        expect([refused.status, refused.code, refused.data]).to.equal([
            409,
            40910,
            { reason: 'CONSENT_REQUIRED', missing: asks }
        ]);
        const after = await get('/api/plugins/runner');
        expect([after.data.state, after.data.enabled, after.headers.etag]).to.equal([
            'disabled',
            false,
            headers.etag
        ]);
    });

    it('lets it do what it asks for and was granted, as of now', async () => {
        const part = await put('runner', { enabled: true, grants: { exec: ['true', 'reboot'] } });
        expect([part.data.state, part.data.capabilities.missing]).to.equal([
            'running',
            { exec: ['sleep'], hosts: 'read' }
        ]);
        expect((await post('/api/plugins/runner/run/true')).data).to.equal({ code: 0 });
        expect((await post('/api/plugins/runner/run/sleep')).code).to.equal(50305);
        expect((await post('/api/plugins/runner/run/reboot')).code).to.equal(50305); // granted, but never asked for
        expect((await get('/api/plugins/runner/hosts')).code).to.equal(50305);
        expect((await put('runner', { grants: asks })).data.capabilities.missing).to.be.null();
        expect((await get('/api/plugins/runner/hosts')).data).to.equal({ hosts: 0 });
        expect((await post('/api/plugins/runner/run/sleep')).data.code === 0).to.be.false();
    });

    it('ends what is open under a grant that is taken away', async () => {
        const {
            data: { pid }
        } = await post('/api/plugins/runner/linger');
        // What sets its attributes becomes the program.
        await until(() => readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === 'sleep', 'the program');
        const { data } = await put('runner', { grants: { exec: ['true'], hosts: 'read' } });
        expect([data.state, data.bootMs]).to.equal(['running', data.bootMs]);
        expect(() => process.kill(pid, 0)).to.throw();
        expect((await post('/api/plugins/runner/linger')).code).to.equal(50305);
        expect((await put('runner', { enabled: false })).data.state).to.equal('disabled');
        expect((await put('runner', { enabled: true })).data).to.include({ state: 'running' }); // what was taken away is decided, not missing
        expect((await post('/api/plugins/runner/run/sleep')).code).to.equal(50305);
    });

    it('sets up anew what was judged at set-up', async () => {
        const without = await put('guard', { enabled: true, grants: {} });
        expect([without.data.state, without.data.failure.code]).to.equal(['failed', 'REGISTRATION_INVALID']);
        expect((await put('guard', { grants: { taps: ['host.guard'] } })).data.state).to.equal('running');
        expect((await put('guard', { grants: {} })).data.state).to.equal('failed');
        expect((await put('guard', { enabled: false })).data.state).to.equal('disabled');
    });

    it('takes no grants from an API token, nor from who has no such permission', async () => {
        const made = await panel.client.post('/api/auth/tokens', {
            name: 'robot',
            permissions: ['plugins:manage', 'plugins:read', 'runner:read']
        });
        const token = made.data.token as string;
        const robot = (body: object) => panel.client.put('/api/plugins/runner', body, { token });
        expect((await robot({ grants: asks })).code).to.equal(40300);
        expect((await robot({ enabled: true })).status).to.equal(200); // what an admin agreed to
        await panel.client.post('/api/users/roles', {
            name: 'gardener',
            permissions: ['plugins:manage', 'plugins:read']
        });
        const gardener = await panel.tokenOf('gardener');
        const { code, data } = await panel.client.put(
            '/api/plugins/runner',
            { grants: asks },
            { token: gardener }
        );
        expect([code, data.permission]).to.equal([40300, 'hosts:read']);
        const reading = await panel.client.put(
            '/api/plugins/reader',
            { grants: { logs: ['access'] } },
            { token: gardener }
        );
        expect([reading.code, reading.data.permission]).to.equal([40300, 'engine:logs']);
        expect((await get('/api/plugins/runner')).data.capabilities.granted).to.equal({
            exec: ['true'],
            hosts: 'read'
        });
    });

    it('stops a plugin whose next version asks for more, until an admin agrees', async () => {
        place(
            'modest',
            pluginModule(helloRoute, {
                more: 'settings: joi.object({ key: joi.secret(), n: joi.number() }),'
            }),
            { exec: ['true'] },
            { version: '1.1.0' }
        );
        await restart();
        const { data } = await get('/api/plugins/modest');
        expect([data.version, data.state, data.enabled, data.capabilities.missing]).to.equal([
            '1.1.0',
            'disabled',
            true,
            { exec: ['true'] }
        ]);
        expect((await put('modest', { enabled: true })).code).to.equal(40910);
        expect((await put('modest', { grants: {} })).data.state).to.equal('running');
    });

    it('knows another package of the same name for nothing until it is adopted, and then gives it everything', async () => {
        const secret = 'first-come-first-served';
        await put('modest', { settings: { key: secret, n: 7 } });
        const reader = pluginModule(
            "ctx.route({ method: 'GET', path: '/all', access: 'read', handler: () => ({ ...ctx.settings }) });",
            { more: 'settings: joi.object({ key: joi.secret(), n: joi.number() }),' }
        );
        place(
            'modest',
            reader,
            { exec: ['true'] },
            { package: '@other/modest', folder: 'modest-of-another' }
        );
        rmSync(join(panel.config.dataDir, 'extensions/modest'), { recursive: true });
        await restart();
        const fresh = await get('/api/plugins/modest');
        expect([
            fresh.data.package,
            fresh.data.state,
            fresh.data.enabled,
            fresh.data.settings,
            fresh.data.adoptable
        ]).to.equal(['@other/modest', 'disabled', false, {}, '@acme/portico-plugin-modest']);
        const adopted = await put('modest', { adopt: true, enabled: true });
        expect([adopted.data.state, adopted.data.settings, adopted.data.adoptable]).to.equal([
            'running',
            { key: { set: true }, n: 7 },
            null
        ]);
        expect((await get('/api/plugins/modest/all')).data).to.equal({ key: secret, n: 7 });
    });

    it('keeps what roles were given of a name for the package that it was given of, or that adopts it', async () => {
        const role = async (): Promise<readonly string[]> =>
            (await get('/api/users/roles')).data.find(({ name }: { name: string }) => name === 'reader')
                .permissions;
        const replaceBy = async (name: string, change: object): Promise<string> => {
            place(
                'modest',
                pluginModule(helloRoute),
                {},
                { package: `@${name}/modest`, folder: `modest-${name}` }
            );
            for (const folderName of readdirSync(join(panel.config.dataDir, 'extensions')).filter(
                (each) => each.startsWith('modest') && each !== `modest-${name}`
            )) {
                rmSync(join(panel.config.dataDir, 'extensions', folderName), { recursive: true });
            }
            await restart();
            return (await put('modest', change)).data.state;
        };
        await panel.client.post('/api/users/roles', {
            name: 'reader',
            permissions: ['hosts:read', 'modest:read', 'modest:write']
        });
        expect(await replaceBy('adopting', { adopt: true, enabled: true })).to.equal('failed'); // it has other settings
        expect((await put('modest', { settings: { key: null, n: null } })).data.state).to.equal('running');
        expect(await role()).to.equal(['hosts:read', 'modest:read', 'modest:write']);
        expect(await replaceBy('stranger', {})).to.equal('disabled');
        expect(await role()).to.equal(['hosts:read', 'modest:read', 'modest:write']); // nothing of it runs
        expect((await put('modest', { enabled: true })).data.state).to.equal('running');
        expect(await role()).to.equal(['hosts:read']);
    });

    it('has every decision on record', async () => {
        const { data } = await get('/api/audit?resource=plugins&resourceId=runner');
        const changed = data
            .filter(({ outcome }: { outcome: string }) => outcome === 'success')
            .map(({ action, changes }: { action: string; changes: { after: { grants: unknown } } }) => [
                action,
                changes.after?.grants
            ]);
        expect(changed).to.include([['enable', { exec: ['true', 'reboot'] }]]);
        expect(
            (await get('/api/audit?resource=plugins&outcome=failure')).data.map(
                ({ code }: { code: number }) => code
            )
        ).to.include([40910, 40300]);
    });
});
