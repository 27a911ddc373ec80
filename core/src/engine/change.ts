/**
 * What passes through the sync queue. A change is planned against the rows and everything that is ahead of it in the queue, proven by the
 * engine, and then written in one short transaction: row and engine change together or not at all.
 */
import type { Transaction } from '../platform/database/database.ts';
import type { EngineConfig, EngineProcess, EngineUpstream } from './port.ts';
import type { EngineFragments, EngineSettings, Site, SiteCertificate } from './site.ts';

/** A host as the panel keeps it: what the engine serves, and what only the panel needs. Immutable. */
export interface HostRow {
    readonly site: Site;
    /** Counts up by one with each change of the row. */
    readonly version: number;
    /** The plugin that made it; null for hosts that a person made. */
    readonly owner: string | null;
    readonly tags: readonly string[];
    readonly notes: string;
    readonly createdAt: Date;
    readonly updatedAt: Date;
}

/** The rows as they will be when everything ahead in the queue is committed. */
export interface Draft {
    readonly hosts: ReadonlyMap<number, HostRow>;
    /** Which host has a name: domains and aliases, lower-case. */
    hostOf(name: string): number | undefined;
    readonly settings: EngineSettings;
    readonly certificates: ReadonlyMap<number, SiteCertificate>;
    /** An id that no host has or had. */
    nextHostId(): number;
}

/** Who made a change, as its revision remembers it. */
export interface Author {
    /** The user; null for the system. */
    readonly id: number | null;
    readonly username: string | null;
    readonly tokenId: number | null;
    readonly plugin: string | null;
    /** The request that asked for it; null for work of the panel itself. */
    readonly requestId: string | null;
}

/** What a change does. A host, certificate or setting that is not named stays. */
export interface Plan {
    readonly hosts?: readonly { readonly id: number; readonly row: HostRow | null }[];
    /** Fragments in them are ignored. */
    readonly settings?: EngineSettings;
    /** Replaces the fragments of all plugins. */
    readonly fragments?: EngineFragments;
    /** `pem`: the texts of a certificate that is not committed yet, which the store therefore does not have. */
    readonly certificates?: readonly {
        readonly id: number;
        readonly certificate: SiteCertificate | null;
        readonly pem?: CertificatePem;
    }[];
}

/** A certificate's chain and its key. */
export interface CertificatePem {
    readonly certificate: string;
    readonly key: string;
}

/** How a change was committed. */
export interface Outcome {
    /** Number of the revision that holds this change; several changes of one apply share it. */
    readonly revision: number;
    /** False: the change is durable and waits (auto-reload is off, the engine is stopped or not installed). */
    readonly applied: boolean;
    /** Whether the engine had to load a configuration, or would have to. */
    readonly reloaded: boolean;
}

/** A change of hosts, settings or certificates. `T` is what its commit returns. */
export interface Change<T> {
    /** Named by the revision; left out for work of the panel itself. */
    readonly by?: Author;
    /** Computes the change from the draft. Synchronous and pure; may run several times. @throws to refuse this change alone (CONFLICT, VERSION_STALE, …) */
    plan(draft: Draft): Plan;
    /** Writes what belongs to the change besides host rows (certificate rows, settings rows, audit and idempotency records), in the one transaction. */
    commit(tx: Transaction, outcome: Outcome): Promise<T>;
}

/** Where host rows are kept. Implemented by `hosts/`. */
export interface HostStore {
    load(): Promise<readonly HostRow[]>;
    /** Writes rows (null removes) inside the transaction. `applied` tells whether the engine serves them as of now. */
    write(
        tx: Transaction,
        rows: readonly { readonly id: number; readonly row: HostRow | null }[],
        applied: boolean
    ): Promise<void>;
    /** Marks rows as served as they are, after a reload of what was pending. */
    markApplied(tx: Transaction, ids: readonly number[]): Promise<void>;
}

/** Where engine settings come from. Implemented by `settings/`. */
export interface SettingsSource {
    engine(): EngineSettings;
    autoReload(): boolean;
    /** Whether an engine that was changed by others is repaired by itself; default true. */
    driftRepair?(): boolean;
    /** Settings that the environment decides. A restore leaves them. */
    fixed?(): Partial<EngineSettings>;
    /** Stores engine settings in the transaction of a restore. Without it, a restore leaves the settings alone. */
    write?(tx: Transaction, settings: EngineSettings): Promise<void>;
}

/** Where certificates come from. Implemented by `certificates/`. */
export interface CertificateStore {
    load(): Promise<readonly SiteCertificate[]>;
    /** The PEM texts, for the engine's working copies. */
    pem(id: number): Promise<CertificatePem>;
}

/** Why a host is pending while the engine runs: the answer to a write says it, and every later read. */
export type WaitsForReload = 'Waits for a reload';

/** Whether the engine serves a host as its row says. */
export interface HostState {
    readonly state: 'applied' | 'pending' | 'error' | 'disabled';
    /** Why it is `pending` or `error`. */
    readonly message: string | null;
}

/** The engine as the rest of the panel uses it. */
export interface Engine {
    /**
     * Runs a change through the queue. Never to be awaited inside a transaction: the change's own would wait for it.
     * @throws what `plan` threw; ENGINE_REJECTED 42200 with the engine's message; ENGINE_UNAVAILABLE 50301; in each case nothing changed
     */
    change<T>(change: Change<T>): Promise<{ readonly value: T; readonly outcome: Outcome }>;
    /** Proves a change without doing it: the same errors, and whether it would reload. */
    tryChange(change: Pick<Change<never>, 'plan'>): Promise<{ readonly reloaded: boolean }>;
    /** The committed rows. */
    draft(): Draft;
    process(): EngineProcess;
    /** Host ids whose row is not what the engine serves. */
    pending(): ReadonlySet<number>;
    /** What `state` and `stateMessage` of this row are as of now. */
    stateOf(row: HostRow): HostState;
    /** The engine's configuration that this site becomes. */
    preview(site: Site): EngineConfig;
    upstreams(): Promise<readonly EngineUpstream[]>;
}
