import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { EngineCertificates } from '../../../../core/src/features/certificates/engine-certificates.ts';
import { selfSigned } from '../../../support/servers/self-signed.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

let folder = '';

before(() => {
    folder = mkdtempSync(join(tmpdir(), 'portico-certificates-'));
});

after(() => {
    rmSync(folder, { recursive: true });
});

describe('EngineCertificates', () => {
    it('reads certificates only, follows no link, and waits for nothing', { timeout: 10_000 }, async () => {
        const root = join(folder, 'storage');
        const place = (issuer: string, name: string): string => {
            mkdirSync(join(root, 'certificates', issuer, name), { recursive: true });
            return join(root, 'certificates', issuer, name, `${name}.crt`);
        };
        const { certificate: pem, key } = selfSigned(['own.test']);
        writeFileSync(join(folder, 'c.pem'), pem);
        writeFileSync(place('local', 'own.test'), pem);
        symlinkSync(join(folder, 'c.pem'), place('local', 'link.test'));
        writeFileSync(place('local', 'key.test'), key);
        writeFileSync(place('local', 'large.test'), `${pem}${'x'.repeat(400_000)}`);
        writeFileSync(place('local', 'odd.test'), 'nothing');
        execFileSync('mkfifo', [place('local', 'fifo.test')]);
        mkdirSync(place('local', 'folder.test'));
        symlinkSync(join(root, 'certificates', 'local'), join(root, 'certificates', 'again'));
        const draft = { hosts: new Map(), hostOf: () => undefined };
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
