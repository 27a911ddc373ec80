import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { canonicalize } from '@portico/sdk';
import * as fc from 'fast-check';

import { changesOf } from '../../../../../core/src/features/audit/entry/changes.ts';
import { clean } from '../../../../../core/src/features/audit/entry/text.ts';
import { callerOf } from '../../../../../core/src/platform/address/caller.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const changes = (before: unknown, after: unknown): unknown => JSON.parse(changesOf(before, after) ?? 'null');

describe('changesOf', () => {
    it('is null when nothing is said', () => {
        expect(changesOf(undefined, null)).to.be.null();
    });

    it('keeps only the fields that differ', () => {
        expect(changes({ a: 1, b: [1, 2], c: { d: 1 } }, { a: 1, b: [1, 3], c: { d: 1 }, e: true })).to.equal(
            { before: { b: [1, 2] }, after: { b: [1, 3], e: true } }
        );
    });

    it('keeps the whole of what was made or removed', () => {
        expect(changes(null, { a: 1 })).to.equal({ before: null, after: { a: 1 } });
        expect(changes({ a: 1 }, null)).to.equal({ before: { a: 1 }, after: null });
    });

    it('shows that a secret changed and neither of its values', () => {
        expect(changes({ password: 'old-secret' }, { password: 'new-secret' })).to.equal({
            before: { password: '[masked]' },
            after: { password: '[masked]' }
        });
        expect(
            changes({ 'engine.acmeEab': null }, { 'engine.acmeEab': { keyId: 'kid', macKey: 'canary' } })
        ).to.equal({ before: { 'engine.acmeEab': null }, after: { 'engine.acmeEab': '[masked]' } });
    });

    it('masks by key at any depth, and leaves what only sounds like a secret', () => {
        const secrets = {
            newPassword: 'canary',
            passphrase: 'canary',
            client_secret: 'canary',
            accessToken: 'canary',
            apiKey: 'canary',
            key: 'canary',
            private_key: 'canary',
            passwordHash: 'canary',
            credentials: { token: 'canary' },
            totp: 'canary',
            recoveryCodes: ['canary'],
            macKey: 'canary',
            authorization: 'canary',
            cookie: 'canary',
            basicAuth: [{ username: 'u', hash: 'canary' }],
            tokens: ['canary'],
            hmac: 'canary'
        };
        const text = changesOf(null, { deep: { deeper: [secrets] } });
        expect(text).not.to.contain('canary');
        expect(
            changes(null, {
                'panel.accessTokenMinutes': 30,
                totpEnabled: true,
                keyId: 'kid',
                mustChangePassword: false
            })
        ).to.equal({
            before: null,
            after: {
                'panel.accessTokenMinutes': 30,
                totpEnabled: true,
                keyId: 'kid',
                mustChangePassword: false
            }
        });
    });

    it('masks values of headers that carry secrets, and passwords in addresses', () => {
        const text = changesOf(null, {
            headers: {
                request: [
                    { op: 'set', name: 'Authorization', value: 'canary' },
                    { op: 'set', name: 'X-Api-Key', value: 'canary' },
                    { op: 'set', name: 'X-Plain', value: 'seen' }
                ]
            },
            url: 'https://user:canary@host.example/x'
        });
        expect(text).not.to.contain('canary');
        expect(text).to.contain('seen').and.to.contain('https://[masked]@host.example/x');
    });

    it('stays within 16 KiB and says so, whatever it is given', () => {
        const cyclic: Record<string, unknown> = {};
        cyclic['self'] = cyclic;
        let deep: unknown = 1;
        for (let level = 0; level < 10_000; level += 1) {
            deep = [deep];
        }
        const wide = Object.fromEntries(
            Array.from({ length: 100_000 }, (_, index) => [`field${index}`, 'x'.repeat(50)])
        );
        for (const value of [
            cyclic,
            deep,
            { deep },
            wide,
            { text: 'x'.repeat(1_000_000) },
            { list: Array.from({ length: 1_000_000 }, () => 1) },
            'y'.repeat(100_000),
            Array.from({ length: 9_000 }, () => 'z'.repeat(3_000))
        ]) {
            const text = changesOf({ before: 1 }, value) ?? '';
            expect(Buffer.byteLength(text)).to.be.at.most(16 * 1024);
            expect(JSON.parse(text)).to.include({ truncated: true });
        }
    });

    it('makes plain data of what JSON cannot say', () => {
        expect(
            changes(null, {
                when: new Date(0),
                bytes: Buffer.from('canary'),
                big: 10n,
                none: Number.NaN,
                set: new Set([1]),
                map: new Map([['a', 1]]),
                nothing: undefined,
                call: () => 1
            })
        ).to.equal({
            before: null,
            after: {
                when: '1970-01-01T00:00:00.000Z',
                bytes: '[6 bytes]',
                big: '10',
                none: 'NaN',
                set: [1],
                map: { a: 1 }
            }
        });
    });

    it('always writes canonical JSON that reads back as itself', () => {
        fc.assert(
            fc.property(
                fc.anything({
                    withDate: true,
                    withBigInt: true,
                    withMap: true,
                    withSet: true,
                    withTypedArray: true,
                    withSparseArray: true,
                    withNullPrototype: true
                }),
                (value) => {
                    const text = changesOf(null, value);
                    if (text !== null) {
                        expect(canonicalize(JSON.parse(text))).to.equal(text);
                    }
                }
            ),
            { numRuns: 300 }
        );
    });
});

describe('clean', () => {
    it('encodes what moves a cursor, ends a line or turns the direction of text', () => {
        expect(clean('a\r\nb\u001b[31mc\u2028d\u202ee\u0085f', 100)).to.equal(
            'a\\u000d\\u000ab\\u001b[31mc\\u2028d\\u202ee\\u0085f'
        );
    });

    it('bounds, and never leaves half a character', () => {
        expect(clean('x'.repeat(600), 512).length).to.equal(512);
        expect(clean(`${'x'.repeat(510)}😀`, 512).isWellFormed()).to.be.true();
    });
});

describe('callerOf', () => {
    it('is the address for IPv4, also mapped, and the /64 for IPv6', () => {
        expect(callerOf('203.0.113.9')).to.equal('203.0.113.9');
        expect(callerOf('::ffff:203.0.113.9')).to.equal('203.0.113.9');
        expect(callerOf('2001:db8:0:1:aaaa::1')).to.equal('2001:db8:0:1::/64');
        expect(callerOf('2001:DB8:0:1::ffff')).to.equal('2001:db8:0:1::/64');
        expect(callerOf('2001:db8::1')).to.equal('2001:db8:0:0::/64');
        expect(callerOf('::1')).to.equal('0:0:0:0::/64');
        expect(callerOf('fe80::1%eth0')).to.equal('fe80:0:0:0::/64');
        expect(callerOf('64:ff9b::192.0.2.1')).to.equal('64:ff9b:0:0::/64');
        expect(callerOf('not an address')).to.equal('not an address');
    });
});
