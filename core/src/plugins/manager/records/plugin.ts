/** What is known of one plugin: what lies on the disk, what an admin decided, and what runs. */
import type { Found, PluginPackage } from '@portico/registry';
import type { PluginDefinition } from '@portico/sdk';

import type { Capabilities, Generation, HealthReport, ReleaseReport } from '../../runtime/generation.ts';

/** The last stage of its journey that a plugin passed, or why it does not run. */
export type PluginState =
    'discovered' | 'resolved' | 'loaded' | 'mounted' | 'running' | 'disabled' | 'failed' | 'quarantined';

/** The step at which a plugin failed. */
export type PluginStage = 'discovered' | 'resolved' | 'loaded' | 'mounted' | 'running';

/** Why a plugin does not run; stays on its record. `code` is stable. */
export interface PluginFailure {
    readonly stage: PluginStage;
    readonly code: string;
    /** One sentence for an admin. */
    readonly message: string;
    /** Milliseconds since 1970. */
    readonly at: number;
}

type Values = Readonly<Record<string, unknown>>;

/** What was decided about one package under one name, and what became of it. Never deleted but by an uninstall. */
export interface PluginRecord {
    readonly name: string;
    readonly package: string;
    readonly enabled: boolean;
    readonly grants: Capabilities;
    /** What it asked for when somebody last decided: what it asks for beyond waits for consent. */
    readonly decided: Capabilities;
    /** As `PluginHost.seal` gave them. */
    readonly settings: Values;
    /** When it failed within the last hour, milliseconds since 1970. */
    readonly failures: readonly number[];
    readonly failure: PluginFailure | null;
    readonly quarantinedAt: number | null;
    /** Roles and tokens that name its permissions mean this package, and no other one of its name. */
    readonly holdsArea: boolean;
    /** The package as it was last seen: what is shown when it is gone. */
    readonly seen: PluginPackage;
    readonly firstSeenAt: number;
    /** Counts up with every change that somebody made; the ETag. */
    readonly version: number;
}

/** One plugin in this process. Changed only inside `Lifecycle.withPlugin`. */
export interface Runtime {
    readonly name: string;
    state: PluginState;
    /** Null when only its record is left. */
    found: Found | null;
    /** Null when its manifest cannot be read. */
    plugin: PluginPackage | null;
    /** Why it cannot start, whatever is decided: its manifest, its ranges, its place in the order. */
    obstacle: Omit<PluginFailure, 'at'> | null;
    /** What its code says; null before it was imported. */
    definition: PluginDefinition | null;
    /** The last import in this process failed: the next one must be a fresh one. */
    importFailed: boolean;
    generation: Generation | null;
    failure: PluginFailure | null;
    /** Ends a start that takes its time; null when none is under way. May be called from anywhere. */
    interrupt: (() => void) | null;
    /** What those that require it were told last. */
    isKnownToRun: boolean;
    /** Milliseconds from the import to running; null before it ran. */
    bootMs: number | null;
    /** What its last end let go of; null before it ended. */
    released: { readonly at: number; readonly report: ReleaseReport } | null;
    health: { readonly at: number; readonly reports: readonly HealthReport[] } | null;
}

/** Where plugins' data lies. */
export interface DataFolders {
    /** The current folder of what was found, absolute; one is made for a plugin that has none. */
    current(found: Found): Promise<string>;
    /** What is told before the first change that a generation on its current data accepts. */
    acceptedOf(found: Found): () => Promise<void>;
}

/** One of which only the name is known. */
export function emptyRuntime(name: string): Runtime {
    return {
        name,
        state: 'discovered',
        found: null,
        plugin: null,
        obstacle: null,
        definition: null,
        importFailed: false,
        generation: null,
        failure: null,
        interrupt: null,
        isKnownToRun: false,
        bootMs: null,
        health: null,
        released: null
    };
}
