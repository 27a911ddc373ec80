import type { Reply } from '@portico/sdk';

import type { Call } from '../platform/call.ts';
import type { Clock } from '../platform/clock.ts';
import type { Database } from '../platform/database/database.ts';
import type { Logger } from '../platform/log/log.ts';
import type { CertificateStore, Engine, HostRow, HostStore, SettingsSource } from './change.ts';
import type { Difference } from './control/differences.ts';
import type { EngineFolders } from './files/home.ts';
import type { Fragments } from './fragments/fragments.ts';
import type { EngineConfig, EngineDriver, LogOptions, ProcessState } from './port.ts';
import type { RevisionDetail, RevisionSummary, Sealer } from './revisions/revisions.ts';

/** The last attempt to sync the engine. */
export interface LastApply {
    readonly at: Date;
    readonly durationMs: number;
    readonly changes: number;
    readonly reloaded: boolean;
    readonly result: 'applied' | 'rejected' | 'failed';
    /** The engine's message when it was not applied. */
    readonly message: string | null;
}

/** How the engine is, and how far it is with the rows. */
export interface EngineStatus {
    readonly state: ProcessState;
    readonly running: boolean;
    readonly version: string | null;
    readonly pid: number | null;
    readonly startedAt: Date | null;
    readonly uptimeSeconds: number | null;
    /** Why it is not running, or what is wrong with what it runs. */
    readonly message: string | null;
    /** What the last start or stop asked for. */
    readonly wanted: 'running' | 'stopped';
    readonly autoReload: boolean;
    /** Whether it runs another configuration than it was given, as of the last check. */
    readonly drifted: boolean;
    /** SHA-256 of the canonical configurations; `running` is null when there is none, or it does not answer. */
    readonly configuration: { readonly wanted: string; readonly running: string | null };
    readonly revision: number;
    readonly appliedRevision: number;
    /** Revisions that the engine does not serve yet, and the hosts in them. */
    readonly pending: number;
    readonly pendingHosts: number;
    /** Hosts that the engine refuses, by id. */
    readonly refused: readonly { readonly id: number; readonly message: string }[];
    readonly lastApply: LastApply | null;
    /** Loads since the panel started. */
    readonly loads: number;
}

/** The outcome of start, stop, restart, reload or overwrite. */
export interface ControlResult {
    /** False: nothing had to be done. */
    readonly changed: boolean;
    readonly state: ProcessState;
    readonly pending: number;
    /** Why some rows are still not served; null when all are. */
    readonly error: string | null;
}

/** A name whose entry in the table is not as it should be; null: no entry. */
export interface TableDifference {
    readonly name: string;
    readonly wanted: string | null;
    readonly running: string | null;
}

/** Where the engine is not as the panel left it. */
export interface Drift {
    readonly drifted: boolean;
    readonly config: readonly Difference[];
    readonly table: readonly TableDifference[];
    /** There are more differences than these. */
    readonly more: boolean;
}

/** The outcome of a restore. */
export interface RestoreResult {
    readonly revision: number;
    readonly applied: boolean;
    readonly reload: boolean;
    /** Number of hosts that changed. */
    readonly changed: number;
}

/** The engine service as routes and composition use it: `Engine`, and what controls and shows the process. */
export interface EngineService extends Engine {
    /** What plugins have in the configuration. */
    readonly fragments: Fragments;
    /** Loads the rows and syncs the engine, unless auto-reload is off. Rejects only when the database fails; troubles of the engine are in `status`. */
    boot(): Promise<void>;
    /** Ends the queue and releases the engine, which keeps running. */
    close(): Promise<void>;
    /** @throws ENGINE_UNAVAILABLE 50301, TOOL_MISSING 50302 */
    start(call: Call): Promise<Reply<ControlResult>>;
    stop(call: Call): Promise<Reply<ControlResult>>;
    restart(call: Call): Promise<Reply<ControlResult>>;
    /** Loads what is wanted with everything that waits. @throws ENGINE_REJECTED 42200, ENGINE_UNAVAILABLE 50301, TOOL_MISSING 50302 */
    reload(call: Call): Promise<Reply<ControlResult>>;
    /** Syncs what waits, after auto-reload was switched on. Troubles of the engine are in `status`. */
    catchUp(): Promise<void>;
    status(): Promise<EngineStatus>;
    /** Why the engine does not serve what it should, as of now and without asking it; null: it does, or is stopped by wish. */
    problem(): string | null;
    /** What the engine runs; null when it is stopped. @throws ENGINE_UNAVAILABLE 50301 */
    configNow(): Promise<EngineConfig | null>;
    /** What it would run if everything that waits were applied. */
    desired(): EngineConfig;
    /** @throws ENGINE_UNAVAILABLE 50301 when there is nothing to compare with */
    drift(): Promise<Drift>;
    overwriteDrift(call: Call): Promise<Reply<ControlResult>>;
    /** Newest first: the `limit` below `before`. */
    revisions(page: { readonly before: number | null; readonly limit: number }): {
        readonly rows: readonly RevisionSummary[];
        readonly total: number;
    };
    /** @throws NOT_FOUND 40400 */
    revision(number: number): RevisionDetail;
    /**
     * Makes the rows, and the settings, those of a revision: an ordinary change through the queue.
     * @throws NOT_FOUND 40400; FORBIDDEN 40300; CONFLICT 40900 when a certificate of that time is gone; what any change throws
     */
    restore(number: number, call: Call): Promise<Reply<RestoreResult>>;
    logs(options: LogOptions): AsyncIterable<string>;
    /** The engine-native handlers of all rows, as `maskConfig` wants them. */
    advanced(): ReadonlySet<string>;
}

/** Called after a sync, outside any transaction. Must not throw. */
export interface EngineHooks {
    applied?(event: {
        readonly revision: number;
        readonly applied: boolean;
        readonly reloaded: boolean;
        readonly hosts: readonly number[];
    }): void;
    failed?(event: { readonly result: 'rejected' | 'failed' | 'drifted'; readonly message: string }): void;
}

/** What the engine service works with. */
export interface EngineOptions {
    readonly driver: EngineDriver;
    readonly hosts: HostStore;
    readonly settings: SettingsSource;
    readonly certificates: CertificateStore;
    readonly db: Database;
    readonly sealer: Sealer;
    /** The engine's folders (`engineHome`). Called again after it threw, so that a panel without an engine starts. */
    readonly home: () => EngineFolders;
    readonly log: Logger;
    readonly clock: Clock;
    readonly hooks?: EngineHooks;
    /** Absolute paths that no fragment of a plugin may name. */
    readonly places?: () => readonly string[];
    /** The one address that sites are served on; left out: all of them. */
    readonly address?: string;
    /** Checks a row that a restore brings back as any other change is checked. Throws to refuse. */
    readonly vet?: (call: Call, before: HostRow | null, after: HostRow | null) => void;
    /** Milliseconds from one load to the next; default 1,000. */
    readonly windowMs?: number;
    /** Milliseconds between two checks whether others have changed the engine; default 15,000. */
    readonly driftCheckMs?: number;
}
