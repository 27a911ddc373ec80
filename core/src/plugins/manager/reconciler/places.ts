/** Where plugins are looked for beside those that were installed; earlier places win. */
import { join } from 'node:path';

import type { Place } from '@portico/registry';

import type { Config } from '../../../platform/config.ts';

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
