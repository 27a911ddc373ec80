/** Solves the challenge of a login beside the page. `crypto.subtle` is absent on plain HTTP, so the hash is a library's. */
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';

/** What the panel asks: the number below `maxnumber` whose hash after `salt` is `challenge`. */
export interface Challenge {
    readonly algorithm: string;
    readonly challenge: string;
    readonly maxnumber: number;
    readonly salt: string;
    readonly signature: string;
}

/** What the worker tells: how much of the range it has tried, from 0 to 1, and at last the number; null when there is none. */
export type ProofMessage = { readonly tried: number } | { readonly number: number | null };

const tell = (message: ProofMessage): void => self.postMessage(message);

self.addEventListener('message', ({ data }: MessageEvent<Challenge>) => {
    for (let number = 0; number < data.maxnumber; number += 1) {
        if (bytesToHex(sha256(utf8ToBytes(data.salt + String(number)))) === data.challenge) {
            tell({ number });
            return;
        }
        if (number % 5000 === 0) {
            tell({ tried: number / data.maxnumber });
        }
    }
    tell({ number: null });
});
