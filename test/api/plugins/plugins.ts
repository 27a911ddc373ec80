import { readdirSync, readFileSync, statSync } from 'node:fs';
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
const keyed = pluginModule(
    "ctx.route({ method: 'GET', path: '/length', access: 'read', handler: () => ({ length: ctx.settings.key.length, note: ctx.settings.note }) });",
    {
        more: "settings: joi.object({ key: joi.secret().min(4).default('none'), note: joi.string().default('a note'), list: joi.array().items(joi.object({ name: joi.string(), token: joi.secret() })) }),"
    }
);

let folder: PluginFolder;
let panel: TestPanel;

const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
    panel.client.get(path, { headers });
const put = (name: string, body: object, headers: Readonly<Record<string, string>> = {}) =>
    panel.client.put(`/api/plugins/${name}`, body, { headers });
const stateOf = async (name: string): Promise<readonly unknown[]> => {
    const { data } = await get(`/api/plugins/${name}`);
    return [data.state, data.failure?.code ?? null];
};
async function reaches(name: string, state: string): Promise<void> {
    await until(async () => (await stateOf(name))[0] === state, `${name} to be ${state}`);
}

/** Every byte that the panel keeps. */
function kept(path: string): Buffer {
    return Buffer.concat(
        readdirSync(path).map((name) => {
            const inner = join(path, name);
            const stat = statSync(inner);
            return stat.isDirectory() ? kept(inner) : stat.isFile() ? readFileSync(inner) : Buffer.alloc(0);
        })
    );
}

