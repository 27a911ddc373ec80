/** Plugins of a panel that does not run: their records, the lock, and their folders. No plugin code is imported, so this works when a plugin keeps the panel from starting. */
import type { Offer } from '@portico/registry';
import { viewSettings } from '@portico/sdk/host';

import { FragmentStore } from '../../engine/fragments/store.ts';
import type { Transaction } from '../../platform/database/database.ts';
import { fail } from '../../platform/errors.ts';
import { askedOf, beyond } from '../../plugins/manager/consent/capabilities.ts';
import { CrashLoop } from '../../plugins/manager/reconciler/failures/crash-loop.ts';
import { PluginBootEntity } from '../../plugins/manager/records/entities.ts';
import type { PluginRecord } from '../../plugins/manager/records/plugin.ts';
import type { PluginView } from '../../plugins/manager/routes/schema.ts';
import { passedOverView, viewOf } from '../../plugins/manager/routes/view.ts';
import type { Capabilities } from '../../plugins/runtime/generation/generation.ts';
import type {
    InstallOrder,
    PluginAdmin,
    PluginChange,
    PluginInstalled,
    PluginListing,
    ShownPlugin
} from '../plugin/admin/plugin-admin.ts';
import { installOffline } from './install-plugin.ts';
import type { PluginFolder, PluginOnDisk } from './plugin-folder.ts';

const resource = 'plugins';
const nextStart = 'No panel runs: this is what the next start finds';

/** Changes the plugins in the data folder of a panel that does not run. */
export class OfflinePluginAdmin implements PluginAdmin {
    readonly isRunning = false;
    readonly #folder: PluginFolder;

    constructor(folder: PluginFolder) {
        this.#folder = folder;
    }

