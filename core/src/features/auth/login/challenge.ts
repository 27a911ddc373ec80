/**
 * Proof of work before a password is compared, in the classic form of ALTCHA: find the number whose SHA-256 after the salt is the
 * challenge. The panel stores nothing when it hands out a challenge; it stores the solved ones until after they expire.
 * docs/adr/0015 says why this is not the library's code.
 */
import { createHmac, createSecretKey, hash, randomBytes, randomInt, timingSafeEqual } from 'node:crypto';

import type { Clock } from '../../../platform/clock.ts';
import type { Database } from '../../../platform/database/database.ts';
import { fail } from '../../../platform/errors.ts';
import { SpentChallengeEntity } from '../entities.ts';

/** What a client solves, as ALTCHA's client library reads it. */
export interface Challenge {
    readonly algorithm: 'SHA-256';
    /** Hex SHA-256 of salt and number. */
    readonly challenge: string;
    /** The number that the client looks for is smaller than this one. */
    readonly maxnumber: number;
    /** Ends in `&`, so that no digit of the number can be moved into it. */
    readonly salt: string;
    /** Hex HMAC-SHA-256 of the challenge. */
    readonly signature: string;
}

/** What `Challenges` works with; limits left out have the defaults below. */
export interface ChallengesDependencies {
    readonly db: Database;
    readonly clock: Clock;
    /** Signs the challenges of this purpose only; stays the same over restarts. */
    readonly key: Buffer;
    /** Highest number when there is no load, by default 100,000: half of it is the mean work. */
    readonly maxNumber?: number;
}

const seconds = 120;
const purpose = 'login';
const saltForm = /^[0-9a-f]{24}\?expires=(\d{10,12})&for=login&$/;
const hexForm = /^[0-9a-f]{64}$/;
const longestPayload = 1024;
/** Solved challenges are kept for this long after they expire, so that a clock that is set back a little does not open them again. */
const graceMs = 10 * 60_000;
const loadWindowMs = 60_000;
/** When so many challenges are solved in a minute, the work is multiplied. */
const loads = [
    { from: 960, times: 8 },
    { from: 240, times: 4 },
    { from: 60, times: 2 }
] as const;

/** Hands out challenges and accepts each solution once. */
export class Challenges {
    readonly #db: Database;
    readonly #clock: Clock;
    readonly #key;
    readonly #maxNumber: number;
    readonly #spent = new Map<string, number>();
    #minute = { from: 0, solved: 0, before: 0 };

    constructor({ db, clock, key, maxNumber = 100_000 }: ChallengesDependencies) {
        this.#db = db;
        this.#clock = clock;
        this.#key = createSecretKey(key);
        this.#maxNumber = maxNumber;
        for (const { challenge, expires_at: expiresAt } of db
            .prepare<[], { challenge: string; expires_at: number }>(
                'select challenge, expires_at from auth_spent_challenges order by expires_at'
            )
            .all()) {
            this.#spent.set(challenge, expiresAt);
        }
    }

    /** A fresh challenge, valid for 120 seconds. */
    create(): Challenge {
        const maxnumber = this.#maxNumber * this.#difficulty();
        const salt = `${randomBytes(12).toString('hex')}?expires=${Math.floor(this.#clock.now() / 1000) + seconds}&for=${purpose}&`;
        const challenge = hash('sha256', `${salt}${randomInt(maxnumber)}`);
        return { algorithm: 'SHA-256', challenge, maxnumber, salt, signature: this.#sign(challenge) };
    }

    /**
     * Verifies a solution without spending it. Costs two short hashes at most.
     *
     * @returns the challenge with the time of its expiry; null when it is wrong, expired, or spent
     */
    check(payload: string): { readonly challenge: string; readonly expiresAt: number } | null {
        const solution = parse(payload);
        const expiresAt = Number(saltForm.exec(solution?.salt ?? '')?.[1]) * 1000;
        if (
            solution === null ||
            !(expiresAt > this.#clock.now()) ||
            expiresAt > this.#clock.now() + (seconds + 60) * 1000
        ) {
            return null;
        }
        const { challenge, salt, number, signature } = solution;
        if (
            hash('sha256', `${salt}${number}`) !== challenge ||
            !timingSafeEqual(Buffer.from(this.#sign(challenge)), Buffer.from(signature)) ||
            this.#spent.has(challenge)
        ) {
            return null;
        }
        return { challenge, expiresAt };
    }

    /**
     * Accepts a solution, which is never accepted again: that is on disk when this resolves.
     *
     * @throws CHALLENGE_REQUIRED 40111, CHALLENGE_INVALID 40112, each with a fresh one in `data.challenge`
     */
    async spend(payload: string | null | undefined): Promise<void> {
        if (payload === undefined || payload === null || payload === '') {
            throw fail.CHALLENGE_REQUIRED({ challenge: this.create() });
        }
        const solved = this.check(payload);
        if (solved === null) {
            throw fail.CHALLENGE_INVALID({ challenge: this.create() });
        }
        const { challenge, expiresAt } = solved;
        this.#spent.set(challenge, expiresAt);
        this.#count();
        const now = this.#clock.now();
        await this.#db.writeEssential(async (tx) => {
            await tx.em.insert(SpentChallengeEntity, { challenge, expiresAt });
            await tx.em.nativeDelete(SpentChallengeEntity, { expiresAt: { $lt: now - graceMs } });
        });
        for (const [old, expired] of this.#spent) {
            if (expired >= now - graceMs) {
                break;
            }
            this.#spent.delete(old);
        }
    }

    #sign(challenge: string): string {
        return createHmac('sha256', this.#key).update(challenge).digest('hex');
    }

    /** Counts solved challenges only: asking for challenges costs nothing, and must not make the owner's login slow. */
    #difficulty(): number {
        const now = this.#clock.now();
        const { from, solved, before } = this.#minute;
        const recent =
            now - from < loadWindowMs ? Math.max(solved, before) : now - from < 2 * loadWindowMs ? solved : 0;
        return loads.find((load) => recent >= load.from)?.times ?? 1;
    }

    #count(): void {
        const now = this.#clock.now();
        const { from, solved } = this.#minute;
        if (now - from < loadWindowMs && now >= from) {
            this.#minute.solved += 1;
            return;
        }
        this.#minute = { from: now, solved: 1, before: now - from < 2 * loadWindowMs ? solved : 0 };
    }
}

function parse(
    payload: string
): { challenge: string; salt: string; number: number; signature: string } | null {
    if (payload.length > longestPayload) {
        return null;
    }
    let solution: unknown;
    try {
        solution = JSON.parse(Buffer.from(payload, 'base64').toString('utf8'));
    } catch {
        return null;
    }
    if (typeof solution !== 'object' || solution === null) {
        return null;
    }
    const { algorithm, challenge, salt, number, signature } = solution as Record<string, unknown>;
    const formed =
        algorithm === 'SHA-256' &&
        typeof challenge === 'string' &&
        hexForm.test(challenge) &&
        typeof signature === 'string' &&
        hexForm.test(signature) &&
        typeof salt === 'string' &&
        salt.length < 100 &&
        Number.isSafeInteger(number) &&
        (number as number) >= 0;
    return formed ? { challenge, salt, number: number as number, signature } : null;
}
