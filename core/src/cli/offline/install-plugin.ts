/** Installs a plugin into the data folder of a panel that does not run: downloads, verifies and unpacks the package, and activates it in the lock. Its code runs at the next start. */
import type { LockEntry, PluginPackage } from '@portico/registry';
import { isFailure } from '@portico/sdk';

import type { Audit } from '../../features/audit/audit.ts';
import type { Transaction } from '../../platform/database/database.ts';
import { fail } from '../../platform/errors.ts';
import { askedOf, beyond } from '../../plugins/manager/consent/capabilities.ts';
import { installFailed } from '../../plugins/manager/install/install-failure.ts';
import type { Decision, PluginRecord } from '../../plugins/manager/records/plugin.ts';
import { newRecord } from '../../plugins/manager/records/records.ts';
import { chooseSource } from '../../plugins/manager/rollback/rollback-source.ts';
import { CommandError } from '../command/command-error.ts';
import type { GrantChoice, InstallOrder } from '../plugin/admin/plugin-admin.ts';
import type { PluginFolder, PluginOnDisk } from './plugin-folder.ts';

/** The name of the plugin, and the version that was installed before. */
interface Installed {
    readonly name: string;
    readonly from: string | null;
}

const resource = 'plugins';

/** Installs a plugin. Ctrl-C cancels it until the package is activated. @throws the errors of POST /api/plugins and its task; then nothing was changed */
export async function installOffline(folder: PluginFolder, order: InstallOrder): Promise<Installed> {
    const { registry } = folder;
    const leaving = new AbortController();
    const leave = (): void => leaving.abort();
    process.once('SIGINT', leave);
    let made: string | null = null;
    let label = 'package' in order.source ? order.source.package : 'an archive';
    try {
        const before = await keptVersion(folder, order);
        const { plugin, ...entry } =
            before ??
            (await registry
                .install(order.source, { signal: leaving.signal, onPhase: (phase) => order.tell(phase) })
                .catch(installFailed));
        made = before === null ? entry.folder : null;
        label = plugin.manifest.name;
        leaving.signal.throwIfAborted();
        return await activate(folder, order, plugin, entry);
    } catch (error) {
        if (made !== null) {
            await registry.remove(made).catch(() => undefined); // refused when the lock has it already
        }
        await folder.options.audit.recordAlone({
            ...auditCaller(folder),
            action: 'install',
            resource,
            resourceId: label,
            outcome: 'failure',
            status: null,
            code: isFailure(error) ? error.code : 50000
        });
        throw leaving.signal.aborted
            ? new CommandError('The install was cancelled; nothing was changed')
            : error;
    } finally {
        process.removeListener('SIGINT', leave);
    }
}

/** Finds the kept earlier version, with its files; null when another version is wanted. @throws CommandError when its data are wanted and it is not kept */
async function keptVersion(
    { registry }: PluginFolder,
    { source, restoreData }: InstallOrder
): Promise<(LockEntry & { readonly plugin: PluginPackage }) | null> {
    const { lock } = registry;
    const isOne = 'package' in source && source.integrity === undefined;
    const there = isOne ? lock.current().find((entry) => entry.package === source.package) : undefined;
    const entry =
        there === undefined || !isOne
            ? undefined
            : lock
                  .kept(there.name)
                  .find(
                      ({ package: name, version }) => name === source.package && version === source.version
                  );
    const found = entry === undefined ? null : await registry.locate(entry);
    if (entry !== undefined && found !== null && 'plugin' in found.result) {
        return { ...entry, plugin: found.result.plugin };
    }
    if (restoreData) {
        throw new CommandError(
            'There is nothing to go back to: this is not the version that was installed before'
        );
    }
    return null;
}

