/** One-time tickets of the plugin under test. */
import { randomBytes } from 'node:crypto';

import type { IssuedTicket } from '../context.ts';
import type { Caller } from './actors.ts';
import { panelFailure } from './envelope.ts';

export class TestTickets {
    readonly #now: () => Date;
    readonly #open = new Map<
        string,
        {
            readonly caller: Caller;
            readonly permission: string;
            readonly data: unknown;
            readonly expiresAt: number;
        }
    >();

    constructor(now: () => Date) {
        this.#now = now;
    }

    /** @throws FORBIDDEN 40300 for a permission that the caller lacks */
    issue(caller: Caller, permission: string, data: unknown, ttlSeconds: number): IssuedTicket {
        if (!Number.isInteger(ttlSeconds) || ttlSeconds < 1 || ttlSeconds > 300) {
            throw new TypeError('A ticket lives 1 to 300 s');
        }
        if (!caller.can(permission)) {
            throw panelFailure.forbidden(permission);
        }
        const ticket = randomBytes(24).toString('base64url');
        const expiresAt = this.#now().getTime() + ttlSeconds * 1000;
        this.#open.set(ticket, { caller, permission, data, expiresAt });
        return { ticket, expiresAt: new Date(expiresAt) };
    }

    /** @throws TOKEN_INVALID 40101; TOKEN_REVOKED 40103 when its owner's session is over */
    take(ticket: string, permission: string): { readonly caller: Caller; readonly data: unknown } {
        const taken = this.#open.get(ticket);
        this.#open.delete(ticket);
        if (
            taken === undefined ||
            taken.permission !== permission ||
            taken.expiresAt <= this.#now().getTime()
        ) {
            throw panelFailure.tokenInvalid();
        }
        taken.caller.ended.throwIfAborted();
        return { caller: taken.caller, data: taken.data };
    }
}
