/** Password hashes: argon2id, few at a time. A flood of logins waits in a short queue or is turned away; it never takes the machine's memory. */
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

export interface Passwords {
    /** @throws RATE_LIMITED 42900 when the queue is full */
    hash(password: string): Promise<string>;
    /** Always as much work as the hash asks for. @throws RATE_LIMITED 42900 when the queue is full */
    verify(hashed: string, password: string): Promise<boolean>;
    /** A hash that no password has, to be verified where there is no account: the answer takes as long as for one that exists. */
    readonly nobody: string;
    /** True when the hash is weaker than what is made today. */
    isOutdated(hashed: string): boolean;
}

/** The work itself, so that a test can count it. */
export interface Hasher {
    hash(password: string, cost: HashCost): Promise<string>;
    verify(hashed: string, password: string): Promise<boolean>;
}

export interface PasswordsOptions {
    readonly cost?: HashCost;
    /** Hashes at the same time; by default one a core, at most 4 (the threads that Node has for such work). */
    readonly inFlight?: number;
    /** Hashes that may wait, by default 50. */
    readonly queue?: number;
    readonly hasher?: Hasher;
}

/** The SIMD build takes as long for 46 MiB as others take for 19: the same wait, and more than twice the memory for whoever guesses. */
const defaultCost: HashCost = { memoryCost: 47_104, timeCost: 2, parallelism: 1 };
/** `Algorithm.Argon2id`; the package declares it as a const enum, which isolated modules cannot read. */
const argon2id = 2;
const retryAfterSeconds = 1;

const argon2: Hasher = {
    hash: (password, cost) => hash(password, { ...cost, algorithm: argon2id }),
    verify: (hashed, password) => verify(hashed, password)
};

/** Makes the one place where passwords are hashed. */
export function createPasswords(options: PasswordsOptions = {}): Passwords {
    const {
        cost = defaultCost,
        inFlight = Math.min(4, availableParallelism()),
        queue = 50,
        hasher = argon2
    } = options;
    const waiting: (() => void)[] = [];
    let running = 0;
    const work = async <T>(run: () => Promise<T>): Promise<T> => {
        if (running >= inFlight) {
            if (waiting.length >= queue) {
                throw fail.RATE_LIMITED({ retryAfterSeconds });
            }
            await new Promise<void>((resolve) => waiting.push(resolve));
        } else {
            running += 1;
        }
        try {
            return await run();
        } finally {
            const next = waiting.shift();
            if (next === undefined) {
                running -= 1;
            } else {
                next();
            }
        }
    };
    return {
        hash: (password) => work(() => hasher.hash(password, cost)),
        verify: (hashed, password) => work(() => hasher.verify(hashed, password)),
        nobody: `$argon2id$v=19$m=${cost.memoryCost},t=${cost.timeCost},p=${cost.parallelism}$${unpadded(16)}$${unpadded(32)}`,
        isOutdated(hashed) {
            const made = parseOptions(hashed);
            return (
                Number(made.algorithm) !== argon2id ||
                made.memoryCost < cost.memoryCost ||
                made.timeCost < cost.timeCost
            );
        }
    };
}

function unpadded(bytes: number): string {
    return randomBytes(bytes).toString('base64').replaceAll('=', '');
}
