import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { blocksOf, checkedRows, readPage } from '../support/docs/markdown.ts';
import { type Answer, Client } from '../support/panel/client.ts';
import { startPanel, type TestPanel } from '../support/panel/panel.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const page = readPage('docs/hosts.md');

describe('docs/hosts.md', { timeout: 60_000 }, () => {
    let panel: TestPanel;
    let folder: string;

    before({ timeout: 120_000 }, async () => {
        panel = await startPanel();
        folder = mkdtempSync(join(tmpdir(), 'portico-docs-'));
        chmodSync(folder, 0o755);
        for (const name of ['www', 'blog']) {
            mkdirSync(join(folder, name));
            writeFileSync(join(folder, name, 'index.html'), 'from a file\n');
        }
    });

    after({ timeout: 120_000 }, async () => {
        await panel?.close();
        rmSync(folder, { recursive: true });
    });

    it('shows hosts that the engine takes and serves as they are', async () => {
        const bodies = blocksOf(page)
            .filter(({ name }) => name === 'host')
            .map(({ text }) => JSON.parse(text.replaceAll('/srv', folder)) as Record<string, unknown>);
        expect(bodies.length).to.be.above(6);
        for (const body of bodies) {
            const { status, data, text } = await panel.client.post('/api/hosts', body);
            expect(status, text).to.equal(201);
            expect(data).to.include({ domain: body['domain'], state: 'applied', stateMessage: null });
        }
        const answer = await fetchHost(panel.httpPort, 'files.example');
        expect(answer).to.equal('from a file\n');
    });

    it('says truly what costs a reload', async () => {
        let id = 0;
        const put = (body: object): Promise<Answer> => panel.client.put(`/api/hosts/${id}`, body);
        const post = (body: object): Promise<Answer> => panel.client.post('/api/hosts', body);
        const first = await post({
            domain: 'cost.test',
            upstream: '127.0.0.1:9',
            headers: { response: [{ op: 'set', name: 'X-Cost', value: '1' }] }
        });
        id = first.data.id as number;
        const other = {
            domain: 'other.test',
            upstream: '127.0.0.1:10',
            headers: first.data.headers as object
        };
        const changes: Readonly<Record<string, () => Promise<readonly Answer[]>>> = {
            'a host that behaves like one that is there': async () => [await post(other)],
            'another address of its only upstream': async () => [await put({ upstream: '127.0.0.1:11' })],
            '`enabled` off and on': async () => [await put({ enabled: false }), await put({ enabled: true })],
            '`maintenance` on and off': async () => [
                await put({ maintenance: true }),
                await put({ maintenance: false })
            ],
            'another name, a further alias': async () => [
                await put({ domain: 'price.test' }),
                await put({ aliases: ['cost.test'] })
            ],
            '`tags`, `notes`': async () => [await put({ tags: ['a'], notes: 'b' })],
            'removing a host': async () => [await panel.client.delete(`/api/hosts/${id + 1}`)],
            'the first host of a new behaviour': async () => [
                await post({ domain: 'new.test', upstream: '127.0.0.1:9', bodyLimitBytes: 123_456 })
            ],
            'a second upstream, or a change in a list of several': async () => [
                await put({ upstreams: [{ address: '127.0.0.1:9' }, { address: '127.0.0.1:10' }] }),
                await put({ upstreams: [{ address: '127.0.0.1:9' }, { address: '127.0.0.1:12' }] })
            ],
            'a header, a limit, a password, a location: another behaviour': async () => [
                await put({ headers: { request: [{ op: 'set', name: 'X-Cost', value: '2' }] } }),
                await put({ bodyLimitBytes: 654_321 }),
                await put({ access: { basicAuth: [{ username: 'anna', password: 'a narrow pier' }] } }),
                await put({ locations: [{ path: '/x', upstream: '127.0.0.1:9' }] })
            ],
            'the first name with `sslMode` `internal`': async () => [
                await post({
                    domain: 'tls.test',
                    upstream: '127.0.0.1:9',
                    ssl: true,
                    forceHttps: false,
                    sslMode: 'internal'
                })
            ]
        };
        const rows = checkedRows(page, 'costs');
        expect(rows.map(([change]) => change)).to.equal(Object.keys(changes));
        for (const [change = '', reload] of rows) {
            for (const { status, headers, text } of (await changes[change]?.()) ?? []) {
                expect([change, status < 300 ? status : text, headers['x-engine-reload']]).to.equal([
                    change,
                    status,
                    String(reload === 'yes')
                ]);
            }
        }
    });
});

async function fetchHost(port: number, host: string): Promise<string> {
    return (await new Client(port).get('/', { token: null, headers: { host } })).text;
}
