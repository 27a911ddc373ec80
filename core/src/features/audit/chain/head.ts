/**
 * The file beside the database that keeps the head of the chain: how many entries there are and the hash of the last. It shows when the
 * database was replaced by an older copy, or when its last entries were deleted.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { closeSync, constants, fdatasync, lstatSync, openSync, readFileSync, writeSync } from 'node:fs';

import { canonicalize } from '@portico/sdk';

/** The last entry of a chain. */
export interface Head {
    /** Number of the last entry; 0 before the first. */
    readonly sequence: number;
    /** Hash of the last entry. */
    readonly hash: string;
}

/** The hash before the first entry. */
export const genesis: Head = { sequence: 0, hash: '0'.repeat(64) };

/** What the head file says: `invalid` when its HMAC is not made with our key. */
export type StoredHead =
    | { readonly state: 'valid'; readonly head: Head }
    | { readonly state: 'missing' }
    | { readonly state: 'invalid' };

/** Fixed length of the file. Less than a page of memory, so that one write replaces all of it. */
const fileBytes = 256;

/** The open head file. */
export interface HeadFile {
    write(head: Head): void;
    /** Asks the disk to hold what was written; does not wait. */
    flush(): void;
    close(): void;
}

/** Reads a head file and checks its HMAC. @throws Error when a folder or a link lies at its path */
export function readHead(path: string, key: Buffer): StoredHead {
    if (lstatSync(path, { throwIfNoEntry: false })?.isFile() === false) {
        throw new Error(
            `${path} must be a file, but a folder or a link is there: move that away, and put the file back from a backup. Without it the panel makes a new one, and the audit log says that it was missing`
        );
    }
    let text: string;
    try {
        text = readFileSync(path, 'utf8');
    } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
            return { state: 'missing' };
        }
        throw error;
    }
    try {
        const { sequence, hash, hmac } = JSON.parse(text) as {
            sequence: unknown;
            hash: unknown;
            hmac: unknown;
        };
        if (Number.isSafeInteger(sequence) && typeof hash === 'string' && typeof hmac === 'string') {
            const head = { sequence: sequence as number, hash };
            const expected = Buffer.from(sign(head, key));
            const found = Buffer.from(hmac);
            if (expected.length === found.length && timingSafeEqual(expected, found)) {
                return { state: 'valid', head };
            }
        }
    } catch (error) {
        if (!(error instanceof SyntaxError)) {
            throw error;
        }
    }
    return { state: 'invalid' };
}

/** Opens the file for the life of the process, so that an entry costs one small write and no rename. */
export function openHead(path: string, key: Buffer): HeadFile {
    const file = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
    let open = true;
    return {
        write(head) {
            const text = JSON.stringify({ ...head, hmac: sign(head, key) });
            writeSync(file, Buffer.from(`${text.padEnd(fileBytes - 1)}\n`), 0, fileBytes, 0);
        },
        flush: () => fdatasync(file, () => undefined),
        close() {
            if (open) {
                open = false;
                closeSync(file);
            }
        }
    };
}

function sign(head: Head, key: Buffer): string {
    return createHmac('sha256', key)
        .update(canonicalize({ hash: head.hash, sequence: head.sequence }))
        .digest('hex');
}
