/** Section 1 of the contract, sentence by sentence, from the outside. */
import { connect } from 'node:net';
import { isDeepStrictEqual } from 'node:util';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import type { Answer } from '../support/panel/client.ts';
import { type Consumer, faultsOf, outcome, startConsumer } from '../support/panel/consumer.ts';
import { createPanelProcess } from '../support/panel/process.ts';
import { startUpstream, type TestUpstream } from '../support/servers/upstream.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

let panel: Consumer;
let upstream: TestUpstream;
let host = '';

before(async () => {
    upstream = await startUpstream('up');
    panel = await startConsumer();
    const made = await panel.client.post('/api/hosts', {
        domain: 'conventions.test',
        upstream: upstream.address,
        notes: 'kept',
        tags: ['b', 'a']
    });
    host = made.headers.location ?? '';
});

after(async () => {
    await panel?.close();
    await upstream?.close();
});

/** Sends bytes that no HTTP library would, and gives what came back. */
const raw = (text: string): Promise<string> =>
    new Promise((resolve, reject) => {
        let got = '';
        const socket = connect(panel.port, '127.0.0.1', () => socket.write(text));
        socket.setTimeout(5_000, () => socket.destroy(new Error('nothing came')));
        socket.on('data', (chunk) => {
            got += String(chunk);
        });
        socket.once('error', reject);
        socket.once('close', () => resolve(got));
    });

const alwaysThere = {
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'"
};

describe('text with a NUL', () => {
    it('is refused in every query and body, and names nothing in a path', async () => {
        const before = (await panel.client.get('/api/hosts')).text;
        for (const path of [
            '/api/users?q=%00',
            '/api/hosts?q=a%00b',
            '/api/audit?actor=%00',
            '/api/tasks?kind=%00'
        ]) {
            const answer = await panel.client.get(path);
            expect(outcome(answer), path).to.equal([400, 40001, 'VALIDATION_FAILED']);
        }
        const body = await panel.client.post('/api/hosts', {
            domain: 'nul.test',
            upstream: upstream.address,
            tags: ['fine', 'a\0b']
        });
        expect(outcome(body)).to.equal([400, 40001, 'VALIDATION_FAILED']);
        expect(faultsOf(body)).to.equal(['tags.1']);
        const key = await panel.client.put('/api/settings', { 'panel.\0url': null });
        expect(outcome(key)).to.equal([400, 40001, 'VALIDATION_FAILED']);
        expect(outcome(await panel.client.get('/api/users/roles/a%00b'))).to.equal([404, 40400, 'NOT_FOUND']);
        expect((await panel.client.get('/api/hosts')).text).to.equal(before);
    });
});

