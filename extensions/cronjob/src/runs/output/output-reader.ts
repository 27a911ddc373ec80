/** Reads one output pipe of a program. */
import type { Bytes } from '@portico/sdk';

import type { Output } from './output.ts';

/** Reads a pipe as UTF-8 text into an output, from its construction to the end of the pipe. */
export class OutputReader {
    /** Resolves at the end of the pipe; never rejects. */
    readonly done: Promise<void>;
    readonly #reader: ReadableStreamDefaultReader<Uint8Array>;

    constructor(stream: Bytes, output: Output) {
        this.#reader = stream.getReader();
        this.done = this.#read(output);
    }

    /** Closes the pipe, and waits until what came before is in the output. */
    async close(): Promise<void> {
        await this.#reader.cancel().catch(() => undefined);
        await this.done;
    }

    async #read(output: Output): Promise<void> {
        const decoder = new TextDecoder();
        try {
            for (let chunk = await this.#reader.read(); !chunk.done; chunk = await this.#reader.read()) {
                output.add(decoder.decode(chunk.value, { stream: true }));
            }
        } catch {
            // The pipe broke, so no more output comes.
        }
        output.add(decoder.decode());
    }
}
