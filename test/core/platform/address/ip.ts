import { BlockList } from 'node:net';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import fc from 'fast-check';

import {
    contains,
    type Ip,
    parseIp,
    parseRange,
    type Range,
    unmapped
} from '../../../../core/src/platform/address/ip.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const known =
    <T>(read: (text: string) => T | null) =>
    (text: string): T => {
        const found = read(text);
        if (found === null) {
            throw new Error(`${text} is not understood`);
        }
        return found;
    };
const address: (text: string) => Ip = known(parseIp);
const range: (text: string) => Range = known(parseRange);
const valueOf = (text: string): bigint =>
    BigInt(`0x${Buffer.from(address(text).toByteArray()).toString('hex')}`);
const groupsOf = (value: bigint): string =>
    value
        .toString(16)
        .padStart(32, '0')
        .replace(/(....)(?=.)/g, '$1:');

const ipv4Of = (value: number): string => [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join('.');
const anyIPv4 = fc.nat(0xffff_ffff).map(ipv4Of);
const anyIPv6 = fc
    .array(fc.oneof(fc.nat(0xffff), fc.constant(0)), { minLength: 8, maxLength: 8 })
    .map((groups) => groups.map((group) => group.toString(16)).join(':'));

describe('parseIp', () => {
    it('reads every notation of IPv6 as the same number', () => {
        fc.assert(
            fc.property(anyIPv6, (text) => {
                // The URL parser is another implementation: it shortens, and writes lower-case.
                const short = new URL(`http://[${text}]`).hostname.slice(1, -1);
                expect(address(text)).to.equal(address(short));
                expect(address(text.toUpperCase())).to.equal(address(short));
                expect(new URL(`http://[${groupsOf(valueOf(text))}]`).hostname).to.equal(`[${short}]`);
                expect(address(text).toString()).to.equal(short);
            })
        );
    });

    it('reads a dotted quad at the end', () => {
        expect(address('::ffff:192.0.2.33')).to.equal(address('::ffff:c000:221'));
        expect(address('64:ff9b::10.1.2.3')).to.equal(address('64:ff9b::a01:203'));
        expect(address('1:2:3:4:5:6:7.8.9.10')).to.equal(address('1:2:3:4:5:6:708:90a'));
    });

    it('takes nothing but the plain notation', () => {
        for (const text of [
            '',
            '1',
            '127.1',
            '0x7f.0.0.1',
            '0177.0.0.1',
            '127.0.0.01',
            '127.0.0.1.',
            '127.0.0.1 ',
            '256.1.1.1',
            '[::1]',
            '::1%lo',
            'fe80::1%eth0',
            '::g',
            '1::2::3',
            'localhost',
            '127.0.0.1\0'
        ]) {
            expect(parseIp(text), text).to.be.null();
        }
    });
});

describe('parseRange', () => {
    it('agrees with the platform on what lies within', () => {
        fc.assert(
            fc.property(anyIPv4, fc.integer({ min: 0, max: 32 }), anyIPv4, (base, prefix, other) => {
                const list = new BlockList();
                list.addSubnet(base, prefix, 'ipv4');
                expect(contains(range(`${base}/${prefix}`), address(other))).to.equal(
                    list.check(other, 'ipv4')
                );
            })
        );
        fc.assert(
            fc.property(anyIPv6, fc.integer({ min: 1, max: 128 }), fc.nat(127), (base, prefix, flip) => {
                const near = groupsOf(valueOf(base) ^ (1n << BigInt(flip)));
                expect(contains(range(`${base}/${prefix}`), address(near))).to.equal(127 - flip >= prefix);
            })
        );
    });

    it('takes a single address, and refuses what is neither', () => {
        expect(range('10.0.0.1').prefix).to.equal(32);
        expect(range('fd00::1').prefix).to.equal(128);
        for (const text of [
            '',
            '/8',
            '10.0.0.0/33',
            '10.0.0.0/-1',
            '10.0.0.0/',
            '10.0.0.0/8/8',
            'fd00::/129',
            '10/8',
            '*',
            '10.0.0.0/1e1',
            '10.0.0.0/ 8'
        ]) {
            expect(parseRange(text), text).to.be.null();
        }
    });
});

describe('contains', () => {
    it('takes an IPv4 address inside an IPv6 one for what it is', () => {
        const within = (text: string, ip: string): boolean => contains(range(text), unmapped(address(ip)));
        expect(within('192.0.2.0/24', '::ffff:192.0.2.9')).to.be.true();
        expect(within('192.0.2.9', '::ffff:c000:0209')).to.be.true();
        expect(within('::/0', '192.0.2.9')).to.be.false();
        expect(within('0.0.0.0/0', '::1')).to.be.false();
        expect(within('2001:db8::/33', '2001:db8:7fff::1')).to.be.true();
        expect(within('2001:db8::/33', '2001:db8:8000::1')).to.be.false();
    });
});
