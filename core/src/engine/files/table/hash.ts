import { createHash } from 'node:crypto';

const modulus = 1n << 256n;

/**
 * A table's hash that a change of one name updates: the sum, modulo 2^256, of the SHA-256 of each name and its entry.
 * It finds accidental differences; it is no protection against chosen entries.
 */
export class TableHash {
    #sum = 0n;

    add(name: string, entry: string): void {
        this.#sum = (this.#sum + term(name, entry)) % modulus;
    }

    remove(name: string, entry: string): void {
        this.#sum = (this.#sum - term(name, entry) + modulus) % modulus;
    }

    toString(): string {
        return this.#sum.toString(16).padStart(64, '0');
    }
}

/** The hash of a whole table. */
export const tableHash = (table: ReadonlyMap<string, string>): string => {
    const sum = new TableHash();
    for (const [name, entry] of table) {
        sum.add(name, entry);
    }

    return sum.toString();
};

const term = (name: string, entry: string): bigint =>
    BigInt(`0x${createHash('sha256').update(`${name}\0${entry}`).digest('hex')}`);
