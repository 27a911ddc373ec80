/** How auth/ puts itself on record: its failures are written where they are counted, in the same transaction, and never merged. */
import type { FailureError } from '@portico/sdk';

import type { Call } from '../../platform/call.ts';
import type { AuditEntry } from '../../server/http/ports.ts';

/** Who did it, where the call itself does not know yet. */
export interface Who {
    readonly id: number | null;
    readonly username: string | null;
}

/** What an audit entry of this feature says. */
export interface Happened {
    readonly action: string;
    readonly resource?: string;
    readonly resourceId?: number | null;
    /** 0 when it went well. */
    readonly code: number;
    readonly after?: unknown;
    readonly who?: Who;
}

/** An audit entry of a call. */
export function entryOf(
    call: Call,
    { action, resource = 'auth', resourceId, code, after, who }: Happened
): AuditEntry {
    const { id, username, tokenId, plugin } = call.actor;
    return {
        actor:
            who === undefined ? { id, username, tokenId, plugin } : { ...who, tokenId: null, plugin: null },
        action,
        resource,
        ...(resourceId === undefined ? {} : { resourceId }),
        ...(after === undefined ? {} : { after }),
        outcome: code === 0 ? 'success' : 'failure',
        status: code === 0 ? 200 : Math.floor(code / 100),
        code,
        ip: call.ip,
        userAgent: call.userAgent,
        requestId: call.id
    };
}

/** How a transaction ended that must be committed although the call fails: a failed attempt is counted and on record before it is answered. */
export type Committed<T> = { readonly done: T } | { readonly failure: FailureError };

/** Throws the failure once it is committed. */
export function unwrap<T>(settled: Committed<T>): T {
    if ('failure' in settled) {
        throw settled.failure;
    }
    return settled.done;
}
