/** Output of containers as lines: from frames, or, of a terminal, as it is. */

/** A line of output. */
export interface OutputLine {
    readonly stream: 'stdout' | 'stderr';
    readonly text: string;
}

/** A piece of output. */
export interface OutputChunk {
    readonly stream: 'stdout' | 'stderr';
    readonly bytes: Uint8Array;
}

const headerBytes = 8;
/** A longer line is cut into several, so that a program that writes none costs no memory. */
const mostLineBytes = 65_536;

/** Takes the frames apart: one byte for the stream, three of zero, four for the length. `raw`: a terminal has no frames. */
export async function* readFrames(
    source: AsyncIterable<Uint8Array>,
    raw: boolean
): AsyncGenerator<OutputChunk> {
    let rest: Buffer = Buffer.alloc(0);
    let left = 0;
    let stream: OutputChunk['stream'] = 'stdout';
    for await (const chunk of source) {
        if (raw) {
            yield { stream, bytes: chunk };
            continue;
        }
        rest =
            rest.length === 0
                ? Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
                : Buffer.concat([rest, chunk]);
        for (;;) {
            if (left > 0 && rest.length > 0) {
                const bytes = rest.subarray(0, left);
                yield { stream, bytes };
                left -= bytes.length;
                rest = rest.subarray(bytes.length);
            }
            if (left > 0 || rest.length < headerBytes) {
                break;
            }
            stream = rest[0] === 2 ? 'stderr' : 'stdout';
            left = rest.readUInt32BE(4);
            rest = rest.subarray(headerBytes);
        }
    }
}

/** Joins chunks to lines, each stream for itself. A last line without a line break is given, too. */
export async function* readLines(chunks: AsyncIterable<OutputChunk>): AsyncGenerator<OutputLine> {
    const open: Record<OutputLine['stream'], Buffer[]> = { stdout: [], stderr: [] };
    const sizes = { stdout: 0, stderr: 0 };
    const take = (stream: OutputLine['stream']): OutputLine => {
        const text = Buffer.concat(open[stream]).toString().replace(/\r$/, '');
        open[stream] = [];
        sizes[stream] = 0;
        return { stream, text };
    };
    for await (const { stream, bytes } of chunks) {
        let rest = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
        for (;;) {
            const at = rest.indexOf(10);
            const end = at < 0 ? rest.length : at;
            // What is kept is copied: the piece that it came in may be far larger.
            open[stream].push(at < 0 ? Buffer.from(rest) : rest.subarray(0, end));
            sizes[stream] += end;
            if (at < 0) {
                if (sizes[stream] >= mostLineBytes) {
                    yield take(stream);
                }
                break;
            }
            yield take(stream);
            rest = rest.subarray(at + 1);
            if (rest.length === 0) {
                break;
            }
        }
    }
    for (const stream of ['stdout', 'stderr'] as const) {
        if (sizes[stream] > 0) {
            yield take(stream);
        }
    }
}

/** The documents of an answer that has one JSON text a line. */
export async function* readJsonLines<T>(source: AsyncIterable<Uint8Array>): AsyncGenerator<T> {
    for await (const { text } of readLines(readFrames(source, true))) {
        if (text.trim() !== '') {
            yield JSON.parse(text) as T;
        }
    }
}
