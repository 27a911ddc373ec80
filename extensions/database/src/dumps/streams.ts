/** Streams of bytes. */
import { Readable, type Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/** What a transform makes of a source; a failure of either ends both. */
export async function* through(
    source: AsyncIterable<Uint8Array>,
    transform: Transform
): AsyncGenerator<Uint8Array> {
    const done = pipeline(Readable.from(source, { objectMode: false }), transform);
    // It is waited for below, when what it made was read.
    done.catch(() => undefined);
    yield* transform as AsyncIterable<Uint8Array>;
    await done;
}

/** The last part of a text stream, for messages. */
export async function tailOf(source: AsyncIterable<Uint8Array>, most = 2_000): Promise<string> {
    let text = '';
    const decoder = new TextDecoder();
    for await (const chunk of source) {
        text = (text + decoder.decode(chunk, { stream: true })).slice(-most);
    }
    return text.trim();
}
