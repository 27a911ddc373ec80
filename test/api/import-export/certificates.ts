import { randomBytes, X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import {
    open,
    seal,
    type Sealed,
    type SecretMap
} from '../../../core/src/features/import-export/document/vault.ts';
import type { Answer } from '../../support/panel/client.ts';
import { startPanel, type TestPanel } from '../../support/panel/panel.ts';
import { type Bind, noBind, startBind } from '../../support/servers/bind.ts';
import { type Pebble, startPebble } from '../../support/servers/pebble.ts';
import { type Pair, selfSigned } from '../../support/servers/self-signed.ts';
import { itUnless } from '../../support/skip.ts';
import { until } from '../../support/until.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;
const itWithBind = itUnless(noBind, lab.it);

const passphrase = 'the lighthouse keeper counts the ships';
const base = '/api/import-export';
const macKey = randomBytes(32).toString('base64url');

type Data = Answer['data'];

async function ended(panel: TestPanel, answer: Answer): Promise<Data> {
    expect([answer.status, answer.text.slice(0, 500)]).to.equal([202, answer.text.slice(0, 500)]);
    return until(
        async () => {
            const { data } = await panel.client.get(`/api/tasks/${answer.data.id}`);
            return ['succeeded', 'failed'].includes(data.state as string) ? (data as object) : null;
        },
        'the task ends',
        40_000
    ) as Promise<Data>;
}

async function imported(panel: TestPanel, document: object, more: object): Promise<Data> {
    const { state, result, error } = await ended(
        panel,
        await panel.client.post(`${base}/import`, { document, mode: 'merge', dryRun: false, ...more })
    );
    expect([state, error]).to.equal(['succeeded', null]);
    return result as Data;
}

const listed = async ({ client }: TestPanel): Promise<Data> => (await client.get('/api/certificates')).data;
const exported = async ({ client }: TestPanel, more: object = {}): Promise<Data> =>
    (await client.post(`${base}/export`, more)).data;
const noted = (result: Data, section = 'certificates'): string[] =>
    result.sections[section].notes.map(
        ({ name, message }: { name: string; message: string }) => `${name}: ${message}`
    );

/** The opened secrets of the certificates of a document. */
async function secretsOf({ secrets, ...document }: Data): Promise<Record<string, string>> {
    return Object.fromEntries(
        (await open(secrets as Sealed, passphrase, document)).get('certificates') ?? []
    );
}

function documentOf(sections: object): {
    format: string;
    formatVersion: number;
    createdAt: string;
    sections: object;
} {
    return { format: 'portico-export', formatVersion: 1, createdAt: '2026-01-01T00:00:00.000Z', sections };
}

async function sealed(sections: object, secrets: SecretMap): Promise<object> {
    const document = documentOf(sections);
    return { ...document, secrets: await seal(secrets, passphrase, document) };
}

/** An order that no CA has answered, as a document has it. */
function orderOf(id: number, ...domains: readonly string[]) {
    return {
        id,
        name: domains[0] ?? '',
        source: 'acme',
        domains,
        fingerprint256: null as string | null,
        certificate: null as string | null,
        autoRenew: true,
        acme: {
            dnsProviderId: 1,
            dnsProvider: 'zone' as string | null,
            directory: 'https://127.0.0.1:9/dir',
            email: 'ops@example.test',
            eab: null as { keyId: string } | null
        },
        createdAt: '2026-01-01T00:00:00.000Z',
        updatedAt: '2026-01-01T00:00:00.000Z'
    };
}

describe('a round trip of certificates that a CA issues', { timeout: 120_000 }, () => {
    let bind: Bind;
    let pebble: Pebble;
    let source: TestPanel;
    let document: Data;
    let was: Data;

    before(async () => {
        if (noBind !== undefined) {
            return;
        }
        bind = await startBind();
        pebble = await startPebble({ dns: `${bind.address}:53`, eab: { harbour: macKey } });
        source = await startPanel();
        const { client } = source;
        await client.put('/api/settings', {
            'panel.outboundAllow': ['127.0.0.1'],
            'dns.nameservers': [bind.address],
            'certificates.caRoots': pebble.root
        });
        // The provider's number is another one in a panel that never had the first.
        const gone = await client.post('/api/dns-providers', {
            name: 'gone',
            type: 'rfc2136',
            credentials: bind.credentials
        });
        await client.delete(`/api/dns-providers/${gone.data.id}`);
        expect(
            (
                await client.post('/api/dns-providers', {
                    name: 'bind',
                    type: 'rfc2136',
                    credentials: bind.credentials,
                    isDefault: true
                })
            ).status
        ).to.equal(201);
        const order = async (body: object): Promise<Data> =>
            ended(
                source,
                await client.post('/api/certificates', {
                    source: 'acme',
                    acme: {
                        directory: pebble.directory,
                        email: 'harbour@example.test',
                        eab: { keyId: 'harbour', macKey }
                    },
                    ...body
                })
            );
        const issued = await order({ name: 'issued', domains: ['*.example.test', 'example.test'] });
        expect([issued.state, issued.error]).to.equal(['succeeded', null]);
        expect(
            (await order({ name: 'by hand', domains: ['hand.example.test'], autoRenew: false })).state
        ).to.equal('succeeded');
        pebble.answer = (method, path) =>
            method === 'POST' && path.includes('order')
                ? {
                      status: 429,
                      headers: { 'retry-after': '7200' },
                      body: {
                          type: 'urn:ietf:params:acme:error:rateLimited',
                          detail: 'too many',
                          status: 429
                      }
                  }
                : null;
        expect((await order({ name: 'late', domains: ['late.example.test'] })).state).to.equal('failed');
        pebble.answer = null;
        const host = await client.post('/api/hosts', {
            domain: 'shop.example.test',
            upstream: '127.0.0.1:1',
            ssl: true,
            sslMode: 'certificate',
            certificateId: issued.result.id
        });
        expect(host.status, host.text).to.equal(201);
        was = await listed(source);
        document = await exported(source, { passphrase });
    });

    after(async () => {
        await source?.close();
        await pebble?.close();
        await bind?.close();
    });

    itWithBind(
        'keeps who issues them, as whom, through whose records, and goes on with what was ordered',
        async () => {
            expect(was.map(({ name, lastError }: Data) => [name, lastError?.type ?? null])).to.equal([
                ['issued', null],
                ['by hand', null],
                ['late', 'urn:ietf:params:acme:error:rateLimited']
            ]);
            expect(JSON.stringify(document)).to.not.contain(macKey);
            const target = await startPanel();
            try {
                pebble.asked.length = 0;
                const dry = await target.client.post(`${base}/import`, {
                    document,
                    passphrase,
                    mode: 'replace',
                    dryRun: true
                });
                expect(dry.data?.sections?.certificates ?? dry.text).to.equal({
                    create: ['issued', 'by hand', 'late'],
                    update: [],
                    delete: [],
                    unchanged: [],
                    notes: [],
                    counts: { create: 3, update: 0, delete: 0, unchanged: 0 }
                });
                expect(await listed(target)).to.equal([]);
                await imported(target, document, { passphrase, mode: 'replace' });
                const is = await listed(target);
                const lasting = (rows: Data): Data =>
                    rows.map((row: object) => ({ ...row, lastError: null, nextAttemptAt: null, version: 0 }));
                expect(lasting(is).slice(0, 2)).to.equal(lasting(was).slice(0, 2));
                const span = (share: number): number =>
                    Date.parse(is[0].notBefore as string) +
                    (Date.parse(is[0].notAfter as string) - Date.parse(is[0].notBefore as string)) * share;
                expect(Date.parse(is[0].nextAttemptAt as string)).to.be.between(span(0.64), span(0.67));
                expect([is[1].autoRenew, is[1].nextAttemptAt]).to.equal([false, null]);
                const late = (await until(
                    async () => {
                        const found = (await listed(target))[2];
                        return found.fingerprint256 === null && found.lastError === null
                            ? null
                            : (found as object);
                    },
                    'the scheduler goes on with the order',
                    40_000
                )) as Data;
                expect(late).to.include({
                    id: was[2].id,
                    name: 'late',
                    lastError: null,
                    domains: ['late.example.test'],
                    dnsProviderId: was[2].dnsProviderId,
                    autoRenew: true
                });
                expect(late.acme).to.equal({
                    directory: pebble.directory,
                    email: 'harbour@example.test',
                    eab: { keyId: 'harbour' }
                });
                // It speaks as the account of before: the CA is asked for it once, and knows it. A new one would be a second question.
                expect(pebble.asked.filter((each) => each.includes('order')).length).to.be.above(0);
                expect(pebble.asked.filter((each) => each.includes('sign-me-up'))).to.equal([
                    'POST /sign-me-up'
                ]);

                const [there, here] = [
                    await secretsOf(document),
                    await secretsOf(await exported(target, { passphrase }))
                ];
                const { [`${was[2].id}/key`]: lateKey, ...rest } = here;
                expect(lateKey).to.contain('PRIVATE KEY');
                expect(rest).to.equal(there);
                expect(Object.keys(there)).to.contain([
                    'accounts',
                    `${was[0].id}/key`,
                    `${was[0].id}/eab`,
                    `${was[2].id}/eab`
                ]);

                // What was issued meanwhile is not taken back by the document of before.
                const again = await imported(target, document, { passphrase, mode: 'replace' });
                expect(again.sections.certificates).to.include({
                    create: [],
                    update: [],
                    delete: [],
                    unchanged: ['issued', 'by hand', 'late'],
                    notes: []
                });
                expect((await listed(target))[2].fingerprint256).to.equal(late.fingerprint256);
                await target.restart();
                expect((await listed(target)).map(({ source: from }: Data) => from as string)).to.equal([
                    'acme',
                    'acme',
                    'acme'
                ]);
            } finally {
                await target.close();
            }
        }
    );

    itWithBind('changes nothing where it came from, with secrets or without', async () => {
        const before = JSON.stringify(await listed(source));
        for (const [own, more] of [
            [document, { passphrase }],
            [await exported(source), {}]
        ] as const) {
            const result = await imported(source, own, { ...more, mode: 'replace' });
            expect(result.sections.certificates).to.include({
                create: [],
                update: [],
                delete: [],
                unchanged: ['issued', 'by hand', 'late'],
                notes: []
            });
            expect(JSON.stringify(await listed(source))).to.equal(before);
        }
    });

    itWithBind(
        'leaves out what has lost its key, brings in what was only ordered, and says what is missing',
        async () => {
            const target = await startPanel();
            try {
                const plain = await exported(source);
                expect(JSON.stringify(plain)).to.not.contain('PRIVATE KEY');
                const result = await imported(target, plain, { mode: 'replace' });
                expect(noted(result)).to.equal([
                    'issued: left out: its key is not in the document',
                    'by hand: left out: its key is not in the document',
                    'late: is not ordered by itself: its DNS provider is not in the document, or without its credentials',
                    'late: is not ordered by itself: the MAC key of its external account is not in the document',
                    'late: the key of its account at the CA is not in the document: it will be another account'
                ]);
                expect(
                    (await listed(target)).map(
                        ({ id, name, autoRenew, dnsProviderId, nextAttemptAt, acme }: Data) =>
                            ({ id, name, autoRenew, dnsProviderId, nextAttemptAt, acme }) as object
                    )
                ).to.equal([
                    {
                        id: was[2].id,
                        name: 'late',
                        autoRenew: false,
                        dnsProviderId: null,
                        nextAttemptAt: null,
                        acme: { directory: pebble.directory, email: 'harbour@example.test', eab: null }
                    }
                ]);
                // The document with secrets mends it, in its place.
                const mended = await imported(target, document, { passphrase });
                expect(mended.sections.certificates).to.include({
                    create: ['issued', 'by hand'],
                    update: ['late'],
                    notes: []
                });
                const late = (await listed(target)).find(({ id }: Data) => id === was[2].id);
                expect([late.autoRenew, late.dnsProviderId, late.acme]).to.equal([
                    true,
                    was[2].dnsProviderId,
                    was[2].acme
                ]);
                expect(late.nextAttemptAt).to.be.a.string();
            } finally {
                await target.close();
            }
        }
    );
});

describe('the certificates of a document', () => {
    let panel: TestPanel;
    let folder = '';

    before(async () => {
        folder = mkdtempSync(join(tmpdir(), 'portico-certificates-'));
        panel = await startPanel();
        for (const name of ['other', 'zone']) {
            expect(
                (
                    await panel.client.post('/api/dns-providers', {
                        name,
                        type: 'rfc2136',
                        credentials: {
                            nameserver: '192.0.2.9',
                            zone: 'example.com',
                            keyName: 'k',
                            keySecret: 'c2VjcmV0'
                        }
                    })
                ).status
            ).to.equal(201);
        }
    });

    after(async () => {
        await panel.close();
        rmSync(folder, { recursive: true, force: true });
    });

    function certificateFor(...names: readonly string[]): Pair & { readonly fingerprint: string } {
        const pair = selfSigned(names, { more: ['-days', '90'] });
        const { fingerprint256 } = new X509Certificate(pair.certificate);
        return { ...pair, fingerprint: fingerprint256.replaceAll(':', '').toLowerCase() };
    }

    it('finds the DNS provider by its name where the document has no providers', async () => {
        const lost = orderOf(1002, 'lost.example.test');
        const certificates = [
            { ...orderOf(1001, 'named.example.test'), autoRenew: false },
            { ...lost, acme: { ...lost.acme, dnsProvider: 'never here' } }
        ];
        const result = await imported(panel, documentOf({ certificates }), {});
        expect(noted(result)).to.only.include([
            'named.example.test: the key of its account at the CA is not in the document: it will be another account',
            'lost.example.test: is not ordered by itself: its DNS provider is not in the document, or without its credentials',
            'lost.example.test: the key of its account at the CA is not in the document: it will be another account'
        ]);
        const providers = (await panel.client.get('/api/dns-providers')).data;
        const rows = await listed(panel);
        expect(
            rows.map(({ id, dnsProviderId, autoRenew }: Data) => [id, dnsProviderId, autoRenew] as unknown)
        ).to.equal([
            [1001, providers.find(({ name }: Data) => name === 'zone').id, false],
            [1002, null, false]
        ]);
    });

    it('recognises an order by its number and name, else by what it orders, and removes those that a replacement does not have', async () => {
        const again = await imported(
            panel,
            documentOf({ certificates: [{ ...orderOf(7, 'named.example.test'), autoRenew: false }] }),
            {}
        );
        expect(again.sections.certificates).to.include({
            create: [],
            update: [],
            unchanged: ['named.example.test']
        });
        const moved = await imported(
            panel,
            documentOf({
                certificates: [
                    { ...orderOf(1001, 'new.example.test'), name: 'named.example.test', autoRenew: false }
                ]
            }),
            { mode: 'replace' }
        );
        expect(moved.sections.certificates).to.include({
            create: [],
            update: ['named.example.test'],
            delete: ['lost.example.test']
        });
        expect((await listed(panel)).map(({ id, domains }: Data) => [id, domains] as unknown)).to.equal([
            [1001, ['new.example.test']]
        ]);
    });

    it('takes one that was issued in the place of the order, for the names that were ordered', async () => {
        const { certificate, key, fingerprint } = certificateFor('new.example.test', 'more.example.test');
        const row = {
            ...orderOf(1001, 'new.example.test'),
            name: 'named.example.test',
            certificate,
            fingerprint256: fingerprint
        };
        const result = await imported(
            panel,
            await sealed({ certificates: [row] }, new Map([['certificates', new Map([['1001/key', key]])]])),
            { passphrase }
        );
        expect(result.sections.certificates).to.include({
            create: [],
            update: ['named.example.test'],
            notes: []
        });
        const [is] = await listed(panel);
        expect(is).to.include({
            id: 1001,
            source: 'acme',
            domains: ['new.example.test'],
            fingerprint256: fingerprint,
            autoRenew: true
        });
        expect(Date.parse(is.nextAttemptAt as string)).to.be.above(Date.now() + 50 * 86_400_000);
        // An order of the same name for other names is another one; for the same it is this one, which stays issued.
        const known = await imported(
            panel,
            documentOf({
                certificates: [{ ...orderOf(1001, 'new.example.test'), name: 'named.example.test' }]
            }),
            { mode: 'replace' }
        );
        expect(known.sections.certificates).to.include({
            create: [],
            update: [],
            delete: [],
            unchanged: ['named.example.test']
        });
        expect((await listed(panel))[0].fingerprint256).to.equal(fingerprint);
        await imported(
            panel,
            documentOf({
                certificates: [
                    { ...orderOf(1001, 'else.example.test'), name: 'named.example.test', autoRenew: false }
                ]
            }),
            { mode: 'merge' }
        );
        expect(
            (await listed(panel)).map(
                ({ domains, fingerprint256 }: Data) => [domains, fingerprint256 === null] as unknown
            )
        ).to.equal([
            [['new.example.test'], false],
            [['else.example.test'], true]
        ]);
    });

    it('are refused whole where they contradict themselves', async () => {
        const { certificate, key, fingerprint } = certificateFor('a.example.test');
        const before = JSON.stringify(await listed(panel));
        const order = orderOf(3001, 'a.example.test');
        const issued = { ...order, certificate, fingerprint256: fingerprint };
        const faults: readonly (readonly [object, readonly (readonly [string, string])[], string])[] = [
            [{ ...order, domains: [] }, [], '0.domains'],
            [{ ...order, domains: ['127.0.0.1'] }, [], '0.domains.0'],
            [{ ...order, domains: ['A.example.test'] }, [], '0.domains.0'],
            [{ ...order, certificate }, [], '0.fingerprint256'],
            [{ ...order, fingerprint256: fingerprint }, [], '0.certificate'],
            [{ ...order, source: 'upload' }, [], '0.acme'],
            [{ ...order, source: 'upload', acme: null }, [], '0.certificate'],
            [{ ...order, acme: null }, [], '0.acme'],
            [{ ...order, acme: { ...order.acme, directory: null } }, [], '0.acme.directory'],
            [{ ...issued, domains: ['b.example.test'] }, [['3001/key', key]], '0.domains'],
            [
                { ...order, acme: { ...order.acme, eab: { keyId: 'one' } } },
                [['3001/eab', JSON.stringify({ keyId: 'two', macKey })]],
                '0.acme.eab'
            ],
            [order, [['3001/eab', '{']], '0.acme.eab'],
            [order, [['accounts', '{']], 'accounts'],
            [
                order,
                [
                    [
                        'accounts',
                        JSON.stringify([
                            {
                                directory: 'https://ca.test/dir',
                                email: null,
                                eabKeyId: null,
                                key: 'no key',
                                url: null,
                                createdAt: '2026-01-01T00:00:00.000Z'
                            }
                        ])
                    ]
                ],
                'accounts.0.key'
            ]
        ];
        for (const [row, secrets, path] of faults) {
            const document = await sealed(
                { certificates: [row] },
                new Map([['certificates', new Map(secrets)]])
            );
            const { code, data, text } = await panel.client.post(`${base}/import`, {
                document,
                passphrase,
                mode: 'merge',
                dryRun: false
            });
            expect([code, data?.errors?.[0]?.path], text).to.equal([
                40001,
                `document.sections.certificates.${path}`
            ]);
            expect(text).to.not.contain(macKey);
        }
        expect(JSON.stringify(await listed(panel))).to.equal(before);
    });
});
