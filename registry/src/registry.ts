/** The registry of one panel: what is on its disk, and what can be installed. */
import { mkdir } from 'node:fs/promises';
import { join, resolve as resolvePath } from 'node:path';

import { discover } from './discover/discover.ts';
import { addressOf } from './install/address.ts';
import { clearStaging, deleteFolder, versionFolders } from './install/folders.ts';
import { install } from './install/install.ts';
import { hostSdkFolder, linkSdk } from './load/host-sdk.ts';
import { load } from './load/load.ts';
import { locate } from './lock/locate.ts';
import { openLock } from './lock/lock.ts';
import { runJob } from './npm/child.ts';
import { journey } from './pipeline.ts';
import type { Found, InstallLimits, Place, Registry, RegistryOptions, Skipped } from './ports.ts';
import { resolve } from './resolve/resolve.ts';

const mebi = 1024 * 1024;
const defaults: InstallLimits = {
    archiveBytes: 64 * mebi,
    unpackedBytes: 256 * mebi,
    entries: 20_000,
    packages: 500,
    totalBytes: 512 * mebi,
    idleMs: 15_000,
    totalMs: 300_000
};
const defaultImportMs = 5000;

/** Makes the registry: reads the lock, links the SDK beside what is installed, and deletes what killed installs left. Fetches nothing. */
export async function createRegistry(options: RegistryOptions): Promise<Registry> {
    const dataDir = resolvePath(options.dataDir);
    const root = join(dataDir, 'plugins');
    const limits = { ...defaults, ...options.limits };
    await mkdir(root, { recursive: true, mode: 0o700 });
    const sdkFolder = await hostSdkFolder();
    await linkSdk(root, sdkFolder);
    await clearStaging(root);
    const lock = await openLock(dataDir, root, options.hmacKey, options.log);
    /** Installed by this process and not activated yet. */
    const waiting = new Set<string>();
    let installing = 0;

    const find = async (
        places: readonly Place[]
    ): Promise<{ readonly found: readonly Found[]; readonly skipped: readonly Skipped[] }> => {
        const installed = await Promise.all(
            lock.current().map((entry) => locate(entry, root, lock, options.reserved, options.host.sdk))
        );
        const { found, skipped } = await discover(places, options.reserved, options.host.sdk);
        const folders = new Set(installed.map(({ folder }) => folder));
        const untrusted = lock.trusted
            ? []
            : [
                  {
                      path: join(dataDir, 'plugins.lock.json'),
                      reason: 'its signature is wrong: somebody else changed it, or it belongs to another data folder'
                  }
              ];
        return {
            found: [...installed, ...found.filter(({ folder }) => !folders.has(folder))],
            skipped: [...untrusted, ...skipped]
        };
    };
    const loadOne: Registry['load'] = (found, { fresh = false } = {}) =>
        load(found, { importMs: options.importMs ?? defaultImportMs, hostSdk: sdkFolder, fresh });

    return {
        sdkFolder,
        discover: find,
        locate: (entry) => locate(entry, root, lock, options.reserved, options.host.sdk),
        resolve: (plugins) => resolve(plugins, options.host),
        load: loadOne,
        async run(places, enabled, onOutcome = () => undefined) {
            const { found, skipped } = await find(places);
            return { outcomes: await journey(found, options.host, loadOne, enabled, onOutcome), skipped };
        },
        async install(source, installOptions = {}) {
            installing += 1;
            try {
                const installed = await install(
                    source,
                    { dataDir, hostSdk: sdkFolder, registry: options, limits, lock },
                    installOptions
                );
                waiting.add(installed.folder);
                return installed;
            } finally {
                installing -= 1;
            }
        },
        lock: {
            get trusted() {
                return lock.trusted;
            },
            current: lock.current,
            kept: lock.kept,
            async activate(entry) {
                await lock.activate(entry);
                waiting.delete(entry.folder);
            },
            drop: lock.drop,
            verify: lock.verify
        },
        available: async (installed, { search, signal } = {}) =>
            runJob(
                {
                    kind: 'catalogue',
                    installed: installed.map(({ package: name, version }) => ({ package: name, version })),
                    search: search ?? null,
                    ...(await addressOf(options)),
                    host: options.host,
                    reserved: [...options.reserved],
                    limits
                },
                signal === undefined ? {} : { signal }
            ),
        async remove(folder) {
            if (lock.folders().includes(folder)) {
                throw new Error(`${folder} is in use: the lock names it`);
            }
            waiting.delete(folder);
            if ((await versionFolders(root)).includes(folder)) {
                await deleteFolder(root, folder);
            }
        },
        async collect(keep = []) {
            if (installing === 0) {
                await clearStaging(root);
            }
            if (!lock.trusted) {
                return [];
            }
            const used = new Set([...lock.folders(), ...keep, ...waiting]);
            const unused = (await versionFolders(root)).filter((folder) => !used.has(folder));
            for (const folder of unused) {
                await deleteFolder(root, folder);
            }
            return unused;
        }
    };
}
