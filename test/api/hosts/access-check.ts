import { request } from 'node:http';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import fc from 'fast-check';

import { startPanel, type TestPanel } from '../../support/panel/panel.ts';
import { startUpstream, type TestUpstream } from '../../support/servers/upstream.ts';
import { until } from '../../support/until.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

let panel: TestPanel;
let upstream: TestUpstream;
let guardian: TestUpstream;

before(async () => {
    upstream = await startUpstream('up');
    guardian = await startUpstream('guardian', (_request, response) => {
        response.writeHead(401).end();
        return true;
    });
    panel = await startPanel();
});

after(async () => {
    await panel.close();
    await upstream.close();
    await guardian.close();
});

/** Comes from any address of the loopback network. */
function visit(
    host: string,
    from: string,
    user: { readonly name: string; readonly password: string } | null
): Promise<number> {
    return new Promise((resolve, reject) => {
        const headers = {
            host,
            ...(user === null
                ? {}
                : {
                      authorization: `Basic ${Buffer.from(`${user.name}:${user.password}`).toString('base64')}`
                  })
        };
        const sent = request(
            { host: '127.0.0.1', port: panel.httpPort, localAddress: from, path: '/', headers, agent: false },
            (answer) => {
                answer.resume();
                answer.once('end', () => resolve(answer.statusCode ?? 0));
            }
        );
        sent.once('error', reject);
        sent.end();
    });
}

const addresses = [
    '127.0.0.1',
    '127.0.0.2',
    '127.0.0.255',
    '127.0.1.0',
    '127.0.1.7',
    '127.3.0.1',
    '127.128.0.1',
    '127.255.255.254'
];
const range = fc.oneof(
    fc.constantFrom(...addresses),
    fc.tuple(fc.constantFrom(...addresses), fc.integer({ min: 8, max: 32 })).map(([address, bits]) => {
        const number = address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
        const network = bits === 32 ? number : Math.floor(number / 2 ** (32 - bits)) * 2 ** (32 - bits);
        return `${[24, 16, 8, 0].map((shift) => Math.floor(network / 2 ** shift) % 256).join('.')}/${bits}`;
    }),
    fc.constantFrom('::1', 'fd00::/8', '10.0.0.0/8')
);
const ranges = fc.uniqueArray(range, { maxLength: 3 });
const rules = fc.record({
    allow: ranges,
    deny: ranges,
    users: fc.subarray(['ann', 'bob']),
    maintenance: fc.boolean().map((on) => on),
    enabled: fc.constantFrom(true, true, true, false)
});
const user = fc.constantFrom(
    null,
    { name: 'ann', password: 'password of ann' },
    { name: 'ann', password: 'something else' },
    { name: 'cid', password: 'password of cid' }
);

describe('POST /api/hosts/{id}/access/check', () => {
    it('says what the engine does, whatever the rules and the visitor are', { timeout: 90_000 }, async () => {
        const cases = fc.sample(rules, { numRuns: 15, seed: 7 }).map((each, at) => ({
            ...each,
            maintenance: each.maintenance && at % 5 === 0,
            domain: `case${at}.test`
        }));
        // Made with their passwords one by one; what they would cost in loads is saved by holding them back.
        await panel.client.put('/api/settings', { 'engine.autoReload': false });
        const ids: number[] = [];
        for (const { domain, allow, deny, users, maintenance, enabled } of cases) {
            const { data, status, text } = await panel.client.post('/api/hosts', {
                domain,
                upstream: upstream.address,
                maintenance,
                enabled,
                access: {
                    allow,
                    deny,
                    basicAuth: users.map((username) => ({ username, password: `password of ${username}` }))
                }
            });
            expect([status, text]).to.equal([201, text]);
            ids.push(data.id as number);
        }
        await panel.client.put('/api/settings', { 'engine.autoReload': true });
        await panel.client.post('/api/proxyengine/reload');
        await until(
            async () => (await panel.client.get(`/api/hosts/${ids[0]}`)).data.state !== 'pending',
            'the hosts are served'
        );
        const visitors = fc.sample(fc.tuple(fc.constantFrom(...addresses), user), { numRuns: 200, seed: 11 });
        const outcomes = new Set<string>();
        for (const [at, [ip, as]] of visitors.entries()) {
            const index = at % cases.length;
            const { data } = await panel.client.post(`/api/hosts/${ids[index]}/access/check`, {
                ip,
                ...(as === null ? {} : { user: as.name, password: as.password })
            });
            const status = await visit(cases[index]?.domain ?? '', ip, as);
            const seen = JSON.stringify({ rules: cases[index], ip, as, steps: data.steps });
            expect([data.allowed === true ? 200 : data.status, seen]).to.equal([status, seen]);
            outcomes.add(`${status}`);
        }
        expect([...outcomes].sort()).to.equal(['200', '401', '403', '404', '503']);
    });

    it('leaves to another server what is its to say, and does not ask it', async () => {
        const { data: host } = await panel.client.post('/api/hosts', {
            domain: 'asked.test',
            upstream: upstream.address,
            access: { forwardAuth: { url: `http://${guardian.address}/verify` } }
        });
        const { data } = await panel.client.post(`/api/hosts/${host.id}/access/check`, { ip: '127.0.0.1' });
        expect([data.allowed, data.steps]).to.equal([
            null,
            [
                {
                    rule: 'forwardAuth',
                    outcome: 'asked',
                    evidence: `http://${guardian.address}/verify decides: a 2xx answer lets the request in. It was not asked`
                }
            ]
        ]);
        expect(guardian.count()).to.equal(0);
    });

    it('is no place to guess passwords for those who only read', async () => {
        const { data: host } = await panel.client.post('/api/hosts', {
            domain: 'guess.test',
            upstream: upstream.address,
            access: { basicAuth: [{ username: 'ann', password: 'password of ann' }] }
        });
        const token = await panel.tokenOf('viewer');
        const path = `/api/hosts/${host.id}/access/check`;
        const guess = await panel.client.post(
            path,
            { ip: '192.0.2.1', user: 'ann', password: 'password of ann' },
            { token }
        );
        expect([guess.code, guess.data.permission]).to.equal([40300, 'hosts:write']);
        const taken = await panel.client.post(path, { ip: '192.0.2.1', user: 'ann' }, { token });
        expect([taken.data.allowed, taken.data.steps[0].outcome]).to.equal([true, 'passed']);
        expect((await panel.client.post(path, { ip: '192.0.2.0/24' })).code).to.equal(40001);
        expect((await panel.client.post('/api/hosts/9999/access/check', { ip: '192.0.2.1' })).code).to.equal(
            40400
        );
    });
});
