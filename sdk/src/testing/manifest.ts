/** The package of a plugin under test, as its package.json says it. */
import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import type { Capabilities } from '../boundary/grants.ts';

/** What of a manifest (the field `portico` of package.json) a test needs. The panel's own check of it is `portico plugin validate`. */
export interface TestManifest {
    readonly name: string;
    readonly title?: string;
    readonly sdk?: string;
    readonly requires?: Readonly<Record<string, string>>;
    readonly optional?: Readonly<Record<string, string>>;
    readonly permissions?: Readonly<
        Record<string, string | { readonly title: string; readonly roles: readonly string[] }>
    >;
    readonly capabilities?: Capabilities;
    readonly contributes?: {
        readonly pages?: readonly {
            readonly id: string;
            readonly entry: string;
            readonly access: string;
            readonly title: string;
        }[];
    };
}

/** A package and where it lies. */
export interface TestPackage {
    /** The npm name. */
    readonly package: string;
    readonly version: string;
    readonly manifest: TestManifest;
    /** Absolute; null for a plugin that has no package. */
    readonly folder: string | null;
}

/**
 * Reads a package.
 *
 * @param place - a folder, or any file or address in it: the nearest package.json above counts, so `import.meta.url` of a test will do
 * @throws Error when there is none, or it is no plugin's
 */
export function readTestPackage(place: string | URL): TestPackage {
    const start = resolve(
        typeof place === 'string' && !place.startsWith('file:') ? place : fileURLToPath(place)
    );
    const folder = folderOf(start);
    if (folder === null) {
        throw new Error(`There is no package.json at ${start}, or above it`);
    }
    const { name, version, portico } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
        name?: string;
        version?: string;
        portico?: TestManifest;
    };
    if (typeof portico?.name !== 'string') {
        throw new Error(
            `${join(folder, 'package.json')} has no field "portico" with a name: it is no plugin's`
        );
    }
    return { package: name ?? portico.name, version: version ?? '0.0.0', manifest: portico, folder };
}

function folderOf(start: string): string | null {
    for (let folder = start; ; folder = dirname(folder)) {
        try {
            readFileSync(join(folder, 'package.json'));
            return folder;
        } catch {
            if (dirname(folder) === folder) {
                return null;
            }
        }
    }
}
