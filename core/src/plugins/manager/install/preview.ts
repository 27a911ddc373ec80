/** Looks at a package before it is put in place: what it is, what it would ask for, and what stands in its way. Nothing of it stays. */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

import type { Installed, LockEntry, PluginPackage } from '@portico/registry';
import { isFailure } from '@portico/sdk';

import { fail } from '../../../platform/errors.ts';
import { askedOf, beyond } from '../consent/capabilities.ts';
import { wordsOf } from '../consent/words.ts';
import { permissionsOf } from '../records/permissions.ts';
import { chooseSource } from '../rollback/rollback-source.ts';
import { decideInstall, requireFit } from './decision.ts';
import { installFailed } from './install-failure.ts';
import type { InstallerPorts, InstallOrder } from './ports.ts';
import type { InstallPreview } from './schema.ts';

/** Fetches the package, unless it is there, and describes what the order would do. @throws what the task of the order would fail with before it has a package */
export async function preview(
    ports: InstallerPorts,
    order: InstallOrder,
    signal: AbortSignal
): Promise<InstallPreview> {
    const { registry } = ports.lifecycle;
    const installed =
        order.entry === null ? await registry.install(order.source, { signal }).catch(installFailed) : null;
    try {
        const entry = order.entry ?? installed;
        if (entry === null) {
            throw new TypeError('An order without an entry was not fetched');
        }
        const { result, folder } = await registry.locate(entry);
        if ('fault' in result) {
            const { code, message } = result.fault;
            throw fail.PACKAGE_REFUSED({ cause: code, stage: 'discovered' }, { message });
        }
        return {
            ...describe(ports, order, entry, result.plugin),
            provenance: installed?.provenance ?? null,
            bytes: await bytesOf(folder),
            dependencies: installed?.dependencies.map((each) => ({ ...each })) ?? null
        };
    } finally {
        await discard(ports, installed);
    }
}

async function discard({ lifecycle, log }: InstallerPorts, installed: Installed | null): Promise<void> {
    if (installed !== null) {
        await lifecycle.registry
            .remove(installed.folder)
            .catch((error: unknown) => log.warn('A package that was only looked at stays', { error }));
    }
}

function describe(
    ports: InstallerPorts,
    order: InstallOrder,
    entry: LockEntry,
    plugin: PluginPackage
): Omit<InstallPreview, 'provenance' | 'bytes' | 'dependencies'> {
    const { lifecycle } = ports;
    const { manifest } = plugin;
    const { name } = manifest;
    const present = lifecycle.runtime(name)?.plugin ?? null;
    const record = lifecycle.records.get(name, plugin.package);
    const asked = askedOf(manifest);
    const granted = order.request.grants ?? record?.grants ?? {};
    const missing = beyond(asked, granted);
    const permissions = permissionsOf(plugin);
    const before = present === null ? [] : permissionsOf(present);
    const lacks = (some: typeof permissions, others: typeof permissions): string[] =>
        some.filter((each) => others.every((other) => other.name !== each.name)).map((each) => each.name);
    return {
        plugin: name,
        package: plugin.package,
        title: plugin.title,
        version: plugin.version,
        from: present?.version ?? null,
        kind: order.kind === 'install' && present?.package === plugin.package ? 'upgrade' : order.kind,
        integrity: entry.integrity,
        signature: entry.signature,
        sdk: manifest.sdk,
        requires: manifest.requires ?? {},
        optional: manifest.optional ?? {},
        permissions: permissions.map(({ name: permission, title, roles }) => ({
            name: permission,
            title,
            roles: [...roles]
        })),
        added: lacks(permissions, before),
        removed: lacks(before, permissions),
        capabilities: { asked, granted, missing },
        consent: wordsOf(missing ?? {}).map((words) => ({ ...words })),
        obstacles: obstaclesOf(ports, order, entry, plugin)
    };
}

/** Why the order would fail now, beyond what is missing in grants. */
function obstaclesOf(
    { lifecycle, data, kept }: InstallerPorts,
    { name: wanted, request }: InstallOrder,
    entry: LockEntry,
    plugin: PluginPackage
): InstallPreview['obstacles'] {
    const { name } = plugin.manifest;
    const known = lifecycle.runtime(name);
    const present = known?.plugin ?? null;
    const isInUse =
        known !== null && (lifecycle.recordOf(known)?.enabled === true || known.generation !== null);
    const record = lifecycle.records.get(name, plugin.package);
    const checks: readonly (() => unknown)[] = [
        () => {
            if (wanted !== null && wanted !== name) {
                throw fail.PACKAGE_REFUSED({ cause: 'NAME_CHANGED', stage: 'discovered' });
            }
        },
        () =>
            decideInstall(
                { data, kept },
                {
                    plugin,
                    present,
                    isInUse,
                    record,
                    request: { ...request, grants: askedOf(plugin.manifest) }
                }
            ),
        () => requireFit(lifecycle.registry, lifecycle.known.others(name), plugin, true),
        () => chooseSource({ data, name, plugin, entry, restoreData: request.restoreData === true })
    ];
    return checks.flatMap((check) => {
        try {
            check();
            return [];
        } catch (error) {
            if (!isFailure(error)) {
                throw error;
            }
            return [{ code: error.code, reason: error.reason, message: error.message }];
        }
    });
}

/** Size of all files below a folder. */
async function bytesOf(folder: string): Promise<number> {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile());
    const sizes = await Promise.all(
        files.map(async (file) => (await stat(join(file.parentPath, file.name))).size)
    );
    return sizes.reduce((sum, size) => sum + size, 0);
}
