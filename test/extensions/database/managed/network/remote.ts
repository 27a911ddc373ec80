/** Networks that reach a server, and the certificate that it shows them. */
import { X509Certificate } from 'node:crypto';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { makeCertificate } from '../../../../../extensions/database/src/managed/network/certificate.ts';
import {
    isAllowedHost,
    normalNetwork
} from '../../../../../extensions/database/src/managed/network/remote.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('isAllowedHost()', () => {
    it('lets in what lies in a network, in every form of MariaDB', () => {
        const allow = ['10.1.0.0/16', '192.0.2.7/32', '2001:db8::/32'];
        for (const host of [
            'localhost',
            '127.0.0.1',
            '10.1.2.3',
            '10.1.%',
            '10.1.2.%',
            '10.1.4.0/255.255.252.0',
            '192.0.2.7',
            '2001:db8:1::5'
        ]) {
            expect([host, isAllowedHost(host, allow)]).to.equal([host, true]);
        }
        for (const host of [
            '%',
            '',
            '10.%',
            '10.2.0.1',
            '10.1.0.0/255.0.0.0',
            '192.0.2.%',
            'db.test',
            '2001:db9::1'
        ]) {
            expect([host, isAllowedHost(host, allow)]).to.equal([host, false]);
        }
    });
});

describe('normalNetwork()', () => {
    it('takes addresses and networks, and nothing that a configuration would read otherwise', () => {
        expect(normalNetwork('10.0.0.1', 'x')).to.equal('10.0.0.1/32');
        expect(normalNetwork('2001:db8::/32', 'x')).to.equal('2001:db8::/32');
        for (const wrong of [
            'all',
            '10.0.0.1/8',
            '010.0.0.1',
            '1.2.3',
            '10.0.0.0/8 trust',
            '10.0.0.0/8\nhost',
            '::g',
            ''
        ]) {
            expect(() => normalNetwork(wrong, 'x'), wrong).to.throw();
        }
    });
});

describe('makeCertificate()', () => {
    it('names hosts and addresses, and signs itself', () => {
        const hosts = ['db.test', '127.0.0.1', '2001:db8::7'];
        const { certificate, key } = makeCertificate('a name', hosts, new Date('2026-01-02T03:04:05Z'));
        const found = new X509Certificate(certificate);
        expect(found.verify(found.publicKey)).to.be.true();
        expect([found.subject, found.ca, key.startsWith('-----BEGIN PRIVATE KEY')]).to.equal([
            'CN=a name',
            true,
            true
        ]);
        expect(found.checkHost('db.test')).to.equal('db.test');
        expect(found.checkIP('127.0.0.1')).to.equal('127.0.0.1');
        expect(found.checkIP('2001:db8::7')).to.equal('2001:db8::7');
        expect([found.validFromDate.toISOString(), found.validToDate.toISOString()]).to.equal([
            '2026-01-02T03:04:05.000Z',
            '2046-01-02T03:04:05.000Z'
        ]);
        const late = new X509Certificate(
            makeCertificate('x', [], new Date('2040-01-01T00:00:00Z')).certificate
        );
        expect(late.validToDate.getUTCFullYear()).to.equal(2060);
    });
});
