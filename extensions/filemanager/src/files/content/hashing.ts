/** Checksums of open files. The next chunk is read while one is hashed. */
import { createHash, type Hash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';

const chunkBytes = 2 ** 20;

/** The checksums that can be asked for. */
export const algorithms = { sha256: 'SHA-256', sha512: 'SHA-512', sha1: 'SHA-1', md5: 'MD5' } as const;
/** The name of a checksum. */
export type Algorithm = keyof typeof algorithms;

/** The checksum of an open file from its beginning, in hexadecimal digits. Calls `step` with the bytes of each chunk. */
export async function checksumOf(
    handle: FileHandle,
    algorithm: Algorithm,
    signal: AbortSignal,
    step: (bytes: number) => void = () => undefined
): Promise<string> {
    const hash = createHash(algorithm);
    const buffers = [Buffer.allocUnsafe(chunkBytes), Buffer.allocUnsafe(chunkBytes)] as const;
    const read = (at: number, turn: number) =>
        handle.read(buffers[(turn % 2) as 0 | 1], 0, chunkBytes, at).then(({ bytesRead }) => bytesRead);
    let reading = read(0, 0);
    for (let [at, turn] = [0, 0]; ; turn += 1) {
        signal.throwIfAborted();
        const bytes = await reading;
        if (bytes === 0) {
            return hash.digest('hex');
        }
        at += bytes;
        reading = read(at, turn + 1);
        // A failure is met at the next turn; until then it must not count as unhandled.
        reading.catch(() => undefined);
        hash.update(buffers[(turn % 2) as 0 | 1].subarray(0, bytes));
        step(bytes);
    }
}

/** Yields the chunks of a source, and hashes them as they pass. */
export async function* hashed(source: AsyncIterable<Uint8Array>, hash: Hash): AsyncGenerator<Uint8Array> {
    for await (const chunk of source) {
        hash.update(chunk);
        yield chunk;
    }
}
