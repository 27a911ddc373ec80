import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import {
    newCertificateKey,
    signingRequest
} from '../../../../../core/src/features/certificates/acme/request.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

let folder = '';

before(() => {
    folder = mkdtempSync(join(tmpdir(), 'portico-certificates-'));
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