    async list(): Promise<PluginListing> {
        const { all, inventory } = await this.#folder.read();
        const { clock } = this.#folder.options;
        const safeModeReason = await this.#safeModeReason();
        const notes = [
            nextStart,
            ...(safeModeReason === null ? [] : [`The next start is in safe mode, ${safeModeReason}`]),
            ...inventory.skipped.map(({ path, reason }) => `${path} was skipped: ${reason}`)
        ];
        const plugins = [
            ...all.map((onDisk) => viewOnDisk(this.#folder, onDisk)),
            ...inventory.passedOver.map((each) => asShown(passedOverView(each, clock.now())))
        ];
        return { isRunning: false, safeMode: safeModeReason !== null, message: notes.join('. '), plugins };
    }

    async offers(): Promise<{ readonly offers: readonly Offer[]; readonly message: string | null }> {
        const { all } = await this.#folder.read();
        const installed = all.flatMap(({ runtime: { plugin } }) =>
            plugin === null ? [] : [{ package: plugin.package, version: plugin.version }]
        );
        const { offers, searchable, failures } = await this.#folder.registry
            .available(installed)
            .catch((error: unknown) => {
                throw error instanceof Error && error.name === 'InstallFailure'
                    ? fail.NOT_READY(null, { message: error.message, cause: error })
                    : error;
            });
        const notes = [
            ...(searchable
                ? []
                : ['The registry does not support search: only installed packages were looked for']),
            ...failures.map(({ package: name, message }) => `${name}: ${message}`)
        ];
        return { offers, message: notes.length === 0 ? null : notes.join('. ') };
    }

    async change(
        name: string,
        { enabled, grants }: { readonly enabled: boolean; readonly grants: Capabilities | null },
        { cascade }: { readonly cascade: boolean }
    ): Promise<PluginChange> {
        const { all, onDisk } = await this.#find(name);
        const { runtime, record: before } = onDisk;
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
        const by = enabled ? [] : findDependants(all, name, cascade);
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
        const { db, call } = this.#folder.options;
        const message = await db.write(async (tx) => {
            const disabled = by.map((record) => ({ ...record, enabled: false }));
            await writeRecords(this.#folder, tx, [...disabled, after]);
            const names = [name, ...by.map((record) => record.name)];
            const dropped = enabled ? [] : await dropFragments(this.#folder, tx, names);
            await call().complete(tx, {
                action: enabled === before.enabled ? 'update' : enabled ? 'enable' : 'disable',
                resource,
                resourceId: name,
                before: auditView(before),
                after: { ...auditView(after), ...disabledView(by) },
                reply: null
            });
            return describeEffects(by, dropped);
        });
        return { plugin: await this.#show(name), message };
    }

    async remove(
        name: string,
        { purge, cascade }: { readonly purge: boolean; readonly cascade: boolean }
    ): Promise<string | null> {
        const { data, options, records, registry } = this.#folder;
        const { all, onDisk } = await this.#find(name);
        const { runtime, record } = onDisk;
        const { found } = runtime;
        if (found !== null && found.lock === null) {
            throw fail.IN_USE(
                { by: [found.folder] },
                {
                    message: `${name} was not installed by the panel: it lies in ${found.folder}, and is found again as long as that folder exists. Disable it, or delete that folder`
                }
            );
        }
        const by = findDependants(all, name, cascade);
        const owners = found === null ? records.of(name) : record === null ? [] : [record];
        await registry.lock.drop(name); // first, since everything after it can be repeated
        const message = await options.db.write(async (tx) => {
            const disabled = by.map((each) => ({ ...each, enabled: false }));
            await writeRecords(this.#folder, tx, disabled);
            for (const owner of owners) {
                await records.remove(tx, owner);
            }
            if (owners.some(({ holdsArea }) => holdsArea)) {
                await options.forgetArea(tx, name);
            }
            const dropped = await dropFragments(this.#folder, tx, [name, ...by.map((each) => each.name)]);
            await options.call().complete(tx, {
                action: 'uninstall',
                resource,
                resourceId: name,
                before: { package: record?.package ?? null, version: runtime.plugin?.version ?? null },
                after: { purge, ...disabledView(by) },
                reply: null
            });
            return describeEffects(by, dropped);
        });
        for (const owner of owners) {
            const decision = { enabled: false, grants: {}, decided: {}, settings: owner.settings };
            await (purge ? data.purge(owner) : data.keep(owner, decision));
        }
        return message;
    }

    async install(order: InstallOrder): Promise<PluginInstalled> {
        const { name, from } = await installOffline(this.#folder, order);
        return { plugin: await this.#show(name), from, settingsLeftOut: null };
    }

    /** Why the next start is in safe mode; null when it is not. */
    async #safeModeReason(): Promise<string | null> {
        const { config, db, clock } = this.#folder.options;
        if (config.safeMode) {
            return 'because PORTICO_SAFE_MODE is set';
        }
        return (await new CrashLoop(db, clock).isDetected())
            ? 'because the last three starts with plugins failed; disable or remove the plugin that you suspect'
            : null;
    }

    async #find(
        name: string
    ): Promise<{ readonly all: readonly PluginOnDisk[]; readonly onDisk: PluginOnDisk }> {
        const { all } = await this.#folder.read();
        const onDisk = all.find(({ runtime }) => runtime.name === name);
        if (onDisk === undefined) {
            throw fail.PLUGIN_NOT_FOUND({ plugin: name });
        }
        return { all, onDisk };
    }

    async #show(name: string): Promise<ShownPlugin> {
        return viewOnDisk(this.#folder, (await this.#find(name)).onDisk);
    }
}

function disabledView(by: readonly PluginRecord[]): object {
    return by.length === 0 ? {} : { disabled: by.map((record) => record.name) };
}

/** The manager types the capabilities of a view as opaque JSON; the command line reads them. */
function asShown(view: PluginView): ShownPlugin {
    return view as ShownPlugin;
}

function viewOnDisk({ records }: PluginFolder, { runtime, record }: PluginOnDisk): ShownPlugin {
    const adoptable =
        record === null
            ? null
            : (records
                  .of(record.name)
                  .filter((each) => each.package !== record.package)
                  .at(-1)?.package ?? null);
    return asShown(viewOf({ runtime, record, available: null, adoptable }));
}

/** Finds the records of enabled plugins that require a plugin, directly or through others, each before the one that it requires. @throws IN_USE 40901 when there are any and they may not be disabled */
function findDependants(
    all: readonly PluginOnDisk[],
    name: string,
    cascade: boolean
): readonly PluginRecord[] {
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

/** Writes records with the decisions of the admin. */
async function writeRecords(
    { records, kept }: PluginFolder,
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

/** Removes the fragments of disabled plugins, so that the next start renders the configuration of the engine without them. */
async function dropFragments(
    { options: { db, keyring } }: PluginFolder,
    tx: Transaction,
    plugins: readonly string[]
): Promise<readonly string[]> {
    await tx.em.nativeDelete(PluginBootEntity, {}); // one of these plugins may have caused the failed starts, so they no longer count
    const store = new FragmentStore(db, keyring);
    const given = Object.keys(store.load()).filter((plugin) => plugins.includes(plugin));
    for (const plugin of given) {
        await store.write(tx, plugin, null);
    }
    return given;
}

function describeEffects(by: readonly PluginRecord[], dropped: readonly string[]): string | null {
    const effects = [
        ...(by.length === 0
            ? []
            : [`Also disabled, since they require it: ${by.map(({ name }) => name).join(', ')}`]),
        ...dropped.map(
            (plugin) => `From the next start on, the engine serves without the configuration of ${plugin}`
        )
    ];
    return effects.length === 0 ? null : effects.join('. ');
}

const auditView = ({ enabled, grants, settings, package: packageName }: PluginRecord): object => ({
    package: packageName,
    enabled,
    grants,
    settings: viewSettings(settings)
});
