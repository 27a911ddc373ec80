/** What commands about plugins work with: the running panel, or the data folder when no panel runs. */
import type { Offer } from '@portico/registry';

import type { PluginView } from '../../../plugins/manager/routes/schema.ts';
import type { Capabilities } from '../../../plugins/runtime/generation/generation.ts';

/** What the person agrees to: everything that a plugin asks for, these capabilities, or (null) no more than before. */
export type GrantChoice = 'all' | Capabilities | null;

/** A plugin as the API shows it. */
export type ShownPlugin = Omit<PluginView, 'capabilities'> & {
    readonly capabilities: {
        readonly asked: Capabilities;
        readonly granted: Capabilities;
        readonly missing: Capabilities | null;
    };
};

/** What `plugin list` shows: all plugins, and the state of the panel that reported them. */
export interface PluginListing {
    /** False: no panel runs, and these are the plugins that the next start finds. */
    readonly isRunning: boolean;
    readonly safeMode: boolean;
    /** A problem of all plugins, such as safe mode; null when there is none. */
    readonly message: string | null;
    readonly plugins: readonly ShownPlugin[];
}

/** The result of a change. */
export interface PluginChange {
    readonly plugin: ShownPlugin;
    /** What else the change did; null when nothing. */
    readonly message: string | null;
}

/** Where a package comes from. */
export type Source =
    | { readonly package: string; readonly version?: string; readonly integrity?: string }
    | { readonly tarball: Uint8Array; readonly integrity?: string };

/** What to install, and how. */
export interface InstallOrder {
    readonly source: Source;
    /** False: it is installed and stays disabled. */
    readonly enabled: boolean;
    readonly grants: GrantChoice;
    /** Whether an earlier version gets its own data back; every change since is lost. */
    readonly restoreData: boolean;
    /** Called with each phase, by the names of the API. */
    tell(phase: string): void;
}

/** The result of an install. */
export interface PluginInstalled {
    readonly plugin: ShownPlugin;
    /** The version that was installed before; null when none was. */
    readonly from: string | null;
    /** Why imported settings that waited for the plugin are not valid for it; null when they are, or there are none. */
    readonly settingsLeftOut: string | null;
}

/** What the commands below `plugin` may do, with a running panel or in a data folder that no panel uses. */
export interface PluginAdmin {
    readonly isRunning: boolean;
    list(): Promise<PluginListing>;
    offers(): Promise<{ readonly offers: readonly Offer[]; readonly message: string | null }>;
    /** Enables or disables a plugin. @param change - `grants` replace the earlier ones; null keeps these */
    change(
        name: string,
        change: { readonly enabled: boolean; readonly grants: Capabilities | null },
        options: { readonly cascade: boolean }
    ): Promise<PluginChange>;
    /** Uninstalls a plugin. @returns what else that did; null when nothing */
    remove(
        name: string,
        options: { readonly purge: boolean; readonly cascade: boolean }
    ): Promise<string | null>;
    install(order: InstallOrder): Promise<PluginInstalled>;
}
