/** What the sync queue needs of the rest of the engine service, and what it reports to it. */
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Author, CertificatePem, Change, HostStore, Outcome } from '../change.ts';
import type { HostDelta } from '../revisions/revisions.ts';
import type { DraftOverlay, Rows } from './draft-overlay.ts';
import type { ServedState } from './served-state.ts';

/** A change in line, and how its caller is answered. */
export interface Waiter {
    readonly change: Change<unknown>;
    resolve(result: { readonly value: unknown; readonly outcome: Outcome }): void;
    reject(error: unknown): void;
}

/** What is committed together. */
export interface Batch {
    /** Whether the engine serves it. */
    readonly applied: boolean;
    readonly reloaded: boolean;
    readonly deltas: readonly HostDelta[];
    /** Whether it changes settings, fragments or certificates too. */
    readonly beyondHosts: boolean;
    readonly draft: DraftOverlay;
    readonly by: readonly Author[];
}

/** Committed rows, served state and database as a batch uses them. */
export interface SyncPorts {
    readonly db: Database;
    readonly hosts: HostStore;
    readonly rows: () => Rows;
    readonly served: () => ServedState;
    /** Whether changes reach the engine now or wait. @throws ENGINE_UNAVAILABLE 50301 when the engine should run and does not answer */
    readonly mode: () => 'live' | 'deferred';
    /** Whether a configuration can be validated without the running engine. */
    readonly provable: () => boolean;
    /** PEM texts of certificates that are not committed yet, by id. */
    readonly pems: Map<number, CertificatePem>;
    /** Writes the revision and the engine's state row; returns what to do in memory after the commit. */
    readonly record: (tx: Transaction, batch: Batch) => Promise<() => void>;
    /** The number that the revision of a batch will have. */
    readonly revisionOf: (batch: Batch) => number;
    /** Called after each attempt to sync the engine. */
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

/** One attempt to sync the engine, and how it ended. */
export interface Attempt {
    /** Number of changes in it. */
    readonly changes: number;
    readonly reloaded: boolean;
    readonly durationMs: number;
    /** Null when it succeeded. */
    readonly error: Error | null;
}
