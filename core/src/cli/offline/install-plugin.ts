/** Brings the package of a plugin into a data folder whose panel does not run: fetched, verified, unpacked and made the one that counts. Its code runs at the next start. */
import type { LockEntry, PluginPackage } from '@portico/registry';
import { isFailure } from '@portico/sdk';

import { fail } from '../../platform/errors.ts';
import { askedOf, beyond } from '../../plugins/manager/consent/capabilities.ts';
import { installFailed } from '../../plugins/manager/install/install-failure.ts';
import type { Decision, PluginRecord } from '../../plugins/manager/records/plugin.ts';
import { newRecord } from '../../plugins/manager/records/records.ts';
import { chooseSource } from '../../plugins/manager/rollback/rollback-source.ts';
import { Complaint } from '../command/command-error.ts';
import type { InstallOrder, Wished } from '../plugin/admin/plugin-admin.ts';
import type { Folder, Lying } from './plugin-folder.ts';

/** What it is called, and the version that was there before. */
interface Placed {
    readonly name: string;
    readonly from: string | null;
}

const resource = 'plugins';

/** Ctrl-C gives it up until the package counts. @throws what POST /api/plugins, or its task, fails with; then nothing was changed */
export async function installOffline(folder: Folder, order: InstallOrder): Promise<Placed> {
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
        return await place(folder, order, plugin, entry);
    } catch (error) {
        if (made !== null) {
            await registry.remove(made).catch(() => undefined); // the lock names it: it counts already
        }
        await folder.audit.recordAlone({
            ...caller(folder),
            action: 'install',
            resource,
            resourceId: label,
            outcome: 'failure',
            status: null,
            code: isFailure(error) ? error.code : 50000
        });
        throw leaving.signal.aborted ? new Complaint('It was given up; nothing was changed') : error;
    } finally {
        process.removeListener('SIGINT', leave);
    }
}

/** The version that was there before, with its files as they were; null when it is another one that is wanted. */
async function keptVersion(
    { registry }: Folder,
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
        throw new Complaint('There is nothing to go back to: that is not the version that was there before');
    }
    return null;
}

async function place(
    folder: Folder,
    { enabled, grants, restoreData }: InstallOrder,
    plugin: PluginPackage,
    entry: LockEntry
): Promise<Placed> {
    const { registry, records, data, kept, pluginSettings, db, clock, audit } = folder;
    const { name } = plugin.manifest;
    const { all } = await folder.look();
    const there = all.find(({ runtime }) => runtime.name === name);
    const present = there?.runtime.plugin ?? null;
    if (present !== null && present.package !== plugin.package && there?.record?.enabled === true) {
        throw fail.CONFLICT(
            { field: 'name', by: present.package },
            { message: `${present.package} has the name ${name} and is enabled: disable it first` }
        );
    }
    const record = records.get(name, plugin.package);
    const isUpgrade = record !== null && present?.package === plugin.package;
    const waiting = isUpgrade ? null : kept.find(name, plugin.package);
    const base = record ?? {
        ...newRecord(plugin, clock.now()),
        version: 0,
        settings: data.keptSettings(plugin) ?? {}
    };
    const agreed = agreedTo(base, plugin, grants);
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
                : (await pluginSettings.take(plugin, null, base.settings, waiting)).settings
    };
    refuseMisfit(folder, all, plugin);
    const source = chooseSource({ data, name, plugin, entry, restoreData });
    const next = source === null ? null : await data.next({ name, package: plugin.package }, source, entry);
    try {
        await next?.prepare(decision);
        await registry.lock.activate(entry);
    } catch (error) {
        await next?.discard();
        throw error;
    }
    const finish: Parameters<typeof db.write>[0] = async (tx) => {
        await records.put(tx, {
            ...base,
            ...decision,
            seen: plugin,
            failure: null,
            version: base.version + 1
        });
        if (waiting !== null) {
            await kept.forgetIn(tx, name);
        }
        await audit.record(tx, {
            ...caller(folder),
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
    await (next === null ? db.write(finish) : next.commit(async (tx) => void (await finish(tx))));
    return { name, from: present?.version ?? null };
}

function agreedTo(
    { grants, decided }: PluginRecord,
    plugin: PluginPackage,
    wished: Wished
): Pick<Decision, 'grants' | 'decided'> {
    const asked = askedOf(plugin.manifest);
    return wished === null
        ? { grants, decided }
        : { grants: wished === 'all' ? asked : wished, decided: asked };
}

/** @throws IN_USE 40901 when something that is enabled requires another version */
function refuseMisfit({ registry }: Folder, all: readonly Lying[], plugin: PluginPackage): void {
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

function caller({
    call
}: Folder): Pick<Parameters<Folder['audit']['recordAlone']>[0], 'actor' | 'ip' | 'userAgent' | 'requestId'> {
    const { ip, userAgent, id } = call();
    return { actor: { id: null, username: null, tokenId: null, plugin: null }, ip, userAgent, requestId: id };
}
