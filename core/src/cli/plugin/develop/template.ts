/** What `portico plugin create` writes. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { readManifest } from '@portico/registry';

import { Complaint, misuse } from '../../command/command-error.ts';
import { hostSdk } from './host-sdk.ts';
import { reservedNames } from './reserved-names.ts';

const run = promisify(execFile);
const templates = fileURLToPath(new URL('../../../../templates/plugin/', import.meta.url));
const ending = '.template';

export interface NewPlugin {
    readonly name: string;
    /** The npm name. */
    readonly package: string;
    /** Relative to where the command is called. */
    readonly folder: string;
    /** Where npm takes the SDK from; null: decided here. */
    readonly sdk: string | null;
}

/**
 * Writes a new plugin, whole or not at all.
 *
 * @returns its folder, absolute
 * @throws Complaint when the name is none, or the folder is there already
 */
export async function createPlugin({ name, package: packageName, folder, sdk }: NewPlugin): Promise<string> {
    const host = await hostSdk();
    const judged = readManifest(
        { name: packageName, version: '0.1.0', portico: { name, sdk: `^${host.version}` } },
        reservedNames
    );
    if ('fault' in judged) {
        throw misuse(
            judged.fault.code === 'NAME_RESERVED'
                ? judged.fault.message
                : `${JSON.stringify(name)} is no name of a plugin: it has 2 to 40 small letters, digits and dashes, and begins with a letter`
        );
    }
    const target = resolve(folder);
    if (existsSync(target)) {
        throw new Complaint(`${target} is there already: name another place with --dir`);
    }
    await mkdir(dirname(target), { recursive: true, mode: 0o777 });
    const scratch = await mkdtemp(join(dirname(target), `.${basename(target)}-`));
    try {
        const spec = sdk ?? (host.isPrivate ? await vendor(host.folder, scratch) : `^${host.version}`);
        const words: Readonly<Record<string, string>> = {
            name,
            package: packageName,
            title: `The plugin ${name}`,
            sdk: spec,
            sdkVersion: host.version
        };
        for (const file of await readdir(templates, { recursive: true, withFileTypes: true })) {
            if (file.isFile() && file.name.endsWith(ending)) {
                const place = join(
                    file.parentPath.slice(templates.length - 1),
                    file.name.slice(0, -ending.length)
                )
                    .replace(/^\/+/, '')
                    .replace(/^gitignore$/, '.gitignore');
                const text = (await readFile(join(file.parentPath, file.name), 'utf8')).replace(
                    /\{\{(\w+)\}\}/g,
                    (all, word: string) => words[word] ?? all
                );
                await mkdir(dirname(join(scratch, place)), { recursive: true, mode: 0o755 });
                await writeFile(join(scratch, place), text, { mode: 0o644 });
            }
        }
        await rename(scratch, target);
        return target;
    } catch (error) {
        await rm(scratch, { recursive: true, force: true });
        throw error;
    }
}

/** Packs the repository's SDK beside the plugin, since no registry has it. */
async function vendor(folder: string, target: string): Promise<string> {
    const packing = join(dirname(folder), 'tools', 'pack.mjs');
    if (!existsSync(packing)) {
        throw new Complaint(
            `${folder} was not published, and cannot be packed from here: name where npm takes it from with --sdk`
        );
    }
    await mkdir(join(target, 'vendor'), { mode: 0o755 });
    await run(process.execPath, [packing, join(target, 'vendor'), basename(folder)], {
        timeout: 300_000
    }).catch((error: unknown) => {
        throw new Complaint(
            `The SDK could not be packed: ${(error as { stderr?: string }).stderr ?? String(error)}`,
            1,
            { cause: error }
        );
    });
    const [file] = await readdir(join(target, 'vendor'));
    return `file:vendor/${file}`;
}
