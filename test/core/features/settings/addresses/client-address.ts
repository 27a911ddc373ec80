import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import {
    clientAddress,
    plainAddress
} from '../../../../../core/src/features/settings/addresses/client-address.ts';
import { parseRanges } from '../../../../../core/src/platform/address/ip.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('clientAddress', () => {
    const trusted = parseRanges(['10.0.0.0/8', '192.0.2.1', '2001:db8::/32', '::1']);
    const address = (peer: string, header?: string): string => clientAddress(trusted, peer, header);

    it('is the peer without a header, and whatever the header says when the peer is not trusted', () => {
        expect(address('10.0.0.1')).to.equal('10.0.0.1');
        expect(address('203.0.113.5', '198.51.100.1')).to.equal('203.0.113.5');
        expect(clientAddress(parseRanges([]), '127.0.0.1', '198.51.100.1')).to.equal('127.0.0.1');
    });

    it('is the rightmost address that is not trusted: what is further left, any client can have sent', () => {
        expect(address('10.0.0.1', '198.51.100.1')).to.equal('198.51.100.1');
        expect(address('10.0.0.1', '1.1.1.1, 198.51.100.1')).to.equal('198.51.100.1');
        expect(address('10.0.0.1', '1.1.1.1, 198.51.100.1, 192.0.2.1, 10.9.9.9')).to.equal('198.51.100.1');
        expect(address('2001:db8::5', '2001:470::9')).to.equal('2001:470::9');
    });

    it('is the leftmost when all are trusted', () => {
        expect(address('10.0.0.1', '10.0.0.7, 10.0.0.2')).to.equal('10.0.0.7');
    });

    it('stops at what is no address, and believes nothing left of it', () => {
        expect(address('10.0.0.1', '198.51.100.1, unknown, 10.0.0.2')).to.equal('10.0.0.2');
        expect(address('10.0.0.1', '')).to.equal('10.0.0.1');
        expect(address('10.0.0.1', '198.51.100.1, <script>')).to.equal('10.0.0.1');
        expect(address('10.0.0.1', `198.51.100.1${', 10.0.0.2'.repeat(5_000)}`)).to.equal('10.0.0.2');
    });

    it('takes an address in any spelling', () => {
        expect(address('::ffff:10.0.0.1', '[2001:470::9]:4711')).to.equal('2001:470::9');
        expect(address('10.0.0.1', '198.51.100.1:4711')).to.equal('198.51.100.1');
        expect(address('10.0.0.1', '2001:470::A')).to.equal('2001:470::a');
        expect(address('10.0.0.1', '::ffff:198.51.100.1')).to.equal('198.51.100.1');
    });
});

describe('plainAddress', () => {
    it('is null for what is no address', () => {
        for (const text of [
            '',
            'localhost',
            '1.2.3',
            '1.2.3.4.5',
            '[::1',
            '::1]',
            '1.2.3.4:x',
            '999.1.1.1',
            ':::'
        ]) {
            expect(plainAddress(text), text).to.be.null();
        }
    });
});
