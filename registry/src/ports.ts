/** What the registry needs and what it hands out, in one place: the core reads this file to use it. */
import type { PluginDefinition } from '@portico/sdk';

import type { Stage, StageFailure } from './failure.ts';
import type { ManifestFault, PluginPackage } from './manifest.ts';
import type { Host, Resolution } from './resolve/resolve.ts';

/** Where a plugin was found; earlier kinds win over later ones. */
export type Origin = 'lock' | 'data' | 'folder' | 'node_modules';

/** One folder to look into. */
export interface Place {
    readonly origin: Origin;
    /** Absolute. Each folder in it is a package; scopes (`@acme`) are looked into. */
    readonly path: string;
}

/** A package on the disk that is, or was meant to be, a plugin. */
export interface Found {
    readonly origin: Origin;
    /** Real path of the package. */
    readonly folder: string;
    /** What the lock says of it; null when it was not installed. */
    readonly lock: LockEntry | null;
    readonly result: { readonly plugin: PluginPackage } | { readonly fault: ManifestFault };
}

/** A place that was passed over. */
export interface Skipped {
    readonly path: string;
    readonly reason: string;
}

/** An npm registry. */
export interface RegistryAddress {
    readonly url: string;
    /** Bearer token; null where it takes none. */
    readonly token: string | null;
}

/** Where the registry says what it did beside its answers. */
export interface RegistryLog {
    info(detail: object, message: string): void;
    warn(detail: object, message: string): void;
}

/** What the registry is made of. */
export interface RegistryOptions {
    /** Absolute; the registry owns `plugins/` and `plugins.lock.json` in it. */
    readonly dataDir: string;
    /** Base address of an npm registry; a function is asked when the first answer of it is needed, and again when it failed. */
    readonly registryUrl: string | (() => Promise<RegistryAddress>);
    /** Bearer token for it, where the address is text. */
    readonly registryToken?: string;
    /** 32 bytes that only this data folder's panel knows; the lock is signed under them. */
    readonly hmacKey: Uint8Array;
    /** Names that no plugin may have. */
    readonly reserved: ReadonlySet<string>;
    readonly host: Host;
    readonly log: RegistryLog;
    /** Default 5000. */
    readonly importMs?: number;
    readonly limits?: Partial<InstallLimits>;
}

/** Bounds of what is fetched, unpacked and waited for. */
export interface InstallLimits {
    /** Bytes of one archive as it is sent; default 64 MiB. */
    readonly archiveBytes: number;
    /** Bytes of one archive unpacked; default 256 MiB. */
    readonly unpackedBytes: number;
    /** Files and folders of one archive; default 20,000. */
    readonly entries: number;
    /** Packages, the plugin itself included; default 500. */
    readonly packages: number;
    /** Bytes of all archives unpacked; default 512 MiB. */
    readonly totalBytes: number;
    /** Time without an answer of the registry; default 15,000. */
    readonly idleMs: number;
    /** Time for all of it; default 300,000. */
    readonly totalMs: number;
}

/** What the package says of its origin, as far as the registry's signatures tell. */
export type Signature = 'verified' | 'unsigned' | 'uploaded';

/** One installed version, as it stands in plugins.lock.json. */
export interface LockEntry {
    readonly name: string;
    readonly package: string;
    readonly version: string;
    /** Of the archive, as a subresource integrity string. */
    readonly integrity: string;
    /** Hash over every file of the folder. */
    readonly tree: string;
    /** Below `<dataDir>/plugins`: `<name>/<version>-<integrity8>-<n>`. It is the package's own folder. */
    readonly folder: string;
    readonly signature: Signature;
    /** ISO 8601. */
    readonly installedAt: string;
}

/** What an install made. It is loaded by nobody until the lock names it. */
export interface Installed extends LockEntry {
    /** Absolute. */
    readonly path: string;
    readonly plugin: PluginPackage;
    /** Names and versions of everything that came with it. */
    readonly dependencies: readonly {
        readonly package: string;
        readonly version: string;
        readonly signature: Signature;
    }[];
    /** Where the registry says that it was built; null when it does not. */
    readonly provenance: string | null;
}

/** What to install: a package of the registry (a version, a range or a tag; the newest compatible one without), or an uploaded archive. */
export type InstallSource =
    | { readonly package: string; readonly version?: string; readonly integrity?: string }
    | { readonly tarball: Uint8Array; readonly integrity?: string };

/** The phases of an install, in order. */
export type InstallPhase = 'resolve' | 'fetch' | 'verify' | 'unpack' | 'inspect' | 'commit';

export interface InstallOptions {
    onPhase?(phase: InstallPhase): void;
    readonly signal?: AbortSignal;
}

