/** What every hapi server asks of the rest of the panel: who a caller is, where the record is kept, and which answers are known already. */
import type { AuditDetail } from '@portico/sdk';

import type { Caller, RecordedActor } from '../../platform/call.ts';
import type { Transaction } from '../../platform/database/database.ts';
import type { Logger } from '../../platform/log/log.ts';
import type { Route } from './route.ts';

/** Who is asking, and may they? Implemented by `auth/`. */
export interface Authenticator {
    /** The caller behind a bearer token: session or API token. @throws TOKEN_INVALID, TOKEN_EXPIRED, TOKEN_REVOKED */
    bearer(token: string, from: Origin): Caller | Promise<Caller>;
    /** Spends a one-time ticket on a GET of exactly this path with its query. @throws TOKEN_INVALID, TOKEN_REVOKED */
    ticket(ticket: string, path: string, from: Origin): Promise<Caller>;
    /** Lets the caller through to the route or throws: FORBIDDEN, STEP_UP_REQUIRED, PASSWORD_CHANGE_REQUIRED, TOTP_SETUP_REQUIRED. */
    admit(caller: Caller, route: Route): void;
    /** Calls back once when the caller's session or token ends, or the account may no longer do what the route asks. Returns how to stop listening. */
    onEnd(caller: Caller, route: Route, ended: () => void): () => void;
    readonly anonymous: Caller;
}

/** Where a request came from. */
export interface Origin {
    readonly ip: string;
    readonly userAgent: string | null;
}

/** One line of the audit log before it has a place in the chain. */
export interface AuditEntry extends AuditDetail {
    readonly actor: RecordedActor;
    readonly action: string;
    readonly resource: string;
    readonly outcome: 'success' | 'failure';
    /** HTTP status of the answer; null for the panel's own work. */
    readonly status: number | null;
    /** 0, or the failure's code. */
    readonly code: number;
    readonly ip: string | null;
    readonly userAgent: string | null;
    readonly requestId: string | null;
}

/** The audit log's writing side. Implemented by `audit/`. */
export interface Recorder {
    /** Appends to the chain inside the transaction of the change that the entry speaks of. */
    record(tx: Transaction, entry: AuditEntry): Promise<void>;
    /** Appends in a transaction of its own. */
    recordAlone(entry: AuditEntry): Promise<void>;
    /** A refusal or failure that changed nothing: equal ones (code and caller) become one entry now and one with the count at the minute's end. */
    refused(entry: AuditEntry): Promise<void>;
}

/** An answer as a retry gets it again. */
export interface KeptReply {
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    /** The whole body, envelope included. */
    readonly body: string;
}

/** The first request with its key: it may keep its answer. */
export interface KeyInUse {
    /** Keeps the answer inside the transaction of the change. */
    keep(tx: Transaction, answer: KeptReply): Promise<void>;
    /** Keeps an answer that changed nothing. */
    keepAlone(answer: KeptReply): Promise<void>;
    /** The request is over, kept or not: those that wait for its answer go on. */
    end(): void;
}

/** Idempotency keys. Implemented by `http/idempotency.ts` on the database. */
export interface Idempotency {
    /**
     * Claims a key, or finds what it answered; waits for the answer while the first request is under way. `fingerprint` is the hash of method, path
     * with query, and body.
     * @throws IDEMPOTENCY_MISMATCH, IDEMPOTENCY_UNRESOLVED
     */
    claim(
        caller: Caller,
        key: string,
        fingerprint: string,
        call: { readonly signal: AbortSignal }
    ): Promise<{ readonly replay: KeptReply } | { readonly first: KeyInUse }>;
}

/** Everything that a server needs of the features. */
export interface HttpPorts {
    readonly authenticator: Authenticator;
    readonly recorder: Recorder;
    readonly idempotency: Idempotency;
    /** The client's address: the TCP peer, or what a trusted proxy says. */
    clientAddress(peer: string, forwardedFor: string | undefined): string;
    /** Origins that may call from a browser; none by default. */
    corsOrigins(): readonly string[];
    /** The panel's own origin for a client that sent this `Host`, as `https://panel.example`. */
    origin(host: string | undefined): string;
    readonly log: Logger;
    /** Checks every answer against the route's `returns`; on in tests and development. */
    readonly checkReturns: boolean;
}
