/** What the apply queue needs of the rest of the engine service, and what it says of itself. */
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Author, CertificatePem, Change, HostStore, Outcome } from '../change.ts';
import type { HostDelta } from '../revisions/revisions.ts';
import type { Rows, DraftOverlay } from './draft-overlay.ts';
import type { Serving } from './served-state.ts';

/** A change in line, and whoever waits for it. */
export interface Waiter {
    readonly change: Change<unknown>;
    resolve(result: { readonly value: unknown; readonly outcome: Outcome }): void;
    reject(error: unknown): void;
}

/** What a batch is about to commit. */
export interface Batch {
    readonly applied: boolean;
    readonly reloaded: boolean;
    readonly deltas: readonly HostDelta[];
    /** Settings or certificates are part of it. */
    readonly beyondHosts: boolean;
    readonly draft: DraftOverlay;
    readonly by: readonly Author[];
}

export interface SyncPorts {
    readonly db: Database;
    readonly hosts: HostStore;
    readonly rows: () => Rows;
    readonly served: () => Serving;
    /** Whether changes reach the engine now, wait, or cannot be taken. @throws ENGINE_UNAVAILABLE */
    readonly mode: () => 'live' | 'deferred';
    /** Whether a configuration that waits can be proven. */
    readonly provable: () => boolean;
    /** Texts of certificates that are not committed yet. */
    readonly pems: Map<number, CertificatePem>;
    /** Writes the revision and the engine's state; returns what is to be done in memory once it is durable. */
    readonly record: (tx: Transaction, batch: Batch) => Promise<() => void>;
    /** The number that the revision of a batch will have. */
    readonly revisionOf: (batch: Batch) => number;
    /** Called after each attempt to bring something to the engine. */
    readonly attempted: (attempt: Attempt) => void;
    /** Called after each commit. */
    readonly committed: (event: {
        readonly revision: number;
        readonly applied: boolean;
        readonly reloaded: boolean;
        readonly hosts: readonly number[];
    }) => void;
    /** Milliseconds from one load to the next. */
    readonly windowMs: number;
}

export interface Attempt {
    readonly changes: number;
    readonly reloaded: boolean;
    readonly durationMs: number;
    /** Null when it succeeded. */
    readonly error: Error | null;
}
