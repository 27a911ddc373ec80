/**
 * Plugins of a panel that does not run: their records, the lock, and their folders. No code of a plugin is ever imported here, so this works
 * when one of them keeps the panel from starting. The data folder is ours as long as this lives.
 */
import { createRegistry, type Registry } from '@portico/registry';
import type { Audit } from '../audit/audit.ts';
import type { Call } from '../call.ts';
import type { Clock } from '../clock.ts';
import type { Config } from '../config.ts';
import type { Database, Transaction } from '../db/database.ts';
import { createFragmentStore } from '../engine/fragments.ts';
import { fail } from '../errors.ts';
import { createKeptPlugins, type KeptPlugins } from '../import-export/kept-plugins.ts';
import type { Keyring } from '../keyring.ts';
import { Boots } from '../plugins/boots.ts';
import { askedOf, beyond } from '../plugins/capabilities.ts';
import { PluginData } from '../plugins/data-folders.ts';
import { PluginBootEntity } from '../plugins/entities.ts';
import { placesOf } from '../plugins/places.ts';
import { emptyRuntime, type PluginRecord, type Runtime } from '../plugins/plugin.ts';
import { npmSetting } from '../plugins/npm-setting.ts';
import { Prover } from '../plugins/prover.ts';
import { newRecord, Records } from '../plugins/records.ts';
import { lackOf, restOf } from '../plugins/rest.ts';
import { survey, type Survey } from '../plugins/survey.ts';
import { passedOverView, viewOf } from '../plugins/view.ts';
import { viewSettings } from '../plugins/host/settings.ts';
import { installOffline } from './offline-install.ts';
import type { Changed, Listed, PluginDesk, ShownPlugin } from './plugin-desk.ts';
import { reservedNames } from './plugin-names.ts';
import { hostSdk } from './plugin-sdk.ts';

