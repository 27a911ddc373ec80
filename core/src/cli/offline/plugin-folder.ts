/** Plugins in the data folder of a panel that does not run: what the next start finds, and what it would do with it. No plugin code is imported. */
import { createRegistry, type Registry } from '@portico/registry';

import { reservedNames } from '../../composition/plugins/reserved-names.ts';
import type { Audit } from '../../features/audit/audit.ts';
import { KeptPlugins } from '../../features/import-export/plugins/kept.ts';
import type { Call } from '../../platform/call.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Config } from '../../platform/config.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Keyring } from '../../platform/keys/keyring.ts';
import { askedOf } from '../../plugins/manager/consent/capabilities.ts';
import { PluginData } from '../../plugins/manager/data/data-folders.ts';
import { npmSetting } from '../../plugins/manager/install/npm-setting.ts';
import { desiredStateOf, missingRequirement } from '../../plugins/manager/reconciler/desired-state.ts';
import { type Inventory, takeInventory } from '../../plugins/manager/reconciler/inventory.ts';
import { placesOf } from '../../plugins/manager/reconciler/places.ts';
import { Runtimes } from '../../plugins/manager/reconciler/runtimes.ts';
import type { PluginRecord, Runtime } from '../../plugins/manager/records/plugin.ts';
import { newRecord, Records } from '../../plugins/manager/records/records.ts';
import { PluginSettings } from '../../plugins/manager/settings/plugin-settings.ts';
import { hostSdk } from '../plugin/develop/host-sdk.ts';

/** What {@link PluginFolder.open} works with. */
export interface PluginFolderOptions {
    readonly config: Config;
    readonly db: Database;
    readonly keyring: Keyring;
    readonly clock: Clock;
    readonly audit: Audit;
    /** Removes the permissions of a plugin's name from roles and tokens. */
    forgetArea(tx: Transaction, area: string): Promise<void>;
    /** Creates a call of the system, which the audit log shows as the console's. */
    call(): Call;
}

/** One plugin in the data folder. */
export interface PluginOnDisk {
    readonly runtime: Runtime;
    /** Its record, or the one that the next start would create; null when its manifest was never readable. */
    readonly record: PluginRecord | null;
}

/** The plugins of a data folder that no panel uses, with everything that commands change there. */
export class PluginFolder {
    readonly options: PluginFolderOptions;
    readonly registry: Registry;
    readonly records: Records;
    readonly data: PluginData;
    /** Imported settings and grants that wait for their plugin. */
    readonly kept: KeptPlugins;
    readonly settings: PluginSettings;

    private constructor(
        options: PluginFolderOptions,
        registry: Registry,
        data: PluginData,
        records: Records
    ) {
        const { db, clock, keyring } = options;
        this.options = options;
        this.registry = registry;
        this.data = data;
        this.records = records;
        this.kept = new KeptPlugins({ db, clock, keyring });
        this.settings = new PluginSettings(keyring);
    }

    /** Opens the folder. Finishes or undoes upgrades that were interrupted, as the next start would. */
    static async open(options: PluginFolderOptions): Promise<PluginFolder> {
        const { config, db, keyring, clock } = options;
        const registry = await createRegistry({
            dataDir: config.dataDir,
            registryUrl: () => npmSetting(config.npmRegistry, () => undefined),
            hmacKey: keyring.derive('plugins lock'),
            reserved: reservedNames,
            host: { sdk: (await hostSdk()).version, node: process.versions.node },
            log: { info: () => undefined, warn: () => undefined }
        });
        const folders = registry.lock.current().map(({ folder }) => folder);
        // Before the records are read, since an interrupted upgrade changes them.
        const data = await PluginData.open({ dataDir: config.dataDir, db, clock }, folders);
        return new PluginFolder(options, registry, data, await Records.open(db));
    }

    /** Reads all plugins from the disk, in the order in which they start. */
    async read(): Promise<{ readonly all: readonly PluginOnDisk[]; readonly inventory: Inventory }> {
        const { config, clock } = this.options;
        const inventory = await takeInventory(this.registry, placesOf(config));
        const runtimes = new Runtimes(this.records);
        runtimes.update(inventory);
        const all = await Promise.all(
            runtimes.list().map(async (runtime) => ({
                runtime,
                record: await this.#recordOf(runtime, runtimes.recordOf(runtime))
            }))
        );
        all.forEach((plugin) => predictState(plugin, all, clock.now()));
        return { all, inventory };
    }

    /** The record that counts; for a new plugin, the one that the next start would create. */
    async #recordOf(
        { name, plugin, found }: Runtime,
        known: PluginRecord | null
    ): Promise<PluginRecord | null> {
        if (known !== null || plugin === null) {
            return known === null || plugin === null ? known : { ...known, seen: plugin };
        }
        const asked = askedOf(plugin.manifest);
        const waiting = this.kept.find(name, plugin.package);
        return {
            ...newRecord(plugin, this.options.clock.now()),
            version: 0,
            settings: waiting === null ? {} : (await this.settings.take(plugin, null, {}, waiting)).settings,
            ...(found?.origin === 'folder' && this.records.of(name).length === 0
                ? { enabled: true, grants: asked, decided: asked }
                : {})
        };
    }
}

/** Sets the state that a plugin would have at the next start, and its last failure. The plugins that it requires must have been decided before. */
function predictState({ runtime, record }: PluginOnDisk, all: readonly PluginOnDisk[], at: number): void {
    const find = (name: string): Runtime | null => {
        const other = all.find((each) => each.runtime.name === name)?.runtime ?? null;
        // A required plugin that can start will run by then.
        return other?.state === 'resolved' ? { ...other, state: 'running' } : other;
    };
    const desired = desiredStateOf(runtime, record, find, true);
    const lack = desired?.state === 'resolved' ? missingRequirement(runtime, find) : null;
    const problem = desired?.fault ?? lack;
    runtime.state = lack === null ? (desired?.state ?? 'resolved') : 'failed';
    runtime.failure =
        problem !== null
            ? { at: record?.failure?.at ?? at, ...problem }
            : record?.enabled === true
              ? record.failure
              : null;
}
