/** Section 12 of the contract, with what section 1 says of every object, list, write and retry: as a client author who has only the document sees it. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import type { OpenApiDocument } from '../../../core/src/server/http/openapi/document.ts';
import { type ContractCheck, contractCheck } from '../../support/api/contract.ts';
import type { Answer } from '../../support/panel/client.ts';
import { faultsOf, outcome, startConsumer } from '../../support/panel/consumer.ts';
import { startPanel, type TestPanel } from '../../support/panel/panel.ts';
import {
    createPluginFolder,
    helloRoute,
    type PluginFolder,
    pluginModule
} from '../../support/plugins/folder.ts';
import { ended } from '../../support/plugins/panel.ts';
import { publishVersion, versionedPackage } from '../../support/plugins/versioned.ts';
import { packageArchive } from '../../support/registry/archive.ts';
import { type NpmRegistry, startNpmRegistry } from '../../support/servers/npm-registry.ts';
import { until } from '../../support/until.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const limitMs = 120_000;
const rows = '@acme/portico-plugin-rows';
const capabilities = { exec: ['git'], network: ['api.example.org'], hosts: 'own' };

let folder: PluginFolder;
let npm: NpmRegistry;
let panel: TestPanel;
let check: ContractCheck | null = null;
let later = 0;

const get = (path: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> =>
    panel.client.get(path, { headers });
const put = (
    name: string,
    body: unknown,
    headers: Readonly<Record<string, string>> = {},
    query = ''
): Promise<Answer> => panel.client.put(`/api/plugins/${name}${query}`, body, { headers });
const everything = async (): Promise<string> => (await get('/api/plugins')).text.replace(/"at":"[^"]+"/g, '');

describe('/api/plugins', { timeout: limitMs }, () => {
    before({ timeout: limitMs }, async () => {
        folder = createPluginFolder();
        npm = await startNpmRegistry();
        folder.write(
            'hello',
            pluginModule(
                `${helloRoute}\nctx.log.info('Set up', { password: 'x' });\nctx.route({ method: 'POST', path: '/slow', access: 'write', handler: ({ signal }) => new Promise((resolve) => { inside += 1; signal.addEventListener('abort', () => resolve(null)); }) });\nctx.route({ method: 'GET', path: '/inside', access: 'read', handler: () => ({ inside }) });\nctx.health('disk', () => ({ state: 'ok', evidence: 'there is room' }));`,
                {
                    head: 'let inside = 0;',
                    more: "settings: joi.object({ word: joi.string().default('Hello'), key: joi.secret() }),"
                }
            ),
            { manifest: { title: 'Hello', permissions: { wave: { title: 'Wave', roles: ['operator'] } } } }
        );
        folder.write('asks', pluginModule(helloRoute), { manifest: { capabilities } });
        folder.write('base', pluginModule(`${helloRoute}\nreturn { say: async () => 1 };`));
        folder.write('upper', pluginModule(helloRoute, { more: 'requires: { base: contract() },' }), {
            manifest: { requires: { base: '^1.0.0' } }
        });
        folder.write(
            'needy',
            pluginModule(helloRoute, { more: 'settings: joi.object({ url: joi.string().required() }),' })
        );
        folder.write('broken', pluginModule("throw new Error('It is broken');"));
        folder.write('hangs', pluginModule('return new Promise(() => undefined);'));
        await publishVersion(npm, '1.0.0');
        panel = await startPanel({
            watch: (method, path, { status, headers, text }) => check?.(method, path, status, headers, text),
            environment: { PORTICO_PLUGIN_DIRS: folder.path, PORTICO_NPM_REGISTRY: npm.url },
            clock: { now: () => Date.now() + later },
            pluginTiming: { healthEveryMs: 50 }
        });
        await until(async () => (await get('/api/plugins/hello')).data.state === 'running', 'hello to run');
        await until(async () => (await get('/api/plugins/upper')).data.state === 'running', 'upper to run');
        check = contractCheck(JSON.parse((await get('/api/openapi.json')).text) as OpenApiDocument); // from here on, every answer is held against the document
    });
    after({ timeout: limitMs }, async () => {
        await panel?.close();
        await npm?.stop();
        folder.remove();
    });

    it('shows the log of a plugin to those who manage plugins, also while it does not run', async () => {
        const lines = async (query = ''): Promise<string> =>
            (await get(`/api/plugins/hello/logs?follow=false${query}`)).text;
        const said = await lines();
        expect(said).to.match(
            /^id: \d+\ndata: \{.*"message":"Set up","fields":\{"password":"\[redacted\]"\}\}$/m
        );
        const [, last = ''] = /id: (\d+)\n[^]*$/.exec(said) ?? [];
        expect(
            (await get('/api/plugins/hello/logs?follow=false', { 'last-event-id': last })).text
        ).not.to.contain('"Set up"');
        await put('hello', { enabled: false });
        expect(await lines('&lines=1000')).to.contain('"Set up"');
        await put('hello', { enabled: true });
        expect(await lines('&level=error')).not.to.contain('"Set up"');
        expect((await get('/api/plugins/none/logs')).code).to.equal(40410);
        expect((await get('/api/plugins/hello/logs?level=loud')).code).to.equal(40001);
        const operator = await panel.tokenOf('operator');
        const refused = await panel.client.get('/api/plugins/hello/logs', { token: operator });
        expect([refused.code, refused.data.permission]).to.equal([40300, 'plugins:manage']);
    });

    it('lists every plugin with what the contract names, and revalidates', async () => {
        await until(
            async () =>
                (await get('/api/plugins')).data.find(({ name }: { name: string }) => name === 'hello')
                    .health !== null,
            'health in the list, which the caller did not ask for'
        );
        const { data, headers } = await get('/api/plugins');
        expect(headers['x-total-count']).to.equal(String(data.length));
        const hello = data.find(({ name }: { name: string }) => name === 'hello');
        expect(hello).to.include({
            name: 'hello',
            package: '@acme/portico-plugin-hello',
            version: '1.0.0',
            title: 'Hello',
            state: 'running',
            enabled: true,
            sdk: '^1.0.0',
            requires: {},
            failure: null,
            available: null,
            deprecations: []
        });
        expect(hello.permissions.map(({ name }: { name: string }) => name)).to.equal([
            'hello:read',
            'hello:write',
            'hello:wave'
        ]);
        expect([hello.health.state, hello.health.checks[0].evidence, typeof hello.bootMs]).to.equal([
            'ok',
            'there is room',
            'number'
        ]);
        const asks = data.find(({ name }: { name: string }) => name === 'asks');
        expect(asks.capabilities).to.equal({ asked: capabilities, granted: capabilities, missing: null });
        const broken = data.find(({ name }: { name: string }) => name === 'broken');
        expect(broken.failure).to.include({
            stage: 'mounted',
            code: 'SETUP_FAILED',
            message: 'It is broken'
        });
        expect(data.find(({ name }: { name: string }) => name === 'upper').requires).to.equal({
            base: '^1.0.0'
        });
        expect(outcome(await get('/api/plugins?available=maybe'))).to.equal([
            400,
            40001,
            'VALIDATION_FAILED'
        ]);
    });

    it('has an ETag for each, and holds If-Match against it on PUT and DELETE', async () => {
        const one = await get('/api/plugins/hello');
        const etag = String(one.headers.etag);
        expect(etag).to.match(/^"\d+"$/);
        expect((await get('/api/plugins/hello', { 'if-none-match': etag })).status).to.equal(304);
        for (const answer of [
            await put('hello', { enabled: false }, { 'if-match': '"999"' }),
            await panel.client.delete('/api/plugins/hello', { headers: { 'if-match': '"999"' } })
        ]) {
            expect([...outcome(answer), `"${answer.data.version}"`]).to.equal([
                412,
                41200,
                'VERSION_STALE',
                etag
            ]);
        }
        const changed = await put('hello', { settings: { word: 'Ahoy' } }, { 'if-match': etag });
        expect([changed.status, changed.headers.etag === etag]).to.equal([200, false]);
        const read = await get('/api/plugins/hello');
        expect([read.data, read.headers.etag]).to.equal([changed.data, changed.headers.etag]);
        expect((await put('hello', { settings: { word: 'Ahoy' } }, { 'if-match': etag })).code).to.equal(
            41200
        );
        const back = await put('hello', read.data, { 'if-match': String(read.headers.etag) });
        expect([back.status, back.headers.etag, back.data]).to.equal([200, read.headers.etag, read.data]);
        expect((await put('hello', { settings: { word: null } })).data.settings).to.equal({});
    });

    it('merges what is sent, keeps what is not, and takes nothing that it does not know', async () => {
        await put('hello', { settings: { word: 'Hi', key: 'secret-secret' } });
        expect((await put('hello', { settings: { word: 'Hey' } })).data.settings).to.equal({
            word: 'Hey',
            key: { set: true }
        });
        const was = await everything();
        for (const [what, body, code] of [
            ['an unknown field', { enable: true }, 40001],
            ['a text for a boolean', { enabled: 'true' }, 40001],
            ['a list of settings', { settings: [] }, 40001],
            ['a number for a text', { settings: { word: 1 } }, 40001],
            ['an unknown setting', { settings: { stray: 1 } }, 40001],
            ['an unknown capability', { grants: { everything: true } }, 40001],
            ['a wrong capability', { grants: { hosts: 'all' } }, 40001],
            ['adopt: false', { adopt: false }, 40001],
            ['a version with a second change', { version: '2.0.0', enabled: false }, 40001],
            ['no object', [], 40000],
            ['no JSON', '{', 40000],
            ['a version of a folder', { version: '2.0.0' }, null]
        ] as const) {
            const answer = await put('hello', body);
            expect(
                code === null ? answer.status !== 500 : answer.code === code,
                `${what}: ${answer.text}`
            ).to.be.true();
        }
        expect(faultsOf(await put('hello', { settings: { word: 1, stray: 2 }, enabled: 1 }))).to.include(
            'enabled'
        );
        expect(
            (await panel.client.put('/api/plugins/hello', 'x', { headers: { 'content-type': 'text/plain' } }))
                .code
        ).to.equal(41500);
        expect((await put('hello', { settings: { word: 'x'.repeat(1024 * 1024) } })).code).to.equal(41300);
        expect(await everything()).to.equal(was);
    });

    it('enables and disables, and paths say what is the matter', async () => {
        expect(outcome(await get('/api/plugins/nobody/hello'))).to.equal([404, 40410, 'PLUGIN_NOT_FOUND']);
        expect(outcome(await get('/api/plugins/nobody'))).to.equal([404, 40410, 'PLUGIN_NOT_FOUND']);
        expect(outcome(await panel.client.delete('/api/plugins/nobody'))).to.equal([
            404,
            40410,
            'PLUGIN_NOT_FOUND'
        ]);
        const off = await put('hello', { enabled: false });
        expect([off.data.state, off.data.enabled, off.data.released.leaked, off.data.health]).to.equal([
            'disabled',
            false,
            [],
            null
        ]);
        expect(outcome(await get('/api/plugins/hello/hello'))).to.equal([404, 40411, 'PLUGIN_DISABLED']);
        expect((await get('/api/openapi.json')).text).not.to.contain('"/api/plugins/hello/hello"');
        expect((await put('hello', { enabled: true })).data.state).to.equal('running');
        expect((await get('/api/plugins/hello/hello')).data).to.equal({ text: 'Hello' });
        expect((await get('/api/openapi.json')).text).to.contain('"/api/plugins/hello/hello"');
        const failed = await get('/api/plugins/broken/hello');
        expect([...outcome(failed), failed.data.stage, failed.data.cause]).to.equal([
            503,
            50303,
            'PLUGIN_FAILED',
            'mounted',
            'SETUP_FAILED'
        ]);
        const needy = await get('/api/plugins/needy/hello');
        expect([needy.data.stage, needy.data.cause]).to.equal(['loaded', 'SETTINGS_REQUIRED']);
        expect((await put('needy', { settings: { url: 'x' } })).data.state).to.equal('running');
        expect((await get('/api/plugins/hello/nothing')).code).to.equal(40400);
    });

    it('ends a start that hangs, and a request that does not end when it is told to', async () => {
        const starting = panel.client.put('/api/plugins/hangs', { enabled: true });
        const waiting = await get('/api/plugins/hangs/hello');
        expect([503, 404].includes(waiting.status)).to.be.true();
        const before = performance.now();
        expect((await put('hangs', { enabled: false })).data.state).to.equal('disabled');
        expect(performance.now() - before).to.be.below(3_000);
        expect((await starting).data.enabled).to.be.false();
        const slow = panel.client.post('/api/plugins/hello/slow', {}).then(
            ({ status }) => status,
            () => 'cut'
        );
        await until(
            async () => (await get('/api/plugins/hello/inside')).data.inside > 0,
            'the request to be inside'
        );
        const from = performance.now();
        const forced = await put('hello', { enabled: false, force: true });
        expect([forced.data.state, forced.data.released.cut, performance.now() - from < 1_500]).to.equal([
            'disabled',
            1,
            true
        ]);
        expect(await slow).to.equal('cut');
        await put('hello', { enabled: true });
    });

    it('asks for consent with the difference, in the request or before', async () => {
        await put('asks', { enabled: false });
        const less = await put('asks', { grants: { exec: ['git'] } });
        expect([less.data.capabilities.granted, less.data.capabilities.missing]).to.equal([
            { exec: ['git'] },
            { network: ['api.example.org'], hosts: 'own' }
        ]);
        expect((await put('asks', { enabled: true })).data.state).to.equal('running'); // the admin saw all of it, and granted less
        await put('asks', { enabled: false, grants: capabilities });
        later = 20 * 60_000; // no longer fresh, and not yet over
        const stale = await put('asks', { grants: {} });
        expect(outcome(stale)).to.equal([403, 40301, 'STEP_UP_REQUIRED']);
        for (const answer of [
            await panel.client.post('/api/plugins', { package: rows }),
            await put('hello', { version: '9.9.9' }),
            await put('asks', { adopt: true })
        ]) {
            expect(outcome(answer)).to.equal([403, 40301, 'STEP_UP_REQUIRED']);
        }
        expect((await put('asks', { enabled: true })).data.state).to.equal('running'); // what was agreed to once needs nothing anew
        later = 0;
    });

    it('does not take away what another one needs, unless it is told to', async () => {
        const refused = await put('base', { enabled: false });
        expect([...outcome(refused), refused.data.by]).to.equal([409, 40901, 'IN_USE', ['upper']]);
        const cascaded = await put('base', { enabled: false }, {}, '?cascade=true');
        expect([cascaded.data.state, (await get('/api/plugins/upper')).data.state]).to.equal([
            'disabled',
            'disabled'
        ]);
        expect(outcome(await put('base', { enabled: true }, {}, '?cascade=yes'))).to.equal([
            400,
            40001,
            'VALIDATION_FAILED'
        ]);
        await put('base', { enabled: true });
        expect((await put('upper', { enabled: true })).data.state).to.equal('running');
        expect(outcome(await panel.client.delete('/api/plugins/base'))[1]).to.equal(40901);
        expect((await get('/api/plugins/base/hello')).status).to.equal(200);
    });

    it('installs as a task, and acts once for one Idempotency-Key', async () => {
        const headers = { 'idempotency-key': 'install-rows' };
        const first = await panel.client.post('/api/plugins', { package: rows }, { headers });
        expect([first.status, first.data.kind, typeof first.data.id]).to.equal([
            202,
            'plugin.install',
            'number'
        ]);
        // Routes that need freshness keep no answer: a retry learns that there was a first one.
        expect(outcome(await panel.client.post('/api/plugins', { package: rows }, { headers }))).to.equal([
            409,
            40903,
            'IDEMPOTENCY_UNRESOLVED'
        ]);
        expect(
            outcome(await panel.client.post('/api/plugins', { package: rows, enabled: false }, { headers }))
        ).to.equal([409, 40902, 'IDEMPOTENCY_MISMATCH']);
        const task = await ended(panel.client, first);
        expect([task.state, task.result.state]).to.equal(['succeeded', 'running']);
        expect((await get('/api/tasks?kind=plugin.install')).status).not.to.equal(500);
        expect((await panel.client.get('/api/plugins/rows')).data).to.include({
            origin: 'lock',
            version: '1.0.0',
            state: 'running'
        });
    });

    it('says what the registry offers, and what is newer', async () => {
        await publishVersion(npm, '1.1.0');
        const { data } = await get('/api/plugins?available=true');
        expect(data.find((offer: { package: string }) => offer.package === rows)).to.include({
            name: 'rows',
            version: '1.1.0',
            installed: '1.0.0',
            upgrade: true,
            conflict: null
        });
        expect((await get('/api/plugins/rows')).data.available).to.equal('1.1.0');
    });

    it('upgrades and rolls back as a task', async () => {
        const up = await put('rows', { version: '1.1.0' });
        expect([up.status, up.data.kind]).to.equal([202, 'plugin.upgrade']);
        expect((await ended(panel.client, up)).state).to.equal('succeeded');
        expect((await get('/api/plugins/rows')).data).to.include({
            version: '1.1.0',
            available: null,
            state: 'running'
        });
        const down = await put('rows', { version: '1.0.0' });
        expect([down.status, down.data.kind]).to.equal([202, 'plugin.rollback']);
        expect((await ended(panel.client, down)).state).to.equal('succeeded');
        expect((await get('/api/plugins/rows')).data.version).to.equal('1.0.0');
        const none = await put('rows', { version: '7.7.7' });
        expect(none.status === 202 ? (await ended(panel.client, none)).error.code : none.code).to.equal(
            40400
        );
    });

    it('uninstalls, and purges when it is told to', async () => {
        const gone = await panel.client.delete('/api/plugins/rows?purge=true');
        expect([gone.status, gone.code, gone.data]).to.equal([200, 0, null]);
        expect(outcome(await get('/api/plugins/rows'))).to.equal([404, 40410, 'PLUGIN_NOT_FOUND']);
        expect(outcome(await get('/api/plugins/rows/rows'))).to.equal([404, 40410, 'PLUGIN_NOT_FOUND']);
        expect(outcome(await panel.client.delete('/api/plugins/rows'))).to.equal([
            404,
            40410,
            'PLUGIN_NOT_FOUND'
        ]);
        expect((await get('/api/users/roles')).text).not.to.contain('rows:');
    });

    it('puts every change, and every refusal, on record', async () => {
        const { data } = await get('/api/audit?resource=plugins&limit=200');
        const actions = new Set(
            data.map(({ action, outcome: end }: { action: string; outcome: string }) => `${action} ${end}`)
        );
        for (const expected of [
            'enable success',
            'disable success',
            'update success',
            'install success',
            'upgrade success',
            'rollback success',
            'uninstall success'
        ]) {
            expect(actions.has(expected), expected).to.be.true();
        }
        expect(JSON.stringify(data)).not.to.contain('secret-secret');
        await panel.client.put(
            '/api/plugins/hello',
            { enabled: false },
            { token: await panel.tokenOf('operator') }
        );
        await until(
            async () =>
                (await get('/api/audit?outcome=failure&limit=20')).data.some(
                    ({ code, resource }: { code: number; resource: string }) =>
                        code === 40300 && resource === 'plugins'
                ),
            'the refusal'
        );
    });

    it('quarantines what fails three times within an hour, until an admin enables it', async () => {
        await until(
            async () => (await put('broken', { enabled: true })).data.state === 'quarantined',
            'the third fall'
        );
        const { data } = await get('/api/plugins/broken');
        expect([data.enabled, typeof data.quarantinedAt, data.failure.code]).to.equal([
            true,
            'string',
            'SETUP_FAILED'
        ]);
        const path = await get('/api/plugins/broken/x');
        expect([...outcome(path), path.data.cause]).to.equal([503, 50303, 'PLUGIN_FAILED', 'SETUP_FAILED']);
        folder.write('broken', pluginModule("throw new Error('It is broken');"));
        const again = await put('broken', { enabled: true });
        expect([again.data.state, again.data.quarantinedAt]).to.equal(['failed', null]);
    });

    it('keeps enough of itself in safe mode', async () => {
        const archive = packageArchive(...versionedPackage('1.0.0', { name: 'sent' }));
        const own = await startConsumer({
            environment: { PORTICO_PLUGIN_DIRS: folder.path, PORTICO_SAFE_MODE: '1' }
        });
        const { client } = own;
        try {
            await own.panel.settled();
            const path = await client.get('/api/plugins/hello/hello');
            expect([...outcome(path)]).to.equal([503, 50300, 'NOT_READY']);
            expect(outcome(await client.get('/api/plugins/nobody/x'))).to.equal([503, 50300, 'NOT_READY']);
            const list = await client.get('/api/plugins');
            expect([
                list.headers['x-portico-safe-mode'],
                list.message.includes('Safe mode'),
                list.data.length > 5
            ]).to.equal(['1', true, true]);
            expect((await client.put('/api/plugins/hello', { enabled: false })).data.state).to.equal(
                'disabled'
            );
            expect(
                (
                    await client.post('/api/plugins', archive, {
                        headers: { 'content-type': 'application/gzip' }
                    })
                ).code
            ).to.equal(50300);
        } finally {
            await own.close();
        }
    });
});
