/** One-time tickets of one plugin: what a browser shows where it cannot send a header. In memory, as hashes, gone with the generation. */
import { hash, randomBytes } from 'node:crypto';

import type { IssuedTicket } from '@portico/sdk';

import type { Caller } from '../../../platform/call.ts';
import type { Clock } from '../../../platform/clock.ts';
import { fail } from '../../../platform/errors.ts';

interface Open {
    readonly caller: Caller;
    readonly permission: string;
    readonly data: unknown;
    readonly expiresAt: number;
}

const most = 1_000;
const longestSeconds = 300;

/** Issues and takes the tickets of one plugin. */
export class PluginTickets {
    readonly #clock: Clock;
    readonly #renew: (caller: Caller) => Caller;
    readonly #open = new Map<string, Open>();

    constructor(clock: Clock, renew: (caller: Caller) => Caller) {
        this.#clock = clock;
        this.#renew = renew;
    }

    /** @throws FORBIDDEN 40300 for a permission that the caller lacks; RATE_LIMITED 42900 when too many are open */
    issue(caller: Caller, permission: string, data: unknown, ttlSeconds: number): IssuedTicket {
        if (!Number.isInteger(ttlSeconds) || ttlSeconds < 1 || ttlSeconds > longestSeconds) {
            throw new TypeError(`A ticket lives 1 to ${longestSeconds} s`);
        }
        if (!caller.can(permission)) {
            throw fail.FORBIDDEN({ permission });
        }
        const now = this.#clock.now();
        for (const [key, { expiresAt }] of this.#open) {
            if (expiresAt <= now) {
                this.#open.delete(key);
            }
        }
        if (this.#open.size >= most) {
            throw fail.RATE_LIMITED({ retryAfterSeconds: longestSeconds });
        }
        const ticket = randomBytes(24).toString('base64url');
        const expiresAt = now + ttlSeconds * 1000;
        this.#open.set(hash('sha256', ticket), { caller, permission, data, expiresAt });
        return { ticket, expiresAt: new Date(expiresAt) };
    }

    /** Takes a ticket: whatever comes of it, it is gone. Its owner must still be there. @throws TOKEN_INVALID 40101, TOKEN_REVOKED 40103 */
    take(ticket: string, permission: string): { readonly caller: Caller; readonly data: unknown } {
        const key = hash('sha256', ticket);
        const taken = this.#open.get(key);
        this.#open.delete(key);
        if (taken === undefined || taken.permission !== permission || taken.expiresAt <= this.#clock.now()) {
            throw fail.TOKEN_INVALID();
        }
        return { caller: this.#renew(taken.caller), data: taken.data };
    }
}