/** Makes the package the one that counts, with settings, grants and data of the version before. */
async function activate(
    folder: PluginFolder,
    order: InstallOrder,
    plugin: PluginPackage,
    entry: LockEntry
): Promise<Installed> {
    const { registry, data, options } = folder;
    const { name } = plugin.manifest;
    const { all } = await folder.read();
    const there = all.find(({ runtime }) => runtime.name === name);
    const present = there?.runtime.plugin ?? null;
    if (present !== null && present.package !== plugin.package && there?.record?.enabled === true) {
        throw fail.CONFLICT(
            { field: 'name', by: present.package },
            { message: `${present.package} has the name ${name} and is enabled: disable it first` }
        );
    }
    const { base, decision, waiting } = await decide(folder, order, plugin, present);
    refuseMisfit(folder, all, plugin);
    const source = chooseSource({ data, name, plugin, entry, restoreData: order.restoreData });
    const next = source === null ? null : await data.next({ name, package: plugin.package }, source, entry);
    try {
        await next?.prepare(decision);
        await registry.lock.activate(entry);
    } catch (error) {
        await next?.discard();
        throw error;
    }
    const finish = async (tx: Transaction): Promise<void> => {
        await folder.records.put(tx, {
            ...base,
            ...decision,
            seen: plugin,
            failure: null,
            version: base.version + 1
        });
        if (waiting) {
            await folder.kept.forgetIn(tx, name);
        }
        await options.audit.record(tx, {
            ...auditCaller(folder),
            action: 'install',
            resource,
            resourceId: name,
            outcome: 'success',
            status: null,
            code: 0,
            before: { version: present?.version ?? null },
            after: {
                package: plugin.package,
                version: plugin.version,
                integrity: entry.integrity,
                signature: entry.signature,
                enabled: decision.enabled,
                grants: decision.grants
            }
        });
    };
    await (next === null ? options.db.write(finish) : next.commit(finish));
    return { name, from: present?.version ?? null };
}

/**
 * Decides the record of the plugin: whether it is enabled, its grants and its settings.
 *
 * @returns also whether imported settings wait for it
 * @throws CONSENT_REQUIRED 40910 for an upgrade that asks for more than is granted
 */
async function decide(
    { records, data, kept, settings, options }: PluginFolder,
    { enabled, grants }: InstallOrder,
    plugin: PluginPackage,
    present: PluginPackage | null
): Promise<{ readonly base: PluginRecord; readonly decision: Decision; readonly waiting: boolean }> {
    const { name } = plugin.manifest;
    const record = records.get(name, plugin.package);
    const isUpgrade = record !== null && present?.package === plugin.package;
    const waiting = isUpgrade ? null : kept.find(name, plugin.package);
    const base = record ?? {
        ...newRecord(plugin, options.clock.now()),
        version: 0,
        settings: data.keptSettings(plugin) ?? {}
    };
    const agreed = mergeDecision(base, plugin, grants);
    const missing = beyond(askedOf(plugin.manifest), agreed.decided, agreed.grants);
    if (isUpgrade && missing !== null) {
        throw fail.CONSENT_REQUIRED({ plugin: name, missing, version: plugin.version });
    }
    const wanted = isUpgrade
        ? base.enabled && enabled
        : present === null && enabled && (waiting?.enabled ?? true);
    const decision: Decision = {
        ...agreed,
        enabled: wanted && missing === null,
        settings:
            waiting === null
                ? base.settings
                : (await settings.take(plugin, null, base.settings, waiting)).settings
    };
    return { base, decision, waiting: waiting !== null };
}

function mergeDecision(
    { grants, decided }: PluginRecord,
    plugin: PluginPackage,
    choice: GrantChoice
): Pick<Decision, 'grants' | 'decided'> {
    const asked = askedOf(plugin.manifest);
    return choice === null
        ? { grants, decided }
        : { grants: choice === 'all' ? asked : choice, decided: asked };
}

/** Checks that all enabled plugins can work with this version. @throws IN_USE 40901 */
function refuseMisfit({ registry }: PluginFolder, all: readonly PluginOnDisk[], plugin: PluginPackage): void {
    const { name } = plugin.manifest;
    const others = all.filter(({ runtime }) => runtime.name !== name && runtime.plugin !== null);
    const { unresolved } = registry.resolve([
        ...others.map(({ runtime }) => runtime.plugin as PluginPackage),
        plugin
    ]);
    const by = others.flatMap(({ runtime, record }) => {
        const why = unresolved.find((each) => each.plugin === runtime.plugin);
        return why !== undefined &&
            runtime.obstacle === null &&
            record?.enabled === true &&
            Object.hasOwn(runtime.plugin?.manifest.requires ?? {}, name)
            ? [{ name: runtime.name, message: why.message }]
            : [];
    });
    if (by.length > 0) {
        throw fail.IN_USE(
            { by: by.map((each) => each.name) },
            { message: by.map(({ message }) => message).join('; ') }
        );
    }
}

function auditCaller({
    options: { call }
}: PluginFolder): Pick<Parameters<Audit['recordAlone']>[0], 'actor' | 'ip' | 'userAgent' | 'requestId'> {
    const { ip, userAgent, id } = call();
    return { actor: { id: null, username: null, tokenId: null, plugin: null }, ip, userAgent, requestId: id };
}