describe('bodies', () => {
    it('are JSON objects in UTF-8, and nothing else', async () => {
        const before = (await panel.client.get('/api/hosts')).text;
        const json = { 'content-type': 'application/json' };
        const cases: [string | Buffer, Record<string, string>, number, string][] = [
            ['{"domain":', json, 40000, 'BAD_REQUEST'],
            ['[]', json, 40000, 'BAD_REQUEST'],
            ['null', json, 40000, 'BAD_REQUEST'],
            ['"text"', json, 40000, 'BAD_REQUEST'],
            ['{"domain":"a.test","domain":"b.test"}', json, 40000, 'BAD_REQUEST'],
            ['{"__proto__":{"a":1}}', json, 40000, 'BAD_REQUEST'],
            ['{"a":'.repeat(100) + '1' + '}'.repeat(100), json, 40000, 'BAD_REQUEST'],
            [Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), json, 40000, 'BAD_REQUEST'],
            ['', json, 40001, 'VALIDATION_FAILED'],
            ['{}', { 'content-type': 'application/json; charset=UTF-8' }, 40001, 'VALIDATION_FAILED'],
            ['{}', { 'content-type': 'text/plain' }, 41500, 'UNSUPPORTED_MEDIA_TYPE'],
            ['{}', { 'content-type': 'application/json; charset=latin1' }, 41500, 'UNSUPPORTED_MEDIA_TYPE'],
            ['{}', { ...json, 'content-encoding': 'gzip' }, 41500, 'UNSUPPORTED_MEDIA_TYPE'],
            [`{"notes":"${'x'.repeat(1024 * 1024)}"}`, json, 41300, 'PAYLOAD_TOO_LARGE']
        ];
        for (const [body, headers, code, reason] of cases) {
            const answer = await panel.client.post('/api/hosts', body, { headers });
            expect(outcome(answer), String(body).slice(0, 40)).to.equal([
                Math.floor(code / 100),
                code,
                reason
            ]);
        }
        expect((await panel.client.get('/api/hosts')).text).to.equal(before);
    });

    it('are held against the fields: nothing unknown, nothing coerced, every fault at once and each once', async () => {
        const answer = await panel.client.post('/api/hosts', {
            domain: 5,
            ssl: 'true',
            type: 7,
            nope: 1,
            tags: [1],
            redirect: {}
        });
        expect(outcome(answer)).to.equal([400, 40001, 'VALIDATION_FAILED']);
        expect(faultsOf(answer).sort()).to.equal(['domain', 'nope', 'redirect.to', 'ssl', 'tags.0', 'type']);
        expect(answer.message).to.endWith('domain must be a string, and 5 more');
        const one = await panel.client.post('/api/hosts', { domain: 'one.test', upstream: 'without-port' });
        expect(one.data.errors).to.equal([
            { path: 'upstream', message: 'upstream needs a port, as in backend:8080' }
        ]);
        expect(one.message).to.endWith('upstream needs a port, as in backend:8080');
    });

    it('never come back in what is said about them', async () => {
        const answer = await panel.client.post('/api/users', {
            username: 'not a name',
            password: 'four words of mine',
            role: 'viewer'
        });
        expect(faultsOf(answer)).to.equal(['username']);
        expect(answer.text).not.to.contain('not a name').and.not.to.contain('four words');
        expect(answer.data.errors[0].message).to.contain('3 to 64');
    });
});

describe('queries and ids', () => {
    it('are refused when they are unknown, doubled or out of range', async () => {
        for (const query of [
            'nope=1',
            'q=1&q=2',
            'limit=0',
            'limit=abc',
            'limit=1.5',
            'limit=1001',
            'cursor=xx',
            'sort=nope',
            'state=nope',
            'enabled=1'
        ]) {
            const answer = await panel.client.get(`/api/hosts?${query}`);
            expect(outcome(answer), query).to.equal([400, 40001, 'VALIDATION_FAILED']);
            expect(faultsOf(answer), query).to.equal([query.split('=')[0]]);
        }
    });

    it('that cannot exist are 40400, whatever the verb', async () => {
        for (const id of ['999', 'abc', '0', '-1', '1.5', '99999999999999999999', '%2e%2e', '%00']) {
            for (const method of ['GET', 'PUT', 'DELETE']) {
                expect(
                    outcome(
                        await panel.client.call(
                            method,
                            `/api/hosts/${id}`,
                            method === 'PUT' ? { body: {} } : {}
                        )
                    ),
                    `${method} ${id}`
                ).to.equal([404, 40400, 'NOT_FOUND']);
            }
        }
        expect(outcome(await panel.client.get('/api/hosts/%'))).to.equal([400, 40000, 'BAD_REQUEST']);
    });

    it('leave no second spelling of a path', async () => {
        for (const path of ['/api', '/nope', '/api/nope', '/api/hosts/', '/api//hosts', '/api/Hosts']) {
            expect(outcome(await panel.client.get(path)), path).to.equal([404, 40400, 'NOT_FOUND']);
        }
        for (const method of ['PATCH', 'TRACE', 'PROPFIND']) {
            expect(outcome(await panel.client.call(method, '/api/hosts')), method).to.equal([
                404,
                40400,
                'NOT_FOUND'
            ]);
        }
    });
});

