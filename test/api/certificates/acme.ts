import type { X509Certificate } from 'node:crypto';
import { request } from 'node:https';
import { setTimeout as wait } from 'node:timers/promises';
import { connect } from 'node:tls';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { adminPassword, startPanel, type TestPanel } from '../../support/panel/panel.ts';
import { type Bind, noBind, startBind } from '../../support/servers/bind.ts';
import { type Pebble, startPebble } from '../../support/servers/pebble.ts';
import { itUnless } from '../../support/skip.ts';
import { until } from '../../support/until.ts';

export const lab = Lab.script();
const { describe, before, after, afterEach } = lab;
const it = itUnless(noBind, lab.it);

let panel: TestPanel;
let bind: Bind;
let pebble: Pebble;
let provider = 0;
let shift = 0;
/** The notifications that were sent. */
const events: { readonly hook: string; readonly payload: Readonly<Record<string, unknown>> }[] = [];

before(async () => {
    if (noBind !== undefined) {
        return;
    }
    bind = await startBind({ records: '_acme-challenge.away IN CNAME away.delegated\n' });
    pebble = await startPebble({ dns: `${bind.address}:53`, badNonces: 50 });
    panel = await startPanel({ clock: { now: () => Date.now() + shift } });
    for (const hook of ['certificate.issued', 'certificate.expiring', 'certificate.failed'] as const) {
        panel.panel.hooks.host.tap(
            { plugin: 'probe', version: '1.0.0' },
            hook,
            (payload) => void events.push({ hook, payload })
        );
    }
    const { data } = await panel.client.put('/api/settings', {
        'panel.outboundAllow': ['127.0.0.1'],
        'dns.nameservers': [bind.address],
        'certificates.caRoots': pebble.root
    });
    expect(data).to.be.an.array();
    provider = (
        await panel.client.post('/api/dns-providers', {
            name: 'bind',
            type: 'rfc2136',
            credentials: bind.credentials,
            isDefault: true
        })
    ).data.id;
});

after(async () => {
    await panel?.close();
    await pebble?.close();
    await bind?.close();
});

afterEach(() => {
    if (pebble !== undefined) {
        pebble.answer = null;
    }
});

interface Task {
    readonly state: string;
    readonly result: { readonly id: number; readonly fingerprint256: string; readonly domains: string[] };
    readonly error: {
        readonly code: number;
        readonly reason: string;
        readonly data: { readonly problem: { readonly type: string; readonly detail: string } };
    };
}

async function ended(id: number): Promise<Task> {
    return until(
        async () => {
            const { data } = await panel.client.get(`/api/tasks/${id}`);
            return ['succeeded', 'failed', 'cancelled'].includes(data.state as string) && (data as Task);
        },
        `task ${id} ends`,
        40_000
    );
}

async function order(body: object): Promise<Task> {
    const { status, data, text } = await panel.client.post('/api/certificates', {
        source: 'acme',
        acme: { directory: pebble.directory, email: 'harbour@example.test' },
        ...body
    });
    expect(status, text).to.equal(202);
    return ended(data.id as number);
}

function served(name: string): Promise<X509Certificate> {
    return new Promise((resolve, reject) => {
        const socket = connect(
            { host: '127.0.0.1', port: panel.httpsPort, servername: name, rejectUnauthorized: false },
            () => {
                const certificate = socket.getPeerX509Certificate();
                socket.destroy();
                if (certificate === undefined) {
                    reject(new Error('no certificate'));
                    return;
                }
                resolve(certificate);
            }
        );
        socket.once('error', reject);
    });
}

/** The status that a host answers with over TLS, on a connection of its own. */
function answerOf(name: string): Promise<number> {
    return new Promise((resolve, reject) => {
        request(
            {
                host: '127.0.0.1',
                port: panel.httpsPort,
                servername: name,
                rejectUnauthorized: false,
                headers: { host: name },
                agent: false,
                timeout: 5_000
            },
            (answer) => {
                answer.resume().once('end', () => resolve(answer.statusCode ?? 0));
            }
        )
            .once('error', reject)
            .end();
    });
}

const fingerprint = (certificate: X509Certificate): string =>
    certificate.fingerprint256.replaceAll(':', '').toLowerCase();

