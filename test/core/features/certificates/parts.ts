import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import type { Draft } from '../../../../core/src/engine/change.ts';
import { renewalTime, retryAfter, warningDue } from '../../../../core/src/features/certificates/acme/pace.ts';
import { readProblem, retryTime } from '../../../../core/src/features/certificates/acme/problem.ts';
import {
    newCertificateKey,
    signingRequest
} from '../../../../core/src/features/certificates/acme/request.ts';
import { EngineCertificates } from '../../../../core/src/features/certificates/engine-certificates.ts';
import { readDomains } from '../../../../core/src/features/certificates/input/domains.ts';
import { challengeValue, newAccountKey, thumbprintOf } from '../../../../core/src/platform/acme-key.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

const day = 86_400_000;
let folder = '';

before(() => {
    folder = mkdtempSync(join(tmpdir(), 'portico-parts-'));
});

after(() => {
    rmSync(folder, { recursive: true });
});

const openssl = (...args: readonly string[]): string =>
    execFileSync('openssl', args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

describe('signingRequest', () => {
    it('is one that OpenSSL verifies, with every name, also when there are a hundred', () => {
        for (const count of [1, 100]) {
            const names = Array.from({ length: count }, (_, at) => `*.${'a'.repeat(40)}${at}.example.test`);
            writeFileSync(join(folder, 'request.der'), signingRequest(names, newCertificateKey()));
            const text = openssl('req', '-inform', 'DER', '-in', 'request.der', '-verify', '-noout', '-text');
            expect(text).to.contain('DNS:').and.contain('ecdsa-with-SHA256');
            expect(text.match(/DNS:/g)).to.have.length(count);
        }
    });
});

describe('challengeValue', () => {
    it('is what RFC 7638 and RFC 8555 say', () => {
        // The example of RFC 7638 is RSA; the members of an EC key are ordered alike.
        expect(
            thumbprintOf({
                kty: 'EC',
                crv: 'P-256',
                x: 'MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4',
                y: '4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM'
            })
        ).to.equal('cn-I_WNMClehiVp51i_0VpOENW1upEerA8sEam5hn-s');
        expect(challengeValue('token', newAccountKey())).to.match(/^[A-Za-z0-9_-]{43}$/);
    });
});

describe('pace', () => {
    it('renews after two thirds of a life, and never one right after the other', () => {
        const [from, to] = ['2026-01-01T00:00:00.000Z', '2026-04-01T00:00:00.000Z'];
        expect(renewalTime(from, to, Date.parse(from), 0)).to.equal(Date.parse('2026-03-02T00:00:00.000Z'));
        expect(renewalTime(from, to, Date.parse(from), 1)).to.be.below(
            Date.parse('2026-03-02T00:00:00.000Z')
        );
        expect(renewalTime(from, to, Date.parse(to) - day)).to.equal(Date.parse(to) - day / 2);
        expect(renewalTime(from, to, Date.parse(to) + day)).to.equal(Date.parse(to) + day + 300_000);
    });

    it('waits twice as long after each failure, at most a day, and as long as the CA says', () => {
        const pauses = Array.from({ length: 12 }, (_, at) => retryAfter(at + 1, 0, null, 0.5));
        expect(pauses.slice(0, 4)).to.equal([300_000, 600_000, 1_200_000, 2_400_000]);
        expect(pauses.at(-1)).to.equal(day);
        expect(retryAfter(1, 0, null, 0)).to.equal(240_000);
        expect(retryAfter(1, 0, null, 1)).to.equal(360_000);
        expect(retryAfter(1, 0, 10 * day, 0)).to.equal(10 * day);
    });

    it('warns 14, 7, 3 and 1 days before the end and at it, each time once', () => {
        const end = '2026-04-01T00:00:00.000Z';
        const told: (number | null)[] = [];
        let warned: number | null = null;
        for (let left = 20; left >= -2; left -= 1) {
            const due = warningDue(end, warned, Date.parse(end) - left * day);
            warned = due ?? warned;
            told.push(...(due === null ? [] : [left]));
        }
        expect(told).to.equal([14, 7, 3, 1, 0]);
    });
});

describe('what a CA says', () => {
    it('is taken as a problem and nothing more, however it looks', () => {
        expect(readProblem(null, 'nothing')).to.equal({ type: 'about:blank', detail: 'nothing' });
        expect(
            readProblem(
                { type: 1, detail: {}, status: 'x', identifier: [], subproblems: {}, more: 'x' },
                'odd'
            )
        ).to.equal({ type: 'about:blank', detail: 'odd' });
        const long = readProblem(
            {
                type: 'a\nb',
                detail: 'x'.repeat(10_000),
                subproblems: Array.from({ length: 100 }, () => ({ type: 't', detail: 'd' }))
            },
            ''
        );
        expect([long.type, long.detail.length, long.subproblems?.length]).to.equal(['a b', 2_000, 20]);
        expect([
            retryTime('120', 1_000),
            retryTime('Thu, 01 Jan 1970 00:02:00 GMT', 0),
            retryTime('soon', 0),
            retryTime(undefined, 0)
        ]).to.equal([121_000, 120_000, null, null]);
    });
});

describe('readDomains', () => {
    it('takes one spelling of each name', () => {
        expect(readDomains(['BÜCHER.test', '*.Example.Test', 'xn--bcher-kva.example']).domains).to.equal([
            'xn--bcher-kva.test',
            '*.example.test',
            'xn--bcher-kva.example'
        ]);
        for (const name of [
            '',
            '*',
            'a',
            '*.test',
            'a..test',
            '-a.test',
            '127.0.0.1',
            '::1',
            'a.test/b',
            'a.*.test',
            `${'a'.repeat(64)}.test`,
            'a_b.test',
            '1.2.3.4',
            'a.test\n'
        ]) {
            const { faults } = readDomains([name]);
            expect(faults.length, name).to.equal(1);
        }
    });
});

describe('EngineCertificates', () => {
    it('reads certificates only, follows no link, and waits for nothing', { timeout: 10_000 }, async () => {
        const root = join(folder, 'storage');
        const place = (issuer: string, name: string): string => {
            mkdirSync(join(root, 'certificates', issuer, name), { recursive: true });
            return join(root, 'certificates', issuer, name, `${name}.crt`);
        };
        openssl(
            'req',
            '-x509',
            '-newkey',
            'ec',
            '-pkeyopt',
            'ec_paramgen_curve:P-256',
            '-nodes',
            '-keyout',
            'k.pem',
            '-out',
            'c.pem',
            '-subj',
            '/CN=x',
            '-days',
            '9',
            '-addext',
            'subjectAltName=DNS:own.test'
        );
        const pem = readFileSync(join(folder, 'c.pem'), 'utf8');
        writeFileSync(place('local', 'own.test'), pem);
        symlinkSync(join(folder, 'c.pem'), place('local', 'link.test'));
        writeFileSync(place('local', 'key.test'), readFileSync(join(folder, 'k.pem')));
        writeFileSync(place('local', 'large.test'), `${pem}${'x'.repeat(400_000)}`);
        writeFileSync(place('local', 'odd.test'), 'nothing');
        execFileSync('mkfifo', [place('local', 'fifo.test')]);
        mkdirSync(place('local', 'folder.test'));
        symlinkSync(join(root, 'certificates', 'local'), join(root, 'certificates', 'again'));
        const draft = { hosts: new Map(), hostOf: () => undefined } as unknown as Draft;
        const own = new EngineCertificates(() => root);
        const list = await own.list(draft);
        expect(list.map(({ name }) => name)).to.equal(['own.test']);
        expect(list[0]).to.include({
            source: 'engine',
            fingerprint256: new X509Certificate(pem).fingerprint256.replaceAll(':', '').toLowerCase(),
            usedBy: []
        });
        expect(Number.isSafeInteger(list[0]?.id)).to.be.true();
        expect(await own.list(draft)).to.equal(list);
        expect(await new EngineCertificates(() => null).list(draft)).to.equal([]);
        expect(await new EngineCertificates(() => join(folder, 'missing')).list(draft)).to.equal([]);
    });
});
