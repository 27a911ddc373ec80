/** One-time tickets: what a browser needs where it cannot send a header. Kept in memory, as hashes, for half a minute. */
import { hash, randomBytes } from 'node:crypto';

import type { Caller } from '../../../platform/call.ts';
import type { Clock } from '../../../platform/clock.ts';
import { fail } from '../../../platform/errors.ts';

/** Whom a ticket stands for, and for what. */
export interface Ticket {
    readonly userId: number;
    readonly sessionId: number | null;
    readonly tokenId: number | null;
    readonly path: string;
    readonly expiresAt: number;
}

const lifeMs = 30_000;
const most = 10_000;
const mostOfOneUser = 200;

/** Issues tickets, and takes each once. */
export class Tickets {
    readonly #clock: Clock;
    readonly #open = new Map<string, Ticket>();

    constructor(clock: Clock) {
        this.#clock = clock;
    }

    /** @throws RATE_LIMITED 42900 when too many are open */
    issue(caller: Caller, path: string): { readonly ticket: string; readonly expiresAt: string } {
        const now = this.#clock.now();
        for (const [key, { expiresAt }] of this.#open) {
            if (expiresAt > now) {
                break;
            }
            this.#open.delete(key);
        }
        const userId = caller.id ?? 0;
        const own = [...this.#open.values()].reduce(
            (count, ticket) => count + (ticket.userId === userId ? 1 : 0),
            0
        );
        if (this.#open.size >= most || own >= mostOfOneUser) {
            throw fail.RATE_LIMITED({ retryAfterSeconds: lifeMs / 1000 });
        }
        const ticket = randomBytes(24).toString('base64url');
        const expiresAt = now + lifeMs;
        this.#open.set(hash('sha256', ticket), {
            userId,
            sessionId: caller.sessionId,
            tokenId: caller.tokenId,
            path,
            expiresAt
        });
        return { ticket, expiresAt: new Date(expiresAt).toISOString() };
    }

    /** Takes a ticket: whatever comes of it, it is gone. @throws TOKEN_INVALID 40101 */
    take(ticket: string, path: string): Ticket {
        const key = hash('sha256', ticket);
        const taken = this.#open.get(key);
        this.#open.delete(key);
        if (taken === undefined || taken.path !== path || taken.expiresAt <= this.#clock.now()) {
            throw fail.TOKEN_INVALID();
        }
        return taken;
    }
}