/** `plugins.lock.json`: which installed version of each plugin counts. Every change is durable when its promise settles. */
export interface Lock {
    /** False when the file did not stand the check: it was changed by somebody else, or belongs to another data folder. Then nothing of it counts until it is rewritten. */
    readonly trusted: boolean;
    /** One entry a plugin: the version that counts. */
    current(): readonly LockEntry[];
    /** Versions that are kept to go back to, newest first. */
    kept(name: string): readonly LockEntry[];
    /** Makes it the version that counts; the one before is kept (one, the others are dropped). */
    activate(entry: LockEntry): Promise<void>;
    /** Forgets a plugin with all its versions. */
    drop(name: string): Promise<void>;
    /** Compares the folder with what was installed; null when they agree. */
    verify(entry: LockEntry): Promise<StageFailure | null>;
}

/** One package on its journey; it never disappears, and a failure stays on it. */
export interface Outcome {
    /** The plugin's name; that of its folder when its manifest could not be read. */
    readonly name: string;
    readonly found: Found;
    /** Null when its manifest could not be read. */
    readonly plugin: PluginPackage | null;
    /** The last stage that it passed; null when not even its manifest could be read. */
    readonly stage: Stage | null;
    readonly failure: StageFailure | null;
    /** What definePlugin made; null before the stage `loaded`. */
    readonly definition: PluginDefinition | null;
}

/** A version on the registry beside what is installed. */
export interface Offer {
    readonly package: string;
    /** Null when no version's manifest could be read. */
    readonly name: string | null;
    readonly title: string;
    /** The newest version that works with this panel; null when none does. */
    readonly version: string | null;
    /** The newest version of all. */
    readonly latest: string;
    /** Why `version` is not `latest`, in one sentence; null when it is. */
    readonly conflict: string | null;
    /** The version that is there; null when it is not installed. */
    readonly installed: string | null;
    /** Whether `version` is newer than what is installed. */
    readonly upgrade: boolean;
}

/** What the registry offers. */
export interface Catalogue {
    readonly offers: readonly Offer[];
    /** False when the registry does not answer a search: only packages that are installed are in the list. */
    readonly searchable: boolean;
    /** Packages that could not be asked for, with the reason. */
    readonly failures: readonly { readonly package: string; readonly message: string }[];
}

/** Everything of a panel's plugins that needs none of their code but the import. */
export interface Registry {
    /** Folder of the SDK that this process runs with. */
    readonly sdkFolder: string;
    /** Looks into the lock's folders first, then into each place. */
    discover(
        places: readonly Place[]
    ): Promise<{ readonly found: readonly Found[]; readonly skipped: readonly Skipped[] }>;
    /** One installed version, its files compared with what was installed and its manifest read. */
    locate(entry: LockEntry): Promise<Found>;
    resolve(plugins: readonly PluginPackage[]): Resolution;
    /**
     * Imports one package that was found, and looks at what came of it. Never rejects.
     *
     * @param options - `fresh`: though this process has imported it before. A module that threw, or whose files changed, otherwise stays what it was
     */
    load(
        found: Found,
        options?: { readonly fresh?: boolean }
    ): Promise<
        | { readonly definition: PluginDefinition; readonly importMs: number }
        | { readonly failure: StageFailure }
    >;
    /**
     * All three stages for all places: those that can start first, in their order. `enabled` says which may be imported, the others stop at
     * `resolved`; `onOutcome` gets each one as soon as its journey ends, so that an import that hangs holds no other plugin up.
     */
    run(
        places: readonly Place[],
        enabled: (found: Found, plugin: PluginPackage) => boolean,
        onOutcome?: (outcome: Outcome) => void
    ): Promise<{ readonly outcomes: readonly Outcome[]; readonly skipped: readonly Skipped[] }>;
    /**
     * Fetches, verifies and unpacks into a folder of its own; the lock is not touched.
     *
     * @throws InstallFailure with nothing changed
     */
    install(source: InstallSource, options?: InstallOptions): Promise<Installed>;
    readonly lock: Lock;
    /**
     * What the registry offers for these packages, and what else it has with the keyword `portico-plugin`.
     *
     * @throws InstallFailure when the registry could not be asked at all
     */
    available(
        installed: readonly { readonly package: string; readonly version: string }[],
        options?: { readonly search?: string; readonly signal?: AbortSignal }
    ): Promise<Catalogue>;
    /** Deletes one version's folder. @throws Error when the lock names it */
    remove(folder: string): Promise<void>;
    /**
     * Deletes what neither the lock nor `keep` names: folders of versions, and what a killed install left. What was installed by this process and
     * waits to be activated stays. Answers the folders that it deleted; none while the lock is not trusted.
     */
    collect(keep?: readonly string[]): Promise<readonly string[]>;
}
