/**
 * The child process that speaks to the npm registry and unpacks what came: one job, one answer, then it ends. Apart from the panel, so that
 * a hostile archive or answer can fill no memory of it and hold no request up, and so that giving up means killing it.
 */
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

import pacote from 'pacote';
import ssri from 'ssri';

import { InstallFailure } from '../failure.ts';
import { choose } from '../resolve/choose.ts';
import { catalogue } from './catalogue.ts';
import { assertIntegrity, type Client, createClient, inspectUpload, reject } from './client.ts';
import { installDependencies, type Wishes } from './dependencies.ts';
import type { InstallJob, InstallResult, Job, Message } from './job.ts';

process.on('disconnect', () => process.exit(1)); // the panel is gone
process.once('message', (job: Job) => {
    void run(job).then((message) => process.send?.(message, () => process.disconnect()));
});

async function run(job: Job): Promise<Message> {
    try {
        return { done: job.kind === 'install' ? await install(job) : await catalogue(job) };
    } catch (error) {
        if (
            (error instanceof TypeError || error instanceof ReferenceError) &&
            (error as { code?: unknown }).code === undefined
        ) {
            throw error; // a mistake of ours, not of the registry's
        }
        const { code, message } = error instanceof InstallFailure ? error : asFailure(error);
        return { failed: { code, message } };
    }
}

function asFailure(error: unknown): InstallFailure {
    try {
        return reject(error, 'what was asked for');
    } catch (failure) {
        return failure as InstallFailure;
    }
}

function say(message: Message): void {
    process.send?.(message);
}

async function install(job: InstallJob): Promise<InstallResult> {
    const { staging, source, limits } = job;
    const [cache, folder] = [join(staging, 'cache'), join(staging, 'package')];
    const budget = { bytes: limits.totalBytes };
    say({ phase: 'resolve' });
    const client = createClient(job, cache, budget);
    const root =
        'archive' in source
            ? await upload(job, source, folder, client)
            : await named(job, source, folder, client);
    const wishes = await readWishes(folder);
    const dependencies = await installDependencies(
        client,
        wishes,
        folder,
        join(staging, 'dependencies'),
        limits.packages,
        (phase) => say({ phase })
    );
    return { ...root, package: wishes.name, version: wishes.version, dependencies };
}

type Root = Pick<InstallResult, 'integrity' | 'signature' | 'provenance'>;

async function named(
    job: InstallJob,
    source: { readonly package: string; readonly version: string | null; readonly integrity: string | null },
    folder: string,
    client: Client
): Promise<Root> {
    const choice = choose(
        await client.listing(source.package),
        source.version,
        job.host,
        new Set(job.reserved)
    );
    if (choice.newest === null) {
        throw new InstallFailure(
            'PACKAGE_NOT_FOUND',
            `The registry has no ${source.package} ${source.version ?? ''}`.trimEnd()
        );
    }
    // A version that was asked for and does not fit is fetched all the same: what is in its archive says why, not what the registry says of it.
    const version = choice.plugin?.version ?? choice.newest;
    const verified = await client.verified(source.package, version);
    if (source.integrity !== null) {
        assertIntegrity(verified.integrity, source.integrity, `${source.package} ${version}`);
    }
    say({ phase: 'fetch' });
    await client.fetch(verified);
    const { integrity } = await pacote
        .extract(`${source.package}@${version}`, folder, {
            ...client.options,
            resolved: verified.resolved,
            integrity: verified.integrity,
            offline: true
        })
        .catch((error: unknown) => reject(error, `${source.package} ${version}`));
    const { name, version: inside } = await readWishes(folder);
    if (name !== source.package || inside !== version) {
        throw new InstallFailure(
            'INTEGRITY_MISMATCH',
            `The archive of ${source.package} ${version} holds ${name} ${inside}`
        );
    }
    return {
        integrity: strongest(integrity),
        signature: verified.signature,
        provenance: verified.provenance
    };
}

async function upload(
    job: InstallJob,
    source: { readonly archive: string; readonly integrity: string | null },
    folder: string,
    client: Client
): Promise<Root> {
    say({ phase: 'fetch' });
    const integrity = ssri.fromData(await readFile(source.archive), { algorithms: ['sha512'] }).toString();
    if (source.integrity !== null) {
        assertIntegrity(integrity, source.integrity, 'The upload');
    }
    await inspectUpload(source.archive, job.limits, { bytes: job.limits.totalBytes });
    await pacote.extract(`file:${source.archive}`, folder, {
        ...client.options,
        integrity,
        resolved: source.archive
    });
    return { integrity, signature: 'uploaded', provenance: null };
}

/** The strongest hash that is known, alone. */
function strongest(integrity: string): string {
    return ssri.parse(integrity, { single: true })?.toString() ?? integrity;
}

async function readWishes(folder: string): Promise<Wishes> {
    await mkdir(folder, { recursive: true });
    let packageJson: unknown;
    try {
        packageJson = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
    } catch (error) {
        throw new InstallFailure('ARCHIVE_REFUSED', 'The archive holds no package.json that can be read', {
            cause: error
        });
    }
    const { name, version, dependencies, optionalDependencies, bundleDependencies, bundledDependencies } =
        (packageJson ?? {}) as Readonly<Record<string, unknown>>;
    if (typeof name !== 'string' || typeof version !== 'string') {
        throw new InstallFailure(
            'ARCHIVE_REFUSED',
            'The package.json in the archive has no name or no version'
        );
    }
    if (
        [bundleDependencies, bundledDependencies].some(
            (value) => value === true || (Array.isArray(value) && value.length > 0)
        )
    ) {
        throw new InstallFailure(
            'DEPENDENCY_REFUSED',
            `${name} brings copies of its own dependencies (bundled)`
        );
    }
    return {
        name,
        version,
        dependencies: (dependencies ?? {}) as Record<string, string>,
        optionalDependencies: (optionalDependencies ?? {}) as Record<string, string>
    };
}
