/** From a folder to a plugin that may start: found, its manifest read, its place in the order decided. None of its code runs in here. */
export { discover } from './discover.ts';
export type { Found, Origin, Place, Skipped } from './discover.ts';
export { manifestSchema, readManifest } from './manifest.ts';
export type { Manifest, ManifestFault, PluginPackage } from './manifest.ts';
export { resolve } from './resolve.ts';
export type { Host, Resolution, Unresolved } from './resolve.ts';
