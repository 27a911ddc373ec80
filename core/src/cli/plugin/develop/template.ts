/** Writes the files of a new plugin. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { readManifest } from '@portico/registry';

import { reservedNames } from '../../../composition/plugins/reserved-names.ts';
import { CommandError, usageError } from '../../command/command-error.ts';
import { hostSdk } from './host-sdk.ts';

const run = promisify(execFile);
const templates = fileURLToPath(new URL('../../../../templates/', import.meta.url));
const ending = '.template';

/** The plugin to create. */
export interface NewPlugin {
    readonly name: string;
    /** The npm name. */
    readonly package: string;
    /** Relative to the current folder. */
    readonly folder: string;
    /** Where npm takes the SDK from; null: the default. */
    readonly sdk: string | null;
    /** Whether it brings a page of its own. */
    readonly hasPage: boolean;
}

/**
 * Writes a new plugin, completely or not at all.
 *
 * @returns the absolute path of its folder
 * @throws CommandError when the name is not allowed, or the folder exists already
 */
export async function createPlugin({
    name,
    package: packageName,
    folder,
    sdk,
    hasPage
}: NewPlugin): Promise<string> {
    const host = await hostSdk();
    const judged = readManifest(
        { name: packageName, version: '0.1.0', portico: { name, sdk: `^${host.version}` } },
        reservedNames
    );
    if ('fault' in judged) {
        throw usageError(
            judged.fault.code === 'NAME_RESERVED'
                ? judged.fault.message
                : `${JSON.stringify(name)} cannot be the name of a plugin: a name has 2 to 40 lower-case letters, digits and dashes, and begins with a letter`
        );
    }
    const target = resolve(folder);
    if (existsSync(target)) {
        throw new CommandError(`${target} exists already: choose another folder with --dir`);
    }
    await mkdir(dirname(target), { recursive: true, mode: 0o777 });
    const scratch = await mkdtemp(join(dirname(target), `.${basename(target)}-`));
    try {
        const published = {
            '@portico/sdk': sdk ?? `^${host.version}`,
            '@portico/testing': `^${host.version}`
        };
        const packages = sdk === null && host.isPrivate ? await linkCheckout(host.folder, target) : published;
        const words: Readonly<Record<string, string>> = {
            name,
            package: packageName,
            title: `The plugin ${name}`,
            packages: JSON.stringify(packages, null, 4).slice(2, -2).trim(),
            sdkVersion: host.version,
            operation: 'hello',
            ...pageWords(hasPage)
        };
        for (const part of hasPage ? ['plugin/', 'page/'] : ['plugin/']) {
            await writeFiles(join(templates, part), scratch, words);
        }
        await rename(scratch, target);
        return target;
    } catch (error) {
        await rm(scratch, { recursive: true, force: true });
        throw error;
    }
}

/** What a page adds to the files of every plugin. */
function pageWords(hasPage: boolean): Readonly<Record<string, string>> {
    const contributes =
        '"contributes": { "pages": [{ "id": "main", "title": "Greetings", "access": "read", "entry": "assets/page.js" }] }';
    return hasPage
        ? {
              pageFiles: ',\n    "assets"',
              pageCheck: ' && tsc -p tsconfig.page.json',
              pageOptions: '\n    "allowJs": true,\n    "checkJs": true,',
              contributes: `,\n    ${contributes}`,
              assets: "        ctx.assets({ folder: 'assets' });\n"
          }
        : { pageFiles: '', pageCheck: '', pageOptions: '', contributes: '', assets: '' };
}

/** Writes the files of a template, with the words in their places. */
async function writeFiles(
    from: string,
    target: string,
    words: Readonly<Record<string, string>>
): Promise<void> {
    for (const file of await readdir(from, { recursive: true, withFileTypes: true })) {
        if (file.isFile() && file.name.endsWith(ending)) {
            const place = join(file.parentPath.slice(from.length - 1), file.name.slice(0, -ending.length))
                .replace(/^\/+/, '')
                .replace(/^gitignore$/, '.gitignore');
            const text = (await readFile(join(file.parentPath, file.name), 'utf8')).replace(
                /\{\{(\w+)\}\}/g,
                (all, word: string) => words[word] ?? all
            );
            await mkdir(dirname(join(target, place)), { recursive: true, mode: 0o755 });
            await writeFile(join(target, place), text, { mode: 0o644 });
        }
    }
}

/**
 * Builds what the plugin's tests run on in this checkout of the repository, since the npm registry does not have it.
 *
 * @returns where npm takes each package from: it links to them, so they find their own dependencies in the checkout
 */
async function linkCheckout(sdk: string, target: string): Promise<Readonly<Record<string, string>>> {
    const tool = join(dirname(sdk), 'tools', 'build-kit.mjs');
    if (!existsSync(tool)) {
        throw new CommandError(
            `${sdk} was never published and cannot be built here: use --sdk to say where npm takes it from`
        );
    }
    await run(process.execPath, [tool], { timeout: 300_000 }).catch((error: unknown) => {
        throw new CommandError(
            `The SDK and the test kit could not be built: ${(error as { stderr?: string }).stderr ?? String(error)}`,
            1,
            { cause: error }
        );
    });
    // npm reads the path from where the plugin really lies.
    const place = relative(join(await realpath(dirname(target)), basename(target)), sdk);
    return { '@portico/sdk': `file:${place}`, '@portico/testing': `file:${place}/testing` };
}
