/**
 * Plugins of a panel that does not run: their records, the lock, and their folders. No code of a plugin is ever imported here, so this works
 * when one of them keeps the panel from starting. The data folder is ours as long as this lives.
 */
import { viewSettings } from '@portico/sdk/host';

import { FragmentStore } from '../../engine/fragments/store.ts';
import type { Transaction } from '../../platform/database/database.ts';
import { fail } from '../../platform/errors.ts';
import { askedOf, beyond } from '../../plugins/manager/consent/capabilities.ts';
import { CrashLoop } from '../../plugins/manager/reconciler/crash-loop.ts';
import { PluginBootEntity } from '../../plugins/manager/records/entities.ts';
import type { PluginRecord } from '../../plugins/manager/records/plugin.ts';
import { passedOverView, viewOf } from '../../plugins/manager/routes/view.ts';
import type { Changed, Listed, PluginAdmin, ShownPlugin } from '../plugin/admin/plugin-admin.ts';
import { installOffline } from './install-plugin.ts';
import { type Folder, type FolderOptions, type Lying, openFolder } from './plugin-folder.ts';

const resource = 'plugins';
const nextStart = 'No panel runs: this is what the next start finds';

export async function openOfflinePlugins(options: FolderOptions): Promise<PluginAdmin> {
    const folder = await openFolder(options);
    const boots = new CrashLoop(folder.db, folder.clock);
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
            const {
                all,
                survey: { passedOver, skipped }
            } = await folder.look();
            const bad = options.config.safeMode
                ? 'because PORTICO_SAFE_MODE is set'
                : (await boots.isDetected())
                  ? 'because the last three starts with plugins did not become good; disable or remove the one that you suspect'
                  : null;
            const notes = [
                nextStart,
                ...(bad === null ? [] : [`The next start is in safe mode, ${bad}`]),
                ...skipped.map(({ path, reason }) => `${path} was not looked into: ${reason}`)
            ];
            const plugins = [
                ...all.map((lying) => shownPlugin(folder, lying)),
                ...passedOver.map(
                    (each) => passedOverView(each, folder.clock.now()) as unknown as ShownPlugin
                )
            ];
            return { isRunning: false, safeMode: bad !== null, message: notes.join('. '), plugins };
        },
        async offers() {
            const { all } = await folder.look();
            const installed = all.flatMap(({ runtime: { plugin } }) =>
                plugin === null ? [] : [{ package: plugin.package, version: plugin.version }]
            );
            const { offers, searchable, failures } = await folder.registry
                .available(installed)
                .catch((error: unknown) => {
                    throw error instanceof Error && error.name === 'InstallFailure'
                        ? fail.NOT_READY(null, { message: error.message, cause: error })
                        : error;
                });
            const notes = [
                ...(searchable ? [] : ['The registry answers no search: only what is there was looked for']),
                ...failures.map(({ package: name, message }) => `${name}: ${message}`)
            ];
            return { offers, message: notes.length === 0 ? null : notes.join('. ') };
        },
        async change(name, { enabled, grants }, { cascade }): Promise<Changed> {
            const {
                all,
                lying: { runtime, record: before }
            } = await find(name);
            if (before === null) {
                throw fail.PLUGIN_FAILED(
                    {
                        plugin: name,
                        stage: runtime.failure?.stage ?? 'discovered',
                        cause: runtime.failure?.code ?? 'MANIFEST_INVALID'
                    },
                    { message: runtime.failure?.message ?? `The manifest of ${name} cannot be read` }
                );
            }
            const by = enabled ? [] : enabledDependants(all, name, cascade);
            const asked = askedOf((runtime.plugin ?? before.seen).manifest);
            const after = {
                ...before,
                enabled,
                ...(grants === null ? {} : { grants, decided: asked }),
                ...(enabled ? { quarantinedAt: null, failures: [], failure: null } : {})
            };
            const missing = beyond(asked, after.decided, after.grants);
            if (enabled && missing !== null) {
                throw fail.CONSENT_REQUIRED({ missing });
            }
            const message = await folder.db.write(async (tx) => {
                await putAll(folder, tx, [...by.map((record) => ({ ...record, enabled: false })), after]);
                const dropped = enabled
                    ? []
                    : await dropFragments(folder, tx, [name, ...by.map((record) => record.name)]);
                await options.call().complete(tx, {
                    action: enabled === before.enabled ? 'update' : enabled ? 'enable' : 'disable',
                    resource,
                    resourceId: name,
                    before: shown(before),
                    after: {
                        ...shown(after),
                        ...(by.length === 0 ? {} : { disabled: by.map((record) => record.name) })
                    },
                    reply: null
                });
                return sentences(by, dropped);
            });
            return { plugin: await shownOf(name), message };
        },
        async remove(name, { purge, cascade }) {
            const {
                all,
                lying: { runtime, record }
            } = await find(name);
            const { found } = runtime;
            if (found !== null && found.lock === null) {
                throw fail.IN_USE(
                    { by: [found.folder] },
                    {
                        message: `${name} was not installed here: it lies in ${found.folder}, and is there again as long as that is. Disable it, or delete that folder`
                    }
                );
            }
            const by = enabledDependants(all, name, cascade);
            const owners = found === null ? folder.records.of(name) : record === null ? [] : [record];
            await folder.registry.lock.drop(name); // whatever follows can be done again
            const message = await folder.db.write(async (tx) => {
                await putAll(
                    folder,
                    tx,
                    by.map((each) => ({ ...each, enabled: false }))
                );
                for (const owner of owners) {
                    await folder.records.remove(tx, owner);
                }
                if (owners.some(({ holdsArea }) => holdsArea)) {
                    await options.forgetArea(tx, name);
                }
                const dropped = await dropFragments(folder, tx, [name, ...by.map((each) => each.name)]);
                await options.call().complete(tx, {
                    action: 'uninstall',
                    resource,
                    resourceId: name,
                    before: { package: record?.package ?? null, version: runtime.plugin?.version ?? null },
                    after: { purge, ...(by.length === 0 ? {} : { disabled: by.map((each) => each.name) }) },
                    reply: null
                });
                return sentences(by, dropped);
            });
            for (const owner of owners) {
                await (purge
                    ? folder.data.purge(owner)
                    : folder.data.keep(owner, {
                          enabled: false,
                          grants: {},
                          decided: {},
                          settings: owner.settings
                      }));
            }
            return message;
        },
        async install(order) {
            const { name, from } = await installOffline(folder, order);
            return { plugin: await shownOf(name), from, settingsLeftOut: null };
        }
    };
}