describe('POST /api/certificates with source acme', { timeout: 60_000 }, () => {
    it('issues a wildcard and its apex in one order against half of all nonces refused, and serves it by name', async () => {
        const task = await order({ domains: ['*.example.test', 'EXAMPLE.test'] });
        expect(task.error).to.be.null();
        expect(task.state).to.equal('succeeded');
        expect(task.result.domains).to.equal(['*.example.test', 'example.test']);
        const { data } = await panel.client.get(`/api/certificates/${task.result.id}`);
        expect(data).to.include({
            source: 'acme',
            autoRenew: true,
            lastError: null,
            usedBy: [],
            dnsProviderId: provider
        });
        expect(data.acme).to.equal({ directory: pebble.directory, email: 'harbour@example.test', eab: null });
        expect(Date.parse(data.nextAttemptAt as string))
            .to.be.above(Date.parse(data.notBefore as string) + 86_400_000 * 0.6)
            .and.below(Date.parse(data.notBefore as string) + 86_400_000 * 0.67);
        const host = await panel.client.post('/api/hosts', {
            domain: 'shop.example.test',
            upstream: '127.0.0.1:1',
            ssl: true,
            sslMode: 'certificate',
            certificateId: task.result.id
        });
        expect(host.data.state, host.text).to.equal('applied');
        const leaf = await served('shop.example.test');
        expect(fingerprint(leaf)).to.equal(task.result.fingerprint256);
        expect(leaf.subjectAltName).to.contain('DNS:*.example.test').and.contain('DNS:example.test');
        expect(await bind.texts('_acme-challenge.example.test')).to.equal([]);
        expect((await panel.client.delete(`/api/dns-providers/${provider}`)).code).to.equal(40901);
    });

    it('proves a name at the place that a CNAME leads to', async () => {
        const task = await order({ domains: ['away.example.test'] });
        expect(task.error).to.be.null();
        const log = (await panel.client.get('/api/audit?resource=certificates&action=create')).data;
        expect(log[0]).to.include({ outcome: 'success', resourceId: task.result.id });
    });

    it('refuses what cannot be ordered, and keeps nothing', async () => {
        const before = (await panel.client.get('/api/certificates')).text;
        for (const [body, path] of [
            [{ domains: [] }, 'domains'],
            [{}, 'domains'],
            [{ domains: ['127.0.0.1'] }, 'domains.0'],
            [{ domains: ['a'] }, 'domains.0'],
            [{ domains: ['*.*.example.test'] }, 'domains.0'],
            [{ domains: ['a.example.test', 'A.example.test'] }, 'domains.1'],
            [{ domains: ['a b.test'] }, 'domains.0'],
            [{ domains: ['a.example.test'], dnsProviderId: 999 }, 'dnsProviderId'],
            [{ domains: ['a.example.test'], certificate: 'x' }, 'certificate'],
            [{ domains: ['a.example.test'], acme: { directory: 'http://ca.test/dir' } }, 'acme.directory'],
            [{ domains: ['a.example.test'], acme: { eab: { keyId: 'x', macKey: '!' } } }, 'acme.eab.macKey'],
            [{ source: 'upload', domains: ['a.example.test'] }, 'domains']
        ] as const) {
            const { code, data } = await panel.client.post('/api/certificates', { source: 'acme', ...body });
            expect([code, data.errors?.[0]?.path], JSON.stringify(body)).to.equal([40001, path]);
        }
        const viewer = await panel.tokenOf('viewer');
        expect(
            (
                await panel.client.post(
                    '/api/certificates',
                    { source: 'acme', domains: ['a.example.test'] },
                    { token: viewer }
                )
            ).code
        ).to.equal(40300);
        expect((await panel.client.get('/api/certificates')).text).to.equal(before);
    });
});

