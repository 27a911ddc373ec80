/** Copies of a plugin that is being written: each save is a folder of its own, since a module stays what it was when it was imported. */
import { cp, mkdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { basename, join, relative, sep } from 'node:path';

import { Complaint } from '../../command/command-error.ts';

const passedOver = new Set(['node_modules', '.git', 'vendor', 'coverage']);

export class Stage {
    readonly #plugin: string;
    readonly #root: string;
    #saves = 0;

    /** @param root - an empty folder, which the stage owns */
    constructor(plugin: string, root: string) {
        this.#plugin = plugin;
        this.#root = root;
    }

    /** The folder that a panel looks for plugins in. */
    get shown(): string {
        return join(this.#root, 'shown');
    }

    /** Copies what is there now. @returns a folder with the copy in it */
    async copy(): Promise<string> {
        this.#saves += 1;
        const place = join(this.#root, `save-${this.#saves}`);
        const target = join(place, 'plugin');
        await mkdir(place, { recursive: true, mode: 0o700 });
        await cp(this.#plugin, target, {
            recursive: true,
            filter: (path) => !this.isPassedOver(relative(this.#plugin, path))
        });
        await symlink(join(this.#plugin, 'node_modules'), join(target, 'node_modules')).catch(
            () => undefined
        );
        if (
            await stat(join(target, 'src/index.ts')).then(
                () => true,
                () => false
            )
        ) {
            const text = await readFile(join(target, 'package.json'), 'utf8').catch(() => {
                throw new Complaint(`${this.#plugin} has no package.json`);
            });
            await writeFile(
                join(target, 'package.json'),
                JSON.stringify({ ...(JSON.parse(text) as object), exports: './src/index.ts' })
            );
        }
        return place;
    }

    /** From now on this copy is the one that a panel finds. */
    async show(place: string): Promise<void> {
        await mkdir(this.shown, { recursive: true, mode: 0o700 });
        const next = join(this.#root, 'next');
        await rm(next, { force: true });
        await symlink(join(place, 'plugin'), next, 'dir');
        await rename(next, join(this.shown, 'plugin'));
    }

    async drop(place: string): Promise<void> {
        if (place.startsWith(join(this.#root, 'save-'))) {
            await rm(place, { recursive: true, force: true });
        }
    }

    /** Whether a change of this path, relative to the plugin, is none of the plugin's. */
    isPassedOver(path: string): boolean {
        const [first = ''] = path.split(sep);
        return passedOver.has(first) || basename(path).endsWith('~') || basename(path).startsWith('.#');
    }
}
