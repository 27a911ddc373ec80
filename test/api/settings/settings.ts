import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { openStorage } from '../../../core/src/composition/storage.ts';
import { Settings } from '../../../core/src/features/settings/settings.ts';
import { systemClock } from '../../../core/src/platform/clock.ts';
import { readConfig } from '../../../core/src/platform/config.ts';
import { prepareDataDir } from '../../../core/src/platform/data-dir/data-dir.ts';
import { createKeyring } from '../../../core/src/platform/keys/keyring.ts';
import { createLog } from '../../../core/src/platform/log/log.ts';
import { callOf, person } from '../../support/core/store.ts';
import { startPanel, type TestPanel } from '../../support/panel/panel.ts';
import { freePort } from '../../support/ports.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

interface View {
    readonly key: string;
    readonly value: unknown;
    readonly source: string;
    readonly version: number;
}

describe('PUT /api/settings', () => {
    let test: TestPanel;
    let root: string;

    before(async () => {
        // The engine's ports are stored, not in the environment: they must be changeable.
        root = mkdtempSync(join(tmpdir(), 'portico-settings-'));
        chmodSync(root, 0o755);
        const dataDir = join(root, 'data');
        prepareDataDir(dataDir);
        const db = await openStorage(dataDir);
        const settings = await Settings.load({
            db,
            keyring: createKeyring(dataDir),
            config: readConfig({}, root),
            clock: systemClock,
            log: createLog({ level: 'error' })
        });
        await settings.update(
            { 'engine.httpPort': await freePort(), 'engine.httpsPort': await freePort() },
            callOf(person('setup'))
        );
        await db.close();
        test = await startPanel({
            dataDir,
            environment: { PORTICO_ENGINE_HTTP_PORT: '', PORTICO_ENGINE_HTTPS_PORT: '' }
        });
    });

    after(async () => {
        await test.close();
        rmSync(root, { recursive: true, force: true });
    });

    it('answers what the GET that follows answers, with the version as its tag', async () => {
        const written = await test.client.put('/api/settings', {
            'panel.accessTokenMinutes': 25,
            'dns.nameservers': ['1.1.1.1']
        });
        const read = await test.client.get('/api/settings');
        expect(written).to.include({ status: 200, code: 0 });
        expect(written.data).to.equal(read.data);
        expect(written.headers['etag']).to.equal(read.headers['etag']);
        expect(
            (
                await test.client.get('/api/settings', {
                    headers: { 'if-none-match': String(read.headers['etag']) }
                })
            ).status
        ).to.equal(304);
        const one = await test.client.put('/api/settings/panel.accessTokenMinutes', { value: 26 });
        expect(one.data).to.equal((await test.client.get('/api/settings/panel.accessTokenMinutes')).data);
        expect(
            await test.client.put(
                '/api/settings',
                { 'panel.accessTokenMinutes': 1 },
                { headers: { 'if-match': String(read.headers['etag']) } }
            )
        ).to.include({ status: 412, code: 41200 });
        expect(
            await test.client.put('/api/settings/panel.accessTokenMinutes', { value: 1, version: 1 })
        ).to.include({ status: 412, code: 41200 });
        expect(
            await test.client.put('/api/settings/panel.accessTokenMinutes', { ...one.data, value: 27 })
        ).to.include({ status: 200 });
    });

    it('refuses a port that cannot be bound, with the words of the engine, and stores nothing', async () => {
        await test.client.post('/api/hosts', { domain: 'settings.example', upstream: '127.0.0.1:9' });
        const busy = createServer();
        await new Promise<void>((resolve) => busy.listen(0, '0.0.0.0', resolve));
        const { port } = busy.address() as { port: number };
        try {
            const before = (await test.client.get('/api/settings')).data as View[];
            const refused = await test.client.put('/api/settings', {
                'engine.httpPort': port,
                'panel.requireTotp': false
            });
            expect(refused).to.include({ status: 422, code: 42200 });
            expect(refused.data.reason).to.equal('ENGINE_REJECTED');
            expect((await test.client.get('/api/settings')).data).to.equal(before);
        } finally {
            await new Promise((resolve) => busy.close(resolve));
        }
        const free = await freePort();
        const moved = await test.client.put('/api/settings', { 'engine.httpPort': free });
        expect(moved).to.include({ status: 200 });
        expect(moved.headers['x-engine-reload']).to.equal('true');
        const answer = await fetch(`http://127.0.0.1:${free}/`);
        expect(answer.status).to.equal(404);
    });

    it('refuses bad bodies with every fault and changes nothing', async () => {
        const before = (await test.client.get('/api/settings')).data as View[];
        const answer = await test.client.put('/api/settings', {
            'panel.accessTokenMinutes': '30',
            'panel.unknown': 1,
            'panel.trustedProxies': ['x'],
            'server.ipv4': '999.1.1.1'
        });
        expect(answer).to.include({ status: 400, code: 40001 });
        expect((answer.data.errors as { path: string }[]).map(({ path }) => path)).to.include([
            'panel.accessTokenMinutes',
            'panel.unknown'
        ]);
        for (const body of [
            '[]',
            '"x"',
            '5',
            'null',
            '{"panel.requireTotp":1}',
            '{"panel.requireTotp":[true]}'
        ]) {
            const bad = await test.client.put('/api/settings', body);
            expect([bad.status, body === 'null' ? bad.status : Math.floor(bad.code / 100)], body).to.equal(
                body === 'null' ? [bad.status, bad.status] : [400, 400]
            );
        }
        for (const body of [
            { value: 0 },
            { value: '5' },
            { value: {} },
            { other: 1 },
            { value: 5, version: '1' }
        ]) {
            expect(await test.client.put('/api/settings/panel.stepUpMinutes', body)).to.include({
                status: 400,
                code: 40001
            });
        }
        expect(await test.client.put('/api/settings/nope', { value: 1 })).to.include({
            status: 404,
            code: 40400
        });
        expect((await test.client.get('/api/settings')).data).to.equal(before);
    });

    it('is for those who may, and detecting writes only what is public', async () => {
        const viewer = await test.tokenOf('viewer');
        expect((await test.client.get('/api/settings', { token: viewer })).status).to.equal(200);
        expect(
            await test.client.put('/api/settings', { 'panel.stepUpMinutes': 1 }, { token: viewer })
        ).to.include({ status: 403, code: 40300 });
        expect(
            await test.client.post('/api/settings/server-ip/detect', undefined, { token: viewer })
        ).to.include({ status: 403 });
        const detected = await test.client.post('/api/settings/server-ip/detect');
        expect(detected.status).to.equal(200);
        expect(detected.data.candidates).to.be.an.array();
        expect((await test.client.get('/api/settings/server.ipv4')).data.value).to.equal(detected.data.ipv4);
    });
});
