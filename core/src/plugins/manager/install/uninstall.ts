/** Takes a plugin out of the panel. Not a task: the answer comes when it is done. */
import { type Reply, reply } from '@portico/sdk';

import type { Call } from '../../../platform/call.ts';
import { fail } from '../../../platform/errors.ts';
import { requireVersion } from '../../../platform/version.ts';
import type { ReleaseReport } from '../../runtime/generation/generation.ts';
import type { PluginRecord, Runtime } from '../records/plugin.ts';
import type { InstallerPorts } from './ports.ts';

const resource = 'plugins';
/** How many hosts that stay are named. */
const namedHosts = 20;

/** How a plugin is uninstalled. */
export interface UninstallOptions {
    /** Deletes its data; otherwise the same package finds them again. */
    readonly purge: boolean;
    /** Disables running plugins that require it; otherwise they are the reason to refuse. */
    readonly cascade: boolean;
    /** Cuts requests instead of waiting for them. */
    readonly force?: boolean;
}

/**
 * Uninstalls a plugin.
 *
 * @throws PLUGIN_NOT_FOUND 40410; IN_USE 40901 when it was not installed by the panel, or is required; VERSION_STALE 41200
 */
export async function uninstall(
    ports: InstallerPorts,
    name: string,
    options: UninstallOptions,
    call: Call
): Promise<Reply<null>> {
    const { lifecycle } = ports;
    const runtime = lifecycle.runtime(name);
    if (runtime === null) {
        throw fail.PLUGIN_NOT_FOUND({ plugin: name });
    }
    const record = lifecycle.recordOf(runtime);
    requireVersion(call, undefined, record?.version ?? 0);
    requireInstalled(runtime);
    const by = lifecycle.known.runningDependants(name);
    if (by.length > 0 && !options.cascade) {
        throw fail.IN_USE({ by }, { message: `${name} is required by ${by.join(', ')}` });
    }
    await ports.db.write((tx) => lifecycle.disable(tx, by));
    runtime.interrupt?.();
    (options.force === true ? [name, ...by] : []).forEach((each) => ports.hurry(each));
    for (const other of by) {
        await lifecycle.reconcile(other);
    }
    const owners = ownersOf(lifecycle, runtime, record);
    const report = await lifecycle.withPlugin(name, () =>
        remove(ports, runtime, record, { by, purge: options.purge }, call)
    );
    await lifecycle.refreshInventory();
    await lifecycle.registry.collect();
    await lifecycle.reconcile(name);
    const sentences = [
        ...(by.length === 0 ? [] : [`Disabled what requires it: ${by.join(', ')}`]),
        ...(await ports.dropFragments([name, ...by])),
        ...(await ports.services.remaining(owners)),
        ...remainingHosts(ports.hosts, name),
        ...(report === null
            ? []
            : [`${report.released.length} released, ${report.leaked.length} leaked, ${report.cut} cut`])
    ];
    return reply.with(null, { message: sentences.length === 0 ? 'ok' : sentences.join('. ') });
}

/** One sentence about the hosts that a plugin made, which stay; none where there are none. */
function remainingHosts(hosts: InstallerPorts['hosts'], plugin: string): readonly string[] {
    const names = hosts.all().flatMap(({ owner, domain }) => (owner === plugin ? [domain] : []));
    const more = names.length - namedHosts;
    return names.length === 0
        ? []
        : [
              `These hosts of it stay: ${names.slice(0, namedHosts).join(', ')}${more > 0 ? ` and ${more} more` : ''}. Delete those that are not wanted any more`
          ];
}

function requireInstalled({ name, found }: Runtime): void {
    if (found !== null && found.lock === null) {
        throw fail.IN_USE(
            { by: [found.folder] },
            {
                message: `${name} was not installed by the panel: it lies in ${found.folder}, and is found again as long as that folder is there. Disable it, or delete the folder`
            }
        );
    }
}

/** Only inside `withPlugin`. */
async function remove(
    { lifecycle, data, db, services }: InstallerPorts,
    runtime: Runtime,
    record: PluginRecord | null,
    { by, purge }: { readonly by: readonly string[]; readonly purge: boolean },
    call: Call
): Promise<ReleaseReport | null> {
    const { name, plugin } = runtime;
    const owners = ownersOf(lifecycle, runtime, record);
    const report = await lifecycle.stop(runtime, 'it is uninstalled');
    // Before the record goes: services that cannot be ended are the reason to refuse.
    for (const each of purge ? owners : []) {
        await services.purge(each);
    }
    await lifecycle.registry.lock.drop(name);
    await db.write(async (tx) => {
        for (const each of owners) {
            await lifecycle.records.remove(tx, each);
        }
        if (owners.some(({ holdsArea }) => holdsArea)) {
            await lifecycle.forgetArea(tx, name);
        }
        await call.complete(tx, {
            action: 'uninstall',
            resource,
            resourceId: name,
            before: { package: record?.package ?? null, version: plugin?.version ?? null },
            after: {
                purge,
                ...(by.length === 0 ? {} : { disabled: by }),
                released: report?.released.length ?? 0,
                leaked: report?.leaked ?? [],
                cut: report?.cut ?? 0
            },
            reply: null
        });
    });
    for (const each of owners) {
        await (purge
            ? data.purge(each)
            : data.keep(each, { enabled: false, grants: {}, decided: {}, settings: each.settings }));
    }
    return report;
}

/** The records that go with a plugin. When the package is gone from the disk, every record of the name goes. */
function ownersOf(
    { records }: InstallerPorts['lifecycle'],
    { name, found }: Runtime,
    record: PluginRecord | null
): readonly PluginRecord[] {
    return found === null && record === null ? records.of(name) : record === null ? [] : [record];
}
