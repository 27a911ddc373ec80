/** Requests to a CA, signed (RFC 8555, section 6.2). */
import { createHmac, sign } from 'node:crypto';

import { jwkOf } from '../../../platform/keys/acme.ts';

/** What a signed request is made of. */
export interface SignedRequest {
    readonly url: string;
    readonly nonce: string;
    /** PEM of the account's key. */
    readonly key: string;
    /** The account's URL; null while there is none, then the key itself is sent. */
    readonly account: string | null;
    /** Null asks for what the URL holds (section 6.3). */
    readonly payload: object | null;
}

/** Binds an account to one that the CA has given beforehand (section 7.3.4). */
export interface ExternalAccount {
    readonly keyId: string;
    /** Base64url. */
    readonly macKey: string;
}

/** Signs a request to a CA: a flattened JWS with ES256 (RFC 8555, section 6.2). */
export function signRequest({ url, nonce, key, account, payload }: SignedRequest): string {
    const header = {
        alg: 'ES256',
        nonce,
        url,
        ...(account === null ? { jwk: jwkOf(key) } : { kid: account })
    };
    const parts = [encode(header), payload === null ? '' : encode(payload)];
    const signature = sign('sha256', Buffer.from(parts.join('.')), {
        key,
        dsaEncoding: 'ieee-p1363'
    }).toString('base64url');
    return JSON.stringify({ protected: parts[0], payload: parts[1], signature });
}

/** Signs the external account binding for the key of a new account (RFC 8555, section 7.3.4). */
export function signBinding({ keyId, macKey }: ExternalAccount, key: string, url: string): object {
    const parts = [encode({ alg: 'HS256', kid: keyId, url }), encode(jwkOf(key))];
    const signature = createHmac('sha256', Buffer.from(macKey, 'base64url'))
        .update(parts.join('.'))
        .digest('base64url');
    return { protected: parts[0], payload: parts[1], signature };
}

function encode(value: object): string {
    return Buffer.from(JSON.stringify(value)).toString('base64url');
}