describe('what goes wrong with an order', { timeout: 60_000 }, () => {
    it('keeps the problem of the CA, waits as long as it says, and tells it', async () => {
        pebble.answer = (method, path) =>
            method === 'POST' && path.includes('order')
                ? {
                      status: 429,
                      headers: { 'retry-after': '7200' },
                      body: {
                          type: 'urn:ietf:params:acme:error:rateLimited',
                          detail: 'too many\u001b[1m orders',
                          status: 429
                      }
                  }
                : null;
        const task = await order({ domains: ['limited.example.test'] });
        expect([task.state, task.error.code, task.error.reason]).to.equal([
            'failed',
            50200,
            'CERTIFICATE_NOT_ISSUED'
        ]);
        const found = (await panel.client.get('/api/certificates')).data.find(
            ({ name }: { name: string }) => name === 'limited.example.test'
        );
        expect(found).to.include({
            issuer: null,
            notAfter: null,
            fingerprint256: null,
            autoRenew: true,
            version: 1
        });
        expect(found.lastError).to.include({
            type: 'urn:ietf:params:acme:error:rateLimited',
            detail: 'too many [1m orders',
            status: 429
        });
        const pause = Date.parse(found.nextAttemptAt) - Date.now();
        expect(pause).to.be.between(7_190_000, 7_300_000);
        await until(
            () =>
                events.some(
                    ({ hook, payload }) => hook === 'certificate.failed' && payload['id'] === found.id
                ),
            'a notification is sent'
        );
        expect(
            (
                await panel.client.post('/api/hosts', {
                    domain: 'limited.example.test',
                    upstream: '127.0.0.1:1',
                    ssl: true,
                    sslMode: 'certificate',
                    certificateId: found.id
                })
            ).code
        ).to.equal(40001);
        expect((await panel.client.get(`/api/certificates/${found.id}/download`)).code).to.equal(40400);
        pebble.answer = null;
        const renewed = await panel.client.post(`/api/certificates/${found.id}/renew`);
        expect(renewed.status).to.equal(202);
        expect((await ended(renewed.data.id)).state).to.equal('succeeded');
        const { data } = await panel.client.get(`/api/certificates/${found.id}`);
        expect([data.lastError, data.version]).to.equal([null, 2]);
        expect((await panel.client.delete(`/api/certificates/${found.id}`)).status).to.equal(200);
    });

    it('says that the CA is away, or not one that may be reached, and tries again later', async () => {
        const cases = [
            ['https://localhost:1/dir', /cannot be reached/],
            ['https://127.0.0.2:1/dir', /panel\.outboundAllow/]
        ] as const;
        for (const [directory, message] of cases) {
            const task = await order({ domains: ['gone.example.test'], acme: { directory } });
            expect(task.state).to.equal('failed');
            expect(task.error.data.problem.type).to.equal('urn:portico:error:ca-unreachable');
            expect(task.error.data.problem.detail).to.match(message);
        }
        const rows = (await panel.client.get('/api/certificates')).data.filter(
            ({ name }: { name: string }) => name === 'gone.example.test'
        );
        for (const { id, nextAttemptAt } of rows) {
            expect(Date.parse(nextAttemptAt) - Date.now()).to.be.between(200_000, 400_000);
            await panel.client.delete(`/api/certificates/${id}`);
        }
    });

    it('names the key that the name server does not know, and leaves nothing', async () => {
        const { data } = await panel.client.post('/api/dns-providers', {
            name: 'wrong',
            type: 'rfc2136',
            credentials: { ...bind.credentials, keySecret: Buffer.alloc(32).toString('base64') }
        });
        const task = await order({ domains: ['key.example.test'], dnsProviderId: data.id });
        expect(task.error.data.problem).to.include({ type: 'urn:portico:error:dns-signature' });
        expect(task.error.data.problem.detail).to.contain('NOTAUTH').and.contain('BADSIG');
        expect(await bind.texts('_acme-challenge.key.example.test')).to.equal([]);
        const row = (await panel.client.get('/api/certificates')).data.find(
            ({ name }: { name: string }) => name === 'key.example.test'
        );
        expect((await panel.client.delete(`/api/certificates/${row.id}`)).status).to.equal(200);
        expect((await panel.client.delete(`/api/dns-providers/${data.id}`)).status).to.equal(200);
    });

    it('passes on what the CA says of a record that it does not find', async () => {
        pebble.answer = (method, path) => {
            if (method === 'POST' && path.startsWith('/chalZ')) {
                bind.spoil = (reply, question) =>
                    question.includes('_acme-challenge')
                        ? Buffer.concat([
                              question.subarray(0, 2),
                              Buffer.from([0x84, 3]),
                              question.subarray(4)
                          ])
                        : reply;
            }
            return null;
        };
        const task = await order({ domains: ['blind.example.test'], autoRenew: false });
        bind.spoil = null;
        expect(task.state).to.equal('failed');
        expect(task.error.data.problem.type).to.equal('urn:ietf:params:acme:error:unauthorized');
        const row = (await panel.client.get('/api/certificates')).data.find(
            ({ name }: { name: string }) => name === 'blind.example.test'
        );
        expect(row.lastError.identifier).to.equal({ type: 'dns', value: 'blind.example.test' });
        expect(row.nextAttemptAt).to.be.null();
        expect(await bind.texts('_acme-challenge.blind.example.test')).to.equal([]);
    });

    it('leaves no record behind when it is cancelled in the middle', async () => {
        pebble.answer = (method, path) =>
            method === 'POST' && path.startsWith('/chalZ') ? new Promise<null>(() => undefined) : null;
        const { data } = await panel.client.post('/api/certificates', {
            source: 'acme',
            domains: ['half.example.test', '*.half.example.test'],
            acme: { directory: pebble.directory }
        });
        await until(
            async () => (await bind.texts('_acme-challenge.half.example.test')).length === 2,
            'both records are there'
        );
        const running = (await panel.client.get('/api/certificates')).data.find(
            ({ name }: { name: string }) => name === 'half.example.test'
        );
        expect((await panel.client.post(`/api/certificates/${running.id}/renew`)).code).to.equal(40901);
        const cancelled = await panel.client.delete(`/api/tasks/${data.id}`);
        expect(cancelled.data.state).to.equal('cancelled');
        expect(await bind.texts('_acme-challenge.half.example.test')).to.equal([]);
        const { data: row } = await panel.client.get(`/api/certificates/${running.id}`);
        expect(row.lastError.type).to.equal('urn:portico:error:cancelled');
        expect((await panel.client.delete(`/api/certificates/${running.id}`)).status).to.equal(200);
    });
});

