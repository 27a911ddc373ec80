/** Where commands about plugins do their work: the running panel, or the data folder of one that does not run. */
import type { Offer } from '@portico/registry';

import type { PluginView } from '../../../plugins/manager/routes/schema.ts';
import type { Capabilities } from '../../../plugins/runtime/generation.ts';

/** What somebody agrees to: all that a plugin asks for, these, or no more than before. */
export type Wished = 'all' | Capabilities | null;

/** A plugin as the API shows it. */
export type ShownPlugin = Omit<PluginView, 'capabilities'> & {
    readonly capabilities: {
        readonly asked: Capabilities;
        readonly granted: Capabilities;
        readonly missing: Capabilities | null;
    };
};

export interface Listed {
    /** False: nothing runs; it is what the next start of the panel finds. */
    readonly isRunning: boolean;
    readonly safeMode: boolean;
    /** What is wrong with all of them, safe mode included; null when nothing is. */
    readonly message: string | null;
    readonly plugins: readonly ShownPlugin[];
}

export interface Changed {
    readonly plugin: ShownPlugin;
    /** What else came of it; null when nothing did. */
    readonly message: string | null;
}

export type Source =
    | { readonly package: string; readonly version?: string; readonly integrity?: string }
    | { readonly tarball: Uint8Array; readonly integrity?: string };

export interface InstallOrder {
    readonly source: Source;
    /** False: it is not to run yet. */
    readonly enabled: boolean;
    readonly grants: Wished;
    /** Of an earlier version: its data are those that it left, and every change since is given up. */
    readonly restoreData: boolean;
    /** Hears of each phase, as the API names them. */
    tell(phase: string): void;
}

export interface PluginInstalled {
    readonly plugin: ShownPlugin;
    /** The version that was there before; null when none was. */
    readonly from: string | null;
    /** Settings that waited for it and that its code does not take, and why; null when there are none. */
    readonly settingsLeftOut: string | null;
}

export interface PluginAdmin {
    readonly isRunning: boolean;
    list(): Promise<Listed>;
    offers(): Promise<{ readonly offers: readonly Offer[]; readonly message: string | null }>;
    /** @param change - `grants` are in the place of those of before; null leaves these */
    change(
        name: string,
        change: { readonly enabled: boolean; readonly grants: Capabilities | null },
        options: { readonly cascade: boolean }
    ): Promise<Changed>;
    /** Answers what else came of it; null when nothing did. */
    remove(
        name: string,
        options: { readonly purge: boolean; readonly cascade: boolean }
    ): Promise<string | null>;
    install(order: InstallOrder): Promise<PluginInstalled>;
}
