/** Checks an archive before it is unpacked: its entries, their sizes and their paths. */
import { createGunzip } from 'node:zlib';

import { Parser } from 'tar';

import { InstallFailure } from '../failure.ts';
import type { InstallLimits } from '../ports.ts';

/** How many bytes may still be unpacked; all archives of one install share it. */
export interface Budget {
    bytes: number;
}

const plain = new Set(['File', 'OldFile', 'ContiguousFile', 'Directory']);
/** The first bytes of compressed formats: the unpacker would also unpack an archive within the archive, without counting its bytes. */
const compressed = [
    [0x1f, 0x8b],
    [0x28, 0xb5, 0x2f, 0xfd],
    [0x42, 0x5a, 0x68]
];

/**
 * Reads a whole archive and keeps nothing.
 *
 * @param label - what to call it when it is refused
 * @throws InstallFailure ARCHIVE_REFUSED
 */
export function inspectArchive(
    archive: NodeJS.ReadableStream,
    label: string,
    limits: InstallLimits,
    budget: Budget
): Promise<void> {
    return new Promise((resolve, reject) => {
        let sent = 0;
        let unpacked = 0;
        let entries = 0;
        const seen = new Set<string>();
        const gunzip = createGunzip();
        const refuse = (why: string): void =>
            fail(new InstallFailure('ARCHIVE_REFUSED', `The archive of ${label} ${why}`));
        const fail = (error: Error): void => {
            reject(error);
            gunzip.destroy();
        };
        const parser = new Parser({
            strict: true,
            onReadEntry(entry) {
                entries += 1;
                const path = String(entry.path);
                const why =
                    entries > limits.entries
                        ? `has more than ${limits.entries} entries`
                        : problem(path, entry.type, seen);
                if (why !== null) {
                    refuse(why);
                }
                seen.add(path.replace(/\/+$/, ''));
                entry.resume();
            }
        });
        parser.on('ignoredEntry', (entry: { readonly type: string; readonly path: string }) =>
            refuse(`has an entry that is neither a file nor a folder: ${shown(entry.path)} (${entry.type})`)
        );
        parser.on('error', (error: Error) => refuse(`is damaged: ${error.message}`));
        parser.on('end', () => (entries === 0 ? refuse('is empty') : resolve()));
        gunzip.on('data', (chunk: Buffer) => {
            if (
                unpacked === 0 &&
                compressed.some((magic) => magic.every((byte, index) => chunk[index] === byte))
            ) {
                return refuse('is an archive within an archive');
            }
            unpacked += chunk.length;
            budget.bytes -= chunk.length;
            if (unpacked > limits.unpackedBytes) {
                return refuse(`unpacks to more than ${limits.unpackedBytes} bytes`);
            }
            if (budget.bytes < 0) {
                return refuse(`and those of its dependencies unpack to more than ${limits.totalBytes} bytes`);
            }
            parser.write(chunk);
        });
        gunzip.on('end', () => parser.end());
        gunzip.on('error', (error) => refuse(`is no gzip archive: ${error.message}`));
        archive.on('error', fail);
        archive.on('data', (chunk: Buffer) => {
            sent += chunk.length;
            if (sent > limits.archiveBytes) {
                refuse(`is larger than ${limits.archiveBytes} bytes`);
            } else if (!gunzip.destroyed) {
                gunzip.write(chunk);
            }
        });
        archive.on('end', () => gunzip.end());
    });
}

/** Why an entry cannot be unpacked; null when it can. */
function problem(path: string, type: string, seen: ReadonlySet<string>): string | null {
    const parts = path.replace(/\/+$/, '').split('/');
    if (!plain.has(type)) {
        return `has an entry that is neither a file nor a folder: ${shown(path)} (${type})`;
    }
    if (
        path.startsWith('/') ||
        parts.includes('..') ||
        parts.includes('.') ||
        parts.includes('') ||
        /[\\\0]/.test(path)
    ) {
        return `has a path that leads out of its folder: ${shown(path)}`;
    }
    if (parts[1] === 'node_modules') {
        return 'brings packages of its own in node_modules, which no registry vouches for';
    }
    if (type !== 'Directory' && seen.has(parts.join('/'))) {
        return `has one file twice: ${shown(path)}`;
    }
    return null;
}

function shown(path: string): string {
    return JSON.stringify(path.slice(0, 200));
}
