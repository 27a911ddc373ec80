/** The npm registry as the panel sees it: listings, signatures and archives. Runs in a child process only. */
import { createReadStream } from 'node:fs';

import npa from 'npm-package-arg';
import registryFetch from 'npm-registry-fetch';
import pacote, { type FetchOptions, type PickedManifest } from 'pacote';
import ssri from 'ssri';

import { InstallFailure } from '../failure.ts';
import { isObject } from '../manifest.ts';
import type { InstallLimits, Signature } from '../ports.ts';
import type { Listing } from '../resolve/choose.ts';
import { type Budget, inspectArchive } from './archive.ts';
import type { Access } from './job.ts';

/** One version of a package, verified as far as the registry's keys tell. */
export interface Verified {
    readonly package: string;
    readonly version: string;
    readonly resolved: string;
    readonly integrity: string;
    readonly signature: Signature;
    readonly provenance: string | null;
}

/** What a job can ask of the registry. */
export interface Client {
    /** For npm's libraries. */
    readonly options: FetchOptions;
    listing(name: string): Promise<Listing>;
    /** Asks for one version, by its exact number, and checks its signatures. */
    verified(name: string, version: string): Promise<Verified>;
    /** Fetches an archive into the cache and checks it. Refuses an archive with another integrity. */
    fetch(wanted: Verified): Promise<void>;
    /** Names of packages with a keyword; null when the registry answers no search. */
    search(keyword: string, text: string | null): Promise<readonly string[] | null>;
}

const retries = 1;

/** Creates the client of one registry. @param cache - folder for fetched archives; empty for none */
export function createClient(access: Access, cache: string, budget: Budget): Client {
    const url = new URL(access.registryUrl.endsWith('/') ? access.registryUrl : `${access.registryUrl}/`);
    const key = `//${url.host}${url.pathname}`;
    const base: FetchOptions = {
        registry: url.href,
        cache,
        timeout: access.limits.idleMs,
        fetchRetries: retries,
        retry: { retries },
        packumentCache: new Map(),
        fullMetadata: true,
        ...(access.registryToken === null ? {} : { [`${key}:_authToken`]: access.registryToken })
    };
    // Fetched once, and only when a package comes from the registry: an upload without dependencies needs no keys.
    let asked: Promise<readonly object[] | null> | undefined;
    const ask = async (text: string, keyword: string): Promise<readonly string[] | null> => {
        try {
            const { objects } = (await registryFetch.json('/-/v1/search', {
                ...base,
                query: { text, size: '250' }
            })) as { objects?: unknown };
            return Array.isArray(objects) ? namesWith(objects, keyword) : null;
        } catch {
            return null;
        }
    };
    return {
        options: base,
        async listing(name) {
            const { versions, 'dist-tags': tags } = await pacote
                .packument(registryName(name), base)
                .catch((error: unknown) => reject(error, name));
            return {
                versions: isObject(versions) ? versions : {},
                tags: isObject(tags) ? (tags as Record<string, string>) : {}
            };
        },
        async verified(name, version) {
            const keys = await (asked ??= publishedKeys(base));
            const options: FetchOptions =
                keys === null ? base : { ...base, verifySignatures: true, [`${key}:_keys`]: keys };
            const manifest = await pacote
                .manifest(`${registryName(name)}@${version}`, options)
                .catch((error: unknown) => reject(error, `${name}@${version}`));
            return verifiedOf(manifest, name, version, keys !== null);
        },
        async fetch(wanted) {
            const label = `${wanted.package} ${wanted.version}`;
            await pacote.tarball
                .stream(
                    `${wanted.package}@${wanted.version}`,
                    (stream) => inspectArchive(stream, label, access.limits, budget),
                    { ...base, resolved: wanted.resolved, integrity: wanted.integrity }
                )
                .catch((error: unknown) => reject(error, label));
        },
        async search(keyword, text) {
            // Not every registry knows `keywords:`; some answer nothing to it, and everything to no text at all.
            let answered = false;
            for (const query of [
                `keywords:${keyword} ${text ?? ''}`.trimEnd(),
                text ?? '',
                text ?? keyword
            ]) {
                const found = await ask(query, keyword);
                answered ||= found !== null;
                if (found !== null && found.length > 0) {
                    return found;
                }
            }
            return answered ? [] : null;
        }
    };
}

/** Describes an uploaded archive from its own package.json. An upload has no signature. */
export async function inspectUpload(path: string, limits: InstallLimits, budget: Budget): Promise<void> {
    await inspectArchive(createReadStream(path), 'the upload', limits, budget);
}

/** The name, when it is one that a registry may have. */
function registryName(name: string): string {
    try {
        const { type, name: parsed } = npa(name);
        if ((type === 'range' || type === 'tag') && parsed === name) {
            return name;
        }
    } catch {
        /* no name at all */
    }
    throw new InstallFailure(
        'SPEC_REFUSED',
        `${JSON.stringify(name)} is not the name of a package in a registry`
    );
}

