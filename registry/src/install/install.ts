/** From a name or an archive to a folder that may be loaded: in a staging folder first, then in one step where it stays. */
import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import validRange from 'semver/ranges/valid.js';

import { InstallFailure, type StageFailure } from '../failure.ts';
import { bundledCopy } from '../load/copies.ts';
import { type LockFile, pluginsFolder } from '../lock/lock.ts';
import { hashTree, syncFolder, TreeError } from '../lock/tree.ts';
import { type PluginPackage, readManifest } from '../manifest.ts';
import { assertGoing, runJob } from '../npm/child.ts';
import type { InstallJob } from '../npm/job.ts';
import type { Installed, InstallLimits, InstallOptions, InstallSource, RegistryOptions } from '../ports.ts';
import { hostConflict } from '../resolve/resolve.ts';
import { addressOf } from './address.ts';

/** Where installs in progress lie, below the folder of plugins. What is in here is never loaded. */
export const stagingName = '.staging';

const npmName = /^(?:@[a-z0-9~][a-z0-9._~-]*\/)?[a-z0-9~][a-z0-9._~-]*$/i;
const longestName = 214;
const largestManifest = 1024 * 1024;

/** @throws InstallFailure with nothing changed */
export async function install(
    source: InstallSource,
    {
        dataDir,
        hostSdk,
        registry,
        limits,
        lock
    }: {
        readonly dataDir: string;
        /** Folder of the SDK that the panel runs with. */
        readonly hostSdk: string;
        readonly registry: RegistryOptions;
        readonly limits: InstallLimits;
        readonly lock: LockFile;
    },
    { onPhase, signal }: InstallOptions
): Promise<Installed> {
    assertGoing(signal);
    const root = join(dataDir, pluginsFolder);
    const staging = join(root, stagingName, randomUUID());
    await mkdir(staging, { recursive: true, mode: 0o700 });
    try {
        const job: InstallJob = {
            kind: 'install',
            staging,
            ...(await addressOf(registry)),
            host: registry.host,
            reserved: [...registry.reserved],
            limits,
            source: await jobSource(source, staging, limits)
        };
        const fetched = await runJob(job, {
            ...(onPhase === undefined ? {} : { onPhase }),
            ...(signal === undefined ? {} : { signal })
        });
        onPhase?.('inspect');
        const folder = join(staging, 'package');
        const plugin = await inspect(folder, registry, hostSdk);
        const tree = await hashTree(folder, { sync: true }).catch((error: unknown) => {
            throw error instanceof TreeError ? new InstallFailure('ARCHIVE_REFUSED', error.message) : error;
        });
        assertGoing(signal);
        onPhase?.('commit');
        const { name } = plugin.manifest;
        const { default: ssri } = await import('ssri');
        const digest = ssri.parse(fetched.integrity)?.hexDigest() ?? '';
        const place = `${name}/${plugin.version}-${digest.slice(0, 8)}-${await lock.serial()}`;
        await mkdir(join(root, name), { recursive: true, mode: 0o700 });
        await rename(folder, join(root, place));
        await syncFolder(join(root, name));
        await syncFolder(root);
        return {
            name,
            package: plugin.package,
            version: plugin.version,
            integrity: fetched.integrity,
            tree,
            folder: place,
            signature: fetched.signature,
            installedAt: new Date().toISOString(),
            path: join(root, place),
            plugin,
            dependencies: fetched.dependencies,
            provenance: fetched.provenance
        };
    } catch (error) {
        throw isFull(error)
            ? new InstallFailure('STORAGE_FULL', 'There is no space left for it', { cause: error })
            : error;
    } finally {
        await rm(staging, { recursive: true, force: true, maxRetries: 3 }).catch((error: unknown) =>
            registry.log.warn(
                { err: error, staging },
                'What is left of an install could not be deleted; the next start deletes it'
            )
        );
    }
}

async function jobSource(
    source: InstallSource,
    staging: string,
    limits: InstallLimits
): Promise<InstallJob['source']> {
    const integrity = source.integrity ?? null;
    const { default: ssri } = await import('ssri'); // only installing needs it
    if (integrity !== null && ssri.parse(integrity) === null) {
        throw new InstallFailure(
            'INTEGRITY_MISMATCH',
            `${JSON.stringify(integrity)} is no integrity (sha512-…)`
        );
    }
    if ('tarball' in source) {
        if (source.tarball.byteLength > limits.archiveBytes) {
            throw new InstallFailure(
                'ARCHIVE_REFUSED',
                `The upload is larger than ${limits.archiveBytes} bytes`
            );
        }
        const archive = join(staging, 'upload.tgz');
        await writeFile(archive, source.tarball);
        return { archive, integrity };
    }
    if (source.package.length > longestName || !npmName.test(source.package)) {
        throw new InstallFailure(
            'SPEC_REFUSED',
            `${JSON.stringify(source.package)} is not the name of a package in a registry`
        );
    }
    const version = source.version ?? null;
    // A range, or a word without anything that could make it a path, an address or an alias.
    if (version !== null && validRange(version) === null && !/^[a-z][a-z0-9._-]{0,63}$/i.test(version)) {
        throw new InstallFailure(
            'SPEC_REFUSED',
            `${JSON.stringify(version)} is not a version, a range or a tag`
        );
    }
    return { package: source.package, version, integrity };
}

/** The stages that need no code of the package: they look at it here, as they will at the next boot. */
async function inspect(
    folder: string,
    { reserved, host }: RegistryOptions,
    hostSdk: string
): Promise<PluginPackage> {
    const text = await readFile(join(folder, 'package.json'), 'utf8');
    const read = readManifest(text.length > largestManifest ? null : JSON.parse(text), reserved, host.sdk);
    if ('fault' in read) {
        throw refused({ stage: 'discovered', ...read.fault });
    }
    const conflict = hostConflict(read.plugin, host);
    if (conflict !== null) {
        throw refused({ stage: 'resolved', ...conflict });
    }
    const copy = await bundledCopy(folder, hostSdk, { deep: true });
    if (copy !== null) {
        throw refused({ stage: 'loaded', code: 'SDK_BUNDLED', message: copy });
    }
    return read.plugin;
}

function refused(failure: StageFailure): InstallFailure {
    return new InstallFailure('PACKAGE_REFUSED', failure.message, { failure });
}

function isFull(error: unknown): boolean {
    return ['ENOSPC', 'EDQUOT'].includes((error as { code?: string } | null)?.code ?? '');
}
