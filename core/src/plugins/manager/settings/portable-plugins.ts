/** Plugins as an export and an import of the whole panel see them: their settings with the secrets apart, and what follows when they change. */
import { isFailure } from '@portico/sdk';

import type { Database, Transaction } from '../../../platform/database/database.ts';
import { fail } from '../../../platform/errors.ts';
import type { Keyring } from '../../../platform/keyring.ts';
import type { Logger } from '../../../platform/log.ts';
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

/** A plugin as a document has it. */
export interface PortablePlugin extends MovedSettings {
    readonly name: string;
    readonly package: string;
    readonly version: string;
    readonly enabled: boolean;
}

/** One that has a record here. */
export interface KnownPlugin extends PortablePlugin {
    /** Its package is there, and has the name. */
    readonly isInstalled: boolean;
    /** Somebody decided something about it: what merely lies there is no part of a panel. */
    readonly isDecided: boolean;
    /** It asks for more than it was granted, so it cannot be enabled. */
    readonly lacksConsent: boolean;
    /** By its manifest it has data of its own for an export. */
    readonly gives: boolean;
    /** Counts up with every change that somebody made. */
    readonly revision: number;
}

export interface PortablePluginsOptions {
    readonly lifecycle: Lifecycle;
    readonly prover: PluginSettings;
    readonly keyring: Pick<Keyring, 'seal' | 'open'>;
    readonly db: Database;
    readonly log: Logger;
}

export class PortablePlugins {
    readonly #options: PortablePluginsOptions;
    /** Records before they were stored, until what runs has followed. */
    readonly #before = new Map<string, PluginRecord>();

    constructor(options: PortablePluginsOptions) {
        this.#options = options;
    }

    /** Resolves when it is known what there is. */
    ready(): Promise<void> {
        return this.#options.lifecycle.inventoryReady;
    }

    /** One for each name. */
    list(): readonly KnownPlugin[] {
        const { lifecycle, keyring } = this.#options;
        return lifecycle.runtimes().flatMap((runtime) => {
            const record = lifecycle.recordOf(runtime);
            return record === null ? [] : [knownOf(record, runtime, keyring)];
        });
    }

    /** A package under a name, also when another one has the name now. */
    find(name: string, packageName: string): KnownPlugin | null {
        const { lifecycle, keyring } = this.#options;
        const record = lifecycle.records.get(name, packageName);
        return record === null ? null : knownOf(record, lifecycle.runtime(name), keyring);
    }

    /**
     * Holds settings against the code that is there; where none was loaded, they are judged when it starts.
     *
     * @param keeps - secrets that they do not have stay as they are here
     * @returns the settings as they would be stored, and what is wrong with them
     */
    async prove(
        moved: PortablePlugin,
        keeps: boolean
    ): Promise<{ readonly plugin: PortablePlugin; readonly faults: readonly string[] }> {
        const here = this.find(moved.name, moved.package);
        const whole = here !== null && keeps ? { ...moved, ...withPresent(moved, here) } : moved;
        const { prover, lifecycle } = this.#options;
        const runtime = lifecycle.runtime(moved.name);
        try {
            if (hasSealed(moved.settings)) {
                throw new Misplaced('they have values that only this panel could have sealed');
            }
            const values = joinMoved(whole);
            if (here?.isInstalled !== true || runtime?.plugin == null || runtime.definition === null) {
                return { plugin: whole, faults: [] };
            }
            await prover.seal(runtime.plugin, runtime.definition, {}, values);
            const { secrets } = await prover.describe(runtime.plugin, runtime.definition);
            return { plugin: { ...whole, ...splitMoved(values, secrets) }, faults: [] };
        } catch (error) {
            return { plugin: whole, faults: faultsOf(error) };
        }
    }

    /** Stores settings, and whether it is enabled. @throws VERSION_STALE when somebody changed the record since */
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

    /** What runs follows what was stored, each after what it requires. */
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

    /** Settings that waited for a package, as its record keeps them; null when they have no form. */
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

    /** What of a name runs; `generation` is another one after every start. */
    running(name: string): { readonly package: string; readonly generation: object } | null {
        const { lifecycle } = this.#options;
        const runtime = lifecycle.phase === 'closing' ? null : lifecycle.runtime(name); // what is closed with the panel keeps its state
        return runtime?.generation != null && runtime.plugin !== null && runtime.state === 'running'
            ? { package: runtime.plugin.package, generation: runtime.generation }
            : null;
    }

    /** The state of a name, and why it does not run; null when nobody has heard of it. */
    state(name: string): { readonly state: string; readonly message: string | null } | null {
        const runtime = this.#options.lifecycle.runtime(name);
        return runtime === null ? null : { state: runtime.state, message: runtime.failure?.message ?? null };
    }

    /** Names of what runs and requires it. */
    requiredBy(name: string): readonly string[] {
        const { lifecycle } = this.#options;
        return lifecycle.dependants(name).filter((other) => lifecycle.runtime(other)?.generation != null);
    }

    /** Settings that came before the code did may have secrets of which only the code knows that they are. */
    async #sealAll({ plugin, definition, name }: Runtime): Promise<void> {
        const {
            prover,
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
            const { secrets } = await prover.describe(plugin, definition);
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
            log.warn('Settings of a plugin could not be looked through for secrets', { plugin: name, error });
        }
    }
}

/** As far as the records alone know, for a panel that does not run: one for each name. */
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
    return errors?.map(({ message }) => message) ?? [error instanceof Error ? error.message : String(error)];
}
