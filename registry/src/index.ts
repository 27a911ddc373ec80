/** From a folder, or a name in an npm registry, to a plugin that can be set up. */
export { discover } from './discover/discover.ts';
export { foreignWriter } from './discover/writable.ts';
export { InstallFailure } from './failure.ts';
export type { InstallCode, LoadCode, Stage, StageFailure } from './failure.ts';
export { supplyModules } from './load/host-sdk.ts';
export { isOutside, LeakDetector } from './load/leak-detector.ts';
export { checkInstalled } from './lock/lock.ts';
export { isNewer, manifestSchema, readManifest } from './manifest.ts';
export type { Manifest, ManifestFault, PluginPackage } from './manifest.ts';
export type {
    Catalogue,
    Found,
    InstallLimits,
    InstallOptions,
    InstallPhase,
    InstallSource,
    Installed,
    Lock,
    LockEntry,
    Offer,
    Origin,
    Place,
    RegistryAddress,
    RegistryLog,
    RegistryOptions,
    Signature,
    Skipped
} from './ports.ts';
export { createRegistry, type Registry } from './registry.ts';
export { resolve } from './resolve/resolve.ts';
export type { Host, Resolution, Unresolved } from './resolve/resolve.ts';
