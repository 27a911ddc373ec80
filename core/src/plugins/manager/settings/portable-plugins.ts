/** Plugins as an export or import of the whole panel handles them: their settings, with the secrets apart from them. */
import { isFailure, messageOf } from '@portico/sdk';

import type { Database, Transaction } from '../../../platform/database/database.ts';
import { fail } from '../../../platform/errors.ts';
import type { Keyring } from '../../../platform/keys/keyring.ts';
import type { Logger } from '../../../platform/log/log.ts';
import { askedOf, beyond } from '../consent/capabilities.ts';
import type { Lifecycle } from '../reconciler/lifecycle.ts';
import type { PluginRecord, Runtime } from '../records/plugin.ts';
import {
    joinMoved,
    Misplaced,
    type MovedSettings,
    openMoved,
    sealMoved,
    splitMoved,
    withPresent
} from './moved-settings.ts';
import type { PluginSettings } from './plugin-settings.ts';

/** A plugin as it stands in an export document. */
export interface PortablePlugin extends MovedSettings {
    readonly name: string;
    readonly package: string;
    readonly version: string;
    readonly enabled: boolean;
}

/** A plugin that has a record in this panel. */
export interface KnownPlugin extends PortablePlugin {
    /** Its package is on the disk, and no other package has the name. */
    readonly isInstalled: boolean;
    /** An admin decided something about it. A package that only lies on the disk is not exported. */
    readonly isDecided: boolean;
    /** The plugin asks for more than it was granted, so it cannot be enabled. */
    readonly lacksConsent: boolean;
    /** Its manifest says that it adds data of its own to an export. */
    readonly gives: boolean;
    /** Goes up by one with every change by an admin. */
    readonly revision: number;
}

/** What exports and imports of plugins need. */
export interface PortablePluginsOptions {
    readonly lifecycle: Lifecycle;
    readonly pluginSettings: PluginSettings;
    readonly keyring: Pick<Keyring, 'seal' | 'open'>;
    readonly db: Database;
    readonly log: Logger;
}

/** Reads and writes the part of plugins that moves between panels. */
export class PortablePlugins {
    readonly #options: PortablePluginsOptions;
    /** The records before `store`, until `follow` has applied the new ones. */
    readonly #before = new Map<string, PluginRecord>();

    constructor(options: PortablePluginsOptions) {
        this.#options = options;
    }

    /** Resolves when the disk was searched, so that all plugins are known. */
    ready(): Promise<void> {
        return this.#options.lifecycle.inventoryReady;
    }

    /** All known plugins, one for each name. */
    list(): readonly KnownPlugin[] {
        const { lifecycle, keyring } = this.#options;
        return lifecycle.runtimes().flatMap((runtime) => {
            const record = lifecycle.recordOf(runtime);
            return record === null ? [] : [knownOf(record, runtime, keyring)];
        });
    }

    /** A package under a name, also when another package has the name now; null when there is no record. */
    find(name: string, packageName: string): KnownPlugin | null {
        const { lifecycle, keyring } = this.#options;
        const record = lifecycle.records.get(name, packageName);
        return record === null ? null : knownOf(record, lifecycle.runtime(name), keyring);
    }

    /**
     * Checks settings by the plugin's code. Code that was not loaded checks them when it starts.
     *
     * @param keeps - keeps the present secrets that the settings do not have
     * @returns the settings as they would be stored, and what is wrong with them
     */
    async prove(
        moved: PortablePlugin,
        keeps: boolean
    ): Promise<{ readonly plugin: PortablePlugin; readonly faults: readonly string[] }> {
        const here = this.find(moved.name, moved.package);
        const whole = here !== null && keeps ? { ...moved, ...withPresent(moved, here) } : moved;
        const { pluginSettings, lifecycle } = this.#options;
        const runtime = lifecycle.runtime(moved.name);
        try {
            if (hasSealed(moved.settings)) {
                throw new Misplaced('they have values that only this panel could have sealed');
            }
            const values = joinMoved(whole);
            if (here?.isInstalled !== true || runtime?.plugin == null || runtime.definition === null) {
                return { plugin: whole, faults: [] };
            }
            await pluginSettings.seal(runtime.plugin, runtime.definition, {}, values);
            const { secrets } = await pluginSettings.describe(runtime.plugin, runtime.definition);
            return { plugin: { ...whole, ...splitMoved(values, secrets) }, faults: [] };
        } catch (error) {
            return { plugin: whole, faults: faultsOf(error) };
        }
    }

    /** Stores settings, and whether the plugin is enabled. @throws VERSION_STALE 41200 when the record was changed meanwhile */
    async store(tx: Transaction, moved: PortablePlugin, revision: number): Promise<void> {
        const {
            lifecycle: { records },
            keyring
        } = this.#options;
        const record = records.get(moved.name, moved.package);
        if (record === null || record.version !== revision) {
            throw fail.VERSION_STALE(
                { version: record?.version ?? 0 },
                { message: `${moved.name} was changed meanwhile` }
            );
        }
        const isFreed = moved.enabled && !record.enabled;
        await records.put(tx, {
            ...record,
            settings: sealMoved(moved, record, keyring),
            enabled: moved.enabled,
            version: record.version + 1,
            ...(isFreed ? { quarantinedAt: null, failures: [] } : {})
        });
        tx.afterCommit(() => {
            this.#before.set(record.name, record);
        });
    }

