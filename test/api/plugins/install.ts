import { readdirSync } from 'node:fs';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import type { Answer } from '../../support/panel/client.ts';
import { startPanel, type TestPanel } from '../../support/panel/panel.ts';
import { ended } from '../../support/plugins/panel.ts';
import { publishVersion, versionedPackage } from '../../support/plugins/versioned.ts';
import { type ArchiveEntry, packageArchive } from '../../support/registry/archive.ts';
import { type NpmRegistry, startNpmRegistry } from '../../support/servers/npm-registry.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const rows = '@acme/portico-plugin-rows';
let npm: NpmRegistry;
let panel: TestPanel;
let client: TestPanel['client'];

const install = async (body: object): ReturnType<typeof ended> =>
    ended(client, await client.post('/api/plugins', body));
const send = async (archive: Uint8Array, query: string): Promise<Answer> => {
    const answer = await fetch(`http://127.0.0.1:${panel.port}/api/plugins${query}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${client.token}`, 'content-type': 'application/gzip' },
        body: archive
    });
    const text = await answer.text();
    const envelope = JSON.parse(text) as Pick<Answer, 'code' | 'message' | 'data'>;
    return { status: answer.status, headers: {}, text, ...envelope } as Answer;
};
const upload = async (archive: Uint8Array, query = ''): ReturnType<typeof ended> =>
    ended(client, await send(archive, query));
/** Nothing of it is there. */
const isAbsent = async (name: string): Promise<void> => {
    expect((await client.get(`/api/plugins/${name}`)).code).to.equal(40410);
    expect(
        (await client.get('/api/plugins')).data.some((each: { name: string }) => each.name === name)
    ).to.be.false();
    expect(readdirSync(join(panel.config.dataDir, 'plugins')).filter((each) => each === name)).to.equal([]);
};