export interface OfflinePluginsOptions {
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

/** What commands work with. */
export interface Folder extends OfflinePluginsOptions {
    readonly registry: Registry;
    readonly records: Records;
    readonly data: PluginData;
    readonly kept: KeptPlugins;
    readonly prover: Prover;
    /** Looks at the disk anew. */
    look(): Promise<{ readonly all: readonly Lying[]; readonly survey: Survey }>;
}

const resource = 'plugins';
const nextStart = 'No panel runs: this is what the next start finds';

/** Finishes or undoes swaps that were killed, as the next start would. */
export async function openOfflinePlugins(options: OfflinePluginsOptions): Promise<PluginDesk> {
    const folder = await openFolder(options);
    const boots = new Boots(folder.db, folder.clock);
    const find = async (name: string): Promise<{ readonly all: readonly Lying[]; readonly lying: Lying }> => {
        const { all } = await folder.look();
        const lying = all.find(({ runtime }) => runtime.name === name);
        if (lying === undefined) {
            throw fail.PLUGIN_NOT_FOUND({ plugin: name });
        }
        return { all, lying };
    };
    const shownOf = async (name: string): Promise<ShownPlugin> => {
        const { lying } = await find(name);
        return shownPlugin(folder, lying);
    };

    return {
        isRunning: false,
        async list(): Promise<Listed> {
            const { all, survey: { passedOver, skipped } } = await folder.look();
            const bad = options.config.safeMode ? 'because PORTICO_SAFE_MODE is set' : await boots.areBad() ? 'because the last three starts with plugins did not become good; disable or remove the one that you suspect' : null;
            const notes = [nextStart, ...(bad === null ? [] : [`The next start is in safe mode, ${bad}`]), ...skipped.map(({ path, reason }) => `${path} was not looked into: ${reason}`)];
            const plugins = [...all.map((lying) => shownPlugin(folder, lying)), ...passedOver.map((each) => passedOverView(each, folder.clock.now()) as unknown as ShownPlugin)];
            return { isRunning: false, safeMode: bad !== null, message: notes.join('. '), plugins };
        },
        async offers() {
            const { all } = await folder.look();
            const installed = all.flatMap(({ runtime: { plugin } }) => (plugin === null ? [] : [{ package: plugin.package, version: plugin.version }]));
            const { offers, searchable, failures } = await folder.registry.available(installed).catch((error: unknown) => {
                throw error instanceof Error && error.name === 'InstallFailure' ? fail.NOT_READY(null, { message: error.message, cause: error }) : error;
            });
            const notes = [...(searchable ? [] : ['The registry answers no search: only what is there was looked for']), ...failures.map(({ package: name, message }) => `${name}: ${message}`)];
            return { offers, message: notes.length === 0 ? null : notes.join('. ') };
        },
        async change(name, { enabled, grants }, { cascade }): Promise<Changed> {
            const { all, lying: { runtime, record: before } } = await find(name);
            if (before === null) {
                throw fail.PLUGIN_FAILED({ plugin: name, stage: runtime.failure?.stage ?? 'discovered', cause: runtime.failure?.code ?? 'MANIFEST_INVALID' }, { message: runtime.failure?.message ?? `The manifest of ${name} cannot be read` });
            }
            const by = enabled ? [] : enabledDependants(all, name, cascade);
            const asked = askedOf((runtime.plugin ?? before.seen).manifest);
            const after = { ...before, enabled, ...(grants === null ? {} : { grants, decided: asked }), ...(enabled ? { quarantinedAt: null, failures: [], failure: null } : {}) };
            const missing = beyond(asked, after.decided, after.grants);
            if (enabled && missing !== null) {
                throw fail.CONSENT_REQUIRED({ missing });
            }
            const message = await folder.db.write(async (tx) => {
                await putAll(folder, tx, [...by.map((record) => ({ ...record, enabled: false })), after]);
                const dropped = enabled ? [] : await dropFragments(folder, tx, [name, ...by.map((record) => record.name)]);
                await options.call().complete(tx, {
                    action: enabled === before.enabled ? 'update' : enabled ? 'enable' : 'disable', resource, resourceId: name, before: shown(before),
                    after: { ...shown(after), ...(by.length === 0 ? {} : { disabled: by.map((record) => record.name) }) }, reply: null
                });
                return sentences(by, dropped);
            });
            return { plugin: await shownOf(name), message };
        },
        async remove(name, { purge, cascade }) {
            const { all, lying: { runtime, record } } = await find(name);
            const { found } = runtime;
            if (found !== null && found.lock === null) {
                throw fail.IN_USE({ by: [found.folder] }, { message: `${name} was not installed here: it lies in ${found.folder}, and is there again as long as that is. Disable it, or delete that folder` });
            }
            const by = enabledDependants(all, name, cascade);
            const owners = found === null ? folder.records.of(name) : record === null ? [] : [record];
            await folder.registry.lock.drop(name); // whatever follows can be done again
            const message = await folder.db.write(async (tx) => {
                await putAll(folder, tx, by.map((each) => ({ ...each, enabled: false })));
                for (const owner of owners) {
                    await folder.records.remove(tx, owner);
                }
                if (owners.some(({ holdsArea }) => holdsArea)) {
                    await options.forgetArea(tx, name);
                }
                const dropped = await dropFragments(folder, tx, [name, ...by.map((each) => each.name)]);
                await options.call().complete(tx, {
                    action: 'uninstall', resource, resourceId: name, before: { package: record?.package ?? null, version: runtime.plugin?.version ?? null },
                    after: { purge, ...(by.length === 0 ? {} : { disabled: by.map((each) => each.name) }) }, reply: null
                });
                return sentences(by, dropped);
            });
            for (const owner of owners) {
                await (purge ? folder.data.purge(owner) : folder.data.keep(owner, { enabled: false, grants: {}, decided: {}, settings: owner.settings }));
            }
            return message;
        },
        async install(order) {
            const { name, from } = await installOffline(folder, order);
            return { plugin: await shownOf(name), from, settingsLeftOut: null };
        }
    };
}

async function openFolder(options: OfflinePluginsOptions): Promise<Folder> {
    const { config, db, keyring, clock } = options;
    const registry = await createRegistry({
        dataDir: config.dataDir, registryUrl: () => npmSetting(config.npmRegistry, () => undefined), hmacKey: keyring.derive('plugins lock'), reserved: reservedNames,
        host: { sdk: (await hostSdk()).version, node: process.versions.node }, log: { info: () => undefined, warn: () => undefined }
    });
    const data = await PluginData.open({ dataDir: config.dataDir, db, clock }, registry.lock.current().map(({ folder }) => folder)); // before the records are read
    const [records, kept, prover] = [await Records.open(db), createKeptPlugins({ db, clock, keyring }), new Prover(keyring)];
    const look: Folder['look'] = async () => {
        const found = await survey(registry, placesOf(config));
        const seen = found.seen.map(({ name, found: at, plugin, obstacle }): Runtime => ({ ...emptyRuntime(name), found: at, plugin, obstacle }));
        const names = new Set(seen.map(({ name }) => name));
        const gone = [...new Set(records.all().map(({ name }) => name))].filter((name) => !names.has(name)).map(emptyRuntime);
        const order = (name: string): number => (found.order.includes(name) ? found.order.indexOf(name) : found.order.length);
        const all = await Promise.all([...seen, ...gone].sort((one, two) => order(one.name) - order(two.name) || (one.name < two.name ? -1 : 1)).map(async (runtime) => ({ runtime, record: await recordOf(runtime) })));
        all.forEach((lying) => rest(lying, all, clock.now()));
        return { all, survey: found };
    };
    /** The one that counts; for what nobody has seen yet, the one that the next start makes. */
    const recordOf = async ({ name, plugin, found }: Runtime): Promise<PluginRecord | null> => {
        const packageName = plugin?.package ?? found?.lock?.package;
        if (packageName === undefined) {
            return found === null ? records.of(name).at(-1) ?? null : null;
        }
        const known = records.get(name, packageName);
        if (known !== null || plugin === null) {
            return known === null || plugin === null ? known : { ...known, seen: plugin };
        }
        const asked = askedOf(plugin.manifest);
        const waiting = kept.find(name, packageName);
        return {
            ...newRecord(plugin, clock.now()), version: 0, settings: waiting === null ? {} : (await prover.take(plugin, null, {}, waiting)).settings,
            ...(found?.origin === 'folder' && records.of(name).length === 0 ? { enabled: true, grants: asked, decided: asked } : {})
        };
    };
    return { ...options, registry, records, data, kept, prover, look };
}

/** Where it rests until the next start, and why it failed the last time. To be asked after what it requires. */
function rest({ runtime, record }: Lying, all: readonly Lying[], at: number): void {
    const other = (name: string): Runtime | null => {
        const there = all.find((each) => each.runtime.name === name)?.runtime ?? null;
        return there?.state === 'resolved' ? { ...there, state: 'running' } : there; // it starts first
    };
    const known = restOf(runtime, record, other, true);
    const lack = known?.state === 'resolved' ? lackOf(runtime, other) : null;
    const fault = known?.fault ?? lack;
    runtime.state = lack === null ? known?.state ?? 'resolved' : 'failed';
    runtime.failure = fault !== null ? { at: record?.failure?.at ?? at, ...fault } : record?.enabled === true ? record.failure : null;
}

function shownPlugin({ records }: Folder, { runtime, record }: Lying): ShownPlugin {
    const adoptable = record === null ? null : records.of(record.name).filter((each) => each.package !== record.package).at(-1)?.package ?? null;
    return viewOf({ runtime, record, available: null, adoptable }) as unknown as ShownPlugin;
}

/** Records of what is enabled and requires it, also through others, each before what it requires. @throws IN_USE 40901 unless they may be disabled */
function enabledDependants(all: readonly Lying[], name: string, cascade: boolean): readonly PluginRecord[] {
    const names = new Set([name]);
    for (let before = 0; before < names.size;) {
        before = names.size;
        all.filter(({ runtime: { plugin }, record }) => record?.enabled === true && Object.keys(plugin?.manifest.requires ?? {}).some((required) => names.has(required))).forEach(({ runtime }) => names.add(runtime.name));
    }
    const by = all.flatMap(({ runtime, record }) => (runtime.name !== name && names.has(runtime.name) && record !== null ? [record] : [])).reverse();
    if (by.length > 0 && !cascade) {
        throw fail.IN_USE({ by: by.map((record) => record.name) }, { message: `${name} is required by ${by.map((record) => record.name).join(', ')}` });
    }
    return by;
}

/** Writes records as somebody decided about them. */
async function putAll({ records, kept }: Folder, tx: Transaction, changed: readonly PluginRecord[]): Promise<void> {
    for (const record of changed) {
        const isNew = records.get(record.name, record.package) === null;
        await records.put(tx, { ...record, version: record.version + 1 });
        if (isNew && Object.keys(record.settings).length > 0) {
            await kept.forgetIn(tx, record.name);
        }
    }
}

/** Of what is switched off: the next start renders the engine's configuration without what it gave. */
async function dropFragments({ db, keyring }: Folder, tx: Transaction, plugins: readonly string[]): Promise<readonly string[]> {
    await tx.em.nativeDelete(PluginBootEntity, {}); // one of these may have spoilt the starts until now: they count no more
    const store = createFragmentStore(db, keyring);
    const given = Object.keys(store.load()).filter((plugin) => plugins.includes(plugin));
    for (const plugin of given) {
        await store.write(tx, plugin, null);
    }
    return given;
}

function sentences(by: readonly PluginRecord[], dropped: readonly string[]): string | null {
    const said = [...(by.length === 0 ? [] : [`Disabled what requires it: ${by.map(({ name }) => name).join(', ')}`]), ...dropped.map((plugin) => `From the next start on the engine serves without what ${plugin} gave it`)];
    return said.length === 0 ? null : said.join('. ');
}

const shown = ({ enabled, grants, settings, package: packageName }: PluginRecord): object => ({ package: packageName, enabled, grants, settings: viewSettings(settings) });
