/** Reads and writes open files, one chunk in memory at a time. */
import type { FileHandle } from 'node:fs/promises';

import { isFailure } from '@portico/sdk';

const chunkBytes = 256 * 1024;

/** Yields the bytes from `start` up to, not including, `end`; fewer when the file has become shorter. */
export async function* bytesOf(handle: FileHandle, start: number, end: number): AsyncGenerator<Uint8Array> {
    for (let at = start; at < end;) {
        const { bytesRead, buffer } = await handle.read(
            Buffer.allocUnsafe(Math.min(chunkBytes, end - at)),
            0,
            null,
            at
        );
        if (bytesRead === 0) {
            return;
        }
        at += bytesRead;
        yield buffer.subarray(0, bytesRead);
    }
}

/** Writes a whole chunk; one system call may write less. */
export async function writeAll(handle: FileHandle, chunk: Uint8Array, position: number): Promise<void> {
    for (let done = 0; done < chunk.byteLength;) {
        done += (await handle.write(chunk, done, chunk.byteLength - done, position + done)).bytesWritten;
    }
}

/** Writes a whole source. Resolves with how many bytes it had. */
export async function writeFrom(
    handle: FileHandle,
    source: AsyncIterable<Uint8Array>,
    start = 0
): Promise<number> {
    let at = start;
    for await (const chunk of source) {
        await writeAll(handle, chunk, at);
        at += chunk.byteLength;
    }
    return at - start;
}

/** Yields a client's body. When the connection breaks, it ends and calls `onBroken`. A refusal by the host, such as a body that is too large, still throws. */
export async function* received(
    body: AsyncIterable<Uint8Array>,
    onBroken: () => void
): AsyncGenerator<Uint8Array> {
    try {
        yield* body;
    } catch (error) {
        if (isFailure(error)) {
            throw error;
        }
        onBroken();
    }
}

/** Passes a body on until the signal aborts, also while nothing comes: its client may have gone without a goodbye. @throws the signal's reason */
export async function* untilAborted(
    body: AsyncIterable<Uint8Array>,
    signal: AbortSignal
): AsyncGenerator<Uint8Array> {
    const parts = body[Symbol.asyncIterator]();
    try {
        for (;;) {
            const { done, value } = await nextOf(parts, signal);
            if (done === true) {
                return;
            }
            yield value;
        }
    } finally {
        // Nothing waits for it: a part that is awaited may never come.
        parts.return?.().catch(() => undefined);
    }
}

/** The next part. Each has a promise of its own: what is raced with one that stays pending is held in memory as long as that one. */
async function nextOf<T>(parts: AsyncIterator<T>, signal: AbortSignal): Promise<IteratorResult<T>> {
    signal.throwIfAborted();
    const { promise: aborted, reject } = Promise.withResolvers<never>();
    const abort = (): void => reject(signal.reason as Error);
    signal.addEventListener('abort', abort, { once: true });
    try {
        return await Promise.race([parts.next(), aborted]);
    } finally {
        signal.removeEventListener('abort', abort);
    }
}
