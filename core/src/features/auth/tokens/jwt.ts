/**
 * The panel's own JWTs (RFC 7519, HS256). One header for each kind, compared as text: there is no algorithm, key or type to choose, so
 * nothing in a forged header is ever looked at. Each kind has a key of its own.
 */
import { createHmac, createSecretKey, hkdfSync, type KeyObject, timingSafeEqual } from 'node:crypto';

import { fail } from '../../../platform/errors.ts';

/** `access` opens routes; `refresh` only buys a new pair; `console` opens routes to the command line, once. */
export type TokenKind = 'access' | 'refresh' | 'console';

export interface Claims {
    readonly iss: string;
    readonly aud: string;
    /** The user's id, as text. */
    readonly sub: string;
    /** The session. */
    readonly sid: number;
    /** Names this token. */
    readonly jti: string;
    /** Seconds since 1970. */
    readonly iat: number;
    readonly nbf: number;
    readonly exp: number;
}

export interface TokenSigner {
    /** `expiresAt` in milliseconds; cut to the second. */
    sign(
        kind: TokenKind,
        token: {
            readonly userId: number;
            readonly sessionId: number;
            readonly id: string;
            readonly issuedAt: number;
            readonly expiresAt: number;
        }
    ): string;
    /** Whether a token says that it is of this kind; nothing of it is verified. */
    is(kind: TokenKind, token: string): boolean;
    /** @throws TOKEN_INVALID 40101, TOKEN_EXPIRED 40102 */
    verify(kind: TokenKind, token: string, now: number): Claims;
}

const issuer = 'portico';
const longest = 2048;
/** A clock that was set back must not refuse what it has just signed. */
const leewaySeconds = 60;
const form = /^([\w-]+)\.([\w-]+)\.([\w-]{43})$/;

interface Kind {
    readonly header: string;
    readonly audience: string;
    readonly key: KeyObject;
}

/** Makes the signer; the keys are derived from one secret with a label for each kind. */
export function createTokenSigner(secret: Buffer): TokenSigner {
    const kind = (type: string, audience: string): Kind => ({
        header: Buffer.from(JSON.stringify({ alg: 'HS256', typ: type })).toString('base64url'),
        audience,
        key: createSecretKey(
            Buffer.from(hkdfSync('sha256', secret, Buffer.alloc(0), `portico token ${audience}`, 32))
        )
    });
    const kinds: Readonly<Record<TokenKind, Kind>> = {
        access: kind('at+jwt', 'portico:api'),
        refresh: kind('rt+jwt', 'portico:refresh'),
        console: kind('console', 'portico:console')
    };
    return {
        sign(name, { userId, sessionId, id, issuedAt, expiresAt }) {
            const { header, audience, key } = kinds[name];
            const at = Math.floor(issuedAt / 1000);
            const claims: Claims = {
                iss: issuer,
                aud: audience,
                sub: String(userId),
                sid: sessionId,
                jti: id,
                iat: at,
                nbf: at,
                exp: Math.floor(expiresAt / 1000)
            };
            const signed = `${header}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`;
            return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`;
        },
        is: (name, token) => token.startsWith(`${kinds[name].header}.`),
        verify(name, token, now) {
            const { header, audience, key } = kinds[name];
            const parts = token.length > longest ? null : form.exec(token);
            if (parts?.[1] !== header) {
                throw fail.TOKEN_INVALID();
            }
            const [, , body = '', signature = ''] = parts;
            const expected = createHmac('sha256', key)
                .update(token.slice(0, -signature.length - 1))
                .digest('base64url');
            if (!timingSafeEqual(Buffer.from(expected), Buffer.from(signature))) {
                throw fail.TOKEN_INVALID();
            }
            return check(claimsOf(body), audience, now / 1000);
        }
    };
}

function claimsOf(body: string): Partial<Record<keyof Claims, unknown>> {
    try {
        return JSON.parse(Buffer.from(body, 'base64url').toString('utf8')) as Partial<
            Record<keyof Claims, unknown>
        >;
    } catch (cause) {
        throw fail.TOKEN_INVALID(null, { cause });
    }
}

function check(claims: Partial<Record<keyof Claims, unknown>>, audience: string, now: number): Claims {
    const { iss, aud, sub, sid, jti, iat, nbf, exp } = claims;
    const complete =
        iss === issuer &&
        aud === audience &&
        typeof sub === 'string' &&
        /^\d{1,15}$/.test(sub) &&
        Number.isSafeInteger(sid) &&
        typeof jti === 'string' &&
        Number.isSafeInteger(iat) &&
        Number.isSafeInteger(nbf) &&
        Number.isSafeInteger(exp);
    if (!complete || (nbf as number) > now + leewaySeconds) {
        throw fail.TOKEN_INVALID();
    }
    if ((exp as number) <= now) {
        throw fail.TOKEN_EXPIRED();
    }
    return claims as Claims;
}