function shownPlugin({ records }: Folder, { runtime, record }: Lying): ShownPlugin {
    const adoptable =
        record === null
            ? null
            : (records
                  .of(record.name)
                  .filter((each) => each.package !== record.package)
                  .at(-1)?.package ?? null);
    return viewOf({ runtime, record, available: null, adoptable }) as unknown as ShownPlugin;
}

/** Records of what is enabled and requires it, also through others, each before what it requires. @throws IN_USE 40901 unless they may be disabled */
function enabledDependants(all: readonly Lying[], name: string, cascade: boolean): readonly PluginRecord[] {
    const names = new Set([name]);
    for (let before = 0; before < names.size;) {
        before = names.size;
        all.filter(
            ({ runtime: { plugin }, record }) =>
                record?.enabled === true &&
                Object.keys(plugin?.manifest.requires ?? {}).some((required) => names.has(required))
        ).forEach(({ runtime }) => names.add(runtime.name));
    }
    const by = all
        .flatMap(({ runtime, record }) =>
            runtime.name !== name && names.has(runtime.name) && record !== null ? [record] : []
        )
        .reverse();
    if (by.length > 0 && !cascade) {
        throw fail.IN_USE(
            { by: by.map((record) => record.name) },
            { message: `${name} is required by ${by.map((record) => record.name).join(', ')}` }
        );
    }
    return by;
}

/** Writes records as somebody decided about them. */
async function putAll(
    { records, kept }: Folder,
    tx: Transaction,
    changed: readonly PluginRecord[]
): Promise<void> {
    for (const record of changed) {
        const isNew = records.get(record.name, record.package) === null;
        await records.put(tx, { ...record, version: record.version + 1 });
        if (isNew && Object.keys(record.settings).length > 0) {
            await kept.forgetIn(tx, record.name);
        }
    }
}

/** Of what is switched off: the next start renders the engine's configuration without what it gave. */
async function dropFragments(
    { db, keyring }: Folder,
    tx: Transaction,
    plugins: readonly string[]
): Promise<readonly string[]> {
    await tx.em.nativeDelete(PluginBootEntity, {}); // one of these may have spoilt the starts until now: they count no more
    const store = new FragmentStore(db, keyring);
    const given = Object.keys(store.load()).filter((plugin) => plugins.includes(plugin));
    for (const plugin of given) {
        await store.write(tx, plugin, null);
    }
    return given;
}

function sentences(by: readonly PluginRecord[], dropped: readonly string[]): string | null {
    const said = [
        ...(by.length === 0 ? [] : [`Disabled what requires it: ${by.map(({ name }) => name).join(', ')}`]),
        ...dropped.map((plugin) => `From the next start on the engine serves without what ${plugin} gave it`)
    ];
    return said.length === 0 ? null : said.join('. ');
}

const shown = ({ enabled, grants, settings, package: packageName }: PluginRecord): object => ({
    package: packageName,
    enabled,
    grants,
    settings: viewSettings(settings)
});
