/** The registry of one panel: which plugins lie on its disk, and which can be installed. */
import { mkdir } from 'node:fs/promises';
import { join, resolve as resolvePath } from 'node:path';

import { discover } from './discover/discover.ts';
import { addressOf } from './install/address.ts';
import { clearStaging, deleteFolder, versionFolders } from './install/folders.ts';
import { install } from './install/install.ts';
import { hostSdkFolder, linkSdk } from './load/host-sdk.ts';
import { load } from './load/load.ts';
import { locate } from './lock/locate.ts';
import { LockFile, lockName, pluginsFolder } from './lock/lock.ts';
import type { PluginPackage } from './manifest.ts';
import { runJob } from './npm/child.ts';
import type {
    Catalogue,
    Found,
    Installed,
    InstallLimits,
    InstallOptions,
    InstallSource,
    Lock,
    LockEntry,
    Place,
    RegistryOptions,
    Skipped
} from './ports.ts';
import { type Resolution, resolve } from './resolve/resolve.ts';

const mebi = 1024 * 1024;
const defaultLimits: InstallLimits = {
    archiveBytes: 64 * mebi,
    unpackedBytes: 256 * mebi,
    entries: 20_000,
    packages: 500,
    totalBytes: 512 * mebi,
    idleMs: 15_000,
    totalMs: 300_000
};
const defaultImportMs = 5000;

/** Reads the lock, links the SDK beside the installed packages, and deletes what killed installs left. Fetches nothing. */
export async function createRegistry(options: RegistryOptions): Promise<Registry> {
    const root = join(resolvePath(options.dataDir), pluginsFolder);
    await mkdir(root, { recursive: true, mode: 0o700 });
    const sdkFolder = await hostSdkFolder();
    await linkSdk(root, sdkFolder);
    await clearStaging(root);
    const lock = await LockFile.open(resolvePath(options.dataDir), root, options.hmacKey, options.log);
    return new Registry(options, root, sdkFolder, lock);
}

/** The plugins on the disk of one panel. The registry runs no code of a plugin but its import. */
export class Registry {
    /** Folder of the SDK that this process runs with. */
    readonly sdkFolder: string;
    readonly lock: Lock;
    readonly #options: RegistryOptions;
    readonly #limits: InstallLimits;
    readonly #dataDir: string;
    readonly #root: string;
    readonly #lockFile: LockFile;
    /** Folders that this process installed and that are not active yet. */
    readonly #waiting = new Set<string>();
    #installing = 0;

    constructor(options: RegistryOptions, root: string, sdkFolder: string, lock: LockFile) {
        this.#options = options;
        this.#limits = { ...defaultLimits, ...options.limits };
        this.#dataDir = resolvePath(options.dataDir);
        this.#root = root;
        this.sdkFolder = sdkFolder;
        this.#lockFile = lock;
        this.lock = {
            get trusted() {
                return lock.trusted;
            },
            current: () => lock.current(),
            kept: (name) => lock.kept(name),
            activate: async (entry) => {
                await lock.activate(entry);
                this.#waiting.delete(entry.folder);
            },
            drop: (name) => lock.drop(name),
            verify: (entry) => lock.verify(entry)
        };
    }

    /** Looks into the lock's folders first, then into each place. */
    async discover(
        places: readonly Place[]
    ): Promise<{ readonly found: readonly Found[]; readonly skipped: readonly Skipped[] }> {
        const { reserved, host } = this.#options;
        const installed = await Promise.all(this.#lockFile.current().map((entry) => this.locate(entry)));
        const { found, skipped } = await discover(places, reserved, host.sdk);
        const folders = new Set(installed.map(({ folder }) => folder));
        const untrusted = {
            path: join(this.#dataDir, lockName),
            reason: 'its signature is wrong: another program changed it, or it belongs to another data folder'
        };
        return {
            found: [...installed, ...found.filter(({ folder }) => !folders.has(folder))],
            skipped: [...(this.#lockFile.trusted ? [] : [untrusted]), ...skipped]
        };
    }

    /** One installed version, its files compared with what was installed and its manifest read. */
    locate(entry: LockEntry): Promise<Found> {
        const { reserved, host } = this.#options;
        return locate(entry, this.#root, this.#lockFile, reserved, host.sdk);
    }

    /** Decides which plugins can run together, and in which order they start. */
    resolve(plugins: readonly PluginPackage[]): Resolution {
        return resolve(plugins, this.#options.host);
    }

    /**
     * Imports one package that was found and checks what it exports. Never rejects.
     *
     * @param options - `fresh`: import a new copy even if this process has imported the package before. Node never imports a module a second time, also when it threw or its files changed
     */
    load(found: Found, { fresh = false }: { readonly fresh?: boolean } = {}): ReturnType<typeof load> {
        const { importMs = defaultImportMs } = this.#options;
        return load(found, { importMs, hostSdk: this.sdkFolder, fresh });
    }

    /**
     * Fetches, verifies and unpacks into a folder of its own; the lock is not touched.
     *
     * @throws InstallFailure with nothing changed
     */
    async install(source: InstallSource, options: InstallOptions = {}): Promise<Installed> {
        this.#installing += 1;
        try {
            const place = {
                dataDir: this.#dataDir,
                hostSdk: this.sdkFolder,
                registry: this.#options,
                limits: this.#limits,
                lock: this.#lockFile
            };
            const installed = await install(source, place, options);
            this.#waiting.add(installed.folder);
            return installed;
        } finally {
            this.#installing -= 1;
        }
    }

    /**
     * What the registry offers for these packages, and what else it has with the keyword `portico-plugin`.
     *
     * @throws InstallFailure when the registry could not be asked at all
     */
    async available(
        installed: readonly { readonly package: string; readonly version: string }[],
        { search, signal }: { readonly search?: string; readonly signal?: AbortSignal } = {}
    ): Promise<Catalogue> {
        return runJob(
            {
                kind: 'catalogue',
                installed: installed.map(({ package: name, version }) => ({ package: name, version })),
                search: search ?? null,
                ...(await addressOf(this.#options)),
                host: this.#options.host,
                reserved: [...this.#options.reserved],
                limits: this.#limits
            },
            signal === undefined ? {} : { signal }
        );
    }

    /** Deletes one version's folder. @throws Error when the lock names it */
    async remove(folder: string): Promise<void> {
        if (this.#lockFile.folders().includes(folder)) {
            throw new Error(`${folder} is in use: the lock names it`);
        }
        this.#waiting.delete(folder);
        if ((await versionFolders(this.#root)).includes(folder)) {
            await deleteFolder(this.#root, folder);
        }
    }

    /**
     * Deletes folders of versions that neither the lock nor `keep` names, and what a killed install left. Versions that this process
     * installed and that are not active yet stay.
     *
     * @returns the folders that it deleted; none while the lock is not trusted
     */
    async collect(keep: readonly string[] = []): Promise<readonly string[]> {
        if (this.#installing === 0) {
            await clearStaging(this.#root);
        }
        if (!this.#lockFile.trusted) {
            return [];
        }
        const used = new Set([...this.#lockFile.folders(), ...keep, ...this.#waiting]);
        const unused = (await versionFolders(this.#root)).filter((folder) => !used.has(folder));
        for (const folder of unused) {
            await deleteFolder(this.#root, folder);
        }
        return unused;
    }
}