describe('POST /api/plugins', { timeout: 240_000 }, () => {
    before(async () => {
        npm = await startNpmRegistry();
        panel = await startPanel({ environment: { PORTICO_NPM_REGISTRY: npm.url } });
        client = panel.client;
        await panel.panel.settled();
    });
    after(async () => {
        await panel?.close();
        await npm?.stop();
    });

    it('installs the newest version, runs it, and says so in the list, the tasks and the record', async () => {
        await publishVersion(npm, '1.0.0');
        await publishVersion(npm, '1.1.0');
        const accepted = await client.post('/api/plugins', { package: rows });
        expect([accepted.status, accepted.data.kind]).to.equal([202, 'plugin.install']);
        expect(accepted.data).to.include({
            route: 'plugins.install',
            actor: { id: 1, username: 'admin', tokenId: null, plugin: null }
        });
        expect(Date.parse(accepted.data.createdAt)).to.be.within(Date.now() - 60_000, Date.now());
        const task = await ended(client, accepted);
        expect(task).to.include({ state: 'succeeded', error: null });
        expect(task.result).to.include({
            plugin: 'rows',
            package: rows,
            version: '1.1.0',
            from: null,
            state: 'running'
        });
        expect((await client.get('/api/plugins/rows')).data).to.include({
            state: 'running',
            enabled: true,
            version: '1.1.0',
            origin: 'lock'
        });
        expect((await client.get('/api/plugins/rows/word')).data).to.equal({ word: '1.1.0', greeting: null });
        const events = await client.get('/api/audit?resource=plugins&action=install');
        expect(events.data[0]).to.include({ resourceId: 'rows', outcome: 'success' });
        expect((await client.get('/api/openapi.json')).text).to.contain('/api/plugins/rows/rows');
    });

    it('says beforehand what an install or another version would do, and changes nothing', async () => {
        const shown = async (): Promise<object> => ({
            ...(await client.get('/api/plugins/rows')).data,
            health: null
        });
        const before = await shown();
        const folders = (): string[] =>
            readdirSync(join(panel.config.dataDir, 'plugins'), { recursive: true }).map(String).sort();
        const files = folders();
        const [current] = (await client.get('/api/plugins/rows')).data.versions;
        expect(current).to.include({ version: '1.1.0', current: true });
        const down = await client.put('/api/plugins/rows', { version: '1.0.0', dryRun: true });
        expect(down.status, down.text).to.equal(200);
        expect(down.data).to.include({
            plugin: 'rows',
            version: '1.0.0',
            from: '1.1.0',
            kind: 'upgrade',
            consent: [],
            obstacles: []
        });
        expect(down.data.capabilities.missing).to.be.null();
        expect(down.data.bytes as number).to.be.above(0);
        await publishVersion(npm, '2.0.0', {
            name: 'asks',
            manifest: {
                capabilities: { exec: ['git'], hosts: 'own' },
                permissions: { run: { title: 'Run it', roles: ['operator'] } }
            }
        });
        const asks = await client.post('/api/plugins', {
            package: '@acme/portico-plugin-asks',
            dryRun: true
        });
        expect(asks.status, asks.text).to.equal(200);
        expect(asks.data).to.include({ plugin: 'asks', from: null, kind: 'install', obstacles: [] });
        expect(asks.data.capabilities.missing).to.equal({ exec: ['git'], hosts: 'own' });
        expect(
            asks.data.consent.map(({ capability, scope }: Record<string, string>) => [capability, scope])
        ).to.equal([
            ['exec', 'git'],
            ['hosts', 'own']
        ]);
        expect(asks.data.added).to.include('asks:run');
        const part = { package: '@acme/portico-plugin-asks', dryRun: true, grants: { exec: ['git'] } };
        expect((await client.post('/api/plugins', part)).data.capabilities.missing).to.equal({
            hosts: 'own'
        });
        expect((await client.put('/api/plugins/rows', { dryRun: true })).code).to.equal(40001);
        expect(
            (await client.post('/api/plugins', { package: '@acme/none', dryRun: true })).status
        ).to.be.above(399);
        await isAbsent('asks');
        expect([folders(), await shown()]).to.equal([files, before]);
        expect((await client.get('/api/tasks?state=running')).data).to.equal([]);
    });

    it('removes it, and finds its data and settings again unless they were purged', async () => {
        // Another plugin asks for it: what it kept for a plugin may have no owner any more.
        const manifest = { capabilities: { hosts: 'own' } };
        await publishVersion(npm, '1.0.0', { name: 'asking', manifest });
        await install({ package: '@acme/portico-plugin-asking', grants: { hosts: 'own' } });
        const isKnown = async (name = 'rows') =>
            (await client.get(`/api/plugins/asking/knows/${name}`)).data.known;
        expect([await isKnown(), await isKnown('never')]).to.equal([true, false]);
        await client.put('/api/plugins/rows', { settings: { greeting: 'Ahoy' } });
        expect((await client.post('/api/plugins/rows/rows', { text: 'kept' })).code).to.equal(0);
        const removed = await client.delete('/api/plugins/rows');
        expect([removed.status, removed.data]).to.equal([200, null]);
        expect(removed.message).to.match(/\d+ released, 0 leaked, 0 cut/);
        await isAbsent('rows');
        expect(await isKnown()).to.be.true(); // its data are kept
        expect((await client.get('/api/plugins/rows/word')).code).to.equal(40410);
        expect((await install({ package: rows, version: '1.0.0' })).result).to.include({
            version: '1.0.0',
            state: 'running'
        });
        expect((await client.get('/api/plugins/rows/rows')).data).to.equal({ word: '1.0.0', rows: ['kept'] });
        expect((await client.get('/api/plugins/rows/word')).data).to.equal({
            word: '1.0.0',
            greeting: 'Ahoy'
        });
        expect((await client.delete('/api/plugins/rows?purge=true')).code).to.equal(0);
        await isAbsent('rows');
        expect(await isKnown()).to.be.false();
        expect(readdirSync(join(panel.config.dataDir, 'plugin-data', 'rows'))).to.equal([]);
        expect((await install({ package: rows })).result).to.include({ state: 'running' });
        expect((await client.get('/api/plugins/rows/rows')).data.rows).to.equal([]);
        expect((await client.get('/api/plugins/rows/word')).data.greeting).to.be.null();
        await client.delete('/api/plugins/rows?purge=true');
        expect((await client.delete('/api/plugins/rows')).code).to.equal(40410);
        // What a plugin made serves on, and the answer says so.
        expect((await client.post('/api/plugins/asking/hosts', { domain: 'stays.test' })).code).to.equal(0);
        const { message } = await client.delete('/api/plugins/asking?purge=true');
        expect(message).to.contain('These hosts of it stay: stays.test. Delete those');
        const [host] = (await client.get('/api/hosts?q=stays.test')).data;
        expect(host.owner).to.equal('asking');
        expect((await client.delete(`/api/hosts/${host.id}`)).code).to.equal(0);
    });

    it('installs an uploaded archive, with an integrity and disabled when that is asked for', async () => {
        const archive = packageArchive(...versionedPackage('3.0.0', { name: 'sent' }));
        const { status, data } = await send(archive, '?dryRun=true');
        expect([status, data.plugin, data.version, data.from]).to.equal([200, 'sent', '3.0.0', null]);
        expect([data.kind, data.signature, data.obstacles]).to.equal(['install', 'uploaded', []]);
        expect(Number(data.bytes)).to.be.above(0);
        expect((await send(archive, '?dryRun=true&integrity=sha512-AAAA')).code).to.equal(42201);
        await isAbsent('sent');
        const task = await upload(archive, '?enabled=false');
        expect(task.result).to.include({ plugin: 'sent', state: 'disabled' });
        expect((await client.get('/api/plugins/sent/word')).code).to.equal(40411);
        expect((await client.put('/api/plugins/sent', { enabled: true })).data).to.include({
            state: 'running'
        });
        await client.delete('/api/plugins/sent?purge=true');
        const wrong = await upload(archive, '?integrity=sha512-AAAA');
        expect([wrong.state, wrong.error.code, wrong.error.data.cause]).to.equal([
            'failed',
            42201,
            'INTEGRITY_MISMATCH'
        ]);
        await isAbsent('sent');
    });

    it('keeps what asks for more than it is granted disabled, and tells what is missing', async () => {
        await publishVersion(npm, '1.0.0', {
            name: 'greedy',
            manifest: { capabilities: { network: ['api.example.org'], hosts: 'read' } }
        });
        const task = await install({ package: '@acme/portico-plugin-greedy' });
        expect([task.state, task.result.missing, task.result.state]).to.equal([
            'succeeded',
            { network: ['api.example.org'], hosts: 'read' },
            'disabled'
        ]);
        const { data } = await client.get('/api/plugins/greedy');
        expect([data.state, data.enabled, data.capabilities.missing]).to.equal([
            'disabled',
            false,
            { network: ['api.example.org'], hosts: 'read' }
        ]);
        expect((await client.put('/api/plugins/greedy', { enabled: true })).code).to.equal(40910);
        await client.delete('/api/plugins/greedy?purge=true');
        const granted = await install({
            package: '@acme/portico-plugin-greedy',
            grants: { network: ['api.example.org'], hosts: 'read' }
        });
        expect([granted.state, granted.result.state]).to.equal(['succeeded', 'running']);
        await client.delete('/api/plugins/greedy?purge=true');
    });

    it('installs what needs settings first, and does not count that', async () => {
        await publishVersion(npm, '1.0.0', { name: 'needy', fault: 'settings' });
        const task = await install({ package: '@acme/portico-plugin-needy' });
        expect([task.state, task.result.state, task.result.failure.code]).to.equal([
            'succeeded',
            'failed',
            'SETTINGS_REQUIRED'
        ]);
        expect((await client.put('/api/plugins/needy', { settings: { greeting: 'Hi' } })).data).to.include({
            state: 'running'
        });
        await client.delete('/api/plugins/needy?purge=true');
    });

    for (const fault of ['import', 'migration', 'setup', 'health', 'start'] as const) {
        it(`leaves nothing of a plugin whose ${fault} fails`, async () => {
            await publishVersion(npm, '1.0.0', { name: `bad-${fault}`, fault });
            const task = await install({ package: `@acme/portico-plugin-bad-${fault}` });
            const cause = {
                import: 'IMPORT_FAILED',
                migration: 'MIGRATION_FAILED',
                setup: 'SETUP_FAILED',
                health: 'HEALTH_FAILED',
                start: 'START_FAILED'
            }[fault];
            expect([task.state, task.error.code, task.error.reason, task.error.data.cause]).to.equal([
                'failed',
                50303,
                'PLUGIN_FAILED',
                cause
            ]);
            await isAbsent(`bad-${fault}`);
            const [entry] = (await client.get('/api/audit?resource=plugins&action=install&outcome=failure'))
                .data;
            expect(entry).to.include({ resourceId: `bad-${fault}`, code: 50303 });
        });
    }

    it('refuses what is tampered with, hostile or unknown, in words that tell which', async () => {
        const evil = '@acme/portico-plugin-evil';
        const cases: readonly [string, readonly ArchiveEntry[], string][] = [
            ['0.0.1', [{ path: 'package/../../escape', content: 'x' }], 'ARCHIVE_REFUSED'],
            ['0.0.2', [{ path: 'package/link', type: '2', link: '/etc/passwd' }], 'ARCHIVE_REFUSED'],
            ['0.0.3', [{ path: 'package/bomb', content: Buffer.alloc(300 * 1024 * 1024) }], 'ARCHIVE_REFUSED']
        ];
        for (const [version, entries, cause] of cases) {
            const [packageJson, files] = versionedPackage(version, { name: 'evil' });
            const archive = packageArchive(packageJson, files, entries);
            const task = await upload(archive);
            expect([version, task.state, task.error.code, task.error.data.cause]).to.equal([
                version,
                'failed',
                42201,
                cause
            ]);
        }
        await publishVersion(npm, '1.0.0', { name: 'evil' });
        npm.intercept = (request, response) => {
            if (request.url?.endsWith('.tgz') !== true) {
                return false;
            }
            response.end(packageArchive(...versionedPackage('1.0.0', { name: 'evil', word: 'tampered' })));
            return true;
        };
        const tampered = await install({ package: evil });
        npm.intercept = null;
        expect([tampered.state, tampered.error.code, tampered.error.data.cause]).to.equal([
            'failed',
            42201,
            'INTEGRITY_MISMATCH'
        ]);
        const unknown = await install({ package: '@acme/nothing-of-that-name' });
        expect([unknown.error.code, unknown.error.reason]).to.equal([40400, 'NOT_FOUND']);
        const spec = await install({ package: 'https://example.org/x.tgz' });
        expect(spec.error.code).to.equal(40001);
        await npm.publish({ ...versionedPackage('2.0.0', { name: 'evil' })[0], portico: undefined }, {});
        const noPlugin = await install({ package: evil, version: '2.0.0' });
        expect([noPlugin.error.code, noPlugin.error.data.cause]).to.equal([42201, 'MANIFEST_MISSING']);
        await isAbsent('evil');
    });

    it('says that the registry is gone, in the middle too, and ends when it is cancelled', async () => {
        let gone = 0;
        npm.intercept = (request, response) => {
            if (request.url?.endsWith('.tgz') !== true) {
                return false;
            }
            gone += 1;
            response.writeHead(200, { 'content-length': '100000' });
            response.write('half');
            response.destroy();
            return true;
        };
        const broken = await install({ package: rows });
        expect([broken.state, broken.error.code, broken.error.data.cause, gone > 0]).to.equal([
            'failed',
            50300,
            'REGISTRY_UNREACHABLE',
            true
        ]);
        const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
        npm.intercept = (request) => {
            if (request.url?.endsWith('.tgz') !== true) {
                return false;
            }
            ask();
            return true; // and never answers
        };
        const accepted = await client.post('/api/plugins', { package: rows });
        await asked;
        expect((await client.delete(`/api/tasks/${accepted.data.id}`)).code).to.equal(0);
        expect((await ended(client, accepted)).state).to.equal('cancelled');
        npm.intercept = null;
        await isAbsent('rows');
    });

    it('takes JSON and archives, within their limits, and nothing else', async () => {
        const send = (type: string, body: Uint8Array): Promise<number> =>
            fetch(`http://127.0.0.1:${panel.port}/api/plugins`, {
                method: 'POST',
                headers: { authorization: `Bearer ${client.token}`, 'content-type': type },
                body
            }).then(async (answer) => (JSON.parse(await answer.text()) as { code: number }).code);
        expect(await send('text/plain', Buffer.from('x'))).to.equal(41500);
        expect(
            await send('application/json', Buffer.from(`{"package":"${'x'.repeat(1_100_000)}"}`))
        ).to.equal(41300);
        expect((await client.post('/api/plugins', {})).code).to.equal(40001);
        expect((await client.post('/api/plugins', { package: rows, surprise: 1 })).code).to.equal(40001);
        const viewer = await panel.tokenOf('operator');
        expect((await client.post('/api/plugins', { package: rows }, { token: viewer })).code).to.equal(
            40300
        );
    });

    it('does not give a name to another package while a plugin has it', async () => {
        expect((await install({ package: rows })).result.state).to.equal('running');
        await npm.publish(
            { ...versionedPackage('1.0.0')[0], name: '@other/rows' },
            { 'index.js': versionedPackage('1.0.0', { word: 'other' })[1]['index.js'] ?? '' }
        );
        const taken = await install({ package: '@other/rows' });
        expect([taken.state, taken.error.code, taken.error.reason, taken.error.data]).to.equal([
            'failed',
            40900,
            'CONFLICT',
            { field: 'name', by: rows }
        ]);
        expect((await client.get('/api/plugins/rows/word')).data.word).to.equal('1.1.0');
        await client.put('/api/plugins/rows', { enabled: false });
        const stranger = await install({ package: '@other/rows' });
        expect(stranger.result).to.include({ state: 'disabled' });
        expect((await client.get('/api/plugins/rows')).data).to.include({
            package: '@other/rows',
            enabled: false,
            adoptable: rows
        });
        await client.delete('/api/plugins/rows?purge=true');
    });
});
