/** Supplies the panel's own SDK to every plugin that is loaded, wherever it lies. */
import { lstat, mkdir, readlink, realpath, rename, rm, symlink } from 'node:fs/promises';
import { findPackageJSON, registerHooks } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

const sdk = '@portico/sdk';
const freshKey = 'portico-fresh';

/** Addresses of the folders that plugins were loaded from, each with a slash at its end. */
const folders = new Set<string>();
let isHooked = false;
/** Addresses of the panel's own modules in a bundle, by what a plugin imports. */
const bundled = new Map<string, string>();

/** Tells where the modules lie that plugins share with the panel, for a panel that runs from a bundle: its copies are the ones in it. */
export function supplyModules(modules: Readonly<Record<string, string>>): void {
    Object.entries(modules).forEach(([specifier, url]) => bundled.set(specifier, url));
}

/** Real path of the SDK that this process runs with. */
export async function hostSdkFolder(): Promise<string> {
    const path = findPackageJSON(sdk, import.meta.url);
    if (path === undefined) {
        throw new Error(`${sdk} is not installed beside the panel`);
    }
    return realpath(dirname(path));
}

/**
 * From now on, code below the folder that imports the SDK gets the panel's SDK, also when the author's own copy lies nearer. A module that
 * was imported as fresh (see `freshUrl`) imports fresh copies of the modules in its own folder too.
 */
export function supplySdk(folder: string): void {
    folders.add(`${pathToFileURL(folder).href}/`);
    if (isHooked) {
        return;
    }
    isHooked = true;
    const here = import.meta.url;
    registerHooks({
        resolve(specifier, context, nextResolve) {
            const parent = context.parentURL;
            const home = parent === undefined ? undefined : homeOf(parent);
            if (parent === undefined || home === undefined) {
                return nextResolve(specifier, context);
            }
            const url = bundled.get(specifier);
            if (url !== undefined) {
                return { url, format: 'module', shortCircuit: true };
            }
            if (specifier === sdk || specifier.startsWith(`${sdk}/`)) {
                return nextResolve(specifier, { ...context, parentURL: here });
            }
            const resolved = nextResolve(specifier, context);
            const fresh = new URL(parent).searchParams.get(freshKey);
            if (
                fresh === null ||
                !resolved.url.startsWith(home) ||
                resolved.url.slice(home.length).startsWith('node_modules/') ||
                resolved.format === 'commonjs'
            ) {
                return resolved;
            }
            return { ...resolved, url: freshUrl(resolved.url, fresh) };
        }
    });
}

/** The same module under another address: Node keeps the error of a module that threw under its first address. */
export function freshUrl(url: string, mark: string): string {
    const fresh = new URL(url);
    fresh.searchParams.set(freshKey, mark);
    return fresh.href;
}

function homeOf(url: string): string | undefined {
    for (const folder of folders) {
        if (url.startsWith(folder)) {
            return folder;
        }
    }
    return undefined;
}

/** Makes one link to the SDK beside the installed packages, for processes and threads that load them without this file. */
export async function linkSdk(root: string, target: string): Promise<void> {
    const scope = join(root, 'node_modules', '@portico');
    const link = join(scope, 'sdk');
    await mkdir(scope, { recursive: true, mode: 0o700 });
    if ((await readlink(link).catch(() => null)) === target) {
        return;
    }
    if ((await lstat(link).catch(() => null))?.isDirectory() === true) {
        await rm(link, { recursive: true });
    }
    const next = `${link}.next`;
    await rm(next, { force: true });
    await symlink(target, next, 'dir');
    await rename(next, link);
}
