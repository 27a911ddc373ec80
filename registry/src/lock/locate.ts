/** Finds an installed version where the lock says that it lies, and trusts its files only when they are those that were installed. */
import { join } from 'node:path';

import { readPackage } from '../discover/discover.ts';
import { type ManifestFault, readManifest } from '../manifest.ts';
import type { Found, Lock, LockEntry } from '../ports.ts';

/** Compares the files of an installed version with the lock, and reads its manifest. */
export async function locate(
    entry: LockEntry,
    root: string,
    lock: Pick<Lock, 'verify'>,
    reserved: ReadonlySet<string>,
    hostSdk: string
): Promise<Found> {
    const folder = join(root, entry.folder);
    const found = (result: Found['result']): Found => ({ origin: 'lock', folder, lock: entry, result });
    const wrong = await lock.verify(entry);
    if (wrong !== null) {
        return found({ fault: { code: wrong.code as ManifestFault['code'], message: wrong.message } });
    }
    const result = readManifest(readPackage(folder), reserved, hostSdk);
    if (
        'plugin' in result &&
        (result.plugin.manifest.name !== entry.name ||
            result.plugin.package !== entry.package ||
            result.plugin.version !== entry.version)
    ) {
        return found({
            fault: {
                code: 'TREE_CHANGED',
                message: `The lock names ${entry.package} ${entry.version} as ${entry.name}, but its folder holds ${result.plugin.package} ${result.plugin.version} as ${result.plugin.manifest.name}`
            }
        });
    }
    return found(result);
}
