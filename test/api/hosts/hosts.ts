import { request } from 'node:http';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import type { CheckItem } from '../../../core/src/features/hosts/checks/checklist.ts';
import type { Answer } from '../../support/panel/client.ts';
import { startPanel, type TestPanel } from '../../support/panel/panel.ts';
import { startUpstream, type TestUpstream } from '../../support/servers/upstream.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

let panel: TestPanel;
let upstream: TestUpstream;
let viewer = '';
let operator = '';

before(async () => {
    upstream = await startUpstream('up');
    panel = await startPanel();
    viewer = await panel.tokenOf('viewer');
    operator = await panel.tokenOf('operator');
});

after(async () => {
    await panel.close();
    await upstream.close();
});

/** Status of a site's answer through the engine. */
function visit(host: string): Promise<number> {
    return new Promise((resolve, reject) => {
        const sent = request(
            { host: '127.0.0.1', port: panel.httpPort, path: '/', headers: { host }, agent: false },
            (answer) => {
                answer.resume();
                answer.once('end', () => resolve(answer.statusCode ?? 0));
            }
        );
        sent.once('error', reject);
        sent.end();
    });
}

const bodyFor = (domain: string, more: object = {}): object => ({
    domain,
    upstream: upstream.address,
    ...more
});
const audited = async (): Promise<number> =>
    Number((await panel.client.get('/api/audit?limit=1')).data[0].id);
const paths = (answer: Answer): string[] =>
    (answer.data.errors as { path: string }[]).map(({ path }) => path);

describe('POST /api/hosts', () => {
    it('serves the host by the time of the answer, which is what GET then answers', async () => {
        expect(await visit('first.test')).to.equal(404);
        const made = await panel.client.post('/api/hosts', bodyFor('first.test'));
        expect([made.status, made.code, made.headers['x-engine-reload']]).to.equal([201, 0, 'true']);
        expect(await visit('first.test')).to.equal(200);
        const read = await panel.client.get(made.headers.location ?? '');
        expect(read.data).to.equal(made.data);
        expect([read.headers.etag, made.headers.etag]).to.equal(['"1"', '"1"']);
        const { data: entries } = await panel.client.get('/api/audit?resource=hosts&action=create');
        expect(entries[0]).to.include({ resourceId: made.data.id, outcome: 'success', status: 201 });
        expect(
            (await panel.client.get(made.headers.location ?? '', { headers: { 'if-none-match': '"1"' } }))
                .status
        ).to.equal(304);
    });

    it('acts once for one Idempotency-Key', async () => {
        const headers = { 'idempotency-key': 'same' };
        const [one, two] = [
            await panel.client.post('/api/hosts', bodyFor('once.test'), { headers }),
            await panel.client.post('/api/hosts', bodyFor('once.test'), { headers })
        ];
        expect(two.text).to.equal(one.text);
        expect([one.status, two.status, two.headers['x-engine-reload'], two.headers.location]).to.equal([
            201,
            201,
            one.headers['x-engine-reload'],
            one.headers.location
        ]);
        expect((await panel.client.post('/api/hosts', bodyFor('twice.test'), { headers })).code).to.equal(
            40902
        );
    });

    it('refuses what no field names, what is only read, and every wrong type, with 40001 and no change', async () => {
        const count = (await panel.client.get('/api/hosts')).data.length as number;
        for (const [field, value] of [
            ['id', 7],
            ['owner', 'x'],
            ['version', 1],
            ['state', 'applied'],
            ['role', 'admin'],
            ['constructor', 1],
            ['site', {}],
            ['basicAuth', []]
        ] as const) {
            const answer = await panel.client.post('/api/hosts', bodyFor('bad.test', { [field]: value }));
            expect([answer.code, ...paths(answer)], field).to.equal([40001, field]);
        }
        const fields = [
            'domain',
            'aliases',
            'type',
            'upstream',
            'upstreams',
            'ssl',
            'sslMode',
            'certificateId',
            'forceHttps',
            'hsts',
            'loadBalancing',
            'healthCheck',
            'locations',
            'headers',
            'access',
            'cors',
            'securityHeaders',
            'compression',
            'bodyLimitBytes',
            'timeouts',
            'errorPages',
            'maintenance',
            'redirect',
            'static',
            'php',
            'advanced',
            'tags',
            'notes',
            'enabled'
        ];
        const wrong = [
            'true',
            'x\u0000',
            -1,
            1.5,
            1e308,
            2 ** 53 + 2,
            [[]],
            [{}],
            [1],
            { a: 1 },
            { __proto__x: 1 },
            '{env.HOME}',
            '\ud800',
            'x'.repeat(20_000),
            [null],
            Array.from({ length: 1100 }, () => 'a.test')
        ];
        for (const field of fields) {
            for (const value of wrong) {
                const body = bodyFor('bad.test', { [field]: value });
                const answer = await panel.client.post('/api/hosts', body);
                if (answer.status === 201) {
                    // A value that fits the field after all.
                    expect(['notes', 'aliases', 'tags', 'domain']).to.include(field);
                    await panel.client.delete(`/api/hosts/${answer.data.id}`);
                    continue;
                }
                expect(
                    answer.status,
                    `${field}: ${JSON.stringify(value).slice(0, 60)} ${answer.text.slice(0, 200)}`
                ).to.equal(400);
            }
        }
        expect((await panel.client.get('/api/hosts')).data).to.have.length(count);
    });

    it("passes the engine's own message on, and keeps serving", async () => {
        const last = await audited();
        const answer = await panel.client.post(
            '/api/hosts',
            bodyFor('broken.test', { advanced: [{ handler: 'rate_limit' }] })
        );
        expect([answer.status, answer.code, answer.data.reason]).to.equal([422, 42200, 'ENGINE_REJECTED']);
        expect(answer.data.engine).to.contain('rate_limit');
        expect(await visit('first.test')).to.equal(200);
        expect(await visit('broken.test')).to.equal(404);
        const { data } = await panel.client.get('/api/audit?limit=1');
        expect(Number(data[0].id) > last).to.be.true();
        expect(data[0]).to.include({ outcome: 'failure', code: 42200 });
    });
});

