/** Tries that a person asks for: each one reaches a machine or a channel elsewhere, so that their number is bounded. */
import { type Actor, MinuteLimit } from '@portico/sdk';

import { fail } from '../errors.ts';

/** So many tries of checks, rules and exports a user or token may make in a minute. */
export const triesPerMinute = 60;

/** Counts the tries of each actor. */
export class Tries {
    readonly #limit = new MinuteLimit();
    readonly #now: () => number;

    /** @param now - milliseconds since 1970 */
    constructor(now: () => number) {
        this.#now = now;
    }

    /** Counts one, where it may be made. */
    allows(actor: Actor): boolean {
        return this.#count(actor) === 0;
    }

    /** Counts one. @throws TOO_MANY_TRIES 42950 */
    take(actor: Actor): void {
        const retryAfter = this.#count(actor);
        if (retryAfter > 0) {
            throw fail.TOO_MANY_TRIES({ retryAfter, retryAfterSeconds: retryAfter });
        }
    }

    /** @returns seconds until one may be made; 0 when it may be made now */
    #count({ key }: Actor): number {
        return this.#limit.take(key, triesPerMinute, this.#now());
    }
}
