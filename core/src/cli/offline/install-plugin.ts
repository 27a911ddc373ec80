/** Installs a plugin into the data folder of a panel that does not run: downloads, verifies and unpacks the package, and activates it in the lock. Its code runs at the next start. */
import type { LockEntry, PluginPackage } from '@portico/registry';
import { isFailure } from '@portico/sdk';

import { recordedActor } from '../../platform/call.ts';
import type { Transaction } from '../../platform/database/database.ts';
import { askedOf } from '../../plugins/manager/consent/capabilities.ts';
import { auditOfInstall, decideInstall, requireFit } from '../../plugins/manager/install/decision.ts';
import { installFailed } from '../../plugins/manager/install/install-failure.ts';
import type { Decision } from '../../plugins/manager/records/plugin.ts';
import { newRecord } from '../../plugins/manager/records/records.ts';
import { chooseSource } from '../../plugins/manager/rollback/rollback-source.ts';
import type { AuditEntry } from '../../server/http/ports.ts';
import { CommandError } from '../command/command-error.ts';
import type { InstallOrder } from '../plugin/admin/plugin-admin.ts';
import type { PluginFolder } from './plugin-folder.ts';

/** The name of the plugin, and the version that was installed before. */
interface Installed {
    readonly name: string;
    readonly from: string | null;
}

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
            ...auditEntry(folder),
            resource: 'plugins',
            resourceId: label,
            outcome: 'failure',
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
    { enabled, grants, restoreData }: InstallOrder,
    plugin: PluginPackage,
    entry: LockEntry
): Promise<Installed> {
    const { registry, data, records, kept, settings, options } = folder;
    const { name } = plugin.manifest;
    const { all } = await folder.read();
    const there = all.find(({ runtime }) => runtime.name === name);
    const present = there?.runtime.plugin ?? null;
    const record = records.get(name, plugin.package);
    const { waiting, decision: decided } = decideInstall(folder, {
        plugin,
        present,
        isInUse: there?.record?.enabled === true,
        record,
        request: {
            enabled: enabled ? undefined : false,
            grants: grants === null ? undefined : grants === 'all' ? askedOf(plugin.manifest) : grants
        }
    });
    const decision: Decision =
        waiting === null
            ? decided
            : {
                  ...decided,
                  settings: (await settings.take(plugin, null, decided.settings, waiting)).settings
              };
    requireFit(
        registry,
        all.filter((each) => each !== there),
        plugin,
        false
    );
    const source = chooseSource({ data, name, plugin, entry, restoreData });
    const next = source === null ? null : await data.next({ name, package: plugin.package }, source, entry);
    try {
        await next?.prepare(decision);
        await registry.lock.activate(entry);
    } catch (error) {
        await next?.discard();
        throw error;
    }
    const from = present?.version ?? null;
    const finish = async (tx: Transaction): Promise<void> => {
        const base = record ?? { ...newRecord(plugin, options.clock.now()), version: 0 };
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
        await options.audit.record(tx, {
            ...auditEntry(folder),
            ...auditOfInstall(plugin, entry, decision, from)
        });
    };
    await (next === null ? options.db.write(finish) : next.commit(finish));
    return { name, from };
}

function auditEntry({
    options: { call }
}: PluginFolder): Pick<AuditEntry, 'action' | 'actor' | 'ip' | 'userAgent' | 'requestId' | 'status'> {
    const { actor, ip, userAgent, id } = call();
    return {
        action: 'install',
        actor: recordedActor(actor),
        ip,
        userAgent,
        requestId: id,
        status: null
    };
}
