/** Credentials in header rules of hosts: they reach the upstream and an export's sealed box, and no reader. */
import { request } from 'node:http';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { startPanel, type TestPanel } from '../support/panel/panel.ts';
import { ended } from '../support/plugins/panel.ts';
import { type Received, startUpstream, type TestUpstream } from '../support/servers/upstream.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

const passphrase = 'a passphrase that is long enough';
const first = 'Bearer canary-first';
const second = 'canary-second';
const operations = [
    { op: 'set', name: 'Authorization', value: first },
    { op: 'add', name: 'X-Api-Key', value: second },
    { op: 'set', name: 'X-Plain', value: 'plain' }
];
const shown = operations.map(({ op, name, value }) =>
    name === 'X-Plain' ? { op, name, value } : { op, name }
);

describe('credentials in header rules', { timeout: 120_000 }, () => {
    let at: TestPanel;
    let upstream: TestUpstream;
    let other: TestUpstream;
    let operator = '';
    let url = '';

    before(async () => {
        [upstream, other] = [await startUpstream('up'), await startUpstream('other')];
        at = await startPanel();
        operator = await at.tokenOf('operator');
        const made = await at.client.post('/api/hosts', {
            domain: 'secret.test',
            upstream: upstream.address,
            headers: { request: operations }
        });
        expect(made.data.headers.request).to.equal(shown);
        url = `/api/hosts/${made.data.id}`;
    });
    after(async () => {
        await at.close();
        await Promise.all([upstream.close(), other.close()]);
    });

    /** The headers that the upstream got. */
    const visit = (panel: TestPanel, host = 'secret.test'): Promise<Received['headers']> =>
        new Promise((resolve, reject) => {
            request(
                { host: '127.0.0.1', port: panel.httpPort, headers: { host }, agent: false },
                (answer) => {
                    let text = '';
                    answer.on('data', (chunk: Buffer) => (text += chunk.toString()));
                    answer.once('end', () => resolve((JSON.parse(text) as Received).headers));
                }
            )
                .once('error', reject)
                .end();
        });
    const arrived = async (panel = at): Promise<unknown[]> => {
        const { authorization, 'x-api-key': key, 'x-plain': plain } = await visit(panel);
        return [authorization, key, plain];
    };

    it('reach the upstream, and stay when what was read is sent back, in another order or without headers', async () => {
        expect(await arrived()).to.equal([first, second, 'plain']);
        const { data: read } = await at.client.get(url);
        expect(read.headers.request).to.equal(shown);
        const back = await at.client.put(url, read);
        expect([back.status, back.data.version], 'nothing changed').to.equal([200, read.version]);
        const turned = await at.client.put(url, { headers: { request: [...shown].reverse() } });
        expect(turned.data.headers.request).to.equal([...shown].reverse());
        expect(await arrived()).to.equal([first, second, 'plain']);
        await at.client.put(url, { notes: 'n', compression: true });
        expect(await arrived()).to.equal([first, second, 'plain']);
        const changed = await at.client.put(url, {
            headers: { request: [{ ...operations[0], value: 'Bearer canary-new' }, shown[1], shown[2]] }
        });
        expect(changed.status).to.equal(200);
        expect(await arrived()).to.equal(['Bearer canary-new', second, 'plain']);
        await at.client.put(url, { headers: { request: operations } });
    });

    it('are required where there is none to keep', async () => {
        const answer = await at.client.put(url, {
            headers: { request: [...shown, { op: 'set', name: 'X-Token' }] }
        });
        expect([answer.code, answer.data.errors[0].path]).to.equal([40001, 'headers.request.3.value']);
        const made = await at.client.post('/api/hosts', {
            domain: 'none.test',
            upstream: upstream.address,
            headers: { request: [shown[0]] }
        });
        expect([made.code, made.data.errors[0].path]).to.equal([40001, 'headers.request.0.value']);
    });

    it('are not had sent to another server by an operator', async () => {
        for (const change of [
            { upstream: other.address },
            { upstreams: [{ address: upstream.address }, { address: other.address }] },
            { locations: [{ path: '/x', upstream: other.address }] },
            { upstream: other.address, headers: { request: shown } }
        ]) {
            const answer = await at.client.put(url, change, { token: operator });
            expect([answer.code, answer.data.errors[0].path], JSON.stringify(change)).to.equal([
                40001,
                'headers.request'
            ]);
        }
        const told = await at.client.put(
            url,
            { upstream: other.address, headers: { request: operations } },
            { token: operator }
        );
        expect(told.status, 'who knows them may').to.equal(200);
        expect((await at.client.put(url, { upstream: upstream.address })).status, 'and an admin').to.equal(
            200
        );
    });

    it('go with a clone, and come back with a revision', async () => {
        const clone = await at.client.post(`${url}/clone`, { domain: 'clone.test' });
        expect(clone.data.headers.request).to.equal(shown);
        expect((await visit(at, 'clone.test')).authorization).to.equal(first);
        const { data: revisions } = await at.client.get('/api/proxyengine/revisions?limit=1');
        await at.client.put(url, { headers: null });
        expect((await arrived())[0]).to.be.undefined();
        const restored = await at.client.post(`/api/proxyengine/revisions/${revisions[0].number}/restore`);
        expect(restored.status).to.equal(200);
        expect(await arrived()).to.equal([first, second, 'plain']);
    });

    it('travel in the sealed box alone, and without it those of the panel stay', async () => {
        const plain = await at.client.get('/api/import-export/export');
        const sealed = await at.client.post('/api/import-export/export', { passphrase });
        expect(plain.text).to.not.include('canary');
        expect(sealed.text).to.not.include('canary');
        const target = await startPanel();
        try {
            const take = async (document: unknown, more: object): Promise<unknown> => {
                const accepted = await target.client.post('/api/import-export/import', {
                    document,
                    mode: 'merge',
                    dryRun: false,
                    ...more
                });
                const { state, result, error } = await ended(target.client, accepted);
                expect(state, JSON.stringify(error)).to.equal('succeeded');
                return JSON.stringify(result);
            };
            expect(await take(plain.data, {})).to.include('Authorization, X-Api-Key left out');
            expect(await arrived(target)).to.equal([undefined, undefined, 'plain']);
            for (const [document, more] of [
                [sealed.data, { passphrase }],
                [plain.data, {}]
            ]) {
                await take(document, more as object);
                expect(await arrived(target)).to.equal([first, second, 'plain']);
            }
        } finally {
            await target.close();
        }
    });

    it('are in no answer, audit entry, event or line of the log', async () => {
        const paths = [url, '/api/hosts', '/api/audit?limit=500', '/api/proxyengine/revisions', '/api/tasks'];
        for (const token of [await at.tokenOf('viewer'), operator]) {
            for (const path of [...paths, '/api/proxyengine/config', `${url}/preview`]) {
                expect((await at.client.get(path, { token })).text, path).to.not.include('canary-');
            }
        }
        for (const path of paths) {
            expect((await at.client.get(path)).text, path).to.not.include('canary-');
        }
        expect(at.lines.join('')).to.not.include('canary-');
    });
});
