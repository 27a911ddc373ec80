import { createHmac, randomBytes } from 'node:crypto';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { type Claims, TokenSigner } from '../../../../../core/src/features/auth/tokens/jwt.ts';
import { faultOfSecret, tokenSecret } from '../../../../../core/src/features/auth/tokens/signing-secret.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const now = Date.UTC(2026, 0, 15);
const secret = randomBytes(32);
const signer = new TokenSigner(secret);
const token = (more: { issuedAt?: number; expiresAt?: number } = {}): string =>
    signer.sign('access', {
        userId: 5,
        sessionId: 9,
        id: 'x',
        issuedAt: now,
        expiresAt: now + 60_000,
        ...more
    });
const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const refusal = (kind: 'access' | 'refresh', text: string, at = now): unknown => {
    try {
        signer.verify(kind, text, at);
        return null;
    } catch (error) {
        return (error as { reason: string }).reason;
    }
};

describe('TokenSigner', () => {
    it('reads back what it signed, until it expires', () => {
        expect(signer.verify('access', token(), now)).to.include({
            iss: 'portico',
            aud: 'portico:api',
            sub: '5',
            sid: 9,
            jti: 'x'
        });
        expect(refusal('access', token(), now + 60_000)).to.equal('TOKEN_EXPIRED');
        expect(refusal('access', token({ issuedAt: now + 3600_000, expiresAt: now + 7200_000 }))).to.equal(
            'TOKEN_INVALID'
        );
    });

    it('takes each kind only in its place, and no token of another secret', () => {
        const refresh = signer.sign('refresh', {
            userId: 5,
            sessionId: 9,
            id: 'x',
            issuedAt: now,
            expiresAt: now + 60_000
        });
        expect(refusal('refresh', refresh)).to.be.null();
        expect(refusal('access', refresh)).to.equal('TOKEN_INVALID');
        expect(refusal('refresh', token())).to.equal('TOKEN_INVALID');
        expect(
            refusal(
                'access',
                new TokenSigner(randomBytes(32)).sign('access', {
                    userId: 5,
                    sessionId: 9,
                    id: 'x',
                    issuedAt: now,
                    expiresAt: now + 60_000
                })
            )
        ).to.equal('TOKEN_INVALID');
    });

    it('refuses every forged header, signed or not', () => {
        const [head = '', body = '', signature = ''] = token().split('.');
        const headers: unknown[] = [
            { alg: 'none', typ: 'at+jwt' },
            { alg: 'None' },
            { alg: 'nOnE', typ: 'JWT' },
            { alg: 'RS256', typ: 'at+jwt' },
            { alg: 'HS384', typ: 'at+jwt' },
            { alg: 'HS512', typ: 'at+jwt' },
            { alg: 'ES256' },
            { alg: 'HS256', typ: 'JWT' },
            { alg: 'HS256' },
            { alg: 'HS256', typ: 'rt+jwt' },
            { alg: 'HS256', typ: 'at+jwt', kid: '../../../dev/null' },
            { alg: 'HS256', typ: 'at+jwt', kid: "' or 1=1 --" },
            { alg: 'HS256', typ: 'at+jwt', jku: 'https://evil.example/keys' },
            { alg: 'HS256', typ: 'at+jwt', x5u: 'https://evil.example' },
            { alg: 'HS256', typ: 'at+jwt', jwk: { kty: 'oct', k: 'AA' } },
            { alg: 'HS256', typ: 'at+jwt', crit: ['exp'] },
            { alg: 'HS256', typ: 'at+jwt', b64: false, crit: ['b64'] },
            { typ: 'at+jwt', alg: 'HS256' },
            {},
            [],
            null,
            'x'
        ];
        for (const header of headers) {
            const forged = `${encode(header)}.${body}`;
            for (const end of [
                '',
                signature,
                createHmac('sha256', secret).update(forged).digest('base64url'),
                createHmac('sha256', '').update(forged).digest('base64url')
            ]) {
                expect(refusal('access', `${forged}.${end}`), JSON.stringify(header)).to.equal(
                    'TOKEN_INVALID'
                );
            }
        }
        for (const text of [
            '',
            '.',
            '..',
            '...',
            head,
            `${head}.${body}`,
            `${head}.${body}.`,
            `${head}.${body}.${signature}.x`,
            `${token()}=`,
            ` ${token()}`,
            `${head}.${body}.${signature.slice(1)}`,
            'x'.repeat(100_000)
        ]) {
            expect(refusal('access', text)).to.equal('TOKEN_INVALID');
        }
    });

    it('refuses a body that was changed, and one that says too little', () => {
        const [head = '', body = '', signature = ''] = token().split('.');
        const claims = JSON.parse(Buffer.from(body, 'base64url').toString()) as Claims;
        expect(refusal('access', `${head}.${encode({ ...claims, sub: '1' })}.${signature}`)).to.equal(
            'TOKEN_INVALID'
        );
        // The last character of 43 has two spare bits: only one spelling is ours.
        const twin = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
        const last = twin.indexOf(signature.at(-1) ?? '');
        expect(refusal('access', `${head}.${body}.${signature.slice(0, -1)}${twin[last ^ 1]}`)).to.equal(
            'TOKEN_INVALID'
        );
    });
});