describe('renewal', { timeout: 60_000 }, () => {
    it('happens by itself after two thirds of the life, while not one request is answered wrong, and leaves other hosts alone', async () => {
        const { result } = await order({ domains: ['*.busy.example.test'], name: 'busy' });
        for (const domain of ['one.busy.example.test', 'two.busy.example.test']) {
            expect(
                (
                    await panel.client.post('/api/hosts', {
                        domain,
                        type: 'redirect',
                        redirect: { to: 'https://elsewhere.test', code: 302 },
                        ssl: true,
                        sslMode: 'certificate',
                        certificateId: result.id
                    })
                ).status
            ).to.equal(201);
        }
        const other = fingerprint(await served('shop.example.test'));
        const traffic = { stop: false, answered: 0, failed: [] as string[] };
        const flowing = Promise.all(
            ['one', 'two'].map(async (name) => {
                const domain = `${name}.busy.example.test`;
                // Before 2.7 a reload resets connections that wait in its queue; like a browser, a client tries such a one again.
                const asked = (): Promise<number> =>
                    answerOf(domain).catch((error: NodeJS.ErrnoException) =>
                        error.code === 'ECONNRESET' ? answerOf(domain) : Promise.reject(error)
                    );
                while (!traffic.stop) {
                    await asked().then(
                        (status) =>
                            status === 302 ? (traffic.answered += 1) : traffic.failed.push(String(status)),
                        (error: Error) => traffic.failed.push(error.message)
                    );
                    await wait(5);
                }
            })
        );
        shift = 86_400_000 * 0.7;
        await panel.restart();
        panel.client.token = (await panel.client.login('admin', adminPassword)).data.token as string;
        const after = await until(
            async () => {
                const { data } = await panel.client.get(`/api/certificates/${result.id}`);
                return (
                    data.fingerprint256 !== result.fingerprint256 &&
                    data.nextAttemptAt !== null &&
                    data.lastError === null &&
                    data
                );
            },
            'it is renewed',
            30_000
        );
        await until(
            async () => fingerprint(await served('one.busy.example.test')) === after.fingerprint256,
            'the new one is served'
        );
        const { data: tasks } = await until(async () => {
            const found = await panel.client.get('/api/tasks?kind=certificate.renew');
            return (
                found.data.every(
                    ({ state }: { state: string }) => state !== 'queued' && state !== 'running'
                ) && found
            );
        }, 'every renewal ends');
        expect(tasks.filter(({ state }: { state: string }) => state !== 'succeeded')).to.equal([]);
        traffic.stop = true;
        await flowing;
        expect(traffic.failed).to.equal([]);
        expect(traffic.answered).to.be.above(10);
        expect(tasks.length >= 2).to.be.true();
        expect(after.usedBy).to.have.length(2);
        expect(fingerprint(await served('shop.example.test'))).to.not.equal(other);
        const { data: entries } = await panel.client.get('/api/audit?resource=certificates&action=renew');
        expect(entries[0].actor.username).to.be.null();
    });
});

