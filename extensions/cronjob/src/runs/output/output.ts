/** What a run prints: its beginning and its end, up to a limit, for readers that follow it. */

/** Output as it is stored. */
export interface KeptOutput {
    readonly head: string;
    readonly tail: string;
    /** Bytes that were printed in all. */
    readonly total: number;
}

/** A part of the output. Offsets count bytes from the first one printed. */
export interface OutputPart {
    readonly text: string;
    /** Offset of the first byte after the part. */
    readonly end: number;
    /** Bytes before it that were dropped. */
    readonly leftOut: number;
}

/** Bytes of one part at most. */
const maxPartBytes = 64 * 1024;

/** The output of an active run. It never waits for its readers: a slow one misses what is dropped meanwhile. */
export class Output {
    readonly #headLimit: number;
    readonly #tailLimit: number;
    readonly #head: Buffer[] = [];
    #headBytes = 0;
    #headFull = false;
    readonly #tail: Buffer[] = [];
    #tailBytes = 0;
    #total = 0;
    #closed = false;
    #changed = Promise.withResolvers<void>();

    /** `limit`: bytes that are kept; a quarter of them from the beginning. */
    constructor(limit: number) {
        this.#headLimit = Math.floor(limit / 4);
        this.#tailLimit = limit - this.#headLimit;
    }

    /** Bytes that were printed so far. */
    get total(): number {
        return this.#total;
    }

    /** Adds whole characters. A zero byte becomes `␀`, because the database cannot store it in a text. */
    add(text: string): void {
        let bytes = Buffer.from(text.replaceAll('\0', '␀'));
        if (bytes.length === 0) {
            return;
        }
        this.#total += bytes.length;
        if (!this.#headFull) {
            const fits = wholeCharacters(bytes, this.#headLimit - this.#headBytes);
            this.#headFull = fits < bytes.length;
            this.#head.push(bytes.subarray(0, fits));
            this.#headBytes += fits;
            bytes = bytes.subarray(fits);
        }
        this.#tail.push(bytes);
        this.#tailBytes += bytes.length;
        this.#trim();
        this.#notify();
    }

    /** Ends the output: readers end too. */
    close(): void {
        this.#closed = true;
        this.#notify();
    }

    /** The output so far, as it is stored. */
    kept(): KeptOutput {
        const { head, tail, total } = this.#compact();
        return { head: head.toString('utf8'), tail: tail.toString('utf8'), total };
    }

    /** Yields everything from an offset on, as it is printed, until the run or `signal` ends. */
    async *from(offset: number, signal: AbortSignal): AsyncGenerator<OutputPart> {
        let at = offset;
        const aborted = Promise.withResolvers<void>();
        const onAbort = (): void => aborted.resolve();
        signal.addEventListener('abort', onAbort, { once: true });
        try {
            while (!signal.aborted) {
                const changed = this.#changed.promise;
                const part = nextPart(this.#compact(), at);
                if (part !== null) {
                    at = part.end;
                    yield part;
                } else if (this.#closed) {
                    return;
                } else {
                    await Promise.race([changed, aborted.promise]);
                }
            }
        } finally {
            signal.removeEventListener('abort', onAbort);
        }
    }

    #trim(): void {
        // The tail may grow by half before it is copied, so that a program that prints single bytes does not cost a copy for each.
        if (this.#tailBytes > this.#tailLimit * 1.5 || this.#tail.length > 4_096) {
            this.#compact();
        }
    }

    /** Joins the chunks, and drops what is over the limit. */
    #compact(): KeptBytes {
        const head = this.#head.length === 1 ? (this.#head[0] as Buffer) : Buffer.concat(this.#head);
        let tail = this.#tail.length === 1 ? (this.#tail[0] as Buffer) : Buffer.concat(this.#tail);
        if (tail.length > this.#tailLimit) {
            tail = Buffer.from(tail.subarray(nextCharacter(tail, tail.length - this.#tailLimit)));
        }
        this.#head.splice(0, Infinity, head);
        this.#tail.splice(0, Infinity, tail);
        this.#tailBytes = tail.length;
        return { head, tail, total: this.#total };
    }

    #notify(): void {
        const { resolve } = this.#changed;
        this.#changed = Promise.withResolvers<void>();
        resolve();
    }
}

interface KeptBytes {
    readonly head: Buffer;
    readonly tail: Buffer;
    readonly total: number;
}

/** The next part of stored output from an offset on; null at the end. */
export function partAt({ head, tail, total }: KeptOutput, offset: number): OutputPart | null {
    return nextPart({ head: Buffer.from(head), tail: Buffer.from(tail), total }, offset);
}

function nextPart({ head: first, tail: last, total }: KeptBytes, offset: number): OutputPart | null {
    const tailStart = total - last.length;
    if (offset >= total) {
        return null;
    }
    if (offset < first.length) {
        const start = nextCharacter(first, Math.max(0, offset));
        const bytes = first.subarray(start, start + wholeCharacters(first.subarray(start), maxPartBytes));
        return { text: bytes.toString('utf8'), end: start + bytes.length, leftOut: 0 };
    }
    const start = nextCharacter(last, Math.max(0, offset - tailStart));
    const bytes = last.subarray(start, start + wholeCharacters(last.subarray(start), maxPartBytes));
    return bytes.length === 0
        ? null
        : {
              text: bytes.toString('utf8'),
              end: tailStart + start + bytes.length,
              leftOut: Math.max(0, tailStart - offset)
          };
}

/** The output as one text; a line in brackets says how many bytes were left out. */
export function textOf({ head, tail, total }: KeptOutput): {
    readonly text: string;
    readonly truncated: boolean;
} {
    const leftOut = total - Buffer.byteLength(head) - Buffer.byteLength(tail);
    return leftOut > 0
        ? { text: `${head}\n[${leftOut} bytes were left out]\n${tail}`, truncated: true }
        : { text: head + tail, truncated: false };
}

function isContinuation(byte: number | undefined): boolean {
    return byte !== undefined && (byte & 0xc0) === 0x80;
}

function nextCharacter(bytes: Buffer, from: number): number {
    let at = from;
    while (isContinuation(bytes[at])) {
        at += 1;
    }
    return at;
}

/** How many of the first `limit` bytes form whole characters. */
function wholeCharacters(bytes: Buffer, limit: number): number {
    if (bytes.length <= limit) {
        return bytes.length;
    }
    let at = Math.max(0, limit);
    while (at > 0 && isContinuation(bytes[at])) {
        at -= 1;
    }
    return at;
}
