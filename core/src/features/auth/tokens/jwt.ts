/**
 * The panel's own JWTs (RFC 7519, HS256). Each kind of token has one header, which is compared as text, and a key of its own: a token
 * cannot choose an algorithm, a key or a type.
 */
import { hkdfSync } from 'node:crypto';

import { type HapiJwt, token as jwt } from '@hapi/jwt';

import { fail } from '../../../platform/errors.ts';

/** `access` opens routes; `refresh` only buys a new pair; `console` opens routes to the command line, once. */
export type TokenKind = 'access' | 'refresh' | 'console';

/** What a token says. Times are seconds since 1970. */
export interface Claims {
    readonly iss: string;
    readonly aud: string;
    /** The user's id, as text. */
    readonly sub: string;
    /** The session's id. */
    readonly sid: number;
    /** Names this token. */
    readonly jti: string;
    readonly iat: number;
    readonly nbf: number;
    readonly exp: number;
}

/** What a new token is to say. Times are milliseconds since 1970, cut to the second. */
export interface TokenContent {
    readonly userId: number;
    readonly sessionId: number;
    readonly id: string;
    readonly issuedAt: number;
    readonly expiresAt: number;
}

interface Kind {
    readonly type: string;
    /** The encoded header: the only one that a token of this kind may have. */
    readonly header: string;
    readonly audience: string;
    readonly secret: { readonly key: Buffer; readonly algorithm: 'HS256' };
}

const issuer = 'portico';
const maxLength = 2048;
/** A clock that was set back must not refuse what it has just signed. */
const leewaySeconds = 60;

/** Signs and verifies tokens. The keys are derived from one secret with a label for each kind. */
export class TokenSigner {
    readonly #kinds: Readonly<Record<TokenKind, Kind>>;

    constructor(secret: Buffer) {
        this.#kinds = {
            access: kindOf(secret, 'at+jwt', 'portico:api'),
            refresh: kindOf(secret, 'rt+jwt', 'portico:refresh'),
            console: kindOf(secret, 'console', 'portico:console')
        };
    }

    /** Signs a new token. */
    sign(kind: TokenKind, { userId, sessionId, id, issuedAt, expiresAt }: TokenContent): string {
        const { type, audience, secret } = this.#kinds[kind];
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
        return jwt.generate(claims, secret, { header: { typ: type } });
    }

    /** Tells whether a token says that it is of this kind. Verifies nothing. */
    is(kind: TokenKind, token: string): boolean {
        return token.startsWith(`${this.#kinds[kind].header}.`);
    }

    /**
     * Reads a token of this kind.
     *
     * @param now - milliseconds since 1970
     * @throws TOKEN_INVALID 40101, TOKEN_EXPIRED 40102
     */
    verify(kind: TokenKind, token: string, now: number): Claims {
        const { audience, secret } = this.#kinds[kind];
        if (token.length > maxLength || !this.is(kind, token)) {
            throw fail.TOKEN_INVALID();
        }
        let artifacts: HapiJwt.Artifacts;
        try {
            artifacts = jwt.decode(token);
            jwt.verifySignature(artifacts, secret);
        } catch (cause) {
            throw fail.TOKEN_INVALID(null, { cause });
        }
        const claims = artifacts.decoded.payload as Partial<Record<keyof Claims, unknown>>;
        if (!isComplete(claims)) {
            throw fail.TOKEN_INVALID();
        }
        try {
            jwt.verifyTime(artifacts, { now });
        } catch (cause) {
            throw fail.TOKEN_EXPIRED(null, { cause });
        }
        try {
            jwt.verifyPayload(artifacts, {
                iss: issuer,
                aud: audience,
                sub: false,
                now,
                timeSkewSec: leewaySeconds
            });
        } catch (cause) {
            throw fail.TOKEN_INVALID(null, { cause });
        }
        return claims;
    }
}

function kindOf(secret: Buffer, type: string, audience: string): Kind {
    return {
        type,
        header: Buffer.from(JSON.stringify({ alg: 'HS256', typ: type })).toString('base64url'),
        audience,
        secret: {
            key: Buffer.from(hkdfSync('sha256', secret, Buffer.alloc(0), `portico token ${audience}`, 32)),
            algorithm: 'HS256'
        }
    };
}

function isComplete(claims: Partial<Record<keyof Claims, unknown>>): claims is Claims & typeof claims {
    const { sub, sid, jti, iat, nbf, exp } = claims;
    return (
        typeof sub === 'string' &&
        /^\d{1,15}$/.test(sub) &&
        typeof jti === 'string' &&
        [sid, iat, nbf, exp].every(Number.isSafeInteger)
    );
}
