/** Tries that a person asks for: each one reaches a machine or a channel elsewhere, so that their number is bounded. */
import { type Actor, MinuteLimit } from '@portico/sdk';

import { monitoringErrors } from './errors.ts';

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

    /** Counts one. @throws TOO_MANY_TRIES 42950 */
    take({ key }: Actor): void {
        const retryAfter = this.#limit.take(key, triesPerMinute, this.#now());
        if (retryAfter > 0) {
            throw monitoringErrors.TOO_MANY_TRIES({ retryAfter, retryAfterSeconds: retryAfter });
        }
    }
}
