/** The dependencies of a package: npm's Arborist chooses them, the panel allows them, and they are unpacked without another request. */
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import type { ArboristOptions, Node } from '@npmcli/arborist';
import npa from 'npm-package-arg';

import { InstallFailure } from '../failure.ts';
import type { InstallPhase } from '../ports.ts';
import { type Client, reject } from './client.ts';
import type { FetchedDependency } from './job.ts';

/** What the panel supplies; a second copy would have types, brands and connections of its own. */
const supplied = /^@portico\/|^@mikro-orm\/|^mikro-orm$/;
const atOnce = 8;

/** The fields of a package.json that decide what is installed with it. */
export interface Wishes {
    readonly name: string;
    readonly version: string;
    readonly dependencies: Readonly<Record<string, string>>;
    readonly optionalDependencies: Readonly<Record<string, string>>;
}

/**
 * Installs into `<folder>/node_modules` of the package.
 *
 * @param scratch - an empty folder beside it
 */
export async function installDependencies(
    client: Client,
    wishes: Wishes,
    folder: string,
    scratch: string,
    limit: number,
    onPhase: (phase: InstallPhase) => void
): Promise<readonly FetchedDependency[]> {
    const own = {
        name: 'portico-install',
        version: wishes.version,
        dependencies: wishes.dependencies,
        optionalDependencies: wishes.optionalDependencies
    };
    refuseSpecs(wishes.name, own);
    if (Object.keys(wishes.dependencies).length + Object.keys(wishes.optionalDependencies).length === 0) {
        onPhase('verify');
        onPhase('unpack');
        return [];
    }
    const { default: Arborist } = await import('@npmcli/arborist'); // most plugins have no use for it, and it is large
    await mkdir(scratch);
    await writeFile(join(scratch, 'package.json'), JSON.stringify(own));
    const options: ArboristOptions = {
        ...client.options,
        path: scratch,
        ignoreScripts: true,
        binLinks: false,
        audit: false,
        save: false,
        packageLock: false,
        legacyPeerDeps: true,
        omit: ['dev', 'peer'],
        allowGit: 'none',
        allowRemote: 'none',
        allowFile: 'none',
        allowDirectory: 'none'
    };
    const arborist = new Arborist(options);
    const tree = await arborist
        .buildIdealTree()
        .catch((error: unknown) => reject(error, `the dependencies of ${wishes.name}`));
    const nodes = [...tree.inventory.values()].filter((node) => !node.isProjectRoot);
    if (nodes.length + 1 > limit) {
        throw new InstallFailure(
            'DEPENDENCY_REFUSED',
            `${wishes.name} brings ${nodes.length} packages; at most ${limit - 1} are allowed`
        );
    }
    nodes.forEach(refuse);
    const needed = nodes.filter((node) => node.inert !== true);
    onPhase('verify');
    const fetched = await each(needed, async (node) => {
        const verified = await client.verified(node.packageName, node.version);
        await client.fetch(verified);
        return { package: verified.package, version: verified.version, signature: verified.signature };
    });
    onPhase('unpack');
    // Everything that is needed lies in the cache, looked through; what would have to be asked for now was not.
    arborist.options.offline = true;
    await arborist
        .reify({ ...options, offline: true })
        .catch((error: unknown) => reject(error, `the dependencies of ${wishes.name}`));
    await rm(join(scratch, 'node_modules', '.package-lock.json'), { force: true });
    await rename(join(scratch, 'node_modules'), join(folder, 'node_modules')).catch(
        (error: NodeJS.ErrnoException) => {
            if (error.code !== 'ENOENT' || nodes.length > 0) {
                throw error;
            }
        }
    );
    return fetched;
}

/** Names and ranges of a registry only: anything else is code that no registry vouches for. */
function refuse(node: Node): void {
    const label = `${node.packageName} ${node.version}`;
    const { bundleDependencies, bundledDependencies } = node.package;
    if (supplied.test(node.packageName) || supplied.test(node.name)) {
        throw new InstallFailure(
            'DEPENDENCY_REFUSED',
            `${label} is among the dependencies, but the panel supplies it: make it a peer dependency (SDK_BUNDLED)`
        );
    }
    if (
        node.isLink ||
        node.inBundle ||
        node.hasShrinkwrap ||
        isFilled(bundleDependencies) ||
        isFilled(bundledDependencies)
    ) {
        throw new InstallFailure(
            'DEPENDENCY_REFUSED',
            `${label} brings copies of its own dependencies (bundled, linked or shrink-wrapped)`
        );
    }
    if (node.name !== node.packageName) {
        throw new InstallFailure(
            'DEPENDENCY_REFUSED',
            `${label} would be installed under another name, ${node.name}`
        );
    }
    refuseSpecs(label, node.package);
}

function refuseSpecs(
    label: string,
    packageJson: { readonly dependencies?: unknown; readonly optionalDependencies?: unknown }
): void {
    for (const [name, spec] of Object.entries({
        ...(packageJson.dependencies as object),
        ...(packageJson.optionalDependencies as object)
    })) {
        const type = typeof spec === 'string' ? specType(name, spec) : 'nothing';
        if (type !== 'version' && type !== 'range' && type !== 'tag') {
            throw new InstallFailure(
                'DEPENDENCY_REFUSED',
                `${label} depends on ${name} by ${JSON.stringify(spec)} (${type}); only a version from the registry is allowed`
            );
        }
        if (supplied.test(name)) {
            throw new InstallFailure(
                'DEPENDENCY_REFUSED',
                `${label} depends on ${name}, which the panel supplies: make it a peer dependency (SDK_BUNDLED)`
            );
        }
    }
}

function specType(name: string, spec: string): string {
    try {
        return npa.resolve(name, spec).type;
    } catch {
        return 'nothing';
    }
}

function isFilled(value: unknown): boolean {
    return value === true || (Array.isArray(value) && value.length > 0);
}

/** A few at a time; the first failure ends it. */
async function each<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
    const results: R[] = [];
    const queue = items.entries();
    await Promise.all(
        Array.from({ length: Math.min(atOnce, items.length) }, async () => {
            for (const [index, item] of queue) {
                results[index] = await work(item);
            }
        })
    );
    return results;
}
