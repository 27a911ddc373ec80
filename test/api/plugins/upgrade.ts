import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import Sqlite from 'better-sqlite3';
import { WebSocket } from 'ws';

import type { Answer } from '../../support/panel/client.ts';
import { startPanel, type TestPanel } from '../../support/panel/panel.ts';
import { type Ended, ended, hashesOf } from '../../support/plugins/panel.ts';
import { publishVersion, versionedPackage, type VersionOptions } from '../../support/plugins/versioned.ts';
import { pluginPackage } from '../../support/registry/packages.ts';
import { type NpmRegistry, startNpmRegistry } from '../../support/servers/npm-registry.ts';
import { until } from '../../support/until.ts';

export const lab = Lab.script();
const { after, afterEach, before, beforeEach, describe, it } = lab;

const rows = '@acme/portico-plugin-rows';
const path = '/api/plugins/rows';
/** Between two requests of a connection, so that the swap has the processor, too. */
const pauseMs = 15;
let npm: NpmRegistry;
let panel: TestPanel;
let client: TestPanel['client'];

const install = async (version: string, more: object = {}): Promise<Ended> =>
    ended(client, await client.post('/api/plugins', { package: rows, version, ...more }));
const change = async (version: string, more: object = {}): Promise<Ended> =>
    ended(client, await client.put(path, { version, ...more }));
const view = async (): Promise<{ state: string; version: string }> => (await client.get(path)).data;
const kept = async (): Promise<readonly string[]> => (await client.get(`${path}/rows`)).data.rows;
const put = (text: string): Promise<Answer> => client.post(`${path}/rows`, { text });

/** A request that is inside of the plugin until it is told to go on. */
async function inside(): Promise<{ readonly answer: Promise<Answer> }> {
    const answer = client.get(`${path}/slow`);
    answer.catch(() => undefined);
    await until(
        async () => (await client.get(`${path}/waiting`)).data.count === 1,
        'the request to be inside'
    );
    return { answer };
}

interface DataRow {
    readonly n: number;
    readonly version: string;
    readonly current: number;
    readonly pending: number;
    readonly accepted: number;
}

function dataRows(): readonly DataRow[] {
    const db = new Sqlite(join(panel.config.dataDir, 'portico.db'), { readonly: true });
    try {
        return db
            .prepare<[], DataRow>(
                "select n, version, current, pending, accepted from plugin_data where name = 'rows' order by n"
            )
            .all();
    } finally {
        db.close();
    }
}

/** The folder of the data that count. */
const dataFolder = (): string =>
    join(
        panel.config.dataDir,
        'plugin-data',
        'rows',
        String(dataRows().find(({ current }) => current === 1)?.n)
    );
const codeFolder = (): string => {
    const lock = JSON.parse(readFileSync(join(panel.config.dataDir, 'plugins.lock.json'), 'utf8')) as {
        plugins: Record<string, { current: { folder: string } }>;
    };
    return join(panel.config.dataDir, 'plugins', lock.plugins['rows']?.current.folder ?? '');
};

interface Traffic {
    readonly acknowledged: string[];
    readonly failures: string[];
    readonly words: Set<string>;
    reads: number;
    end(): Promise<void>;
}

let made = 0;

/** Steady reads and writes, each on a connection of its own. */
function startTraffic(): Traffic {
    let running = true;
    const traffic: Traffic = {
        acknowledged: [],
        failures: [],
        words: new Set(),
        reads: 0,
        end: () => Promise.resolve()
    };
    const judge = (answer: Answer, what: string): void => {
        if (answer.status !== 200) {
            traffic.failures.push(`${what}: ${answer.status} ${answer.text}`);
        }
        traffic.words.add(answer.data?.word);
    };
    const writer = async (): Promise<void> => {
        while (running) {
            const text = `row ${(made += 1)}`;
            const answer = await put(text);
            judge(answer, text);
            if (answer.status === 200) {
                traffic.acknowledged.push(text);
            }
            await wait(pauseMs);
        }
    };
    const reader = async (): Promise<void> => {
        while (running) {
            judge(await client.get(`${path}/rows`), 'read');
            traffic.reads += 1;
            await wait(pauseMs);
        }
    };
    const all = Promise.all([writer(), writer(), reader(), reader()]);
    traffic.end = async () => {
        running = false;
        await all;
    };
    return traffic;
}