describe('roles', () => {
    it('let a viewer read and try, an operator work, and only an admin reach the machine', async () => {
        const unsafe = bodyFor('unsafe.test', {
            advanced: [{ handler: 'headers', response: { set: { 'X-A': ['b'] } } }]
        });
        for (const [token, may] of [
            [viewer, []],
            [operator, ['hosts:write']]
        ] as const) {
            expect((await panel.client.get('/api/hosts/1', { token })).status).to.equal(200);
            expect(
                (await panel.client.post('/api/hosts/validate', bodyFor('tried.test'), { token })).data
            ).to.equal({ reload: false });
            const refused = await panel.client.post('/api/hosts', unsafe, { token });
            expect([refused.code, refused.data.permission]).to.equal([
                40300,
                may.length === 0 ? 'hosts:write' : 'hosts:unsafe'
            ]);
            expect(
                (await panel.client.post('/api/hosts/batch', { ids: [1], action: 'enable' }, { token }))
                    .status
            ).to.equal(may.length === 0 ? 403 : 200);
            expect((await panel.client.put('/api/hosts/1', {}, { token })).status).to.equal(
                may.length === 0 ? 403 : 200
            );
            expect((await panel.client.post('/api/hosts/validate', unsafe, { token })).code).to.equal(40300);
        }
        expect((await panel.client.get('/api/hosts', { token: null })).code).to.equal(40100);
        expect((await panel.client.post('/api/hosts', unsafe)).status).to.equal(201);
    });

    it('keep the data folder and the engine from an admin too', async () => {
        for (const body of [
            { domain: 'leak.test', type: 'static', static: { root: panel.config.dataDir } },
            { domain: 'leak.test', type: 'static', static: { root: join(panel.config.dataDir, 'keys') } },
            { domain: 'leak.test', upstream: `127.0.0.1:${panel.httpPort}` }
        ]) {
            expect((await panel.client.post('/api/hosts', body)).code).to.equal(40001);
        }
    });
});

