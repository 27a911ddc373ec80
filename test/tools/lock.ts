import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

export const lab = Lab.script();
const { describe, it, before } = lab;

const root = resolve(import.meta.dirname, '../..');

interface Entry {
    link?: boolean;
    resolved?: string;
    hasInstallScript?: boolean;
    optionalDependencies?: Record<string, string>;
}

describe('package-lock.json', () => {
    let entries: Record<string, Entry>;

    before(async () => {
        entries = (
            JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as {
                packages: typeof entries;
            }
        ).packages;
    });

    it('names no registry host, so that it works with any', () => {
        const named = Object.entries(entries).filter(
            ([, entry]) => entry.resolved !== undefined && entry.link !== true
        );
        expect(named.map(([path]) => path)).to.equal([]);
    });

    it('has the packages of every platform, without which npm ci refuses elsewhere', () => {
        const missing = Object.entries(entries).flatMap(([path, entry]) =>
            Object.keys(entry.optionalDependencies ?? {}).filter((name) => !resolvable(path, name))
        );
        expect(missing).to.equal([]);
    });

    it('has no package with an install script that was not judged', async () => {
        const { allowScripts } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
            allowScripts: Record<string, boolean>;
        };
        const scripted = Object.keys(entries)
            .filter((path) => entries[path]?.hasInstallScript === true)
            .map((path) => path.split('node_modules/').at(-1) ?? path);
        expect(scripted.filter((name) => !(name in allowScripts))).to.equal([]);
    });

    // As Node resolves: it looks in the package's own folder, then in each folder above it.
    function resolvable(path: string, name: string): boolean {
        const inside = path === '' ? `node_modules/${name}` : `${path}/node_modules/${name}`;
        if (inside in entries) {
            return true;
        }
        const cut = path.lastIndexOf('/node_modules/');
        return path !== '' && resolvable(cut < 0 ? '' : path.slice(0, cut), name);
    }
});
