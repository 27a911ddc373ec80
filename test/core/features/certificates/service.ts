import { execFileSync } from 'node:child_process';
import { createPublicKey, X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:tls';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { type FailureError, isFailure } from '@portico/sdk';

import type { Draft } from '../../../../core/src/engine/change.ts';
import { Renewals } from '../../../../core/src/features/certificates/acme/renewals.ts';
import { parseUpload } from '../../../../core/src/features/certificates/input/pem.ts';
import { Placement } from '../../../../core/src/features/certificates/placement/placement.ts';
import { type CertificateView, certificateView } from '../../../../core/src/features/certificates/schema.ts';
import { DatabaseCertificateStore } from '../../../../core/src/features/certificates/store.ts';
import { adminMay, createHostKit, type HostKit, operatorMay } from '../../../support/core/hosts.ts';
import { callOf, person } from '../../../support/core/store.ts';
import { type Pair, selfSigned } from '../../../support/servers/self-signed.ts';
import { until } from '../../../support/until.ts';

export const lab = Lab.script();
const { describe, it, before, beforeEach, after, afterEach } = lab;

let kit: HostKit;
let folder = '';
const admin = (more = {}) => callOf(person('admin', adminMay), more);

const openssl = (...args: readonly string[]): string =>
    execFileSync('openssl', args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

let pair: Pair;
let other: Pair;
let chain: Pair & { readonly leaf: string; readonly ca: string };

before(() => {
    folder = mkdtempSync(join(tmpdir(), 'portico-pem-'));
    pair = selfSigned(['a.test', '*.A.test', '192.0.2.7']);
    other = selfSigned(['a.test', 'b.test']);
    const authority = selfSigned(['ca.test']);
    writeFileSync(join(folder, 'ca.pem'), authority.certificate);
    writeFileSync(join(folder, 'ca.key'), authority.key);
    const leaf = selfSigned(['a.test'], {
        more: ['-CA', join(folder, 'ca.pem'), '-CAkey', join(folder, 'ca.key')]
    });
    chain = {
        certificate: leaf.certificate + authority.certificate,
        key: leaf.key,
        leaf: leaf.certificate,
        ca: authority.certificate
    };
});

after(() => {
    rmSync(folder, { recursive: true });
});

beforeEach(async () => {
    kit = await createHostKit();
    kit.clock.time = Date.now() + 3_600_000;
});

afterEach(async () => {
    await kit.close();
});

async function refused(work: Promise<unknown>): Promise<FailureError> {
    const thrown: unknown = await work.then(
        () => 'nothing was thrown',
        (error: unknown) => error
    );
    if (!isFailure(thrown)) {
        throw new Error('not refused by a failure', { cause: thrown });
    }
    return thrown;
}

async function upload(body: Pair, more = {}): Promise<CertificateView> {
    return (await kit.certificates.upload({ ...body, ...more }, admin())).data;
}

const rows = (): unknown[] => kit.store.db.prepare('select * from certificate').all();

describe('upload', () => {
    it('answers what GET and the list answer, with what the certificate says', async () => {
        const call = admin();
        const { status, headers, data } = await kit.certificates.upload({ ...pair }, call);
        expect([status, headers['location'], headers['etag']]).to.equal([201, '/api/certificates/1', '"1"']);
        const x509 = new X509Certificate(pair.certificate);
        expect(data).to.include({
            id: 1,
            name: 'a.test',
            source: 'upload',
            domains: ['a.test', '*.a.test'],
            serial: x509.serialNumber,
            issuer: 'CN=test',
            notAfter: x509.validToDate.toISOString(),
            usedBy: [],
            autoRenew: false,
            version: 1
        });
        expect(data.fingerprint256).to.equal(x509.fingerprint256.replaceAll(':', '').toLowerCase());
        expect(await kit.certificates.get(1)).to.equal(data);
        expect(await kit.certificates.list()).to.equal([data]);
        expect(certificateView.validate(data, { convert: false }).error).to.be.undefined();
        expect(call.done[0]).to.include({
            action: 'create',
            resource: 'certificates',
            resourceId: 1,
            before: null,
            after: data
        });
    });

    it('seals the key, and shows it nowhere', async () => {
        const call = admin();
        await kit.certificates.upload({ ...pair }, call);
        const secret = pair.key.split('\n')[1] ?? '';
        for (const text of [
            JSON.stringify(rows()),
            JSON.stringify(await kit.certificates.list()),
            JSON.stringify(call.done),
            kit.store.lines.join('')
        ]) {
            expect(text).to.not.contain(secret).and.not.contain('PRIVATE KEY');
        }
    });

    it('takes chains, RSA, Ed25519, classic key formats, and two certificates for one name', async () => {
        await upload(chain);
        await upload(selfSigned(['r.test'], { algorithm: ['-newkey', 'rsa:2048'] }));
        await upload(selfSigned(['e.test'], { algorithm: ['-newkey', 'ed25519'] }));
        writeFileSync(join(folder, 'x.pem'), pair.key);
        const classic = `-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n${openssl('ec', '-in', 'x.pem')}`;
        await upload({ certificate: pair.certificate.replaceAll('\n', '\r\n'), key: classic });
        await upload(pair);
        expect(await kit.certificates.list()).to.have.length(5);
        expect(kit.engine.draft().certificates.size).to.equal(5);
    });

    it('refuses everything that is wrong, with the reason, and keeps nothing', async () => {
        writeFileSync(join(folder, 'x.pem'), pair.key);
        const encrypted = openssl('pkcs8', '-topk8', '-in', 'x.pem', '-passout', 'pass:x');
        const cases: readonly [Pair, string, RegExp][] = [
            [{ ...pair, key: other.key }, 'key', /does not belong/],
            [{ ...pair, key: encrypted }, 'key', /encrypted/],
            [{ ...pair, key: 'nonsense' }, 'key', /must be PEM/],
            [{ ...pair, key: pair.key + other.key }, 'key', /one private key/],
            [{ ...pair, key: pair.key.replace(/M[A-Z]/, 'AA') }, 'key', /damaged/],
            [{ ...pair, certificate: '' }, 'certificate', /must be PEM/],
            [{ ...pair, certificate: `${pair.certificate}garbage` }, 'certificate', /nothing else/],
            [{ ...pair, certificate: pair.certificate + pair.key }, 'certificate', /private key/],
            [{ ...pair, certificate: pair.certificate.replace(/MII/, 'AAA') }, 'certificate', /damaged/],
            [{ ...chain, certificate: chain.ca + chain.leaf }, 'certificate', /did not issue/],
            [{ ...chain, certificate: chain.leaf + other.certificate }, 'certificate', /did not issue/],
            [selfSigned([]), 'certificate', /no DNS names/],
            [selfSigned(['192.0.2.7']), 'certificate', /no DNS names/],
            [selfSigned(['a.test'], { algorithm: ['-newkey', 'rsa:1024'] }), 'certificate', /too weak/],
            [
                selfSigned(['a.test'], {
                    algorithm: ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:secp224r1']
                }),
                'certificate',
                /too weak/
            ],
            [
                selfSigned(['a.test'], { more: ['-addext', 'extendedKeyUsage=clientAuth'] }),
                'certificate',
                /not meant for servers/
            ]
        ];
        for (const [body, path, reason] of cases) {
            const failure = await refused(upload(body));
            const errors = failure.data?.['errors'] as { path: string; message: string }[];
            expect(failure.code).to.equal(40001);
            expect(
                errors.some((error) => error.path === path && reason.test(error.message)),
                `${reason}: ${JSON.stringify(errors)}`
            ).to.be.true();
            expect(JSON.stringify(failure.data)).to.not.contain((body.key.split('\n')[1] ?? '') || 'PRIVATE');
        }
        expect(rows()).to.equal([]);
    });

    it('refuses what has expired or is not valid yet, in the whole chain', async () => {
        for (const [offset, reason] of [
            [400, /expired/],
            [-400, /not valid before/]
        ] as const) {
            kit.clock.time = Date.now() + offset * 86_400_000;
            const failure = await refused(upload(chain));
            const messages = (failure.data?.['errors'] as { message: string }[]).map(
                ({ message }) => message
            );
            expect(messages).to.have.length(2);
            expect(messages.every((message) => reason.test(message))).to.be.true();
        }
    });

    it('keeps nothing when the engine refuses', async () => {
        kit.driver.always('load', { reject: 'no' });
        await kit.hosts.create({ domain: 'x.test', upstream: 'a:1' }, admin()).catch(() => undefined);
        kit.driver.always('load', null);
        kit.driver.crash('gone');
        expect((await refused(upload(pair))).code).to.equal(50301);
        expect(rows()).to.equal([]);
        expect(kit.engine.draft().certificates.size).to.equal(0);
    });
});

describe('use by hosts', () => {
    const secure = (domain: string, certificateId: number | null, more = {}) =>
        kit.hosts.create(
            { domain, upstream: 'a:1', ssl: true, sslMode: 'certificate', certificateId, ...more },
            admin()
        );

    it('covers every name of the host, with a wildcard for one label', async () => {
        await upload(pair);
        await secure('a.test', 1, { aliases: ['x.a.test'] });
        await secure('*.a.test', 1);
        for (const work of [
            secure('b.test', 1),
            secure('x.y.a.test', 1),
            secure('c.a.test', 1, { aliases: ['c.test'] }),
            secure('c.a.test', 9),
            secure('c.a.test', null)
        ]) {
            const failure = await refused(work);
            expect([failure.code, (failure.data?.['errors'] as { path: string }[])[0]?.path]).to.equal([
                40001,
                'certificateId'
            ]);
        }
        expect((await kit.certificates.get(1)).usedBy).to.equal([1, 2]);
    });

    it('refuses to remove a used one, and to replace it by one that does not cover its hosts', async () => {
        await upload(pair);
        await secure('x.a.test', 1);
        const used = await refused(kit.certificates.remove(1, admin()));
        expect([used.code, used.data?.['by']]).to.equal([40901, [1]]);
        const wrong = await refused(kit.certificates.update(1, { ...other }, admin()));
        expect(wrong.code).to.equal(40001);
        expect(JSON.stringify(wrong.data)).to.contain('x.a.test of host 1');
        await kit.hosts.remove(1, admin());
        expect((await kit.certificates.remove(1, admin())).data).to.be.null();
        expect((await upload(pair)).id).to.equal(2);
    });
});

describe('update', () => {
    it('renames without the engine, and replaces certificate and key together', async () => {
        const first = await upload(pair);
        kit.driver.crash('gone');
        const named = (await kit.certificates.update(1, { name: 'Mine', id: 9, domains: ['x'] }, admin()))
            .data;
        expect(named).to.equal({ ...first, name: 'Mine', version: 2, updatedAt: named.updatedAt });
        kit.driver.recover();
        const replaced = (await kit.certificates.update(1, { ...other }, admin({ ifMatch: '2' }))).data;
        expect(replaced).to.include({ name: 'Mine', version: 3, domains: ['a.test', 'b.test'] });
        expect(await kit.certificates.get(1)).to.equal(replaced);
        expect(kit.engine.draft().certificates.get(1)?.fingerprint).to.equal(replaced.fingerprint256 ?? '');
        for (const body of [{ certificate: pair.certificate }, { key: pair.key }]) {
            expect((await refused(kit.certificates.update(1, body, admin()))).code).to.equal(40001);
        }
        expect((await refused(kit.certificates.update(1, { name: 'x', version: 1 }, admin()))).data).to.equal(
            { version: 3 }
        );
    });

    it('lets one of several changes of the same version win', async () => {
        await upload(pair);
        const outcomes = await Promise.allSettled([
            kit.certificates.update(1, { name: 'x' }, admin({ ifMatch: '1' })),
            kit.certificates.update(1, { name: 'y' }, admin({ ifMatch: '1' })),
            kit.certificates.update(1, { ...other }, admin({ ifMatch: '1' }))
        ]);
        expect(outcomes.filter(({ status }) => status === 'fulfilled')).to.have.length(1);
        expect(
            outcomes.flatMap((outcome) =>
                outcome.status === 'rejected' ? [(outcome.reason as FailureError).code] : []
            )
        ).to.equal([41200, 41200]);
        expect((await kit.certificates.get(1)).version).to.equal(2);
    });
});

describe('download', () => {
    const read = async (may: readonly string[], withKey?: boolean, fresh = true): Promise<string> => {
        const call = callOf(person('somebody', may, { fresh }));
        const found = await kit.certificates.download(1, withKey, call);
        let text = '';
        for await (const part of found.open({ start: 0, end: null }) as AsyncIterable<Uint8Array>) {
            text += Buffer.from(part).toString('utf8');
        }
        expect(found.size).to.equal(Buffer.byteLength(text));
        expect(call.done.length).to.equal(text.includes('PRIVATE KEY') ? 1 : 0);
        return text;
    };

    it('gives the key only to a caller who has the permission and is fresh, and puts that on record', async () => {
        await upload(chain);
        const whole = await read(adminMay);
        expect(whole.match(/BEGIN CERTIFICATE/g)).to.have.length(2);
        expect(
            createPublicKey(whole.slice(whole.indexOf('-----BEGIN PRIVATE'))).equals(
                new X509Certificate(chain.leaf).publicKey
            )
        ).to.be.true();
        for (const text of [
            await read(adminMay, false),
            await read(adminMay, undefined, false),
            await read(operatorMay)
        ]) {
            expect(text).to.contain('BEGIN CERTIFICATE').and.not.contain('PRIVATE KEY');
        }
        expect((await refused(read(operatorMay, true))).code).to.equal(40300);
        expect((await refused(read(adminMay, true, false))).code).to.equal(40301);
    });
});

describe('Placement', () => {
    it('finds out that the former one is still served, and puts it back for the one who called', async () => {
        const first = await upload(selfSigned(['a.test']));
        await kit.hosts.create(
            {
                domain: 'a.test',
                upstream: '127.0.0.1:1',
                ssl: true,
                sslMode: 'certificate',
                certificateId: first.id
            },
            callOf(person('admin', adminMay))
        );
        const store = new DatabaseCertificateStore(kit.store.db, kit.store.keyring);
        const before = store.get(first.id);
        // A server that hands out the former certificate, whichever is loaded.
        const stale = createServer({ cert: before.chain, key: store.open(before) });
        await new Promise<void>((resolve) => stale.listen(0, '127.0.0.1', resolve));
        const { port } = stale.address() as AddressInfo;
        const draft = (): Draft => {
            const { hosts, certificates } = kit.engine.draft();
            return {
                hosts,
                certificates,
                settings: { ...kit.settings.engine, httpsPort: port },
                hostOf: () => undefined,
                nextHostId: () => 0
            };
        };
        const engine = {
            change: kit.engine.change.bind(kit.engine),
            draft,
            pending: () => new Set<number>(),
            process: () => kit.engine.process()
        };
        const placement = new Placement({
            engine,
            store,
            db: kit.store.db,
            clock: kit.clock,
            covers: () => true,
            proofMs: 300
        });
        const next = selfSigned(['a.test']);
        const parsed = parseUpload(next.certificate, next.key, kit.clock.now());
        if (!('parsed' in parsed)) {
            throw new Error('not parsed');
        }
        await placement.adopt(first.id, parsed.parsed, admin());
        expect(store.get(first.id)).to.include({ version: 2, fingerprint: parsed.parsed.fingerprint });
        expect(await placement.prove(first.id, before, new AbortController().signal)).to.contain(
            'still served for a.test'
        );
        await placement.revert(before, admin());
        expect(store.get(first.id)).to.include({
            version: 3,
            fingerprint: before.fingerprint,
            chain: before.chain,
            notAfter: before.notAfter
        });
        expect(kit.engine.draft().certificates.get(first.id)?.fingerprint).to.equal(before.fingerprint);
        expect(store.open(store.get(first.id))).to.equal(store.open(before));
        stale.close();
    });
});

describe('Renewals', () => {
    it('starts what is due, and tells once of each that comes to its end', async () => {
        const { id } = await upload(selfSigned(['a.test']));
        const store = new DatabaseCertificateStore(kit.store.db, kit.store.keyring);
        const told: unknown[] = [];
        const started: number[] = [];
        const renewals = new Renewals({
            store,
            db: kit.store.db,
            clock: kit.clock,
            log: kit.store.log,
            systemCall: () => admin(),
            events: {
                issued: () => undefined,
                failed: () => undefined,
                expiring: (event) => void told.push([event.id, event.daysLeft])
            },
            issuance: { busy: () => false, start: async (row) => started.push(row.id) as never } // its task is not read
        });
        const look = async (): Promise<void> => {
            renewals.start();
            await until(() => kit.store.db.write(async () => true), 'it has looked');
            await kit.store.db.write(async () => undefined);
            renewals.stop();
        };
        await look();
        expect([told, started]).to.equal([[], []]);
        const end = Date.parse(store.get(id).notAfter);
        for (const days of [13, 12, 2, 0.5, -1, -2]) {
            kit.clock.time = end - days * 86_400_000;
            await look();
        }
        expect(told).to.equal([
            [id, 13],
            [id, 2],
            [id, 0],
            [id, 0]
        ]);
        // An upload is never ordered; an order whose time has come is.
        await kit.store.db.write(async (tx) => {
            await store.note(tx, id, { nextAttemptAt: 1 });
        });
        await look();
        expect(started).to.equal([]);
        await kit.store.db.write(async (tx) => {
            await store.write(tx, { ...store.get(id), source: 'acme', autoRenew: true });
        });
        await look();
        expect(started).to.equal([id]);
    });
});
