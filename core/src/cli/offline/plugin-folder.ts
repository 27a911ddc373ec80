/** Plugins as they lie in the data folder of a panel that does not run: what the next start finds, and what it would make of it. No code of theirs is imported. */
import { createRegistry, type Registry } from '@portico/registry';

import type { Audit } from '../../features/audit/audit.ts';
import { KeptPlugins } from '../../features/import-export/plugins/kept.ts';
import type { Call } from '../../platform/call.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Config } from '../../platform/config.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Keyring } from '../../platform/keyring.ts';
import { askedOf } from '../../plugins/manager/consent/capabilities.ts';
import { PluginData } from '../../plugins/manager/data/data-folders.ts';
import { npmSetting } from '../../plugins/manager/install/npm-setting.ts';
import { desiredStateOf, missingRequirement } from '../../plugins/manager/reconciler/desired-state.ts';
import { type Inventory, takeInventory } from '../../plugins/manager/reconciler/inventory.ts';
import { placesOf } from '../../plugins/manager/reconciler/places.ts';
import { emptyRuntime, type PluginRecord, type Runtime } from '../../plugins/manager/records/plugin.ts';
import { newRecord, Records } from '../../plugins/manager/records/records.ts';
import { PluginSettings } from '../../plugins/manager/settings/plugin-settings.ts';
import { hostSdk } from '../plugin/develop/host-sdk.ts';
import { reservedNames } from '../plugin/develop/reserved-names.ts';

export interface FolderOptions {
    readonly config: Config;
    readonly db: Database;
    readonly keyring: Keyring;
    readonly clock: Clock;
    readonly audit: Audit;
    /** Takes a name's permissions out of roles and tokens. */
    forgetArea(tx: Transaction, area: string): Promise<void>;
    /** A call of the system, on record as the console's. */
    call(): Call;
}

/** One plugin as it lies there. */
export interface Lying {
    readonly runtime: Runtime;
    /** What the next start would make of it where nobody has decided yet; null when its manifest was never readable. */
    readonly record: PluginRecord | null;
}

/** What commands about plugins work with while no panel runs. */
export interface Folder extends FolderOptions {
    readonly registry: Registry;
    readonly records: Records;
    readonly data: PluginData;
    readonly kept: KeptPlugins;
    readonly pluginSettings: PluginSettings;
    /** Looks at the disk anew. */
    look(): Promise<{ readonly all: readonly Lying[]; readonly survey: Inventory }>;
}

/** Finishes or undoes swaps that were killed, as the next start would. */
export async function openFolder(options: FolderOptions): Promise<Folder> {
    const { config, db, keyring, clock } = options;
    const registry = await createRegistry({
        dataDir: config.dataDir,
        registryUrl: () => npmSetting(config.npmRegistry, () => undefined),
        hmacKey: keyring.derive('plugins lock'),
        reserved: reservedNames,
        host: { sdk: (await hostSdk()).version, node: process.versions.node },
        log: { info: () => undefined, warn: () => undefined }
    });
    const data = await PluginData.open(
        { dataDir: config.dataDir, db, clock },
        registry.lock.current().map(({ folder }) => folder)
    ); // before the records are read
    const [records, kept, pluginSettings] = [
        await Records.open(db),
        new KeptPlugins({ db, clock, keyring }),
        new PluginSettings(keyring)
    ];
    const look: Folder['look'] = async () => {
        const found = await takeInventory(registry, placesOf(config));
        const seen = found.named.map(({ name, found: at, plugin, obstacle }): Runtime => ({
            ...emptyRuntime(name),
            found: at,
            plugin,
            obstacle
        }));
        const names = new Set(seen.map(({ name }) => name));
        const gone = [...new Set(records.all().map(({ name }) => name))]
            .filter((name) => !names.has(name))
            .map(emptyRuntime);
        const order = (name: string): number =>
            found.order.includes(name) ? found.order.indexOf(name) : found.order.length;
        const all = await Promise.all(
            [...seen, ...gone]
                .sort((one, two) => order(one.name) - order(two.name) || (one.name < two.name ? -1 : 1))
                .map(async (runtime) => ({ runtime, record: await recordOf(runtime) }))
        );
        all.forEach((lying) => rest(lying, all, clock.now()));
        return { all, survey: found };
    };
    /** The one that counts; for what nobody has seen yet, the one that the next start makes. */
    const recordOf = async ({ name, plugin, found }: Runtime): Promise<PluginRecord | null> => {
        const packageName = plugin?.package ?? found?.lock?.package;
        if (packageName === undefined) {
            return found === null ? (records.of(name).at(-1) ?? null) : null;
        }
        const known = records.get(name, packageName);
        if (known !== null || plugin === null) {
            return known === null || plugin === null ? known : { ...known, seen: plugin };
        }
        const asked = askedOf(plugin.manifest);
        const waiting = kept.find(name, packageName);
        return {
            ...newRecord(plugin, clock.now()),
            version: 0,
            settings: waiting === null ? {} : (await pluginSettings.take(plugin, null, {}, waiting)).settings,
            ...(found?.origin === 'folder' && records.of(name).length === 0
                ? { enabled: true, grants: asked, decided: asked }
                : {})
        };
    };
    return { ...options, registry, records, data, kept, pluginSettings, look };
}

/** Where it rests until the next start, and why it failed the last time. To be asked after what it requires. */
function rest({ runtime, record }: Lying, all: readonly Lying[], at: number): void {
    const other = (name: string): Runtime | null => {
        const there = all.find((each) => each.runtime.name === name)?.runtime ?? null;
        return there?.state === 'resolved' ? { ...there, state: 'running' } : there; // it starts first
    };
    const known = desiredStateOf(runtime, record, other, true);
    const lack = known?.state === 'resolved' ? missingRequirement(runtime, other) : null;
    const fault = known?.fault ?? lack;
    runtime.state = lack === null ? (known?.state ?? 'resolved') : 'failed';
    runtime.failure =
        fault !== null
            ? { at: record?.failure?.at ?? at, ...fault }
            : record?.enabled === true
              ? record.failure
              : null;
}
