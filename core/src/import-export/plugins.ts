/**
 * The plugins of a document: which ones, in which version, with which settings. A plugin that is not installed here is listed, and its settings
 * are kept until it is. Grants are never taken along: consent belongs to whoever gave it.
 */
import { isDeepStrictEqual } from 'node:util';
import { joi, type Value } from '@portico/sdk';
import type Joi from 'joi';
import type { Clock } from '../clock.ts';
import type { Database, Transaction } from '../db/database.ts';
import type { Entry, Ground, Incoming, Reading, Section } from '../engine/section.ts';
import { KeptPluginEntity } from './entities.ts';

/** A plugin as it moves. */
export interface MovedPlugin {
    readonly name: string;
    readonly package: string;
    readonly version: string;
    readonly enabled: boolean;
    readonly settings: Readonly<Record<string, unknown>>;
    /** The settings that are secret, by their names. */
    readonly secrets: Readonly<Record<string, unknown>>;
}

/** The plugins that are installed. Implemented by the plugin host. */
export interface PluginCatalogue {
    list(): readonly MovedPlugin[];
    /** What is wrong with settings for the installed version; empty when nothing is. */
    faults(plugin: MovedPlugin): readonly string[];
    /** Stores settings, and whether it is enabled; what runs follows after the commit. */
    store(tx: Transaction, plugin: MovedPlugin): Promise<void>;
}

/** As long as there is no plugin host. */
export const noPlugins: PluginCatalogue = { list: () => [], faults: () => [], store: () => Promise.resolve() };

export interface PluginSectionOptions {
    readonly db: Database;
    readonly clock: Clock;
    readonly keyring: { seal(label: string, plain: string): string; open(label: string, sealed: string): string };
    readonly plugins: PluginCatalogue;
}

/** Plugins of a document that wait until they are installed. */
export interface KeptPlugins {
    /** Null when nothing waits for this package. */
    find(name: string, packageName: string): MovedPlugin | null;
    /** They were taken over. */
    forget(name: string): Promise<void>;
}

const label = 'import-export plugins';

export function createKeptPlugins({ db, keyring }: Pick<PluginSectionOptions, 'db' | 'keyring'>): KeptPlugins {
    const one = db.prepare<[string, string], Kept>('select name, package, version, enabled, sealed from kept_plugins where name = ? and package = ?');
    return {
        find(name, packageName) {
            const row = one.get(name, packageName);
            return row === undefined ? null : movedOf(row, keyring);
        },
        forget: (name) => db.write(async (tx) => {
            await tx.em.nativeDelete(KeptPluginEntity, { name });
        })
    };
}

function movedOf({ sealed, enabled, ...row }: Kept, keyring: PluginSectionOptions['keyring']): MovedPlugin {
    return { ...row, enabled: enabled === 1, ...JSON.parse(keyring.open(label, sealed)) as Pick<MovedPlugin, 'settings' | 'secrets'> };
}


const shape = joi.object({
    name: joi.string().pattern(/^[a-z][a-z0-9-]{0,63}$/, 'plugin name').required(),
    package: joi.string().max(214).required(),
    version: joi.string().max(64).required(),
    enabled: joi.boolean().required(),
    settings: joi.record(joi.any()).required()
});
type Written = Value<typeof shape>;

interface Kept {
    readonly name: string;
    readonly package: string;
    readonly version: string;
    readonly enabled: number;
    readonly sealed: string;
}

interface Change {
    readonly plugin: MovedPlugin;
    readonly action: 'store' | 'keep' | 'forget';
}