describe('GET /api/hosts', () => {
    it('pages with Link and X-Total-Count, and answers 304 for the content that the client has', async () => {
        const first = await panel.client.get('/api/hosts?limit=1&sort=-domain');
        expect(first.data).to.have.length(1);
        expect(Number(first.headers['x-total-count']) > 1).to.be.true();
        const next = /<([^>]+)>; rel="next"/.exec(String(first.headers['link']))?.[1] ?? '';
        expect((await panel.client.get(next)).data[0].id).to.not.equal(first.data[0].id);
        const etag = first.headers.etag ?? '';
        expect(
            (
                await panel.client.get('/api/hosts?limit=1&sort=-domain', {
                    headers: { 'if-none-match': etag }
                })
            ).status
        ).to.equal(304);
        await panel.client.put('/api/hosts/1', { notes: `changed ${Date.now()}` });
        expect(
            (
                await panel.client.get('/api/hosts?limit=1&sort=-domain', {
                    headers: { 'if-none-match': etag }
                })
            ).status
        ).to.equal(200);
        for (const bad of [
            'limit=0',
            'limit=x',
            'sort=secret',
            'enabled=maybe',
            'cursor=x',
            'nope=1',
            'state=gone'
        ]) {
            expect((await panel.client.get(`/api/hosts?${bad}`)).code, bad).to.equal(40001);
        }
    });
});

describe('PUT /api/hosts/{id}', () => {
    it('lets one of two writers with the same If-Match win', async () => {
        const { data, headers } = await panel.client.post('/api/hosts', bodyFor('race.test'));
        const answers = await Promise.all(
            ['a', 'b'].map((notes) =>
                panel.client.put(
                    `/api/hosts/${data.id}`,
                    { notes },
                    { headers: { 'if-match': headers.etag ?? '' } }
                )
            )
        );
        expect(answers.map(({ status }) => status).sort()).to.equal([200, 412]);
        expect(answers.find(({ status }) => status === 412)?.data).to.include({
            reason: 'VERSION_STALE',
            version: 2
        });
    });

    it('switches a host off and on without a reload', async () => {
        const { data } = await panel.client.post('/api/hosts', bodyFor('switch.test'));
        const off = await panel.client.put(`/api/hosts/${data.id}`, { enabled: false });
        expect([off.headers['x-engine-reload'], off.data.state, await visit('switch.test')]).to.equal([
            'false',
            'disabled',
            404
        ]);
        const on = await panel.client.post('/api/hosts/batch', { ids: [data.id], action: 'enable' });
        expect([on.headers['x-engine-reload'], on.data[0].state, await visit('switch.test')]).to.equal([
            'false',
            'applied',
            200
        ]);
    });
});

describe('GET /api/hosts/{id}/check', () => {
    it('tries the host for real', async () => {
        const { data: host } = await panel.client.post(
            '/api/hosts',
            bodyFor('check.test', { ssl: true, sslMode: 'internal' })
        );
        const items = (await panel.client.get(`/api/hosts/${host.id}/check`)).data as CheckItem[];
        const found = new Map(items.map((item) => [item.id, item]));
        expect(found.get('engine'), JSON.stringify(items)).to.include({ ok: true });
        expect(found.get('certificate')).to.include({ ok: true });
        expect(found.get('certificate')?.evidence).to.match(/Caddy Local Authority.*valid until/);
        expect(found.get('upstream')).to.include({ ok: true });
        await panel.client.put(`/api/hosts/${host.id}`, { upstream: '127.0.0.1:1' });
        const broken = ((await panel.client.get(`/api/hosts/${host.id}/check`)).data as CheckItem[]).find(
            ({ id }) => id === 'upstream'
        );
        expect(broken).to.include({ ok: false });
        expect((await panel.client.get('/api/hosts/99999/check')).code).to.equal(40400);
    });
});

describe('odd addresses', () => {
    it('are 40400 or 40001, never a fault', async () => {
        for (const id of ['0', '-1', '1.5', 'x', '1e3', '99999999999999999999', '%00', '..%2f1', 'null']) {
            for (const path of [`/api/hosts/${id}`, `/api/hosts/${id}/preview`, `/api/hosts/${id}/check`]) {
                expect((await panel.client.get(path)).status, path).to.equal(404);
            }
        }
    });
});
