/** What installs need, and what is asked of them. */
import type { InstallSource, LockEntry } from '@portico/registry';

import type { TaskStart } from '../../../features/tasks/tasks.ts';
import type { TaskView } from '../../../server/http/answer/task-view.ts';
import type { Recorder } from '../../../server/http/ports.ts';
import type { Capabilities } from '../../runtime/generation/generation.ts';
import type { HostsPort } from '../../runtime/ports.ts';
import type { RecordedServices } from '../records/services.ts';
import type { MovedSettings } from '../settings/moved-settings.ts';
import type { PluginSettings } from '../settings/plugin-settings.ts';
import type { SwapPhase, SwapPorts } from '../upgrade/ports.ts';

/** Settings that an import brought before their plugin was installed. */
export interface KeptSettings {
    /** Null when none wait for this package under this name. */
    find(name: string, packageName: string): ({ readonly enabled: boolean } & MovedSettings) | null;
    /** Deletes them: the plugin has them now. */
    forget(name: string): Promise<void>;
}

/** What installs, upgrades and uninstalls need. */
export interface InstallerPorts extends SwapPorts {
    readonly tasks: { start(options: TaskStart): Promise<TaskView> };
    readonly recorder: Pick<Recorder, 'record' | 'recordAlone'>;
    readonly pluginSettings: PluginSettings;
    readonly kept: KeptSettings;
    readonly services: Pick<RecordedServices, 'purge' | 'remaining'>;
    readonly hosts: Pick<HostsPort, 'all'>;
    /** Why no plugin is loaded; null when plugins are loaded. */
    safeMode(): string | null;
    /** Removes from the engine what these plugins added to it. Resolves with a sentence for each plugin that had added anything. */
    dropFragments(plugins: readonly string[]): Promise<readonly string[]>;
    /** Cuts the plugin's requests when it stops, instead of waiting for them. */
    hurry(plugin: string): void;
    /** Awaited at each phase of a swap: a test ends the process in it. */
    reached?(plugin: string, phase: SwapPhase): void | Promise<void>;
}

/** What an admin decides with an install. */
export interface InstallRequest {
    readonly enabled?: boolean | undefined;
    readonly grants?: Capabilities | undefined;
}

/** What an admin decides with a change of the version. */
export interface ChangeRequest extends InstallRequest {
    /** A version, a range or a tag. */
    readonly version: string;
    readonly settings?: Readonly<Record<string, unknown>> | undefined;
    /** Cuts requests that do not end in time. */
    readonly force?: boolean | undefined;
    /** Goes back to the data that the version left, and gives up every change since. */
    readonly restoreData?: boolean | undefined;
}

/** What one install task does. */
export interface InstallOrder {
    readonly kind: 'install' | 'upgrade' | 'rollback';
    /** Null when only the package says it. */
    readonly name: string | null;
    /** Two tasks with the same key do not run at once. */
    readonly key: string;
    readonly title: string;
    /** Where the package comes from. Not read when `entry` is given. */
    readonly source: InstallSource;
    /** The version, when it is installed already; null when it must be fetched. */
    readonly entry: LockEntry | null;
    readonly request: Omit<ChangeRequest, 'version'>;
}
