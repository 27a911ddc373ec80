import { readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { ZoneUpdater } from '../../core/src/features/dns-providers/rfc2136/rfc2136.ts';
import { systemClock } from '../../core/src/platform/clock.ts';
import { startPanel, type TestPanel } from '../support/panel/panel.ts';
import { type Bind, noBind, startBind } from '../support/servers/bind.ts';
import { type Pebble, startPebble } from '../support/servers/pebble.ts';
import { itUnless } from '../support/skip.ts';
import { until } from '../support/until.ts';

export const lab = Lab.script();
const { describe, before, after, afterEach } = lab;
const it = itUnless(noBind, lab.it);

let panel: TestPanel;
let bind: Bind;
let pebble: Pebble;

before(async () => {
    if (noBind !== undefined) {
        return;
    }
    bind = await startBind({
        algorithm: 'hmac-sha512',
        records: '_acme-challenge.moved IN CNAME elsewhere.delegated\n'
    });
    pebble = await startPebble({ dns: `${bind.address}:53` });
    panel = await startPanel();
    await panel.client.put('/api/settings', {
        'panel.outboundAllow': ['127.0.0.1'],
        'dns.nameservers': [bind.address],
        'certificates.caRoots': pebble.root
    });
});

after(async () => {
    await panel?.close();
    await pebble?.close();
    await bind?.close();
});

afterEach(() => {
    if (bind !== undefined) {
        bind.spoil = null;
    }
});

const credentials = (): Record<string, string> => ({ ...bind.credentials, algorithm: 'hmac-sha512' });

describe('/api/dns-providers', { timeout: 90_000 }, () => {
    it('keeps credentials sealed, and reads back which fields are set', async () => {
        const made = await panel.client.post('/api/dns-providers', {
            name: 'first',
            type: 'rfc2136',
            credentials: credentials(),
            isDefault: true
        });
        expect(made.status).to.equal(201);
        expect(made.data).to.include({
            name: 'first',
            type: 'rfc2136',
            isDefault: true,
            usedBy: [],
            version: 1
        });
        expect(made.data.credentials).to.equal({
            algorithm: true,
            keyName: true,
            keySecret: true,
            nameserver: true
        });
        expect((await panel.client.get(`/api/dns-providers/${made.data.id}`)).data).to.equal(made.data);
        const second = await panel.client.post('/api/dns-providers', {
            name: 'second',
            type: 'rfc2136',
            credentials: credentials(),
            isDefault: true
        });
        const { data: all } = await panel.client.get('/api/dns-providers');
        expect(
            all.map(({ name, isDefault, version }: { name: string; isDefault: boolean; version: number }) => [
                name,
                isDefault,
                version
            ])
        ).to.equal([
            ['first', false, 2],
            ['second', true, 1]
        ]);
        expect(
            (
                await panel.client.post('/api/dns-providers', {
                    name: 'second',
                    type: 'rfc2136',
                    credentials: credentials()
                })
            ).code
        ).to.equal(40900);
        expect(
            (
                await panel.client.put(
                    `/api/dns-providers/${second.data.id}`,
                    { name: 'x' },
                    { headers: { 'if-match': '"9"' } }
                )
            ).code
        ).to.equal(41200);
        const same = await panel.client.put(`/api/dns-providers/${second.data.id}`, second.data);
        expect([same.status, same.data.version]).to.equal([200, 1]);
        const changed = await panel.client.put(`/api/dns-providers/${second.data.id}`, {
            credentials: { zone: 'example.test', keySecret: true, algorithm: null }
        });
        expect(changed.data.credentials).to.equal({
            keyName: true,
            keySecret: true,
            nameserver: true,
            zone: true
        });
        for (const { id } of all) {
            const gone = await panel.client.delete(`/api/dns-providers/${id}`);
            expect([gone.status, gone.data]).to.equal([200, null]);
        }
        const texts = await Promise.all(
            ['/api/audit?limit=500', '/api/openapi.json'].map(
                async (path) => (await panel.client.get(path)).text
            )
        );
        expect([...texts, ...panel.lines].join('')).to.not.contain(bind.credentials.keySecret);
    });

    it('refuses what no type has, and every hostile variable', async () => {
        const good = credentials();
        for (const [body, path] of [
            [{ type: 'rfc2136', credentials: { ...good, more: 'x' } }, 'credentials.more'],
            [{ type: 'rfc2136', credentials: { nameserver: 'x' } }, 'credentials.keyName'],
            [{ type: 'rfc2136', credentials: { ...good, keySecret: '###' } }, 'credentials.keySecret'],
            [{ type: 'rfc2136', credentials: { ...good, nameserver: 'a b' } }, 'credentials.nameserver'],
            [{ type: 'rfc2136', credentials: { ...good, algorithm: 'hmac-md5' } }, 'credentials.algorithm'],
            [
                { type: 'rfc2136', credentials: { ...good, zone: `${'a'.repeat(64)}.test` } },
                'credentials.zone'
            ],
            [{ type: 'nothing', credentials: {} }, 'type'],
            [{ type: 'exec', credentials: { EXEC_PATH: '/bin/sh' } }, 'type'],
            [
                { type: 'hetzner', credentials: { HETZNER_API_KEY: 'x', LD_PRELOAD: '/tmp/x.so' } },
                'credentials.LD_PRELOAD'
            ],
            [{ type: 'hetzner', credentials: { HETZNER_API_KEY: 'x', PATH: '/tmp' } }, 'credentials.PATH'],
            [
                { type: 'hetzner', credentials: { HETZNER_API_KEY: 'a\u0000b' } },
                'credentials.HETZNER_API_KEY'
            ],
            [{ type: 'hetzner', credentials: {} }, 'credentials.HETZNER_API_KEY']
        ] as const) {
            const { code, data, text } = await panel.client.post('/api/dns-providers', {
                name: 'bad',
                ...body
            });
            expect([code, data?.errors?.[0]?.path], text).to.equal([40001, path]);
        }
        const operator = await panel.tokenOf('operator');
        expect(
            (
                await panel.client.post(
                    '/api/dns-providers',
                    { name: 'x', type: 'rfc2136', credentials: good },
                    { token: operator }
                )
            ).code
        ).to.equal(40300);
        expect((await panel.client.get('/api/dns-providers', { token: operator })).data).to.equal([]);
    });

    it('describes every type of lego with its fields', async () => {
        const { data } = await panel.client.get('/api/dns-providers/types');
        expect(data.length > 80).to.be.true();
        const names = data.map(({ type }: { type: string }) => type);
        expect(names)
            .to.include(['rfc2136', 'cloudflare', 'route53', 'hetzner', 'ovh'])
            .and.not.include(['exec', 'manual']);
        expect(names.filter((name: string) => name === 'rfc2136')).to.have.length(1);
        const cloudflare = data.find(({ type }: { type: string }) => type === 'cloudflare');
        expect(cloudflare.label).to.equal('Cloudflare');
        expect(
            cloudflare.fields.find(({ name }: { name: string }) => name === 'CF_DNS_API_TOKEN')
        ).to.include({ secret: true, required: false, label: 'CF DNS API token' });
        for (const { type, fields } of data) {
            for (const { name } of fields) {
                expect(
                    /^(?:PATH|HOME|LD_.*|LEGO_.*|EXEC_.*)$|_FILE$/.test(name),
                    `${type} ${name}`
                ).to.be.false();
            }
        }
    });

    it('tests a provider step by step, over a CNAME and without its zone', async () => {
        const { data } = await panel.client.post('/api/dns-providers', {
            name: 'tried',
            type: 'rfc2136',
            credentials: credentials()
        });
        const path = `/api/dns-providers/${data.id}/test`;
        expect((await panel.client.post(path, {})).code).to.equal(40001);
        for (const domain of ['example.test', 'deep.down.example.test', 'moved.example.test']) {
            const { data: result, text } = await panel.client.post(path, { domain });
            expect(result.ok, text).to.be.true();
            expect(result.record).to.equal(`_acme-challenge.${domain}`);
            expect(result.steps.map(({ step }: { step: string }) => step)).to.equal([
                'write',
                'lookup',
                'remove'
            ]);
            expect(result.steps[1].seen[0]).to.include({ server: 'ns.example.test', error: null });
            expect(result.steps[1].seen[0].values).to.have.length(1);
        }
        const elsewhere = (await panel.client.post(path, { domain: 'example.org' })).data;
        expect([elsewhere.ok, elsewhere.steps[0].step, elsewhere.steps[0].ok]).to.equal([
            false,
            'write',
            false
        ]);
        await panel.client.put(`/api/dns-providers/${data.id}`, {
            credentials: { keySecret: Buffer.alloc(64, 7).toString('base64') }
        });
        const wrong = (await panel.client.post(path, { domain: 'example.test' })).data;
        expect(wrong.steps).to.have.length(1);
        expect(wrong.steps[0].message).to.contain('BADSIG');
        expect(await bind.texts('_acme-challenge.example.test')).to.equal([]);
        await panel.client.delete(`/api/dns-providers/${data.id}`);
    });

    it('needs no more rights in a zone than to write challenges', async () => {
        const narrow = await startBind({ policy: 'grant panel-key name _acme-challenge.example.test. TXT;' });
        try {
            await panel.client.put('/api/settings', { 'dns.nameservers': [narrow.address] });
            const { data } = await panel.client.post('/api/dns-providers', {
                name: 'narrow',
                type: 'rfc2136',
                credentials: narrow.credentials
            });
            const good = (
                await panel.client.post(`/api/dns-providers/${data.id}/test`, { domain: '*.example.test' })
            ).data;
            expect(good.ok, JSON.stringify(good)).to.be.true();
            const refused = (
                await panel.client.post(`/api/dns-providers/${data.id}/test`, {
                    domain: 'other.example.test'
                })
            ).data;
            expect([refused.ok, refused.steps.length]).to.equal([false, 1]);
            expect(refused.steps[0].message).to.contain('REFUSED');
        } finally {
            await panel.client.put('/api/settings', { 'dns.nameservers': [bind.address] });
            await narrow.close();
        }
    });

    it('speaks TCP when a reply was cut, and believes no reply that was changed', async () => {
        const updater = new ZoneUpdater({
            nameserver: bind.address,
            zone: null,
            keyName: bind.credentials.keyName,
            keySecret: bind.credentials.keySecret,
            algorithm: 'hmac-sha512',
            clock: systemClock,
            resolvers: () => [{ address: bind.address, port: 53 }]
        });
        const signal = AbortSignal.timeout(10_000);
        bind.spoil = (reply) =>
            Buffer.concat([
                reply.subarray(0, 2),
                Buffer.from([(reply[2] ?? 0) | 2]),
                reply.subarray(3, 12).fill(0, 3),
                reply.subarray(12)
            ]);
        const before = bind.connections;
        const place = await updater.place('cut.example.test', signal);
        expect(place).to.equal({ name: '_acme-challenge.cut.example.test', zone: 'example.test' });
        await updater.add(place, 'over TCP', signal);
        expect(bind.connections > before).to.be.true();
        expect(await bind.texts(place.name)).to.equal(['over TCP']);
        bind.spoil = (reply) => {
            const changed = Buffer.from(reply);
            changed[changed.length - 20] = (changed[changed.length - 20] ?? 0) ^ 1;
            return changed;
        };
        await expect(updater.remove(place, 'over TCP', signal)).to.reject(/signature of the reply is wrong/);
        bind.spoil = (reply, question) =>
            Buffer.concat([
                question.subarray(0, 2),
                Buffer.from([0xa8, 0]),
                reply.subarray(4, 10),
                Buffer.from([0, 0]),
                question.subarray(12, 30)
            ]);
        await expect(updater.add(place, 'forged', signal)).to.reject(/not signed/);
        bind.spoil = null;
        await updater.remove(place, 'over TCP', signal);
        await updater.remove(place, 'forged', signal);
        expect(await bind.texts(place.name)).to.equal([]);
    });
});

/** The lego processes of this machine that work for a type. */
function running(
    type: string
): { readonly arguments: string; readonly environment: readonly string[]; readonly uid: number }[] {
    return readdirSync('/proc')
        .filter((pid) => /^\d+$/.test(pid))
        .flatMap((pid) => {
            try {
                const text = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
                return /lego /.test(text) && text.includes(type)
                    ? [
                          {
                              arguments: text,
                              environment: readFileSync(`/proc/${pid}/environ`, 'utf8')
                                  .split('\0')
                                  .filter((entry) => entry !== ''),
                              uid: statSync(`/proc/${pid}`).uid
                          }
                      ]
                    : [];
            } catch {
                return [];
            }
        });
}

describe('a type that lego knows', { timeout: 90_000 }, () => {
    it('writes, is waited for, and removes, with nothing of the panel in its environment and no secret in its arguments', async () => {
        const updater = new ZoneUpdater({
            nameserver: bind.address,
            zone: 'example.test',
            keyName: bind.credentials.keyName,
            keySecret: bind.credentials.keySecret,
            algorithm: 'hmac-sha512',
            clock: systemClock,
            resolvers: () => [{ address: bind.address, port: 53 }]
        });
        const calls: string[] = [];
        const seen: {
            readonly arguments: string;
            readonly environment: readonly string[];
            readonly uid: number;
        }[] = [];
        const server = createServer((request, response) => {
            let text = '';
            request
                .on('data', (part: Buffer) => (text += part.toString()))
                .once('end', () => {
                    const { fqdn, value } = JSON.parse(text) as { fqdn: string; value: string };
                    seen.push(...running('httpreq'));
                    calls.push(`${request.url ?? ''} ${request.headers.authorization ?? ''}`);
                    const place = { name: fqdn.replace(/\.$/, '').toLowerCase(), zone: 'example.test' };
                    const signal = AbortSignal.timeout(5_000);
                    (request.url === '/present'
                        ? updater.add(place, value, signal)
                        : updater.remove(place, value, signal)
                    ).then(
                        () => response.end('{}'),
                        () => response.writeHead(500).end()
                    );
                });
        });
        await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
        try {
            const sent = {
                HTTPREQ_ENDPOINT: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
                HTTPREQ_USERNAME: 'harbour',
                HTTPREQ_PASSWORD: 'the secret of the quay'
            };
            const { data, text } = await panel.client.post('/api/dns-providers', {
                name: 'foreign',
                type: 'httpreq',
                credentials: sent
            });
            expect(data.credentials, text).to.equal({
                HTTPREQ_ENDPOINT: true,
                HTTPREQ_PASSWORD: true,
                HTTPREQ_USERNAME: true
            });
            const tried = await panel.client.post(`/api/dns-providers/${data.id}/test`, {
                domain: 'tried.example.test'
            });
            expect(tried.data.ok, tried.text).to.be.true();
            expect(calls).to.equal(
                ['/present', '/cleanup'].map(
                    (path) =>
                        `${path} Basic ${Buffer.from('harbour:the secret of the quay').toString('base64')}`
                )
            );
            const ordered = await panel.client.post('/api/certificates', {
                source: 'acme',
                domains: ['foreign.example.test', '*.foreign.example.test'],
                dnsProviderId: data.id,
                acme: { directory: pebble.directory }
            });
            const task = await until(
                async () => {
                    const answer = await panel.client.get(`/api/tasks/${ordered.data.id}`);
                    return answer.data.finishedAt !== null && answer.data;
                },
                'the order ends',
                40_000
            );
            expect(task.error, JSON.stringify(task)).to.be.null();
            expect(task.state).to.equal('succeeded');
            expect(await bind.texts('_acme-challenge.foreign.example.test')).to.equal([]);
            expect(calls).to.have.length(6);
            expect(seen.length > 0).to.be.true();
            for (const { arguments: text, environment, uid } of seen) {
                expect(text).to.not.contain('the secret of the quay');
                expect(
                    environment
                        .map((entry) => entry.split('=')[0] ?? '')
                        .filter(
                            (name) =>
                                !/^(?:HTTPREQ_.*|HOME|TMPDIR|PATH|SSL_CERT_.*|LEGO_EXPERIMENTAL_CNAME_SUPPORT)$/.test(
                                    name
                                )
                        )
                ).to.equal([]);
                expect(uid >= 61_184 && uid <= 65_519).to.be.true();
            }
            expect(
                [...panel.lines, (await panel.client.get('/api/audit?limit=500')).text].join('')
            ).to.not.contain('the secret of the quay');
        } finally {
            server.close();
        }
    });
});