function verifiedOf(manifest: PickedManifest, name: string, version: string, hasKeys: boolean): Verified {
    const label = `${name} ${version}`;
    if (manifest.name !== name || manifest.version !== version) {
        throw new InstallFailure(
            'INTEGRITY_MISMATCH',
            `The registry was asked for ${label} and answered ${manifest.name} ${manifest.version}`
        );
    }
    if (manifest._integrity === undefined) {
        throw new InstallFailure(
            'INTEGRITY_MISMATCH',
            `The registry does not say what the archive of ${label} must be like (no integrity)`
        );
    }
    const signed = (manifest._signatures?.length ?? 0) > 0;
    if (hasKeys && !signed) {
        throw new InstallFailure(
            'SIGNATURE_INVALID',
            `The registry publishes keys, but ${label} is not signed`
        );
    }
    return {
        package: name,
        version,
        resolved: manifest._resolved,
        integrity: manifest._integrity,
        signature: hasKeys ? 'verified' : 'unsigned',
        provenance: manifest.dist?.attestations?.provenance?.predicateType ?? null
    };
}

function namesWith(objects: readonly unknown[], keyword: string): readonly string[] {
    return objects
        .map((each) => (each as { package?: { name?: unknown; keywords?: unknown } } | null)?.package ?? {})
        .filter(({ keywords }) => !Array.isArray(keywords) || keywords.includes(keyword))
        .map(({ name }) => name)
        .filter((name) => typeof name === 'string');
}

/** Keys that the registry signs with; null when it publishes none. */
async function publishedKeys(options: FetchOptions): Promise<readonly object[] | null> {
    try {
        const { keys } = (await registryFetch.json('/-/npm/v1/keys', options)) as { keys?: unknown };
        return Array.isArray(keys) && keys.length > 0
            ? (keys as { readonly key: string }[]).map((each) => ({
                  ...each,
                  pemkey: `-----BEGIN PUBLIC KEY-----\n${each.key}\n-----END PUBLIC KEY-----`
              }))
            : null;
    } catch (error) {
        const { statusCode, type } = error as { statusCode?: number; type?: string };
        if (
            (statusCode !== undefined && statusCode >= 400 && statusCode < 500 && statusCode !== 429) ||
            type === 'invalid-json' ||
            error instanceof SyntaxError
        ) {
            return null;
        }
        return reject(error, 'its keys');
    }
}

/** Says in our words what npm's libraries found. */
export function reject(error: unknown, what: string): never {
    if (error instanceof InstallFailure) {
        throw error;
    }
    const { code = '', message } = error as { code?: string; message: string };
    if (['E404', 'ETARGET', 'ENOVERSIONS', 'E403'].includes(code)) {
        throw new InstallFailure('PACKAGE_NOT_FOUND', `The registry has no ${what}`, { cause: error });
    }
    if (['EINTEGRITY', 'EMANIFESTMISMATCH', 'Z_DATA_ERROR'].includes(code)) {
        throw new InstallFailure(
            'INTEGRITY_MISMATCH',
            `What came for ${what} is not what the registry named`,
            { cause: error }
        );
    }
    if (['EINTEGRITYSIGNATURE', 'EMISSINGSIGNATUREKEY', 'EEXPIREDSIGNATUREKEY'].includes(code)) {
        throw new InstallFailure(
            'SIGNATURE_INVALID',
            `The signature of ${what} is not one of the registry's: ${message}`,
            { cause: error }
        );
    }
    if (
        [
            'EALLOWGIT',
            'EALLOWREMOTE',
            'EALLOWFILE',
            'EALLOWDIRECTORY',
            'EUNSUPPORTEDPROTOCOL',
            'EINVALIDPACKAGENAME',
            'EBADPLATFORM'
        ].includes(code)
    ) {
        throw new InstallFailure('DEPENDENCY_REFUSED', message, { cause: error });
    }
    if (['ENOSPC', 'EDQUOT'].includes(code)) {
        throw new InstallFailure('STORAGE_FULL', 'There is no space left for it', { cause: error });
    }
    throw new InstallFailure('REGISTRY_UNREACHABLE', `The registry did not deliver ${what}: ${message}`, {
        cause: error
    });
}

/** Whether the archive is what the caller named. */
export function assertIntegrity(actual: string, wanted: string, label: string): void {
    const [one, two] = [ssri.parse(actual), ssri.parse(wanted)];
    if (one === null || two === null || one.match(two) === false || one.match(two) === null) {
        throw new InstallFailure('INTEGRITY_MISMATCH', `${label} has the integrity ${actual}, not ${wanted}`);
    }
}
