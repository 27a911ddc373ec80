/** Signatures of DNS messages by a shared key (RFC 8945). A reply without a valid signature is refused. */
import { createHmac, timingSafeEqual } from 'node:crypto';

import { classes, decodeName, encodeName, encodeRecord, type Message, recordTypes } from './dns-message.ts';

/** The algorithms that can be chosen (RFC 8945, section 6). */
export const tsigAlgorithms = ['hmac-sha256', 'hmac-sha512'] as const;
/** An algorithm by name. */
export type TsigAlgorithm = (typeof tsigAlgorithms)[number];

/** A key that both sides know. */
export interface TsigKey {
    readonly name: string;
    readonly secret: Buffer;
    readonly algorithm: TsigAlgorithm;
}

/** Seconds that two clocks may differ. */
const fudge = 300;

/** Error codes inside a signature; the code of the message itself is then NOTAUTH. */
export const tsigErrors: Readonly<Record<number, string>> = {
    16: 'BADSIG',
    17: 'BADKEY',
    18: 'BADTIME',
    22: 'BADTRUNC'
};

/** The signature of a reply is missing or wrong. */
export class TsigError extends Error {}

const hashes = { 'hmac-sha256': 'sha256', 'hmac-sha512': 'sha512' } as const;

/** A signed message, and its signature alone: the reply's signature covers it. */
export function signMessage(
    message: Buffer,
    key: TsigKey,
    seconds: number
): { readonly bytes: Buffer; readonly mac: Buffer } {
    const mac = hmac(key, [message, variables(key, seconds, fudge, 0, Buffer.alloc(0))]);
    const data = Buffer.concat([
        encodeName(key.algorithm),
        time(seconds),
        u16(fudge),
        u16(mac.length),
        mac,
        message.subarray(0, 2),
        u16(0),
        u16(0)
    ]);
    const bytes = Buffer.concat([
        message,
        encodeRecord({ name: key.name, type: recordTypes.TSIG, class: classes.any, ttl: 0, data })
    ]);
    bytes.writeUInt16BE(bytes.readUInt16BE(10) + 1, 10);
    return { bytes, mac };
}

/**
 * Checks that a reply answers this request and is signed by an owner of the key.
 * @throws TsigError with what is wrong, also for a reply without a signature, as a server without the key sends it
 */
export function verifyReply(reply: Message, key: TsigKey, requestMac: Buffer, seconds: number): void {
    const record = reply.additional.at(-1);
    if (record === undefined || record.type !== recordTypes.TSIG) {
        throw new TsigError('the reply is not signed');
    }
    const { name: algorithm, next } = decodeName(reply.bytes, record.dataAt);
    const { bytes } = reply;
    try {
        const signed = bytes.readUIntBE(next, 6);
        const allowed = bytes.readUInt16BE(next + 6);
        const macLength = bytes.readUInt16BE(next + 8);
        const mac = bytes.subarray(next + 10, next + 10 + macLength);
        const after = next + 10 + macLength;
        const originalId = bytes.subarray(after, after + 2);
        const error = bytes.readUInt16BE(after + 2);
        const other = bytes.subarray(after + 6, after + 6 + bytes.readUInt16BE(after + 4));
        if (macLength === 0) {
            throw new TsigError(`the name server does not accept the key (${tsigErrors[error] ?? error})`);
        }
        if (record.name !== key.name.toLowerCase() || algorithm !== key.algorithm) {
            throw new TsigError('the reply is signed by another key');
        }
        const plain = Buffer.from(bytes.subarray(0, record.at));
        originalId.copy(plain, 0);
        plain.writeUInt16BE(plain.readUInt16BE(10) - 1, 10);
        const expected = hmac(key, [
            u16(requestMac.length),
            requestMac,
            plain,
            variables(key, signed, allowed, error, other)
        ]);
        if (mac.length !== expected.length || !timingSafeEqual(mac, expected)) {
            throw new TsigError('the signature of the reply is wrong');
        }
        if (error !== 0) {
            throw new TsigError(
                `the name server does not accept the signature (${tsigErrors[error] ?? error}${error === 18 ? ': the clocks differ too much' : ''})`
            );
        }
        if (Math.abs(signed - seconds) > fudge) {
            throw new TsigError('the reply is signed for another time: the clocks differ too much');
        }
    } catch (error) {
        throw error instanceof TsigError
            ? error
            : new TsigError('the signature of the reply is damaged', { cause: error });
    }
}

function hmac(key: TsigKey, parts: readonly Buffer[]): Buffer {
    return parts
        .reduce((mac, part) => mac.update(part), createHmac(hashes[key.algorithm], key.secret))
        .digest();
}

/** The fields that are signed together with the message (RFC 8945, section 4.3.3). */
function variables(key: TsigKey, seconds: number, allowed: number, error: number, other: Buffer): Buffer {
    return Buffer.concat([
        encodeName(key.name),
        u16(classes.any),
        Buffer.alloc(4),
        encodeName(key.algorithm),
        time(seconds),
        u16(allowed),
        u16(error),
        u16(other.length),
        other
    ]);
}

function u16(value: number): Buffer {
    const bytes = Buffer.alloc(2);
    bytes.writeUInt16BE(value);
    return bytes;
}

function time(seconds: number): Buffer {
    const bytes = Buffer.alloc(6);
    bytes.writeUIntBE(seconds, 0, 6);
    return bytes;
}