describe('answers', () => {
    it('carry the same headers, whatever they say', async () => {
        for (const answer of [
            await panel.client.get(host),
            await panel.client.get('/api/nope'),
            await panel.client.get('/api/hosts', { token: null }),
            await panel.client.get('/api/auth/login'),
            await panel.client.post('/api/hosts', {})
        ]) {
            expect(answer.headers).to.include(alwaysThere);
            expect(answer.headers['x-request-id']).to.match(/^[\w-]{36}$/);
        }
        expect((await panel.client.get('/api/hosts', { token: null })).headers['www-authenticate']).to.equal(
            'Bearer'
        );
    });

    it('keep a request id that is one', async () => {
        for (const [sent, kept] of [
            ['mine-1.2_3', true],
            ['a', true],
            ['with space', false],
            ['<script>', false],
            ['x'.repeat(65), false]
        ] as const) {
            const { headers } = await panel.client.get('/api/hosts', { headers: { 'x-request-id': sent } });
            expect(headers['x-request-id'] === sent, sent).to.equal(kept);
        }
    });

    it('are whole: no range is cut out of an envelope', async () => {
        const answer = await panel.client.get(host, { headers: { range: 'bytes=0-5' } });
        expect([
            answer.status,
            answer.code,
            answer.headers['content-range'],
            answer.headers['accept-ranges']
        ]).to.equal([200, 0, undefined, undefined]);
    });

    it('to HEAD have the headers of GET and no body', async () => {
        const read = await panel.client.get(host);
        const head = await panel.client.call('HEAD', host);
        expect([head.status, head.text, head.headers.etag, head.headers['content-length']]).to.equal([
            200,
            '',
            read.headers.etag,
            read.headers['content-length']
        ]);
        expect((await panel.client.call('HEAD', '/api/hosts/999')).status).to.equal(404);
        expect((await panel.client.call('HEAD', host, { token: null })).status).to.equal(401);
    });

    it('let no other origin in', async () => {
        const evil = { origin: 'https://evil.example' };
        for (const answer of [
            await panel.client.get('/api/hosts', { headers: evil }),
            await panel.client.call('OPTIONS', '/api/hosts', {
                headers: { ...evil, 'access-control-request-method': 'POST' }
            })
        ]) {
            expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control-'))).to.equal(
                []
            );
        }
        await panel.client.put('/api/settings', { 'panel.corsOrigins': ['https://panel.example'] });
        expect(
            (await panel.client.get('/api/hosts', { headers: { origin: 'https://panel.example' } })).headers[
                'access-control-allow-origin'
            ]
        ).to.equal('https://panel.example');
        expect(
            (await panel.client.get('/api/hosts', { headers: evil })).headers['access-control-allow-origin']
        ).to.be.undefined();
        await panel.client.put('/api/settings', { 'panel.corsOrigins': null });
    });

    it('to what is hardly HTTP are envelopes with the same headers', async () => {
        for (const [sent, message] of [
            [
                `GET /api/hosts HTTP/1.1\r\nHost: x\r\nbig: ${'x'.repeat(30_000)}\r\n\r\n`,
                'The headers are larger than 16384 bytes'
            ],
            ['GET /api/hosts HTTP/1.1\r\nConnection: close\r\n\r\n', 'The header Host is missing'],
            [
                'GET /api/tasks/1/events HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
                'The header Host is missing'
            ],
            [
                'POST /api/hosts HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n',
                'This is not an HTTP request'
            ],
            ['NONSENSE\r\n\r\n', 'This is not an HTTP request']
        ] as const) {
            const got = await raw(sent);
            expect(got, message).to.startWith('HTTP/1.1 400 ');
            expect(got).to.contain(JSON.stringify({ code: 40000, message, data: { reason: 'BAD_REQUEST' } }));
            for (const [name, value] of Object.entries(alwaysThere)) {
                expect(got.toLowerCase(), `${message}: ${name}`).to.contain(
                    `${name}: ${value}`.toLowerCase()
                );
            }
            expect(got.toLowerCase()).to.match(/\r\nx-request-id: [\w-]{36}\r\n/);
        }
    });

    it('of the two health routes need no token', async () => {
        for (const path of ['/healthz', '/readyz']) {
            expect((await panel.client.get(path, { token: null })).status).to.equal(200);
        }
    });
});