    /** Applies stored records to the running plugins, each after the plugins that it requires. */
    async follow(names: readonly string[]): Promise<void> {
        const { lifecycle } = this.#options;
        for (const runtime of lifecycle.runtimes().filter(({ name }) => names.includes(name))) {
            const before = this.#before.get(runtime.name);
            if (before !== undefined && lifecycle.recordOf(runtime)?.package === before.package) {
                if (lifecycle.recordOf(runtime)?.enabled === false) {
                    runtime.interrupt?.();
                }
                await lifecycle.refresh(runtime.name, before, { retry: true });
                await this.#sealAll(runtime);
            }
        }
        names.forEach((name) => this.#before.delete(name));
    }

    /** Settings that waited for a package, in the form of a record; null when they cannot be used. */
    sealed(moved: PortablePlugin): PluginRecord['settings'] | null {
        try {
            return sealMoved(moved, moved, this.#options.keyring);
        } catch (error) {
            this.#options.log.warn('Settings that waited for a plugin cannot be used', {
                plugin: moved.name,
                error
            });
            return null;
        }
    }

    /** The running package of a name; null when none runs. `generation` is a new object after each start. */
    running(name: string): { readonly package: string; readonly generation: object } | null {
        const { lifecycle } = this.#options;
        const runtime = lifecycle.phase === 'closing' ? null : lifecycle.runtime(name); // plugins keep their state when the panel closes them
        return runtime?.generation != null && runtime.plugin !== null && runtime.state === 'running'
            ? { package: runtime.plugin.package, generation: runtime.generation }
            : null;
    }

    /** The state of a plugin, and why it does not run; null when the name is unknown. */
    state(name: string): { readonly state: string; readonly message: string | null } | null {
        const runtime = this.#options.lifecycle.runtime(name);
        return runtime === null ? null : { state: runtime.state, message: runtime.failure?.message ?? null };
    }

    /** Names of the running plugins that require a plugin directly. */
    requiredBy(name: string): readonly string[] {
        const { lifecycle } = this.#options;
        return lifecycle.known
            .dependants(name)
            .filter((other) => lifecycle.runtime(other)?.generation != null);
    }

    /** Seals secrets in settings that were stored before the code was loaded: only the code knows which settings are secrets. */
    async #sealAll({ plugin, definition, name }: Runtime): Promise<void> {
        const {
            pluginSettings,
            lifecycle: { records },
            keyring,
            db,
            log
        } = this.#options;
        const record = plugin === null ? null : records.get(name, plugin.package);
        if (plugin === null || definition === null || record === null) {
            return;
        }
        try {
            const { secrets } = await pluginSettings.describe(plugin, definition);
            const known = openMoved(record.settings, record, keyring);
            const split = splitMoved(joinMoved(known), secrets);
            if (Object.keys(split.secrets).some((pointer) => !Object.hasOwn(known.secrets, pointer))) {
                await db.write(async (tx) => {
                    const present = records.get(name, plugin.package);
                    if (present?.settings === record.settings) {
                        await records.put(tx, { ...present, settings: sealMoved(split, present, keyring) });
                    }
                });
            }
        } catch (error) {
            log.warn('The secrets in the settings of a plugin could not be sealed', { plugin: name, error });
        }
    }
}

/** Plugins as the records alone know them, for a panel that does not run; one for each name. */
export function knownFromRecords(
    records: readonly PluginRecord[],
    keyring: Pick<Keyring, 'open'>
): readonly KnownPlugin[] {
    const byName = new Map<string, PluginRecord>();
    for (const record of records) {
        const other = byName.get(record.name);
        if (other === undefined || record.enabled || !other.enabled) {
            byName.set(record.name, record);
        }
    }
    return [...byName.values()].map((record) => knownOf(record, null, keyring));
}

function knownOf(record: PluginRecord, runtime: Runtime | null, keyring: Pick<Keyring, 'open'>): KnownPlugin {
    const present = runtime?.plugin?.package === record.package ? runtime.plugin : null;
    const { version, manifest } = present ?? record.seen;
    const asked = askedOf(manifest);
    return {
        name: record.name,
        package: record.package,
        version,
        enabled: record.enabled,
        ...openMoved(record.settings, record, keyring),
        revision: record.version,
        isInstalled: present !== null,
        isDecided: record.enabled || record.version > 1 || Object.keys(record.settings).length > 0,
        lacksConsent: beyond(asked, record.decided, record.grants) !== null,
        gives: asked.taps?.includes('export.collect') === true
    };
}

function hasSealed(value: unknown): boolean {
    return (
        typeof value === 'object' &&
        value !== null &&
        (Object.hasOwn(value, '~sealed') || Object.values(value).some(hasSealed))
    );
}

function faultsOf(error: unknown): readonly string[] {
    if (error instanceof Misplaced) {
        return [error.message];
    }
    const { errors } =
        ((isFailure(error) ? error.data : null) as {
            readonly errors?: readonly { readonly message: string }[];
        } | null) ?? {};
    return errors?.map(({ message }) => message) ?? [messageOf(error)];
}