describe('TokenSigner, with a token that an earlier version of the panel signed', () => {
    const signed =
        'eyJhbGciOiJIUzI1NiIsInR5cCI6ImF0K2p3dCJ9.eyJpc3MiOiJwb3J0aWNvIiwiYXVkIjoicG9ydGljbzphcGkiLCJzdWIiOiI1Iiwic2lkIjo5LCJqdGkiOiJ4IiwiaWF0IjoxNzY4NDM1MjAwLCJuYmYiOjE3Njg0MzUyMDAsImV4cCI6MTc2ODQzNTI2MH0.wcSWISsOdDyieQZS8nHhWZy0ULTkmWkBAn8Dl9KvN3w';
    const earlier = new TokenSigner(Buffer.alloc(32, 7));

    it('accepts it, and signs the same text itself', () => {
        expect(earlier.verify('access', signed, now).sid).to.equal(9);
        expect(
            earlier.sign('access', {
                userId: 5,
                sessionId: 9,
                id: 'x',
                issuedAt: now,
                expiresAt: now + 60_000
            })
        ).to.equal(signed);
    });
});

describe('tokenSecret', () => {
    const keyring = { secret: () => Buffer.alloc(32, 1) };

    it('takes a strong secret, and makes one when none is given', () => {
        for (const good of [
            randomBytes(32).toString('hex'),
            randomBytes(32).toString('base64'),
            randomBytes(48).toString('base64url'),
            'violet-otter-94-brass-lantern-harvest-quarry'
        ]) {
            expect(tokenSecret(good, keyring).toString()).to.equal(good);
        }
        expect(tokenSecret(null, keyring)).to.have.length(32);
    });

    it('refuses a short, repeated, monotonous or well-known one, and does not say it', () => {
        for (const weak of [
            'secret',
            'x'.repeat(31),
            'a'.repeat(64),
            'ab'.repeat(32),
            'changeme'.repeat(8),
            '0123456789abcdef'.repeat(4),
            'abcdefghijklmnopqrstuvwxyz0123456789',
            '12345678901234567890123456789012',
            'your-256-bit-secret-your-256-bit-secret',
            'a-string-secret-at-least-256-bits-long',
            'your-very-long-secret-key-at-least-32-characters',
            'change-me-please-this-is-not-a-secure-secret-key',
            '00000000000000000000000000000001',
            'supersecretsupersecretsupersecret1',
            'aaaaaaaaaaaaaaaaaaaaaaaabbbbbbbbbbcccccc'
        ]) {
            expect(faultOfSecret(weak), weak).not.to.be.null();
            const error = expect(() => tokenSecret(weak, keyring)).to.throw<Error | undefined>();
            expect(error?.message ?? '').not.to.contain(weak);
        }
    });
});