describe('PUT', () => {
    it('merges one level deep: what is not sent stays, null clears, arrays are replaced', async () => {
        const made = await panel.client.post('/api/hosts', {
            domain: 'merge.test',
            upstream: upstream.address,
            notes: 'kept',
            tags: ['b', 'a'],
            compression: true,
            timeouts: { readSeconds: 5 }
        });
        const path = made.headers.location ?? '';
        const { data } = await panel.client.put(path, { tags: ['c'], timeouts: { connectSeconds: 2 } });
        expect([data.notes, data.tags, data.compression, data.timeouts]).to.equal([
            'kept',
            ['c'],
            true,
            { connectSeconds: 2, readSeconds: null, writeSeconds: null }
        ]);
        const fresh = await panel.client.post('/api/hosts', {
            domain: 'fresh.test',
            upstream: upstream.address
        });
        const writable = Object.keys(fresh.data as object).filter(
            (name) =>
                ![
                    'id',
                    'domain',
                    'upstream',
                    'upstreams',
                    'owner',
                    'version',
                    'createdAt',
                    'updatedAt',
                    'state',
                    'stateMessage'
                ].includes(name)
        );
        const cleared = await panel.client.put(
            path,
            Object.fromEntries(writable.map((name) => [name, null]))
        );
        expect(cleared.status, cleared.text).to.equal(200);
        for (const name of writable) {
            expect(cleared.data[name], name).to.equal(fresh.data[name]);
        }
        expect(outcome(await panel.client.put(path, { domain: null }))).to.equal([
            400,
            40001,
            'VALIDATION_FAILED'
        ]);
        expect(outcome(await panel.client.put(path, { upstream: null }))).to.equal([
            400,
            40001,
            'VALIDATION_FAILED'
        ]);
    });

    it('takes back what it read, and counts nothing up by that', async () => {
        const read = await panel.client.get(host);
        const put = await panel.client.put(host, read.data);
        expect(put.data).to.equal(read.data);
        expect(
            (
                await panel.client.put(host, {
                    id: 99,
                    createdAt: 'x',
                    owner: 'p',
                    state: 'error',
                    stateMessage: 'x',
                    updatedAt: null
                })
            ).data
        ).to.equal(read.data);
        expect((await panel.client.put(host, {})).data).to.equal(read.data);
    });

    it('refuses a stale version, sent either way, with the present one', async () => {
        const {
            data: { version }
        } = await panel.client.get(host);
        for (const answer of [
            await panel.client.put(host, { notes: 'stale', version: version + 1 }),
            await panel.client.put(host, { notes: 'stale' }, { headers: { 'if-match': `"${version + 1}"` } }),
            await panel.client.put(host, { notes: 'stale' }, { headers: { 'if-match': `W/"${version}"` } }),
            await panel.client.delete(host, { headers: { 'if-match': '"999"' } })
        ]) {
            expect(outcome(answer)).to.equal([412, 41200, 'VERSION_STALE']);
            expect(answer.data.version).to.equal(version);
        }
        const done = await panel.client.put(
            host,
            { notes: 'fresh', version },
            { headers: { 'if-match': `"${version}"` } }
        );
        expect([done.status, done.data.version, done.headers.etag]).to.equal([
            200,
            version + 1,
            `"${version + 1}"`
        ]);
        expect(
            (await panel.client.put(host, { notes: 'fresher' }, { headers: { 'if-match': '*' } })).status
        ).to.equal(200);
    });
});

describe('every single object', () => {
    it('is answered by a write as the next GET reads it, with its version as ETag', async () => {
        const writes: [string, object, object][] = [
            [
                '/api/hosts',
                {
                    domain: 'fidelity.test',
                    upstream: upstream.address,
                    headers: { response: [{ op: 'set', name: 'X-A', value: '1' }] }
                },
                { notes: 'n' }
            ],
            [
                '/api/users',
                { username: 'fidelity', password: 'fidelity over the sea', role: 'viewer' },
                { role: 'operator' }
            ],
            [
                '/api/users/roles',
                { name: 'fidelity', permissions: ['hosts:read'] },
                { permissions: ['hosts:read', 'audit:read'] }
            ]
        ];
        for (const [list, body, change] of writes) {
            const made = await panel.client.post(list, body);
            const path = made.headers.location ?? '';
            expect([made.status, path.startsWith(list)], made.text).to.equal([201, true]);
            for (const step of ['made', 'changed']) {
                const write = step === 'made' ? made : await panel.client.put(path, change);
                const read = await panel.client.get(path);
                expect(JSON.stringify(read.data), list).to.equal(JSON.stringify(write.data));
                expect([read.headers.etag, write.headers.etag]).to.equal([
                    `"${read.data.version}"`,
                    `"${read.data.version}"`
                ]);
                expect(
                    (await panel.client.get(path, { headers: { 'if-none-match': read.headers.etag ?? '' } }))
                        .status
                ).to.equal(304);
                for (const name of ['createdAt', 'updatedAt']) {
                    expect(read.data[name]).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
                }
            }
            const removed = await panel.client.delete(path);
            expect([removed.status, removed.code, removed.data]).to.equal([200, 0, null]);
            expect(outcome(await panel.client.get(path))).to.equal([404, 40400, 'NOT_FOUND']);
        }
    });
});

