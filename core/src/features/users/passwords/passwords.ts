/** Password hashes: argon2id, few at a time. Many logins at once wait in a short queue or are refused, so that they cannot use up the memory. */
import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';

import { hash, parseOptions, verify } from '@node-rs/argon2';

import { fail } from '../../../platform/errors.ts';

/** What one hash costs. */
export interface HashCost {
    /** KiB. */
    readonly memoryCost: number;
    /** Passes. */
    readonly timeCost: number;
    readonly parallelism: number;
}

/** Computes hashes; a test replaces it to count them. */
export interface Hasher {
    hash(password: string, cost: HashCost): Promise<string>;
    verify(hashed: string, password: string): Promise<boolean>;
}

/** How {@link Passwords} works. */
export interface PasswordsOptions {
    readonly cost?: HashCost;
    /** Hashes that are computed at the same time; default: one for each core, at most 4 (the size of Node's thread pool). */
    readonly inFlight?: number;
    /** Hashes that may wait; default: 50. */
    readonly queue?: number;
    readonly hasher?: Hasher;
}

/** The SIMD build of argon2 takes as long for 46 MiB as other builds for 19 MiB: logins are as fast, and guessing costs more than twice the memory. */
const defaultCost: HashCost = { memoryCost: 47_104, timeCost: 2, parallelism: 1 };
/** `Algorithm.Argon2id`; the package declares it as a const enum, which isolated modules cannot read. */
const argon2id = 2;
const retryAfterSeconds = 1;

const argon2: Hasher = {
    hash: (password, cost) => hash(password, { ...cost, algorithm: argon2id }),
    verify: (hashed, password) => verify(hashed, password)
};

/** Hashes and compares passwords. */
export class Passwords {
    /** A hash that no password has. It is compared when there is no account, so that the answer takes as long as with one. */
    readonly unmatchable: string;
    readonly #cost: HashCost;
    readonly #inFlight: number;
    readonly #queue: number;
    readonly #hasher: Hasher;
    readonly #waiting: (() => void)[] = [];
    #running = 0;

    constructor({ cost = defaultCost, inFlight, queue = 50, hasher = argon2 }: PasswordsOptions = {}) {
        this.#cost = cost;
        this.#inFlight = inFlight ?? Math.min(4, availableParallelism());
        this.#queue = queue;
        this.#hasher = hasher;
        this.unmatchable = unmatchableHash(cost);
    }

    /** @throws RATE_LIMITED 42900 when the queue is full */
    hash(password: string): Promise<string> {
        return this.#run(() => this.#hasher.hash(password, this.#cost));
    }

    /** Always takes as much work as the parameters of the hash say. @throws RATE_LIMITED 42900 when the queue is full */
    verify(hashed: string, password: string): Promise<boolean> {
        return this.#run(() => this.#hasher.verify(hashed, password));
    }

    /** Whether a hash is weaker than one that is made today. */
    isOutdated(hashed: string): boolean {
        const { algorithm, memoryCost, timeCost } = parseOptions(hashed);
        return (
            Number(algorithm) !== argon2id ||
            memoryCost < this.#cost.memoryCost ||
            timeCost < this.#cost.timeCost
        );
    }

    async #run<T>(work: () => Promise<T>): Promise<T> {
        if (this.#running >= this.#inFlight) {
            if (this.#waiting.length >= this.#queue) {
                throw fail.RATE_LIMITED({ retryAfterSeconds });
            }
            await new Promise<void>((resolve) => this.#waiting.push(resolve));
        } else {
            this.#running += 1;
        }
        try {
            return await work();
        } finally {
            const next = this.#waiting.shift();
            if (next === undefined) {
                this.#running -= 1;
            } else {
                next();
            }
        }
    }
}

/** A well-formed hash that no password has. */
export function unmatchableHash({ memoryCost, timeCost, parallelism }: HashCost = defaultCost): string {
    return `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$${unpadded(16)}$${unpadded(32)}`;
}

function unpadded(bytes: number): string {
    return randomBytes(bytes).toString('base64').replaceAll('=', '');
}