describe('an account that is bound to one of the CA', { timeout: 60_000 }, () => {
    it('is made with the right key only, and takes its names from the settings', async () => {
        const macKey = Buffer.alloc(32, 5).toString('base64url');
        const bound = await startPebble({ dns: `${bind.address}:53`, eab: { 'kid-7': macKey } });
        try {
            await panel.client.put('/api/settings', {
                'certificates.caRoots': `${pebble.root}${bound.root}`,
                'engine.acmeDirectory': bound.directory,
                'engine.acmeEmail': 'set@example.test'
            });
            for (const [eab, type] of [
                [undefined, 'externalAccountRequired'],
                [{ keyId: 'kid-7', macKey: Buffer.alloc(32, 6).toString('base64url') }, 'unauthorized']
            ] as const) {
                const task = await order({
                    domains: ['eab.example.test'],
                    acme: eab === undefined ? {} : { eab }
                });
                expect(task.error.data.problem.type).to.match(new RegExp(`${type}|malformed`));
            }
            const task = await order({
                domains: ['eab.example.test'],
                acme: { eab: { keyId: 'kid-7', macKey } }
            });
            expect(task.error).to.be.null();
            expect((await panel.client.get(`/api/certificates/${task.result.id}`)).data.acme).to.equal({
                directory: bound.directory,
                email: 'set@example.test',
                eab: { keyId: 'kid-7' }
            });
            const kept = await panel.client.put(`/api/certificates/${task.result.id}`, {
                acme: { eab: { keyId: 'kid-7' } },
                autoRenew: false
            });
            expect([kept.data.acme.eab, kept.data.autoRenew, kept.data.nextAttemptAt]).to.equal([
                { keyId: 'kid-7' },
                false,
                null
            ]);
            expect(
                (
                    await panel.client.put(`/api/certificates/${task.result.id}`, {
                        acme: { eab: { keyId: 'other' } }
                    })
                ).code
            ).to.equal(40001);
            const back = await panel.client.put(`/api/certificates/${task.result.id}`, { autoRenew: true });
            expect(Date.parse(back.data.nextAttemptAt as string) > Date.now()).to.be.true();
            expect((await panel.client.get(`/api/certificates/${task.result.id}`)).data).to.equal(back.data);
        } finally {
            await panel.client.put('/api/settings', {
                'engine.acmeDirectory': null,
                'engine.acmeEmail': null
            });
            await bound.close();
        }
    });
});

describe("the engine's own certificates", { timeout: 60_000 }, () => {
    it('are listed with the hosts that they are for, and can only be read', async () => {
        const { data: host } = await panel.client.post('/api/hosts', {
            domain: 'inside.test',
            upstream: '127.0.0.1:1',
            ssl: true,
            sslMode: 'internal'
        });
        const leaf = await served('inside.test');
        const found = (await panel.client.get('/api/certificates')).data.find(
            ({ source }: { source: string }) => source === 'engine'
        );
        expect(found).to.include({
            domains: ['inside.test'],
            usedBy: [host.id],
            fingerprint256: fingerprint(leaf),
            autoRenew: true
        });
        expect(found.id >= 2 ** 52).to.be.true();
        expect((await panel.client.get(`/api/certificates/${found.id}`)).data).to.equal(found);
        for (const answer of [
            await panel.client.put(`/api/certificates/${found.id}`, { name: 'x' }),
            await panel.client.delete(`/api/certificates/${found.id}`),
            await panel.client.post(`/api/certificates/${found.id}/renew`)
        ]) {
            expect(answer.code).to.equal(40900);
        }
        const download = await panel.client.get(`/api/certificates/${found.id}/download`);
        expect(download.text).to.contain('BEGIN CERTIFICATE').and.not.contain('PRIVATE KEY');
        expect((await panel.client.get(`/api/certificates/${found.id + 1}`)).code).to.equal(40400);
    });
});

describe('secrets of an order', { timeout: 60_000 }, () => {
    it('are in no read, log or audit entry', async () => {
        const secret = Buffer.from('a binding that no user may see').toString('base64url');
        await order({
            domains: ['bound.example.test'],
            acme: {
                directory: pebble.directory,
                email: 'x@example.test',
                eab: { keyId: 'kid-1', macKey: secret }
            }
        });
        const texts = await Promise.all(
            ['/api/certificates', '/api/dns-providers', '/api/audit?limit=500', '/api/tasks'].map(
                async (path) => (await panel.client.get(path)).text
            )
        );
        const all = [...texts, ...panel.lines].join('\n');
        expect(all)
            .to.contain('kid-1')
            .and.not.contain(secret)
            .and.not.contain(bind.credentials.keySecret)
            .and.not.contain('PRIVATE KEY');
    });
});