describe('lists', () => {
    it('are paged by an opaque cursor that stays right while rows are added', async () => {
        for (let number = 0; number < 4; number += 1) {
            await panel.client.post('/api/hosts', {
                domain: `page${number}.test`,
                upstream: upstream.address,
                tags: ['paged']
            });
        }
        const seen: string[] = [];
        let url = '/api/hosts?tag=paged&limit=2&sort=-domain';
        for (let page = 0; url !== ''; page += 1) {
            const answer = await panel.client.get(url);
            expect((answer.data as object[]).length <= 2).to.be.true();
            seen.push(...(answer.data as { domain: string }[]).map(({ domain }) => domain));
            url = /^<([^>]+)>; rel="next"$/.exec(String(answer.headers.link ?? ''))?.[1] ?? '';
            if (page === 0) {
                expect(answer.headers['x-total-count']).to.equal('4');
                await panel.client.post('/api/hosts', {
                    domain: 'page9.test',
                    upstream: upstream.address,
                    tags: ['paged']
                });
            }
        }
        expect(seen).to.equal(['page3.test', 'page2.test', 'page1.test', 'page0.test']);
    });

    it('carry an ETag of what they say', async () => {
        for (const url of [
            '/api/hosts',
            '/api/hosts?tag=paged&limit=2',
            '/api/users',
            '/api/users/roles',
            '/api/settings',
            '/api/tasks',
            '/api/certificates',
            '/api/auth/tokens',
            '/api/proxyengine/revisions',
            '/api/proxyengine/upstreams'
        ]) {
            const {
                headers: { etag = '' }
            } = await panel.client.get(url);
            expect(etag, url).to.match(/^"[^"]+"$/);
            const again = await panel.client.get(url, { headers: { 'if-none-match': `"other", ${etag}` } });
            expect([again.status, again.text, again.headers.etag], url).to.equal([304, '', etag]);
        }
        const {
            headers: { etag = '' }
        } = await panel.client.get('/api/hosts?tag=paged');
        const first = (await panel.client.get('/api/hosts?tag=paged')).data[0];
        await panel.client.put(`/api/hosts/${first.id}`, { notes: 'another content' });
        expect(
            (await panel.client.get('/api/hosts?tag=paged', { headers: { 'if-none-match': etag } })).status
        ).to.equal(200);
    });
});

