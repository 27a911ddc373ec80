import { BlockList } from 'node:net';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import fc from 'fast-check';

import { type Ip, parseIp, parseRange, type Range } from '../../../../core/src/platform/address/ip.ts';
import { forbids } from '../../../../core/src/platform/outbound/addresses.ts';

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
const verdict = (text: string, allow: readonly string[] = [], own: readonly string[] = []): string | null =>
    forbids(address(text), allow.map(range), own.map(address));

const ipv4Of = (value: number): string => [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join('.');
const anyIPv4 = fc
    .oneof(
        fc.nat(0xffff_ffff),
        // Beside the edges of the ranges, where mistakes are.
        fc
            .tuple(
                fc.constantFrom(0, 10, 100, 127, 169, 172, 192, 198, 203, 224, 240),
                fc.constantFrom(0, 2, 15, 16, 18, 19, 20, 31, 32, 51, 63, 64, 88, 127, 128, 168, 254, 255),
                fc.nat(255),
                fc.nat(255)
            )
            .map(([a, b, c, d]) => a * 2 ** 24 + b * 2 ** 16 + c * 256 + d)
    )
    .map(ipv4Of);
const anyIPv6 = fc
    .array(fc.oneof(fc.nat(0xffff), fc.constant(0)), { minLength: 8, maxLength: 8 })
    .map((groups) => groups.map((group) => group.toString(16)).join(':'));

/** The registries once more, in another notation and by another implementation. */
const refused = new BlockList();
for (const [from, to] of [
    ['0.0.0.0', '0.255.255.255'],
    ['10.0.0.0', '10.255.255.255'],
    ['100.64.0.0', '100.127.255.255'],
    ['127.0.0.0', '127.255.255.255'],
    ['168.63.129.16', '168.63.129.16'],
    ['169.254.0.0', '169.254.255.255'],
    ['172.16.0.0', '172.31.255.255'],
    ['192.0.0.0', '192.0.0.255'],
    ['192.0.2.0', '192.0.2.255'],
    ['192.88.99.0', '192.88.99.255'],
    ['192.168.0.0', '192.168.255.255'],
    ['198.18.0.0', '198.19.255.255'],
    ['198.51.100.0', '198.51.100.255'],
    ['203.0.113.0', '203.0.113.255'],
    ['224.0.0.0', '255.255.255.255']
] as const) {
    refused.addRange(from, to, 'ipv4');
}

describe('forbids', () => {
    it('refuses exactly the special ranges of IPv4, bare, mapped into IPv6 and behind NAT64', () => {
        fc.assert(
            fc.property(anyIPv4, (text) => {
                const bad = refused.check(text, 'ipv4');
                expect(verdict(text) !== null, text).to.equal(bad);
                expect(verdict(`::ffff:${text}`) !== null, text).to.equal(bad);
                expect(verdict(`64:ff9b::${text}`) !== null, text).to.equal(bad);
                expect(verdict(`0:0:0:0:0:ffff:${text}`) !== null, text).to.equal(bad);
            }),
            { numRuns: 2_000 }
        );
    });

    it('refuses other ways to write an IPv4 address into an IPv6 one, whatever it is', () => {
        fc.assert(
            fc.property(anyIPv4, (text) => {
                const hex = Buffer.from(address(text).toByteArray()).toString('hex');
                const groups = `${hex.slice(0, 4)}:${hex.slice(4)}`;
                for (const carried of [
                    `::${text}`,
                    `::ffff:0:${text}`,
                    `64:ff9b:1::${text}`,
                    `2002:${groups}::1`,
                    `2001:0:1:2:3:4:${groups}`
                ]) {
                    expect(verdict(carried), carried).not.to.be.null();
                }
            })
        );
    });

    it('passes only addresses of IPv6 that are given out', () => {
        fc.assert(
            fc.property(anyIPv6, (text) => {
                const top = Number.parseInt(text, 16);
                if (top < 0x2000 || top > 0x3fff) {
                    expect(verdict(text), text).not.to.be.null();
                }
            })
        );
        for (const text of [
            '::',
            '::1',
            '100::1',
            '2001::1',
            '2001:10::1',
            '2001:db8::1',
            '2002::1',
            '3fff::1',
            '5f00::1',
            'fc00::1',
            'fd00:ec2::254',
            'fe80::1',
            'febf::1',
            'fec0::1',
            'ff02::1',
            '4000::1'
        ]) {
            expect(verdict(text), text).not.to.be.null();
        }
        for (const text of [
            '2606:4700:4700::1111',
            '2a00:1450:4001::1',
            '2001:4860:4860::8888',
            '2001:200::1',
            '64:ff9b::808:808',
            '::ffff:8.8.8.8'
        ]) {
            expect(verdict(text), text).to.be.null();
        }
    });

    it('passes what is allowed, in each of its notations, and nothing beside it', () => {
        const allow = ['10.1.0.0/16', 'fd00:1::/32', '169.254.169.254'];
        for (const text of [
            '10.1.2.3',
            '::ffff:10.1.2.3',
            '64:ff9b::10.1.2.3',
            'fd00:1::5',
            '169.254.169.254'
        ]) {
            expect(verdict(text, allow), text).to.be.null();
        }
        for (const text of [
            '10.2.0.0',
            '::ffff:10.0.255.255',
            'fd00:2::1',
            '169.254.169.253',
            '127.0.0.1',
            '2002:a01:203::1'
        ]) {
            expect(verdict(text, allow), text).not.to.be.null();
        }
    });

    it('refuses the addresses of this machine, unless they are allowed', () => {
        const own = ['8.8.4.4', '2a00::5'];
        expect(verdict('8.8.4.4', [], own)).to.equal('an address of this machine');
        expect(verdict('::ffff:8.8.4.4', [], own)).to.equal('an address of this machine');
        expect(verdict('2a00::5', [], own)).to.equal('an address of this machine');
        expect(verdict('8.8.4.5', [], own)).to.be.null();
        expect(verdict('8.8.4.4', ['8.8.4.4'], own)).to.be.null();
    });
});
