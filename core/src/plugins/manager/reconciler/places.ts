/** Where the panel looks for plugins that it did not install. */
import { join } from 'node:path';

import type { Place } from '@portico/registry';

import type { Config } from '../../../platform/config.ts';

/** The places, in order: of two packages with one name, the one in the earlier place counts. */
export function placesOf({
    dataDir,
    pluginDirs,
    nodeModules
}: Pick<Config, 'dataDir' | 'pluginDirs' | 'nodeModules'>): readonly Place[] {
    return [
        { origin: 'data', path: join(dataDir, 'extensions') },
        ...pluginDirs.map((path): Place => ({ origin: 'folder', path })),
        { origin: 'node_modules', path: nodeModules }
    ];
}