describe('Idempotency-Key', () => {
    it('replays the first answer, whole, and refuses another request with it', async () => {
        const headers = { 'idempotency-key': 'the-first' };
        const body = { domain: 'once.test', upstream: upstream.address };
        const first = await panel.client.post('/api/hosts', body, { headers });
        const again = await panel.client.post('/api/hosts', body, { headers });
        expect([again.status, again.text, again.headers.location, again.headers.etag]).to.equal([
            first.status,
            first.text,
            first.headers.location,
            first.headers.etag
        ]);
        for (const [path, other] of [
            ['/api/hosts', { ...body, notes: 'other' }],
            ['/api/hosts/validate', body]
        ] as const) {
            expect(outcome(await panel.client.post(path, other, { headers }))).to.equal([
                409,
                40902,
                'IDEMPOTENCY_MISMATCH'
            ]);
        }
        for (const key of ['', 'two words', 'x'.repeat(129)]) {
            expect(
                outcome(await panel.client.post('/api/hosts', body, { headers: { 'idempotency-key': key } }))
            ).to.equal([400, 40000, 'BAD_REQUEST']);
        }
    });

    it('keeps a refusal too', async () => {
        const headers = { 'idempotency-key': 'a-refusal' };
        const made = await panel.client.post('/api/hosts', {
            domain: 'refused.test',
            upstream: upstream.address
        });
        const refused = await panel.client.post(
            '/api/hosts',
            { domain: 'refused.test', upstream: upstream.address },
            { headers }
        );
        await panel.client.delete(made.headers.location ?? '');
        const again = await panel.client.post(
            '/api/hosts',
            { domain: 'refused.test', upstream: upstream.address },
            { headers }
        );
        expect([again.code, again.text]).to.equal([40900, refused.text]);
    });

    it('belongs to an account: no user gets the answer of another', async () => {
        const headers = { 'idempotency-key': 'mine' };
        await panel.client.post(
            '/api/hosts',
            { domain: 'mine.test', upstream: upstream.address },
            { headers }
        );
        const operator = await panel.tokenOf('operator');
        expect(
            outcome(
                await panel.client.post(
                    '/api/hosts',
                    { domain: 'mine.test', upstream: upstream.address },
                    { headers, token: operator }
                )
            )
        ).to.equal([409, 40900, 'CONFLICT']);
        const viewer = await panel.tokenOf('viewer');
        expect(
            outcome(
                await panel.client.post(
                    '/api/hosts',
                    { domain: 'mine.test', upstream: upstream.address },
                    { headers, token: viewer }
                )
            )
        ).to.equal([403, 40300, 'FORBIDDEN']);
    });

    it('acts once when a hundred arrive at the same time, and gives all the one answer', async () => {
        const headers = { 'idempotency-key': 'at-once' };
        const answers = await Promise.all(
            Array.from({ length: 100 }, () =>
                panel.client.post(
                    '/api/hosts',
                    { domain: 'at-once.test', upstream: upstream.address },
                    { headers }
                )
            )
        );
        expect(answers[0]?.status).to.equal(201);
        const whole = ({ status, text, headers: got }: Answer) => [
            status,
            text,
            got['location'],
            got['etag']
        ];
        expect(
            answers.every((each) => isDeepStrictEqual(whole(each), whole(answers[0] as Answer)))
        ).to.be.true();
        expect((await panel.client.get('/api/hosts?q=at-once')).data).to.have.length(1);
    });

    it('does not keep an answer that shows a secret', async () => {
        const headers = { 'idempotency-key': 'secret' };
        const before = (await panel.client.get('/api/auth/tokens')).data.length as number;
        expect((await panel.client.post('/api/auth/tokens', { name: 'one' }, { headers })).status).to.equal(
            201
        );
        expect(outcome(await panel.client.post('/api/auth/tokens', { name: 'one' }, { headers }))).to.equal([
            409,
            40900,
            'CONFLICT'
        ]);
        expect((await panel.client.get('/api/auth/tokens')).data).to.have.length(before + 1);
    });

    it('tells no end of what needed a fresh session', async () => {
        const headers = { 'idempotency-key': 'fresh' };
        const body = { name: 'once', permissions: [] };
        expect((await panel.client.post('/api/users/roles', body, { headers })).status).to.equal(201);
        expect(outcome(await panel.client.post('/api/users/roles', body, { headers }))).to.equal([
            409,
            40903,
            'IDEMPOTENCY_UNRESOLVED'
        ]);
        expect(
            ((await panel.client.get('/api/users/roles')).data as { name: string }[]).filter(
                ({ name }) => name === 'once'
            )
        ).to.have.length(1);
    });

    it('replays after the panel was killed', { timeout: 60_000 }, async () => {
        const killed = await createPanelProcess();
        try {
            await killed.start();
            const client = await killed.login();
            const headers = { 'idempotency-key': 'before-the-kill' };
            const body = { domain: 'killed.test', upstream: upstream.address };
            const first = await client.post('/api/hosts', body, { headers });
            expect(first.status).to.equal(201);
            await killed.end('SIGKILL');
            await killed.start();
            expect((await client.post('/api/hosts', body, { headers })).text).to.equal(first.text);
            expect((await client.get('/api/hosts')).data).to.have.length(1);
        } finally {
            await killed.close();
        }
    });
});
