/** One request of an agent: who asks, and which tools the address was narrowed to. */
import type { AuthInfo } from '@modelcontextprotocol/server';
import type { Actor, Effect } from '@portico/sdk';

/** What holds for one request. */
export interface Visit {
    readonly actor: Actor;
    /** Aborts when the client left, or the plugin ends. */
    readonly signal: AbortSignal;
    /** Only tools of these areas; null: of all. */
    readonly areas: readonly string[] | null;
    /** `read`: only tools that read. */
    readonly effect: Effect | null;
}

/** A visit in the form in which the protocol's library hands it to handlers. The library gets no bearer. */
export function authOf(visit: Visit): AuthInfo {
    return { token: '', clientId: visit.actor.key, scopes: [], extra: { visit } };
}

/** The visit that a handler was called for. @throws Error where the library lost it, which it never does */
export function visitOf(auth: AuthInfo | undefined): Visit {
    const visit = auth?.extra?.['visit'];
    if (visit === undefined) {
        throw new Error('This request came without its visit');
    }
    return visit as Visit;
}
