/** What is known of one plugin: what lies on the disk, what an admin decided, and what runs. */
import type { Found, PluginPackage } from '@portico/registry';
import type { PluginDefinition } from '@portico/sdk';

import type {
    Capabilities,
    Generation,
    HealthReport,
    ReleaseReport
} from '../../runtime/generation/generation.ts';

/** The last stage of its start that a plugin passed, or why it does not run. */
export type PluginState =
    'discovered' | 'resolved' | 'loaded' | 'mounted' | 'running' | 'disabled' | 'failed' | 'quarantined';

/** The stage at which a plugin failed. */
export type PluginStage = 'discovered' | 'resolved' | 'loaded' | 'mounted' | 'running';

/** Why a plugin does not run; it stays on the plugin's record. `code` is stable. */
export interface PluginFailure {
    readonly stage: PluginStage;
    readonly code: string;
    /** One sentence for an admin. */
    readonly message: string;
    /** Milliseconds since 1970. */
    readonly at: number;
}

type Values = Readonly<Record<string, unknown>>;

/** What was decided about one package under one name, and how it went. Only an uninstall deletes it. */
export interface PluginRecord {
    readonly name: string;
    readonly package: string;
    readonly enabled: boolean;
    readonly grants: Capabilities;
    /** What it asked for when an admin last decided. What it asks for beyond that needs consent. */
    readonly decided: Capabilities;
    /** Secrets in them are sealed. */
    readonly settings: Values;
    /** Times of its failures within the last hour, milliseconds since 1970. */
    readonly failures: readonly number[];
    readonly failure: PluginFailure | null;
    readonly quarantinedAt: number | null;
    /** Roles and tokens that name its permissions mean this package, and no other package of the name. */
    readonly holdsArea: boolean;
    /** The package as it was last found; it is shown when the package is gone. */
    readonly seen: PluginPackage;
    readonly firstSeenAt: number;
    /** Goes up by one with every change by an admin; the ETag. */
    readonly version: number;
}

/** The part of a record that an admin decides, and that a swap changes. */
export type Decision = Pick<PluginRecord, 'enabled' | 'grants' | 'decided' | 'settings'>;

/** One plugin in this process. Changed only inside `Lifecycle.withPlugin`. */
export interface Runtime {
    readonly name: string;
    state: PluginState;
    /** Null when only its record is left. */
    found: Found | null;
    /** Null when its manifest cannot be read. */
    plugin: PluginPackage | null;
    /** Why it cannot start whatever an admin decides: its manifest, a version range, a circle of requirements. Null when it can. */
    obstacle: Omit<PluginFailure, 'at'> | null;
    /** What its code exports; null before the import. */
    definition: PluginDefinition | null;
    /** The last import in this process failed, so the next one must not come from Node's module cache. */
    importFailed: boolean;
    generation: Generation | null;
    failure: PluginFailure | null;
    /** What its last start threw, for its author; null when it ran. */
    thrown: unknown;
    /** Ends the start that is under way; null without one. May be called outside of `withPlugin`. */
    interrupt: (() => void) | null;
    /** Whether it ran when the plugins that require it were last reconciled. */
    isKnownToRun: boolean;
    /** Milliseconds from the import to running; null before it ran. */
    bootMs: number | null;
    /** What it held when it last stopped; null before that. */
    released: { readonly at: number; readonly report: ReleaseReport } | null;
    health: { readonly at: number; readonly reports: readonly HealthReport[] } | null;
}

/** Where the data of plugins lie. */
export interface DataFolders {
    /** The folder that counts, absolute; it is created for a plugin that has none. */
    current(found: Found): Promise<string>;
    /** The function that a plugin calls before it accepts the first change to its data. */
    acceptedOf(found: Found): () => Promise<void>;
}

/** A plugin of which only the name is known. */
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
        thrown: null,
        interrupt: null,
        isKnownToRun: false,
        bootMs: null,
        health: null,
        released: null
    };
}
