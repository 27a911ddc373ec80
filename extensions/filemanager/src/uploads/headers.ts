/** Reads the headers of tus 1.0 strictly. */
import { createHash, type Hash } from 'node:crypto';

import { fail } from '../errors.ts';

/** The version of the protocol. */
export const tusVersion = '1.0.0';
/** The extensions that are offered, as `Tus-Extension` has them. */
export const tusExtensions = 'creation,creation-with-upload,termination,expiration,checksum';
/** Algorithms of the checksum extension, with their names in node:crypto. */
const algorithms = { sha1: 'sha1', sha256: 'sha256', sha512: 'sha512' } as const;
/** The algorithms, as `Tus-Checksum-Algorithm` has them. */
export const tusAlgorithms = Object.keys(algorithms).join(',');
/** The content type of a chunk. */
export const bodyType = 'application/offset+octet-stream';

const maxMetadataLength = 8192;

/** Checks `Tus-Resumable`. @throws TUS_VERSION 41250 */
export function checkVersion(headers: Headers): void {
    if (headers.get('tus-resumable') !== tusVersion) {
        throw fail.TUS_VERSION();
    }
}

/** A header that is a whole number; null when it is absent. @throws TUS_HEADER 40051 */
export function wholeNumber(headers: Headers, name: string): number | null {
    const text = headers.get(name);
    if (text === null) {
        return null;
    }
    const number = Number(text);
    if (!/^\d{1,16}$/.test(text) || !Number.isSafeInteger(number)) {
        throw fail.TUS_HEADER({ header: name });
    }
    return number;
}

/** Reads `Upload-Metadata`: keys with base64 values, which are decoded. @throws TUS_HEADER 40051 */
export function readMetadata(headers: Headers): ReadonlyMap<string, string> {
    const text = headers.get('upload-metadata') ?? '';
    const wrong = (): never => {
        throw fail.TUS_HEADER({ header: 'Upload-Metadata' });
    };
    if (text.length > maxMetadataLength) {
        wrong();
    }
    const metadata = new Map<string, string>();
    for (const pair of text.trim() === '' ? [] : text.split(',')) {
        const [key = '', value = '', ...more] = pair.trim().split(/ +/);
        if (
            !/^[\x21-\x7e]+$/.test(key) ||
            !/^[A-Za-z0-9+/]*={0,2}$/.test(value) ||
            more.length > 0 ||
            metadata.has(key)
        ) {
            wrong();
        }
        metadata.set(key, Buffer.from(value, 'base64').toString('utf8'));
    }
    return metadata;
}

/** The announced hash of a chunk, and the hash in progress. */
export interface Checksum {
    readonly hash: Hash;
    readonly expected: Buffer;
}

/** Reads `Upload-Checksum`; null without it. @throws TUS_HEADER 40051 for an algorithm that is not offered */
export function readChecksum(headers: Headers): Checksum | null {
    const text = headers.get('upload-checksum');
    if (text === null) {
        return null;
    }
    const [name = '', value = ''] = text.split(' ');
    if (!Object.hasOwn(algorithms, name)) {
        throw fail.TUS_HEADER({ header: 'Upload-Checksum' });
    }
    return {
        hash: createHash(algorithms[name as keyof typeof algorithms]),
        expected: Buffer.from(value, 'base64')
    };
}
