/** The types of the registry: what it needs, and what it answers. */

import type { StageFailure } from './failure.ts';
import type { ManifestFault, PluginPackage } from './manifest.ts';
import type { Host } from './resolve/resolve.ts';

/** Where a plugin was found; earlier kinds win over later ones. */
export type Origin = 'lock' | 'data' | 'folder' | 'node_modules';

/** One folder to look into. */
export interface Place {
    readonly origin: Origin;
    /** Absolute. Each folder in it is a package; the folders of scopes (`@acme`) hold packages too. */
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

/** A place that the registry did not use, and why. */
export interface Skipped {
    readonly path: string;
    readonly reason: string;
}

/** The address of an npm registry. */
export interface RegistryAddress {
    readonly url: string;
    /** Bearer token; null where it takes none. */
    readonly token: string | null;
}

/** Where the registry logs. */
export interface RegistryLog {
    info(detail: object, message: string): void;
    warn(detail: object, message: string): void;
}

/** What the registry needs. */
export interface RegistryOptions {
    /** Absolute; the registry owns `plugins/` and `plugins.lock.json` in it. */
    readonly dataDir: string;
    /** Base address of an npm registry. A function is called when the address is first needed, and again after it failed. */
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

/** What an install made. No code of it runs until the lock names it. */
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

/** How an install tells its progress and is cancelled. */
export interface InstallOptions {
    onPhase?(phase: InstallPhase): void;
    readonly signal?: AbortSignal;
}

/** `plugins.lock.json`: which installed version of each plugin counts. Every change is durable when its promise settles. */
export interface Lock {
    /** False when the signature of the file is wrong: another program changed it, or it belongs to another data folder. It then counts as empty until it is rewritten. */
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