describe('PUT /api/plugins/{name}: version', { timeout: 300_000 }, () => {
    const published = new Set<string>();
    const publish = async (version: string, options: VersionOptions = {}): Promise<void> => {
        if (!published.has(version)) {
            published.add(version);
            await publishVersion(npm, version, options);
        }
    };

    before(async () => {
        npm = await startNpmRegistry();
        panel = await startPanel({ environment: { PORTICO_NPM_REGISTRY: npm.url } });
        client = panel.client;
        await panel.panel.settled();
        await publish('1.0.0');
        await publish('1.1.0');
        await publish('2.0.0', { migrations: 2 });
    });
    after(async () => {
        await panel?.close();
        await npm?.stop();
    });
    beforeEach(async () => {
        expect((await install('1.0.0')).result).to.include({ state: 'running' });
        expect((await put('first')).code).to.equal(0);
    });
    afterEach(async () => {
        await client.delete(`${path}?purge=true&cascade=true`);
    });

    it('upgrades under steady reads and writes without one failure, and keeps every acknowledged row', async () => {
        const traffic = startTraffic();
        const [events] = (await once(
            request({
                host: '127.0.0.1',
                port: panel.port,
                path: `${path}/events`,
                headers: { authorization: `Bearer ${client.token}` }
            }).end(),
            'response'
        )) as [IncomingMessage];
        let heard = '';
        events.on('data', (chunk) => (heard += chunk));
        const peer = new WebSocket(`ws://127.0.0.1:${panel.port}${path}/talk`, {
            headers: { authorization: `Bearer ${client.token}` }
        });
        await once(peer, 'open');
        const closed = once(peer, 'close') as Promise<[number]>;
        await until(() => traffic.acknowledged.length > 10 && heard.includes('"1.0.0"'));
        const task = await change('2.0.0');
        expect([task.kind, task.state, task.error]).to.equal(['plugin.upgrade', 'succeeded', null]);
        expect(task.result).to.include({
            plugin: 'rows',
            version: '2.0.0',
            from: '1.0.0',
            state: 'running',
            cut: 0
        });
        const atUpgrade = traffic.acknowledged.length;
        await until(() => traffic.acknowledged.length > atUpgrade + 10);
        const back = await ended(
            client,
            await client.post('/api/plugins', { package: rows, version: '2.0.0' })
        );
        expect(back.result).to.include({ version: '2.0.0', from: '2.0.0' });
        await traffic.end();
        expect(traffic.failures).to.equal([]);
        expect([...traffic.words].toSorted()).to.equal(['1.0.0', '2.0.0']);
        expect((await kept()).toSorted()).to.equal(['first', ...traffic.acknowledged].toSorted());
        expect(heard.trimEnd()).to.endWith('retry: 1000');
        expect((await closed)[0]).to.equal(1012);
        console.log(
            `      ${traffic.acknowledged.length} rows and ${traffic.reads} reads over two swaps, parked for ${task.result.parkedMs} and ${back.result.parkedMs} ms`
        );
    });

    it('leaves code and data as they were, byte for byte, whichever step of it fails', async () => {
        const acknowledged = ['first'];
        const lockOf = (): unknown =>
            JSON.parse(readFileSync(join(panel.config.dataDir, 'plugins.lock.json'), 'utf8')).plugins;
        /** Rows go on being written, so the bytes of the database differ; the test below shows them. */
        const filesOf = (folder: string): string[] =>
            Object.keys(hashesOf(folder)).filter((name) => !name.startsWith('data.db'));
        for (const fault of ['import', 'migration', 'setup', 'health', 'start', 'settings'] as const) {
            await publish(`3.0.0-${fault}`, { fault, migrations: 3 });
            await client.put(path, { enabled: false });
            const [code, data, lock] = [hashesOf(codeFolder()), filesOf(dataFolder()), lockOf()];
            await client.put(path, { enabled: true });
            const traffic = startTraffic();
            await until(() => traffic.reads > 3);
            const reading = traffic.acknowledged.length;
            const task = await change(`3.0.0-${fault}`);
            expect([fault, task.state, task.error.code, task.error.data.plugin]).to.equal([
                fault,
                'failed',
                50303,
                'rows'
            ]);
            await until(() => traffic.acknowledged.length > reading + 3);
            await traffic.end();
            acknowledged.push(...traffic.acknowledged);
            expect([traffic.failures, [...traffic.words]], fault).to.equal([[], ['1.0.0']]);
            expect(await view(), fault).to.include({ state: 'running', version: '1.0.0', enabled: true });
            expect((await kept()).toSorted(), fault).to.equal(acknowledged.toSorted());
            expect([hashesOf(codeFolder()), filesOf(dataFolder()), lockOf()], fault).to.equal([
                code,
                data,
                lock
            ]);
            expect(readdirSync(join(panel.config.dataDir, 'plugin-data', 'rows')), fault).to.have.length(1);
            expect(readdirSync(join(panel.config.dataDir, 'plugins', 'rows')), fault).to.have.length(1);
        }
    });

    it('changes not one byte of the data when no request writes and the start fails', async () => {
        await publish('3.0.0-start', { fault: 'start', migrations: 3 });
        await client.put(`${path}/note`, { text: 'mine' });
        await client.put(path, { enabled: false });
        const before = hashesOf(dataFolder());
        await client.put(path, { enabled: true });
        const task = await change('3.0.0-start');
        expect([task.state, task.error.data.cause]).to.equal(['failed', 'START_FAILED']);
        await client.put(path, { enabled: false });
        expect(Object.keys(before)).to.include(['data.db', 'note']);
        expect(hashesOf(dataFolder())).to.equal(before);
        await client.put(path, { enabled: true });
        expect(await kept()).to.equal(['first']);
    });

    it('is called off as BUSY when a request does not end in time, which goes on, and cuts it when it is told to', async () => {
        const slow = await inside();
        const during: Promise<Answer>[] = [];
        const changing = client.put(path, { version: '1.1.0' }).then((accepted) => ended(client, accepted));
        await until(async () => (await client.get('/api/tasks')).data[0].progress >= 0.75);
        during.push(client.get(`${path}/word`), put('meanwhile'));
        const task = await changing;
        expect([task.state, task.error.code, task.error.reason, task.error.data.inside]).to.equal([
            'failed',
            40904,
            'BUSY',
            1
        ]);
        expect((await Promise.all(during)).map(({ status, data }) => [status, data.word])).to.equal([
            [200, '1.0.0'],
            [200, '1.0.0']
        ]);
        await client.post(`${path}/go`, {});
        expect((await slow.answer).data).to.equal({ word: '1.0.0' });
        expect(await view()).to.include({ state: 'running', version: '1.0.0' });
        const { answer } = await inside();
        const cut = answer.then(
            () => 'answered',
            () => 'cut'
        );
        const forced = await change('1.1.0', { force: true });
        expect([forced.state, forced.result.cut, await cut]).to.equal(['succeeded', 1, 'cut']);
        expect(await view()).to.include({ state: 'running', version: '1.1.0' });
        expect(await kept()).to.equal(['first', 'meanwhile']);
    });

    it('goes back by the code alone while nothing was migrated, with every row', async () => {
        await change('1.1.0');
        await put('second');
        const task = await change('1.0.0');
        expect([task.kind, task.state, task.result.version]).to.equal([
            'plugin.rollback',
            'succeeded',
            '1.0.0'
        ]);
        expect([await view().then(({ version }) => version), await kept()]).to.equal([
            '1.0.0',
            ['first', 'second']
        ]);
    });

    it('goes back to the data of then while no change was accepted, and asks when one was', async () => {
        await change('2.0.0');
        expect(dataRows().map(({ version, current, accepted }) => [version, current, accepted])).to.equal([
            ['1.0.0', 0, 1],
            ['2.0.0', 1, 0]
        ]);
        await kept();
        expect((await change('1.0.0')).state).to.equal('succeeded');
        expect([(await view()).version, await kept()]).to.equal(['1.0.0', ['first']]);
        await change('2.0.0');
        await put('second');
        const refused = await client.put(path, { version: '1.0.0' });
        expect([refused.status, refused.code, refused.data.reason, refused.data.migrations]).to.equal([
            409,
            40911,
            'DATA_AHEAD',
            ['0002']
        ]);
        expect(await view()).to.include({ version: '2.0.0', state: 'running' });
        const task = await change('1.0.0', { restoreData: true });
        expect(task.state).to.equal('succeeded');
        expect([(await view()).version, await kept()]).to.equal(['1.0.0', ['first']]);
        // What was given up stays with its version until the next change: the way forward begins with the data of now.
        expect((await change('2.0.0')).state).to.equal('succeeded');
        expect(await kept()).to.equal(['first']);
    });

    it('brings a repaired package of the same version without a failed request', async () => {
        const traffic = startTraffic();
        await until(() => traffic.reads > 3);
        const before = codeFolder();
        await fetch(new URL(`${rows.replace('/', '%2f')}/-rev/1`, npm.url), { method: 'DELETE' });
        await publishVersion(npm, '1.0.0', { word: 'repaired' });
        const task = await install('1.0.0');
        await until(() => traffic.words.has('repaired'));
        await traffic.end();
        expect([task.state, task.result.version, task.result.from]).to.equal(['succeeded', '1.0.0', '1.0.0']);
        expect([traffic.failures, [...traffic.words].toSorted(), codeFolder() !== before]).to.equal([
            [],
            ['1.0.0', 'repaired'],
            true
        ]);
        expect((await kept()).toSorted()).to.equal(['first', ...traffic.acknowledged].toSorted());
        await fetch(new URL(`${rows.replace('/', '%2f')}/-rev/1`, npm.url), { method: 'DELETE' });
        published.clear();
        await publish('1.0.0');
        await publish('1.1.0');
        await publish('2.0.0', { migrations: 2 });
    });

    it('asks for consent to what the new version asks for beyond, and takes it in the same request', async () => {
        await publish('4.0.0', { manifest: { capabilities: { network: ['api.example.org'] } } });
        const task = await change('4.0.0');
        expect([task.state, task.error.code, task.error.data.missing]).to.equal([
            'failed',
            40910,
            { network: ['api.example.org'] }
        ]);
        expect(await view()).to.include({ version: '1.0.0', state: 'running' });
        const granted = await change('4.0.0', { grants: { network: ['api.example.org'] } });
        expect([granted.state, (await view()).version]).to.equal(['succeeded', '4.0.0']);
    });

    it('keeps out what would break a plugin that requires it, and leaves that running through an upgrade', async () => {
        const needs = pluginPackage('needs', '1.0.0', {
            portico: { name: 'needs', sdk: '^1.0.0', requires: { rows: '^1.0.0' } }
        });
        await npm.publish(needs, {
            'index.js': `import { contract, definePlugin } from '@portico/sdk';
export default definePlugin({ requires: { rows: contract() }, setup(ctx) { ctx.route({ method: 'GET', path: '/asked', access: 'read', handler: () => ctx.plugins.rows.word(null) }); } });`
        });
        expect(
            (await ended(client, await client.post('/api/plugins', { package: needs.name }))).result.state
        ).to.equal('running');
        const broken = await change('2.0.0');
        expect([broken.state, broken.error.code, broken.error.data.by]).to.equal([
            'failed',
            40901,
            ['needs']
        ]);
        let running = true;
        const failures: string[] = [];
        const words = new Set<string>();
        const asking = (async () => {
            while (running) {
                const answer = await client.get('/api/plugins/needs/asked');
                words.add(answer.data?.word);
                if (answer.status !== 200) {
                    failures.push(answer.text);
                }
            }
        })();
        expect((await change('1.1.0')).state).to.equal('succeeded');
        await until(() => words.has('1.1.0'));
        running = false;
        await asking;
        expect([failures, [...words]]).to.equal([[], ['1.0.0', '1.1.0']]);
        expect((await client.get('/api/plugins/needs')).data.state).to.equal('running');
        expect((await client.delete(path)).code).to.equal(40901);
        await client.delete('/api/plugins/needs?purge=true');
    });

    it('changes the version of one that does not run, and what comes back finds its data', async () => {
        await client.put(path, { enabled: false });
        const task = await change('2.0.0');
        expect([task.state, task.result.state]).to.equal(['succeeded', 'disabled']);
        expect((await client.put(path, { enabled: true })).data).to.include({
            state: 'running',
            version: '2.0.0'
        });
        expect(await kept()).to.equal(['first']);
    });

    it('ends without a trace when it is cancelled before the old one is stopped', async () => {
        const slow = await inside();
        const accepted = await client.put(path, { version: '1.1.0' });
        await until(async () => (await client.get(`/api/tasks/${accepted.data.id}`)).data.progress >= 0.75);
        await client.delete(`/api/tasks/${accepted.data.id}`);
        expect((await ended(client, accepted)).state).to.equal('cancelled');
        await client.post(`${path}/go`, {});
        expect((await slow.answer).status).to.equal(200);
        expect(await view()).to.include({ version: '1.0.0', state: 'running' });
        expect(readdirSync(join(panel.config.dataDir, 'plugins', 'rows'))).to.have.length(1);
    });

    it('takes the version that is there, sent back, for no wish, and knows stale and unknown ones', async () => {
        const same = await client.put(path, { version: '1.0.0', enabled: true });
        expect([same.status, same.data.state]).to.equal([200, 'running']);
        expect(
            (await client.put(path, { version: '1.1.0' }, { headers: { 'if-match': '"999"' } })).code
        ).to.equal(41200);
        expect((await client.put('/api/plugins/nobody', { version: '1.1.0' })).code).to.equal(40410);
        expect((await client.put(path, { version: '1.1.0', enabled: false })).code).to.equal(40001);
        const unknown = await change('9.9.9');
        expect([unknown.state, unknown.error.code]).to.equal(['failed', 40400]);
        npm.intercept = (_request, response) => {
            response.destroy();
            return true;
        };
        const gone = await change('1.1.0');
        npm.intercept = null;
        expect([gone.state, gone.error.code, (await view()).version]).to.equal(['failed', 50300, '1.0.0']);
    });

    it('puts the swap on record with who wished it', async () => {
        await change('1.1.0');
        const [entry] = (await client.get('/api/audit?resource=plugins&action=upgrade')).data;
        expect([
            entry.outcome,
            entry.resourceId,
            entry.actor.username,
            entry.changes.before.version,
            entry.changes.after.version
        ]).to.equal(['success', 'rows', 'admin', '1.0.0', '1.1.0']);
        expect(versionedPackage('1.1.0')[0].name).to.equal(entry.changes.after.package);
    });
});
