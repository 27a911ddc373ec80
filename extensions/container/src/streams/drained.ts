/** Back-pressure of streams that are written to by hand. */
import type { Writable } from 'node:stream';

/** Resolves when a stream takes more, or is closed. */
export function drained(stream: Writable): Promise<void> {
    return new Promise((resolve) => {
        const done = (): void => {
            stream.off('drain', done);
            stream.off('close', done);
            resolve();
        };
        stream.on('drain', done);
        stream.on('close', done);
    });
}