export function createPluginSection({ db, clock, keyring, plugins }: PluginSectionOptions): Section {
    const all = db.prepare<[], Kept>('select name, package, version, enabled, sealed from kept_plugins order by name');
    const kept = (): MovedPlugin[] => all.all().map((row) => movedOf(row, keyring));
    const known = (): readonly MovedPlugin[] => {
        const installed = plugins.list();
        return [...installed, ...kept().filter(({ name }) => !installed.some((plugin) => plugin.name === name))];
    };
    return {
        name: 'plugins',
        permissions: { read: 'plugins:read', write: 'plugins:manage', secrets: 'plugins:manage' },
        collect: (sink) => known().map(({ secrets, ...plugin }) => {
            if (Object.keys(secrets).length > 0) {
                sink?.put(plugin.name, JSON.stringify(secrets));
            }
            return plugin;
        }),
        read(part, reading) {
            const { error } = (joi.array().items(shape).unique('name') as unknown as Joi.Schema).required().validate(part, { abortEarly: false, convert: false, errors: { wrap: { label: false } } });
            error?.details.forEach(({ path, message }) => reading.faults.add([reading.path, ...path].join('.'), message));
            const read = error === undefined ? (part as readonly Written[]).map((written, at) => ({ ...written, secrets: secretsOf(written, at, reading) })) : [];
            return createIncoming(read, kept, plugins, async (tx, plugin) => {
                const { settings, secrets, ...row } = plugin;
                await tx.em.upsert(KeptPluginEntity, { ...row, sealed: keyring.seal(label, JSON.stringify({ settings, secrets })), keptAt: clock.now() });
            });
        }
    };
}

function secretsOf({ name }: Written, at: number, { secrets, faults, path }: Reading): Readonly<Record<string, unknown>> {
    const found = secrets?.json(name) ?? {};
    if (typeof found !== 'object' || Array.isArray(found)) {
        faults.add(`${path}.${at}`, 'its secret settings are damaged');
    }
    return found as Readonly<Record<string, unknown>>;
}

function createIncoming(read: readonly MovedPlugin[], kept: () => readonly MovedPlugin[], plugins: PluginCatalogue, keep: (tx: Transaction, plugin: MovedPlugin) => Promise<void>): Incoming {
    return {
        plan(ground) {
            const { entries, changes } = planAll(read, kept(), plugins, ground);
            return {
                entries,
                async commit(tx) {
                    for (const { plugin, action } of changes) {
                        await (action === 'store' ? plugins.store(tx, plugin) : action === 'keep' ? keep(tx, plugin) : tx.em.nativeDelete(KeptPluginEntity, { name: plugin.name }));
                    }
                }
            };
        }
    };
}

function planAll(read: readonly MovedPlugin[], kept: readonly MovedPlugin[], plugins: PluginCatalogue, { mode }: Ground): { readonly entries: Entry[]; readonly changes: Change[] } {
    const installed = new Map(plugins.list().map((plugin) => [plugin.name, plugin]));
    const waiting = new Map(kept.map((plugin) => [plugin.name, plugin]));
    const entries: Entry[] = [];
    const changes: Change[] = [];
    for (const plugin of read) {
        const here = installed.get(plugin.name);
        if (here === undefined) {
            const same = isDeepStrictEqual(waiting.get(plugin.name), plugin);
            entries.push({ effect: same ? 'unchanged' : waiting.has(plugin.name) ? 'update' : 'create', name: plugin.name, notes: [`not installed: ${plugin.package} ${plugin.version}; its settings are kept until it is`] });
            changes.push(...(same ? [] : [{ plugin, action: 'keep' } as const]));
        }
        else {
            const faults = plugins.faults(plugin);
            const next = { ...here, enabled: plugin.enabled, settings: plugin.settings, secrets: { ...here.secrets, ...plugin.secrets } };
            const same = faults.length > 0 || isDeepStrictEqual(here, next);
            entries.push({ effect: same ? 'unchanged' : 'update', name: plugin.name, ...(faults.length === 0 ? {} : { notes: faults.map((fault) => `its settings are left as they are: ${fault}`) }) });
            changes.push(...(same ? [] : [{ plugin: next, action: 'store' } as const]));
        }
        waiting.delete(plugin.name);
    }
    // What is installed stays: removing a plugin is a decision of its own, with its data.
    for (const plugin of mode === 'replace' ? waiting.values() : []) {
        entries.push({ effect: 'delete', name: plugin.name });
        changes.push({ plugin, action: 'forget' });
    }
    return { entries, changes };
}