describe('/api/plugins', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        folder = createPluginFolder();
        folder.write('keyed', keyed, {
            manifest: {
                permissions: { turn: { title: 'Turn the key', roles: ['operator'] } },
                icon: 'key',
                capabilities: { api: { read: ['hosts.list'] } },
                contributes: {
                    group: 'Safety',
                    locales: { zh: 'assets/zh.json' },
                    pages: [
                        {
                            id: 'ring',
                            title: 'Ring',
                            access: 'turn',
                            entry: 'assets/ring.js',
                            uses: ['hosts.list']
                        }
                    ]
                }
            }
        });
        folder.write(
            'base',
            pluginModule(
                `if (ctx.settings.broken) { throw new Error('It is broken'); }\nctx.onSettings(({ broken }) => { if (broken) { throw new Error('It breaks'); } });\n${helloRoute}\nreturn { say: async () => ({ text: 'from base' }) };`,
                { more: 'settings: joi.object({ broken: joi.boolean().default(false) }),' }
            )
        );
        folder.write(
            'user',
            pluginModule(
                "ctx.route({ method: 'GET', path: '/say', access: 'read', handler: () => ctx.plugins.base.say({}) });",
                { more: 'requires: { base: contract() },' }
            ),
            { manifest: { requires: { base: '^1.0.0' } } }
        );
        folder.write('far', pluginModule(helloRoute, { more: 'requires: { user: contract() },' }), {
            manifest: { requires: { user: '^1.0.0' } }
        });
        folder.write(
            'friend',
            pluginModule(
                "ctx.onPartner('base', (present) => seen.push(present !== false && present !== undefined));\nctx.route({ method: 'GET', path: '/seen', access: 'read', handler: () => ({ seen, now: ctx.plugins.base !== undefined }) });",
                { head: 'const seen = [];', more: 'optional: { base: contract() },' }
            ),
            { manifest: { optional: { base: '*' } } }
        );
        folder.write(
            'well',
            pluginModule(
                "ctx.health('disk', () => ({ state: 'degraded', evidence: 'nearly full', remedy: { text: 'Make room' } }));\nctx.health('hangs', () => new Promise(() => undefined));\nctx.hooks.tap('health.collect', () => [{ name: 'beyond', state: 'ok' }]);"
            ),
            { manifest: { capabilities: { taps: ['health.collect'] } } }
        );
        panel = await startPanel({
            environment: { PORTICO_PLUGIN_DIRS: folder.path },
            pluginTiming: { healthMs: 200 }
        });
        await panel.panel.settled();
    });
    after({ timeout: limitMs }, async () => {
        await panel.close();
        folder.remove();
    });

    it('lists what a plugin brings for the pages, and names it in the document for those who may not list', async () => {
        await reaches('keyed', 'running');
        const { data } = await get('/api/plugins/keyed');
        expect([data.icon, data.contributes]).to.equal([
            'key',
            {
                group: 'Safety',
                pages: [
                    {
                        id: 'ring',
                        title: 'Ring',
                        icon: null,
                        access: 'keyed:turn',
                        place: 'nav',
                        uses: ['hosts.list'],
                        path: '/api/plugins/keyed/pages/ring'
                    }
                ],
                locales: { zh: '/api/plugins/keyed/assets/zh.json' }
            }
        ]);
        const { text: part } = await get('/api/openapi.json?tag=keyed');
        const document = JSON.parse(part) as { tags: { name: string }[]; paths: object };
        expect(document.tags).to.include({
            name: 'keyed',
            description: 'Routes of the plugin keyed',
            'x-summary': 'Says keyed',
            'x-kind': 'nav',
            'x-parent': 'Safety',
            'x-icon': 'key',
            'x-pages': [
                {
                    id: 'ring',
                    title: 'Ring',
                    access: 'keyed:turn',
                    place: 'nav',
                    uses: ['hosts.list'],
                    path: '/api/plugins/keyed/pages/ring'
                }
            ],
            'x-locales': { zh: '/api/plugins/keyed/assets/zh.json' }
        });
        expect(document.tags.map(({ name }) => name)).to.include(['hosts', 'users', 'keyed']);
        expect(Object.keys(document.paths)).to.equal([
            '/api/plugins/keyed/length',
            '/api/plugins/keyed/pages/sdk/{file}',
            '/api/plugins/keyed/pages/ring'
        ]);
        expect((await get('/api/openapi.json?tag=none')).code).to.equal(40400);
        const start = await fetch(`http://127.0.0.1:${panel.port}/`);
        expect([
            start.status,
            (await start.text()).includes('Its pages are installed, but disabled')
        ]).to.equal([200, true]);
    });

    it('lists what is there, in the order of starting, and revalidates', async () => {
        const { data, headers } = await get('/api/plugins');
        const own = data.filter(({ origin }: { origin: string }) => origin === 'folder');
        const names = own.map(({ name }: { name: string }) => name);
        expect(names.toSorted()).to.equal(['base', 'far', 'friend', 'keyed', 'user', 'well']);
        expect([
            names.indexOf('base') < names.indexOf('user'),
            names.indexOf('user') < names.indexOf('far')
        ]).to.equal([true, true]);
        expect(
            own.map(({ state, failure, enabled }: Record<string, unknown>) => [state, failure, enabled])
        ).to.equal(own.map(() => ['running', null, true]));
        const {
            name,
            package: packageName,
            version,
            sdk,
            permissions,
            capabilities,
            requires
        } = own.find((row: { name: string }) => row.name === 'keyed');
        expect([name, packageName, version, sdk, requires, capabilities]).to.equal([
            'keyed',
            '@acme/portico-plugin-keyed',
            '1.0.0',
            '^1.0.0',
            {},
            {
                asked: { api: { read: ['hosts.list'] } },
                granted: { api: { read: ['hosts.list'] } },
                missing: null
            }
        ]);
        expect(permissions.find((permission: { name: string }) => permission.name === 'keyed:turn')).to.equal(
            { name: 'keyed:turn', title: 'Turn the key', roles: ['operator', 'admin'] }
        );
        expect((await get('/api/plugins', { 'if-none-match': String(headers.etag) })).status).to.equal(304);
    });

    it('keeps a secret sealed, shows that it is set, and takes back what it showed', async () => {
        const secret = 'opensesame-opensesame';
        const first = await put('keyed', {
            settings: { key: secret, list: [{ name: 'one', token: `${secret}-listed` }] }
        });
        expect(first.data.settings).to.equal({
            key: { set: true },
            list: [{ name: 'one', token: { set: true } }]
        });
        const one = await get('/api/plugins/keyed');
        expect(one.data).to.equal(first.data); // the answer to a write is what a read gives
        expect(one.headers.etag).to.equal(first.headers.etag);
        expect(one.data.settingsSchema.properties.note).to.equal({
            type: 'string',
            minLength: 1,
            default: 'a note'
        });
        const { code, headers } = await put('keyed', one.data);
        expect([code, headers.etag]).to.equal([0, one.headers.etag]);
        const changed = await put('keyed', { settings: { key: { set: true }, note: 'another' } });
        expect([changed.headers.etag === one.headers.etag, changed.data.settings.note]).to.equal([
            false,
            'another'
        ]);
        expect((await get('/api/plugins/keyed/length')).data).to.equal({
            length: secret.length,
            note: 'another'
        });
        expect((await put('keyed', { settings: { note: null } })).data.settings.note).to.be.undefined();
        expect((await get('/api/plugins/keyed/length')).data).to.equal({
            length: secret.length,
            note: 'a note'
        });
        expect(kept(panel.config.dataDir).includes(secret)).to.be.false();
        expect(panel.lines.join('').includes(secret)).to.be.false();
        await panel.restart();
        await panel.panel.settled();
        expect((await get('/api/plugins/keyed/length')).data).to.equal({
            length: secret.length,
            note: 'a note'
        });
    });

    it('refuses what is wrong, and changes nothing', async () => {
        const {
            headers: { etag },
            data
        } = await get('/api/plugins/keyed');
        const wrong = await put('keyed', { settings: { key: 'abc', stray: 1 } });
        expect([wrong.code, wrong.data.errors.map(({ path }: { path: string }) => path)]).to.equal([
            40001,
            ['key', 'stray']
        ]);
        expect((await put('keyed', { stray: true })).code).to.equal(40001);
        expect((await put('keyed', { grants: { exec: 'all' } })).code).to.equal(40001);
        expect((await put('keyed', { adopt: true })).code).to.equal(40001);
        const stale = await put('keyed', { enabled: false }, { 'if-match': '"0"' });
        expect([stale.code, stale.data.version]).to.equal([41200, Number(String(etag).replaceAll('"', ''))]);
        expect((await put('nobody', { enabled: true })).code).to.equal(40410);
        expect((await panel.client.put('/api/plugins/Hosts', {})).code).to.equal(40400);
        const viewer = await panel.tokenOf('viewer');
        expect((await panel.client.get('/api/plugins/keyed', { token: viewer })).status).to.equal(200);
        expect(
            (await panel.client.put('/api/plugins/keyed', { enabled: false }, { token: viewer })).code
        ).to.equal(40300);
        const again = await get('/api/plugins/keyed');
        expect([again.headers.etag, again.data]).to.equal([etag, data]);
    });

    it('gives the permissions of plugins to roles, as the manifest says', async () => {
        const { data } = await get('/api/users/roles');
        const of = (name: string): readonly string[] =>
            data
                .find((role: { name: string }) => role.name === name)
                .permissions.filter((permission: string) => permission.startsWith('keyed:'));
        expect([of('viewer'), of('operator'), of('admin')]).to.equal([
            ['keyed:read'],
            ['keyed:read', 'keyed:turn'],
            ['keyed:read', 'keyed:turn', 'keyed:write']
        ]);
        const role = await panel.client.post('/api/users/roles', {
            name: 'turner',
            permissions: ['keyed:turn', 'keyed:read']
        });
        expect(role.status).to.equal(201);
        await put('keyed', { enabled: false });
        expect(
            (await panel.client.put('/api/users/roles/turner', { permissions: ['keyed:turn'] })).data
                .permissions
        ).to.equal(['keyed:turn']); // also while it is disabled
        await put('keyed', { enabled: true });
    });

    it('does not take away what others need, unless it is told to take those too', async () => {
        const refused = await put('base', { enabled: false });
        expect([refused.code, refused.data.by]).to.equal([40901, ['far', 'user']]);
        expect((await get('/api/plugins/user/say')).data).to.equal({ text: 'from base' });
        expect((await get('/api/plugins/friend/seen')).data.now).to.be.true();
        const cascaded = await panel.client.put('/api/plugins/base?cascade=true', { enabled: false });
        expect([cascaded.data.state, cascaded.message]).to.equal([
            'disabled',
            'Disabled with what requires it: far, user'
        ]);
        expect(await Promise.all(['base', 'user', 'far', 'friend'].map(stateOf))).to.equal([
            ['disabled', null],
            ['disabled', null],
            ['disabled', null],
            ['running', null]
        ]);
        expect((await get('/api/plugins/friend/seen')).data.now).to.be.false();
        expect((await get('/api/plugins/user/say')).code).to.equal(40411);
        expect((await put('far', { enabled: true })).data.failure).to.include({
            stage: 'resolved',
            code: 'REQUIREMENT_FAILED',
            message: 'far requires user ^1.0.0, which is disabled'
        });
        expect((await put('user', { enabled: true })).data.failure.code).to.equal('REQUIREMENT_FAILED');
        expect((await put('base', { enabled: true })).data.state).to.equal('running');
        await reaches('far', 'running');
        expect((await get('/api/plugins/user/say')).data).to.equal({ text: 'from base' });
        expect((await get('/api/plugins/friend/seen')).data.now).to.be.true();
    });

    it('lets dependants fall with the one that fails, says why, and brings them back, uncounted', async () => {
        for (let attempt = 0; attempt < 2; attempt += 1) {
            expect((await put('base', { settings: { broken: true } })).data).to.include({ state: 'failed' });
            await reaches('far', 'failed');
            expect((await get('/api/plugins/user')).data.failure.message).to.equal(
                'user requires base ^1.0.0, which does not run: It is broken'
            );
            expect((await get('/api/plugins/user/say')).data).to.include({
                reason: 'PLUGIN_FAILED',
                cause: 'REQUIREMENT_FAILED'
            });
            expect((await put('base', { settings: { broken: false } })).data.state).to.equal('running');
            await reaches('far', 'running');
        }
        expect((await put('base', { settings: { broken: true } })).data.state).to.equal('quarantined');
        await reaches('far', 'failed');
        expect((await put('base', { settings: { broken: false } })).data.state).to.equal('quarantined'); // only who enables it frees it
        expect((await put('base', { enabled: true })).data.state).to.equal('running');
        await reaches('far', 'running');
    });

    it('tells of health with evidence and remedy, and waits for no check that hangs', async () => {
        const {
            data: { health }
        } = await get('/api/plugins/well');
        expect(health.state).to.equal('failed');
        expect(
            health.checks.map(({ name, state, remedy }: Record<string, unknown>) => [name, state, remedy])
        ).to.equal([
            ['disk', 'degraded', { text: 'Make room' }],
            ['hangs', 'failed', null],
            ['beyond', 'ok', null]
        ]);
        const { data } = await get('/api/plugins');
        expect(data.find(({ name }: { name: string }) => name === 'well').health).to.equal(health);
    });

    it('is safe when many decide at once: each decision is made on what the one before left', async () => {
        const answers = await Promise.all(
            Array.from({ length: 12 }, (_each, index) => put('keyed', { enabled: index % 2 === 0 }))
        );
        expect(new Set(answers.map(({ status }) => status)).difference(new Set([200, 412])).size).to.equal(0);
        const {
            data: { enabled, state }
        } = await get('/api/plugins/keyed');
        expect(state).to.equal(enabled === true ? 'running' : 'disabled');
        expect((await put('keyed', { enabled: true })).data.state).to.equal('running');
        expect((await get('/api/plugins/keyed/length')).status).to.equal(200);
        expect((await get('/api/audit/verify')).data.holds).to.be.true();
    });

    it('shows what is left of a plugin whose package is gone', async () => {
        folder.drop('well');
        await panel.restart();
        await panel.panel.settled();
        const { data } = await get('/api/plugins/well');
        expect([data.state, data.failure.code, data.package, data.version, data.origin]).to.equal([
            'failed',
            'PACKAGE_MISSING',
            '@acme/portico-plugin-well',
            '1.0.0',
            null
        ]);
    });
});
