/** The beginning of an answer, for a caller that wants no more of it than so many bytes, and no longer than so long. */
import { Readable } from 'node:stream';

import type { Request, ResponseObject, ResponseToolkit } from '@hapi/hapi';

/** How much of an answer is wanted, and whether there was more. */
export class Excerpt {
    readonly #maxBytes: number;
    readonly #until: AbortSignal;
    #truncated = false;

    /** @param until - aborts when the time is over, or the reader has left */
    constructor(maxBytes: number, until: AbortSignal) {
        this.#maxBytes = maxBytes;
        this.#until = until;
    }

    /** Whether something was left out. */
    get truncated(): boolean {
        return this.#truncated;
    }

    /** Puts the beginning of a streamed answer in its place. Other answers are in memory already and stay whole. */
    of(response: ResponseObject, request: Request, h: ResponseToolkit): ResponseObject {
        const { source } = response as unknown as { readonly source: unknown }; // hapi's type says less than hapi's documentation
        if (!(source instanceof Readable)) {
            return response;
        }
        const { 'content-length': _whole, ...headers } = response.headers as Record<string, string>;
        const begun = h.response(Readable.from(this.#beginning(source), { objectMode: false }));
        begun.code((response.statusCode as number | null) ?? 200); // hapi sets it later where nothing else is said
        Object.assign(begun.headers, headers);
        // An answer that is passed on in memory has no connection whose end the route could hear of.
        const { res } = request.raw;
        res.once('finish', () => process.nextTick(() => res.emit('close')));
        return begun;
    }

    async *#beginning(source: Readable): AsyncGenerator<Buffer> {
        const stop = (): void => void source.destroy();
        this.#until.addEventListener('abort', stop, { once: true });
        let left = this.#maxBytes;
        try {
            if (this.#until.aborted) {
                stop();
            }
            for await (const chunk of source as AsyncIterable<Uint8Array | string>) {
                const bytes = Buffer.from(chunk as Uint8Array);
                if (bytes.length > left) {
                    this.#truncated = true;
                    yield bytes.subarray(0, left);
                    return;
                }
                left -= bytes.length;
                yield bytes;
            }
        } catch (error) {
            if (!this.#until.aborted) {
                throw error;
            }
        } finally {
            this.#truncated ||= this.#until.aborted;
            this.#until.removeEventListener('abort', stop);
            source.destroy();
        }
    }
}
