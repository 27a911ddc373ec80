/**
 * One call of the panel, as services see it: who asks, from where, on which version, and how the change that it makes is put on record.
 * No HTTP framework in here: the command line and the panel's own work make calls too.
 */
import type { Actor, AuditDetail } from '@portico/sdk';

import type { Transaction } from './database/database.ts';

/** The actor of a call with what only the core may know of it. */
export interface Caller extends Actor {
    /** The session behind it; null for API tokens and the system. */
    readonly sessionId: number | null;
    /** The plugin on whose behalf the actor is used; null when the actor asks directly. */
    readonly plugin: string | null;
    /** Set for a caller by mandate. The plugin that holds the mandate may call these routes alone. */
    readonly mandate?: { readonly plugin: string; readonly routes: readonly string[] };
    /** Set for a caller by a token of OAuth: its own requests reach this path, and what is below it, alone. */
    readonly resource?: string;
    /** The session proved itself (login, step-up) within `panel.stepUpMinutes`. An API token counts as fresh except where a route says otherwise; a token of OAuth never does. */
    readonly fresh: boolean;
}

/** What a change says of itself, written in the same transaction as the change. */
export interface Done<T> extends AuditDetail {
    /** The answer that a retry with the same Idempotency-Key gets again. */
    readonly reply: T;
}

/** One call, whatever made it: a request, the command line, the panel itself. */
export interface Call {
    readonly id: string;
    readonly actor: Caller;
    /** Id of the route that it came by, as in the OpenAPI document; absent where it came by none. */
    readonly route?: string;
    /** The client's address; null for the system and the command line. */
    readonly ip: string | null;
    readonly userAgent: string | null;
    /** The version in `If-Match`; null without one. */
    readonly ifMatch: string | null;
    readonly signal: AbortSignal;
    /**
     * Puts this call on record inside the transaction of its change: the audit entry and, with an Idempotency-Key, the reply.
     * To be called once, in the transaction that makes the change, by every service that changes a row. Returns `done.reply`.
     * A call of a writing route that was never completed is recorded by the host, in a transaction of its own, before it is answered.
     */
    complete<T>(tx: Transaction, done: Done<T>): Promise<T>;
}

/** Who a call acts for, as changes remember it. */
export function authorOf({ id, actor }: Call) {
    return {
        id: actor.id,
        username: actor.username,
        tokenId: actor.tokenId,
        plugin: actor.plugin,
        requestId: id
    };
}

/** Who acted, as the audit log remembers it. A mandate has an id among its giver's tokens, but is none. */
export interface RecordedActor {
    readonly id: number | null;
    readonly username: string | null;
    readonly tokenId: number | null;
    readonly plugin: string | null;
    /** The mandate by which the plugin acted. */
    readonly mandateId?: number;
}

/** A caller as the audit log remembers it. */
export function recordedActor({ kind, id, username, tokenId, plugin }: Caller): RecordedActor {
    return kind === 'mandate' && tokenId !== null
        ? { id, username, tokenId: null, plugin, mandateId: tokenId }
        : { id, username, tokenId, plugin };
}
