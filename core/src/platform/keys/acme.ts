/** Keys of ACME accounts. The orders of certificates and the writing of their DNS records both compute with them. */
import { createHash, createPublicKey, generateKeyPairSync } from 'node:crypto';

/** The public half as the CA reads it (RFC 7518, section 6.2). */
export interface AccountJwk {
    readonly kty: string;
    readonly crv: string;
    readonly x: string;
    readonly y: string;
}

/** A new account key: ECDSA on P-256, as PEM in PKCS #8. */
export function newAccountKey(): string {
    return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
        type: 'pkcs8',
        format: 'pem'
    }) as string;
}

/** The public key (RFC 7517) of the private key in a PEM. */
export function jwkOf(pem: string): AccountJwk {
    const { kty = '', crv = '', x = '', y = '' } = createPublicKey(pem).export({ format: 'jwk' });
    return { kty, crv, x, y };
}

/** RFC 7638: the members in alphabetical order and nothing between them. */
export function thumbprintOf({ crv, kty, x, y }: AccountJwk): string {
    return createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url');
}

/** What the TXT record of a token says (RFC 8555, section 8.4). */
export function challengeValue(token: string, pem: string): string {
    return createHash('sha256')
        .update(`${token}.${thumbprintOf(jwkOf(pem))}`)
        .digest('base64url');
}
