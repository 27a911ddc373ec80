/** The package of a plugin under test, read as the panel reads it. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { type PluginPackage, readManifest } from '@portico/core/plugin-runtime';

/** A package and the folder that it lies in. */
export interface TestPackage extends PluginPackage {
    /** Absolute; null for a plugin without a package. */
    readonly folder: string | null;
}

/** Finds the folder of a package: that of the nearest package.json above. Null when there is none. */
export function packageFolder(place: string | URL): string | null {
    const isPath = typeof place === 'string' && !place.startsWith('file:');
    let folder = resolve(isPath ? place : fileURLToPath(place));
    while (!existsSync(join(folder, 'package.json'))) {
        if (folder === dirname(folder)) {
            return null;
        }
        folder = dirname(folder);
    }
    return folder;
}

/**
 * Reads a plugin's package.
 *
 * @param place - a folder, or any file or address in it, such as `import.meta.url` of a test: the nearest package.json above counts
 * @throws Error when there is none, or its manifest is not one that a panel takes
 */
export function readTestPackage(place: string | URL): TestPackage {
    const folder = packageFolder(place);
    if (folder === null) {
        throw new Error(`There is no package.json at ${String(place)}, or above it`);
    }
    const file = join(folder, 'package.json');
    const read = readManifest(JSON.parse(readFileSync(file, 'utf8')), new Set());
    if ('fault' in read) {
        throw new Error(`${file}: ${read.fault.message}`);
    }
    return { ...read.plugin, folder };
}
