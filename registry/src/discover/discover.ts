/** Finds plugins in folders, without running any of their code. What cannot be used is found too, with the reason. */
import { readFileSync, statSync } from 'node:fs';
import { readdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';

import { readManifest } from '../manifest.ts';
import type { Found, Place, Skipped } from '../ports.ts';
import { foreignWriter } from './writable.ts';

const keyword = 'portico-plugin';
/** A package.json larger than this is none. */
const largest = 1024 * 1024;

/** Looks into each place in order. A package that is reached twice (a workspace and its link) is found once, at the first place. */
export async function discover(
    places: readonly Place[],
    reserved: ReadonlySet<string>,
    hostSdk?: string
): Promise<{ readonly found: readonly Found[]; readonly skipped: readonly Skipped[] }> {
    const found = new Map<string, Found>();
    const skipped: Skipped[] = [];
    for (const place of places) {
        const reason = foreignWriter(place.path);
        if (reason !== null) {
            if (reason !== 'missing') {
                skipped.push({ path: place.path, reason });
            }
            continue;
        }
        for (const folder of await packagesIn(place.path)) {
            const packageJson = readPackage(folder, place.origin === 'node_modules' ? keyword : '');
            if (packageJson === undefined || (place.origin === 'node_modules' && !hasKeyword(packageJson))) {
                continue;
            }
            const real = await realpath(folder).catch(() => null);
            if (real === null || found.has(real)) {
                continue;
            }
            const danger = foreignWriter(real);
            if (danger !== null) {
                skipped.push({ path: folder, reason: danger });
                continue;
            }
            found.set(real, {
                origin: place.origin,
                folder: real,
                lock: null,
                result: readManifest(packageJson, reserved, hostSdk)
            });
        }
    }
    return { found: [...found.values()], skipped };
}

async function packagesIn(path: string): Promise<string[]> {
    const names = (await readdir(path, { withFileTypes: true }))
        .filter((entry) => (entry.isDirectory() || entry.isSymbolicLink()) && !entry.name.startsWith('.'))
        .map((entry) => entry.name)
        .sort();
    const nested = await Promise.all(
        names.map(async (name) => (name.startsWith('@') ? packagesIn(join(path, name)) : [join(path, name)]))
    );
    return nested.flat();
}

/**
 * The package.json of a folder, parsed. `undefined`: no package lies there; `null`: one that cannot be read. It is read at once: at the start there are
 * hundreds of them, and each wait would take longer than the reading.
 *
 * @param word - a package.json without it counts as none, and is not parsed
 */
export function readPackage(folder: string, word = ''): unknown {
    const path = join(folder, 'package.json');
    try {
        if (statSync(path).size > largest) {
            return null;
        }
        const bytes = readFileSync(path);
        return bytes.includes(word) ? (JSON.parse(bytes.toString()) as unknown) : undefined;
    } catch (error) {
        return ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '') ? undefined : null;
    }
}

function hasKeyword(packageJson: unknown): boolean {
    const keywords = (packageJson as { keywords?: unknown } | null)?.keywords;
    return Array.isArray(keywords) && keywords.includes(keyword);
}
