/** Verifies signatures of minisign (https://jedisct1.github.io/minisign/): Ed25519 over the BLAKE2b-512 of a file. */
import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto';

import { fail } from '../errors.ts';

/** A public key of minisign. */
export interface MinisignKey {
    /** As minisign prints it: 16 capital hex digits. */
    readonly id: string;
    /** The line that publishers hand out. */
    readonly line: string;
    readonly key: KeyObject;
}

const idBytes = 8;
const signatureBytes = 64;
const keyBytes = 32;
/** What comes before the bytes of an Ed25519 key in SubjectPublicKeyInfo (RFC 8410). */
const ed25519Prefix = Buffer.from('302a300506032b6570032100', 'hex');

/** Reads the line of a public key: base64 of `Ed`, 8 bytes of id and 32 of key. Null when it is none. */
export function readPublicKey(line: string): MinisignKey | null {
    const bytes = decode(line);
    if (bytes?.length !== 2 + idBytes + keyBytes || bytes.toString('latin1', 0, 2) !== 'Ed') {
        return null;
    }
    const key = createPublicKey({
        key: Buffer.concat([ed25519Prefix, bytes.subarray(2 + idBytes)]),
        format: 'der',
        type: 'spki'
    });
    return { id: idOf(bytes), line, key };
}

/**
 * Checks the signature of a file, and that of the signature's trusted comment.
 *
 * @param keys - those that are trusted; the one whose id the signature names is taken
 * @returns the key that fits
 * @throws SIGNATURE_INVALID 42251
 */
export function verifySignature(
    file: Uint8Array,
    signature: string,
    keys: readonly MinisignKey[]
): MinisignKey {
    const lines = signature.split(/\r?\n/);
    const [, signed = '', comment = '', global = ''] = lines;
    const bytes = decode(signed);
    const globalBytes = decode(global);
    const trusted = /^trusted comment: (.*)$/.exec(comment)?.[1];
    if (
        bytes?.length !== 2 + idBytes + signatureBytes ||
        globalBytes?.length !== signatureBytes ||
        trusted === undefined ||
        lines.slice(4).some((line) => line !== '')
    ) {
        throw fail.SIGNATURE_INVALID({ why: 'this is no signature of minisign' });
    }
    if (bytes.toString('latin1', 0, 2) !== 'ED') {
        throw fail.SIGNATURE_INVALID({ why: 'it was made without hashing (minisign -l)' });
    }
    const id = idOf(bytes);
    const found = keys.find((each) => each.id === id);
    if (found === undefined) {
        throw fail.SIGNATURE_INVALID({ why: `it was made with the key ${id}, which is not pinned` });
    }
    const raw = bytes.subarray(2 + idBytes);
    const hash = createHash('blake2b512').update(file).digest();
    if (!verify(null, hash, found.key, raw)) {
        throw fail.SIGNATURE_INVALID({ why: 'the file is not what was signed' });
    }
    if (!verify(null, Buffer.concat([raw, Buffer.from(trusted)]), found.key, globalBytes)) {
        throw fail.SIGNATURE_INVALID({ why: 'its trusted comment is not what was signed' });
    }
    return found;
}

/** Strict base64: what Node would skip is refused. */
function decode(text: string): Buffer | null {
    const bytes = Buffer.from(text, 'base64');
    return bytes.toString('base64') === text ? bytes : null;
}

/** Minisign prints the id as a little-endian number. */
const idOf = (bytes: Buffer): string => bytes.readBigUInt64LE(2).toString(16).toUpperCase().padStart(16, '0');
