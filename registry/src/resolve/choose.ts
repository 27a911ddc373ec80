/** Chooses from the versions that a registry lists: the newest one that works with this panel, and why not a newer one. Pure. */
import prerelease from 'semver/functions/prerelease.js';
import rcompare from 'semver/functions/rcompare.js';
import satisfies from 'semver/functions/satisfies.js';
import valid from 'semver/functions/valid.js';
import validRange from 'semver/ranges/valid.js';

import { type PluginPackage, readManifest } from '../manifest.ts';
import { type Host, hostConflict } from './resolve.ts';

/** What is chosen from. */
export interface Listing {
    readonly versions: Readonly<Record<string, unknown>>;
    readonly tags: Readonly<Record<string, string>>;
}

/** The version that was chosen, and why not a newer one. */
export interface Choice {
    /** Null when no version fits. */
    readonly plugin: PluginPackage | null;
    /** The newest version that was asked for, whether it fits or not; null when there is none at all. */
    readonly newest: string | null;
    /** Why `plugin` is not `newest`, in one sentence; null when it is. */
    readonly conflict: string | null;
}

/**
 * Chooses among all versions, or those of a range or tag. Pre-releases count only when the range names one, or nothing else exists;
 * versions that their author withdrew (`deprecated`) only when no other fits.
 */
export function choose(
    listing: Listing,
    wanted: string | null,
    host: Host,
    reserved: ReadonlySet<string>
): Choice {
    const versions = candidates(listing, wanted);
    const newest = versions[0] ?? null;
    let conflict: string | null = null;
    const usable = versions
        .map((version) => {
            const read = readManifest(listing.versions[version], reserved, host.sdk);
            const why =
                'fault' in read ? read.fault.message : (hostConflict(read.plugin, host)?.message ?? null);
            conflict ??= version === newest ? why : null;
            return 'plugin' in read && why === null ? read.plugin : null;
        })
        .filter((plugin) => plugin !== null);
    const plugin = usable.find(({ version }) => !isWithdrawn(listing.versions[version])) ?? usable[0] ?? null;
    if (plugin !== null && plugin.version !== newest && conflict === null) {
        conflict = `${plugin.manifest.name} ${newest} was withdrawn by its author`;
    }
    return { plugin, newest, conflict };
}

/** Newest first. */
function candidates({ versions, tags }: Listing, wanted: string | null): readonly string[] {
    const all = Object.keys(versions)
        .filter((version) => valid(version) !== null)
        .sort(rcompare);
    if (wanted === null) {
        const released = all.filter((version) => prerelease(version) === null);
        return released.length > 0 ? released : all;
    }
    if (validRange(wanted) !== null) {
        return all.filter((version) => satisfies(version, wanted));
    }
    const tagged = Object.hasOwn(tags, wanted) ? tags[wanted] : undefined;
    return all.filter((version) => version === tagged);
}

function isWithdrawn(packageJson: unknown): boolean {
    const { deprecated } = packageJson as { deprecated?: unknown };
    return typeof deprecated === 'string' ? deprecated !== '' : deprecated === true;
}
