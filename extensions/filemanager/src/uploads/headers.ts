/** The headers of tus 1.0, read strictly. */
import { createHash, type Hash } from 'node:crypto';

import { tusErrors } from './errors.ts';

export const tusVersion = '1.0.0';
export const tusExtensions = 'creation,creation-with-upload,termination,expiration,checksum';
/** Names of the checksum extension, and what node:crypto calls them. */
const algorithms = { sha1: 'sha1', sha256: 'sha256', sha512: 'sha512' } as const;
export const tusAlgorithms = Object.keys(algorithms).join(',');
export const bodyType = 'application/offset+octet-stream';

const longestMetadata = 8192;

/** @throws TUS_VERSION 41250 */
export function checkVersion(headers: Headers): void {
    if (headers.get('tus-resumable') !== tusVersion) {
        throw tusErrors.TUS_VERSION();
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
        throw tusErrors.TUS_HEADER({ header: name });
    }
    return number;
}

/** `Upload-Metadata`: keys with base64 values. @throws TUS_HEADER 40051 */
export function readMetadata(headers: Headers): ReadonlyMap<string, string> {
    const text = headers.get('upload-metadata') ?? '';
    const wrong = (): never => {
        throw tusErrors.TUS_HEADER({ header: 'Upload-Metadata' });
    };
    if (text.length > longestMetadata) {
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

/** What a chunk must hash to. */
export interface Checksum {
    readonly hash: Hash;
    readonly expected: Buffer;
}

/** `Upload-Checksum`; null without it. @throws TUS_HEADER 40051 for an algorithm that is not offered */
export function readChecksum(headers: Headers): Checksum | null {
    const text = headers.get('upload-checksum');
    if (text === null) {
        return null;
    }
    const [name = '', value = ''] = text.split(' ');
    if (!Object.hasOwn(algorithms, name)) {
        throw tusErrors.TUS_HEADER({ header: 'Upload-Checksum' });
    }
    return {
        hash: createHash(algorithms[name as keyof typeof algorithms]),
        expected: Buffer.from(value, 'base64')
    };
}
