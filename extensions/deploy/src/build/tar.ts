/** Reads the entries of a tar that passes by: names and kinds, never contents. Formats of POSIX (ustar, pax) and GNU. */

/** One entry of an archive. */
export interface TarEntry {
    readonly path: string;
    readonly kind: 'file' | 'folder' | 'link' | 'hard-link' | 'other';
    /** Where a link leads; empty for every other entry. */
    readonly target: string;
    readonly bytes: number;
}

const block = 512;
const kinds: Readonly<Record<string, TarEntry['kind']>> = {
    '0': 'file',
    '\0': 'file',
    '7': 'file',
    '1': 'hard-link',
    '2': 'link',
    '5': 'folder'
};
/** A longer name, or longer records of pax, are none that a build makes. */
const mostMeta = 65_536;

/** A name, or records, that come before their entry. */
interface Meta {
    readonly type: string;
    left: number;
    readonly padded: number;
    readonly chunks: Buffer[];
}

/** The archive cannot be read. */
export class TarBroken extends Error {}

/** Finds the entries in the chunks of an archive, whatever their sizes. */
export class TarReader {
    readonly #found: (entry: TarEntry) => void;
    #pending: Buffer<ArrayBufferLike> = Buffer.alloc(0);
    /** Bytes of contents that are still to pass. */
    #skip = 0;
    #meta: Meta | null = null;
    #path: string | null = null;
    #target: string | null = null;
    #ended = false;

    /** @param found - is called for each entry, in order; may throw to end the reading */
    constructor(found: (entry: TarEntry) => void) {
        this.#found = found;
    }

    /** Takes the next bytes. @throws TarBroken */
    add(chunk: Uint8Array): void {
        let bytes: Buffer = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
        while (bytes.length > 0 && !this.#ended) {
            if (this.#skip > 0) {
                const passed = Math.min(this.#skip, bytes.length);
                this.#skip -= passed;
                bytes = bytes.subarray(passed);
            } else if (this.#meta !== null) {
                bytes = this.#addMeta(bytes);
            } else {
                const missing = block - this.#pending.length;
                this.#pending = Buffer.concat([this.#pending, bytes.subarray(0, missing)]);
                bytes = bytes.subarray(missing);
                if (this.#pending.length === block) {
                    const header = this.#pending;
                    this.#pending = Buffer.alloc(0);
                    this.#header(header);
                }
            }
        }
    }

    /** @throws TarBroken when the archive ended in the middle */
    end(): void {
        if (!this.#ended) {
            throw new TarBroken('The archive ends too early');
        }
    }

    #header(header: Buffer): void {
        if (header.every((byte) => byte === 0)) {
            this.#ended = true;
            return;
        }
        const type = String.fromCharCode(header[156] ?? 0);
        const bytes = numberAt(header, 124, 12);
        if (checksumOf(header) !== numberAt(header, 148, 8) || bytes === null) {
            throw new TarBroken('The archive has a header that is none');
        }
        const padded = Math.ceil(bytes / block) * block;
        if ('LKx'.includes(type)) {
            if (bytes > mostMeta) {
                throw new TarBroken('The archive has a name that is too long');
            }
            this.#meta = { type, left: bytes, padded: padded - bytes, chunks: [] };
            return;
        }
        this.#skip = type === '5' || type === '1' || type === '2' ? 0 : padded;
        if (type === 'g') {
            return;
        }
        const prefix = textAt(header, 345, 155);
        const name = textAt(header, 0, 100);
        const isUstar = header.toString('latin1', 257, 263) === 'ustar\0';
        this.#found({
            path: this.#path ?? (isUstar && prefix !== '' ? `${prefix}/${name}` : name),
            kind: kinds[type] ?? 'other',
            target: this.#target ?? textAt(header, 157, 100),
            bytes
        });
        this.#path = null;
        this.#target = null;
    }

    #addMeta(bytes: Buffer): Buffer {
        const meta = this.#meta as Meta;
        const taken = bytes.subarray(0, meta.left);
        meta.chunks.push(taken);
        meta.left -= taken.length;
        if (meta.left === 0) {
            this.#meta = null;
            this.#skip = meta.padded;
            this.#apply(meta.type, Buffer.concat(meta.chunks));
        }
        return bytes.subarray(taken.length);
    }

    #apply(type: string, content: Buffer): void {
        if (type === 'L') {
            this.#path = textAt(content, 0, content.length);
        } else if (type === 'K') {
            this.#target = textAt(content, 0, content.length);
        } else {
            for (const [key, value] of paxRecords(content)) {
                if (key === 'path') {
                    this.#path = value;
                } else if (key === 'linkpath') {
                    this.#target = value;
                } else if (key === 'size') {
                    // Only a file beyond 8 GiB needs it, and no release is that large.
                    throw new TarBroken('The archive has a file that is too large');
                }
            }
        }
    }
}

/** Records of pax: each is its length, a blank, a key, an equals sign, a value and a line feed. */
function* paxRecords(content: Buffer): Generator<readonly [string, string]> {
    let at = 0;
    while (at < content.length) {
        const blank = content.indexOf(0x20, at);
        const length = Number(content.toString('latin1', at, blank));
        const equals = content.indexOf(0x3d, blank);
        if (!(Number.isInteger(length) && length > 0 && blank > at && equals > blank)) {
            throw new TarBroken('The archive has a record that is none');
        }
        yield [
            content.toString('utf8', blank + 1, equals),
            content.toString('utf8', equals + 1, at + length - 1)
        ];
        at += length;
    }
}

function checksumOf(header: Buffer): number {
    return header.reduce((sum, byte, index) => sum + (index >= 148 && index < 156 ? 0x20 : byte), 0);
}

/** An octal number; null where there is none. */
function numberAt(header: Buffer, from: number, length: number): number | null {
    const text = textAt(header, from, length).trim();
    return /^[0-7]{1,12}$/.test(text) ? Number.parseInt(text, 8) : null;
}

function textAt(bytes: Buffer, from: number, length: number): string {
    const part = bytes.subarray(from, from + length);
    const end = part.indexOf(0);
    return part.toString('utf8', 0, end === -1 ? part.length : end);
}
