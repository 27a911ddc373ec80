import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { startPanel, type TestPanel } from '../../support/panel/panel.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

interface Entry {
    readonly id: number;
    readonly at: string;
    readonly action: string;
    readonly resource: string;
    readonly resourceId: string | number | null;
    readonly requestId: string;
    readonly code: number;
    readonly changes: { readonly before: unknown; readonly after: unknown } | null;
}

describe('GET /api/audit', () => {
    let test: TestPanel;

    before(async () => {
        test = await startPanel();
    });

    after(() => test.close());

    const entries = async (query = ''): Promise<Entry[]> =>
        (await test.client.get(`/api/audit${query}`)).data as Entry[];

    it('has an entry for a change, with who, what and under which request id', async () => {
        const { headers } = await test.client.call('PUT', '/api/settings', {
            body: { 'panel.stepUpMinutes': 20 },
            headers: { 'x-request-id': 'audit-test-1' }
        });
        expect(headers['x-request-id']).to.equal('audit-test-1');
        const [entry] = await entries('?resource=settings&action=update');
        expect(entry).to.include({
            resourceId: 'panel.stepUpMinutes',
            outcome: 'success',
            status: 200,
            code: 0,
            requestId: 'audit-test-1',
            ip: '127.0.0.1',
            changes: { before: { 'panel.stepUpMinutes': 15 }, after: { 'panel.stepUpMinutes': 20 } }
        });
        expect((await test.client.get(`/api/audit/${entry?.id ?? 0}`)).data).to.equal(entry);
        expect(await entries('?q=audit-test-1')).to.equal([entry]);
    });

    it('pages by the Link header without a gap or a repetition while entries are added', async () => {
        for (let index = 0; index < 12; index += 1) {
            await test.client.call('PUT', '/api/settings/panel.stepUpMinutes', {
                body: { value: 30 + index }
            });
        }
        const seen: number[] = [];
        let path: string | undefined = '/api/audit?limit=5&resource=settings';
        while (path !== undefined) {
            const page: Awaited<ReturnType<typeof test.client.get>> = await test.client.get(path);
            expect(page.status).to.equal(200);
            seen.push(...(page.data as Entry[]).map(({ id }) => id));
            path = /<([^>]+)>; rel="next"/.exec(String(page.headers['link'] ?? ''))?.[1];
            await test.client.call('PUT', '/api/settings/panel.stepUpMinutes', {
                body: { value: 50 + seen.length }
            });
        }
        expect(seen).to.equal([...seen].sort((a, b) => b - a));
        expect(new Set(seen).size).to.equal(seen.length);
        expect(seen.length).to.be.at.least(12);
        expect(Number((await test.client.get('/api/audit')).headers['x-total-count'])).to.equal(
            (await entries('?limit=1'))[0]?.id ?? 0
        );
    });

    it('refuses what is not a filter, a limit, a time or a cursor', async () => {
        for (const query of [
            'limit=0',
            'limit=501',
            'limit=x',
            'cursor=nope',
            `cursor=${Buffer.from('audit 0').toString('base64url')}`,
            'from=yesterday',
            'outcome=maybe',
            'unknown=1',
            'action=a&action=b',
            `q=${'x'.repeat(201)}`
        ]) {
            const answer = await test.client.get(`/api/audit?${query}`);
            expect(answer, query).to.include({ status: 400, code: 40001 });
        }
        for (const id of ['0', '-1', '1.5', 'x', '99999999', '9007199254740993']) {
            expect(await test.client.get(`/api/audit/${id}`), id).to.include({ status: 404, code: 40400 });
        }
    });

    it('records refusals: without a token, with a wrong one, and without the permission', async () => {
        const viewer = await test.tokenOf('viewer', 'audit-viewer');
        await test.client.get('/api/audit', { token: null });
        await test.client.get('/api/audit', { token: 'nonsense' });
        expect(
            await test.client.call('PUT', '/api/settings', {
                token: viewer,
                body: { 'panel.stepUpMinutes': 1 }
            })
        ).to.include({ status: 403, code: 40300 });
        expect((await test.client.get('/api/audit?limit=1', { token: viewer })).status).to.equal(200);
        const failures = await entries('?outcome=failure');
        const codes = failures.map((entry) => entry.code);
        expect(codes).to.include([40100, 40101, 40300]);
        expect((await entries('?actor=audit-viewer&outcome=failure'))[0]).to.include({
            code: 40300,
            status: 403
        });
    });

    it('verifies, and exports every entry as one line of JSON, oldest first', async () => {
        const verified = await test.client.get('/api/audit/verify');
        expect(verified.data).to.include({ holds: true, first: 1, break: null });
        const answer = await test.client.get('/api/audit/export');
        expect(answer.status).to.equal(200);
        expect(answer.headers['content-type']).to.equal('application/x-ndjson');
        const lines = answer.text
            .trimEnd()
            .split('\n')
            .map((line) => JSON.parse(line) as Entry);
        expect(lines.map(({ id }) => id)).to.equal(
            Array.from({ length: lines.length }, (_, index) => index + 1)
        );
        expect(lines.length).to.be.at.least(verified.data.entries as number);
        const some = await test.client.get('/api/audit/export?resource=settings&action=update');
        expect(
            some.text
                .trimEnd()
                .split('\n')
                .map((line) => JSON.parse(line) as Entry)
                .every(({ resource }) => resource === 'settings')
        ).to.be.true();
    });

    it('does not show secrets of a change', async () => {
        await test.client.call('PUT', '/api/settings', {
            body: { 'engine.acmeEab': { keyId: 'kid', macKey: 'canary-mac-key' } }
        });
        const [entry] = await entries('?resource=settings&limit=1');
        expect(entry).to.include({ resourceId: 'engine.acmeEab' });
        expect((await test.client.get('/api/audit/export')).text).not.to.contain('canary');
    });
});
