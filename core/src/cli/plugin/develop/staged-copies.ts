/** Copies of a plugin that is being developed. Each save is copied to a folder of its own, since an imported module cannot be imported again. */
import { cp, mkdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { basename, join, relative, sep } from 'node:path';

import { CommandError } from '../../command/command-error.ts';

const ignoredFolders = new Set(['node_modules', '.git', 'coverage']);
/** Types for the plugin's pages, which are written after a start: they must not count as a save. */
const typesFile = 'page-operations.d.ts';

/** Makes copies of the plugin, and decides which of them the panel finds. */
export class StagedCopies {
    readonly #plugin: string;
    readonly #root: string;
    readonly #copies: RegExp;
    readonly #place: RegExp;
    #saves = 0;

    /** @param root - an empty folder for the copies */
    constructor(plugin: string, root: string) {
        this.#plugin = plugin;
        this.#root = root;
        this.#copies = new RegExp(`${escapePattern(root)}/(?:save-\\d+|shown)/plugin`, 'g');
        this.#place = new RegExp(`${escapePattern(plugin)}/(?!node_modules/)[^\\s:()]+:\\d+`);
    }

    /** The folder in which the panel looks for plugins. */
    get shown(): string {
        return join(this.#root, 'shown');
    }

    /** Copies the plugin as it is now. @returns the folder that contains the copy */
    async copy(): Promise<string> {
        this.#saves += 1;
        const place = join(this.#root, `save-${this.#saves}`);
        const target = join(place, 'plugin');
        await mkdir(place, { recursive: true, mode: 0o700 });
        await cp(this.#plugin, target, {
            recursive: true,
            filter: (path) => !this.isIgnored(relative(this.#plugin, path))
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
                throw new CommandError(`${this.#plugin} has no package.json`);
            });
            await writeFile(
                join(target, 'package.json'),
                JSON.stringify({ ...(JSON.parse(text) as object), exports: './src/index.ts' })
            );
        }
        return place;
    }

    /** Makes this copy the one that the panel finds. */
    async show(place: string): Promise<void> {
        await mkdir(this.shown, { recursive: true, mode: 0o700 });
        const next = join(this.#root, 'next');
        await rm(next, { force: true });
        await symlink(join(place, 'plugin'), next, 'dir');
        await rename(next, join(this.shown, 'plugin'));
    }

    /** Writes the types of the operations beside the plugin's package.json, unless they are there already. */
    async writeTypes(text: string): Promise<void> {
        const file = join(this.#plugin, typesFile);
        if ((await readFile(file, 'utf8').catch(() => null)) !== text) {
            await writeFile(file, text);
        }
    }

    /** Lets the panel find another plugin beside the one that is developed. */
    async add(folder: string): Promise<void> {
        await symlink(folder, join(this.shown, 'beside'), 'dir');
    }

    /** Replaces paths of copies by those of the plugin, so that an author finds the file. */
    translate(text: string): string {
        return text.replaceAll(this.#copies, this.#plugin);
    }

    /** The first line of the plugin's code on the stack of an error or its causes, such as `/home/me/hello/src/index.ts:12`; null without one. */
    placeOf(error: unknown): string | null {
        for (let cause = error; cause instanceof Error; cause = cause.cause) {
            const [place] = this.translate(cause.stack ?? '').match(this.#place) ?? [];
            if (place !== undefined) {
                return place;
            }
        }
        return null;
    }

    /** Deletes a copy. */
    async drop(place: string): Promise<void> {
        if (place.startsWith(join(this.#root, 'save-'))) {
            await rm(place, { recursive: true, force: true });
        }
    }

    /** Whether a path, relative to the plugin, is not part of the plugin. */
    isIgnored(path: string): boolean {
        const [first = ''] = path.split(sep);
        return (
            ignoredFolders.has(first) ||
            path === typesFile ||
            basename(path).endsWith('~') ||
            basename(path).startsWith('.#')
        );
    }
}

/** `RegExp.escape`, which the compiler does not know yet. */
function escapePattern(text: string): string {
    return text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
