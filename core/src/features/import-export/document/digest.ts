/** One hash for one JSON value, whatever the order of its keys; fed piece by piece, since a document may be larger than a string can be. */
import { createHash, type Hash } from 'node:crypto';

const pieceLength = 65_536;

/** SHA-256 over the value with the keys of every object in the order of their UTF-16 code units. */
export function digestOf(value: unknown): Buffer {
    const writer = new Writer();
    write(value, writer);
    return writer.end();
}

class Writer {
    readonly #hash: Hash = createHash('sha256');
    #piece = '';

    add(text: string): void {
        this.#piece += text;
        if (this.#piece.length > pieceLength) {
            this.#hash.update(this.#piece);
            this.#piece = '';
        }
    }

    end(): Buffer {
        return this.#hash.update(this.#piece).digest();
    }
}

function write(value: unknown, writer: Writer): void {
    if (typeof value !== 'object' || value === null) {
        writer.add(JSON.stringify(value) ?? 'null');
        return;
    }
    if (Array.isArray(value)) {
        writer.add('[');
        value.forEach((each, at) => {
            writer.add(at === 0 ? '' : ',');
            write(each, writer);
        });
        writer.add(']');
        return;
    }
    const object = value as Readonly<Record<string, unknown>>;
    writer.add('{');
    for (const key of Object.keys(object)
        .filter((each) => object[each] !== undefined)
        .sort()) {
        writer.add(`${JSON.stringify(key)}:`);
        write(object[key], writer);
        writer.add(',');
    }
    writer.add('}');
}
