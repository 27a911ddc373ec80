/** What import and export need of other features. Implemented elsewhere, handed over by the composition root. */
import type { AuditDetail, ExportItem, Outcome } from '@portico/sdk';

import type { Call } from '../../platform/call.ts';
import type { Transaction } from '../../platform/database/database.ts';
import type { TaskView } from '../../server/http/answer/task-view.ts';

export type { Recorder } from '../../server/http/ports.ts';

/** The run of a task. */
export interface TaskRun {
    readonly signal: AbortSignal;
    log(text: string): void;
    /** Writes how the task ends if it is cut after the commit. */
    recordResult(tx: Transaction, result: unknown): Promise<void>;
}

/** Long work. Implemented by `tasks/`. */
export interface Tasks {
    start(options: {
        readonly kind: string;
        readonly title: string;
        readonly access: string;
        readonly call: Call;
        /** Only one task at a time has it. */
        readonly key: string;
        readonly audit: AuditDetail;
        work(run: TaskRun): Promise<unknown>;
    }): Promise<TaskView>;
}

/** A plugin as it moves. */
export interface MovedPlugin {
    readonly name: string;
    readonly package: string;
    readonly version: string;
    readonly enabled: boolean;
    /** Without those that are secret. */
    readonly settings: Readonly<Record<string, unknown>>;
    /** The settings that are secret, by where they stood. */
    readonly secrets: Readonly<Record<string, string>>;
}

/** A plugin that has a record here. */
export interface KnownPlugin extends MovedPlugin {
    /** Its package is there, and has the name. */
    readonly isInstalled: boolean;
    /** An admin made a decision about it. A package that only lies in the folder is not exported. */
    readonly isDecided: boolean;
    /** The plugin asks for more than it was granted, so it cannot be enabled. */
    readonly lacksConsent: boolean;
    /** By its manifest it has data of its own for an export. */
    readonly gives: boolean;
    /** Grows with every change of its record. */
    readonly revision: number;
}

/** The plugins of this panel. Implemented by `plugins/`. */
export interface PluginCatalogue {
    /** Resolves when it is known what there is. */
    ready(): Promise<void>;
    /** One for each name. */
    list(): readonly KnownPlugin[];
    /** A package under a name, also when another one has the name now. */
    find(name: string, packageName: string): KnownPlugin | null;
    /** The settings as they would be stored, and what is wrong with them. `keeps`: secrets that they do not have stay as they are here. */
    prove(
        plugin: MovedPlugin,
        keeps: boolean
    ): Promise<{ readonly plugin: MovedPlugin; readonly faults: readonly string[] }>;
    /** Stores settings, and whether it is enabled. @throws VERSION_STALE when it was changed since */
    store(tx: Transaction, plugin: MovedPlugin, revision: number): Promise<void>;
    /** What runs follows what was stored. */
    follow(names: readonly string[]): Promise<void>;
    running(name: string): { readonly package: string; readonly generation: object } | null;
    /** The state of a name, and why it does not run; null when the name is unknown. */
    state(name: string): { readonly state: string; readonly message: string | null } | null;
    /** Names of what runs and requires it. */
    requiredBy(name: string): readonly string[];
    /** Installs a version from the registry, without any grant. @throws what it fails with, nothing changed */
    install(plugin: MovedPlugin, call: Call, signal: AbortSignal): Promise<void>;
}

/** The way to the taps of plugins that run. */
export interface PluginHooks {
    /** Who taps `export.collect`. */
    givers(): readonly string[];
    /** One outcome for each tap, as they come. */
    give(payload: { readonly maxBytes: number }, signal: AbortSignal): AsyncIterable<Outcome<unknown>>;
    /** One outcome for each of the plugin's taps of `import.restore`; none when it has none. */
    restore(
        plugin: string,
        payload: {
            readonly version: string;
            readonly mode: 'merge' | 'replace';
            readonly items: readonly ExportItem[];
        },
        signal: AbortSignal
    ): AsyncIterable<Outcome<unknown>>;
}
