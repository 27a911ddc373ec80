/** A package as a panel takes it: the panel's own registry judges its manifest and imports its module. */
import { readFile } from 'node:fs/promises';
import { findPackageJSON } from 'node:module';
import { join } from 'node:path';

import { createRegistry, readManifest, reservedNames, resolve } from '@portico/core/plugin-runtime';
import type { PluginDefinition } from '@portico/sdk';

import { errorOf, type Finding, type Rule } from './finding.ts';

const mends: Readonly<Record<string, string>> = {
    MANIFEST_MISSING:
        'Add the field "portico" with a name and the range of SDK versions: { "name": "hello", "sdk": "^1.0.0" }',
    NAME_RESERVED: 'Choose another name',
    SDK_RANGE: 'Widen the range, or try it with a panel that has such an SDK',
    SDK_RANGE_MISSING: 'Add "sdk": "^1.0.0" to the field "portico"',
    SDK_BUNDLED: 'Make it a peer dependency, and keep bundlers from taking it in',
    SIDE_EFFECT: 'Move work into onStart',
    IMPORT_TIMEOUT: 'Import must end at once: move waiting into onStart',
    ENTRY_MISSING: 'Build the plugin first (npm run build), or correct "exports"',
    DEFINITION_MISSING: 'export default definePlugin({ … })'
};

/** What this panel says of a manifest before any code runs; empty when it takes it. */
export async function judgeManifest(packageJson: unknown): Promise<readonly Finding[]> {
    const host = await findHost();
    const judged = readManifest(packageJson, reservedNames, host.sdk);
    if ('fault' in judged) {
        return [refusal('manifest', judged.fault)];
    }
    // The plugins that it requires are not here: the only question is whether it works with this panel.
    const { plugin } = judged;
    const alone = { ...plugin, manifest: { ...plugin.manifest, requires: {} } };
    return resolve([alone], host).unresolved.map((each) => refusal('manifest', each));
}

/**
 * Imports a package that was judged: the first code of the plugin that runs.
 *
 * @param folder - real path of the package
 * @param dataDir - a folder that the registry may write to
 */
export async function importPlugin(folder: string, dataDir: string): Promise<PluginDefinition | Finding> {
    const host = await findHost();
    const registry = await createRegistry({
        dataDir,
        registryUrl: 'http://127.0.0.1:9',
        hmacKey: new Uint8Array(32),
        reserved: reservedNames,
        host,
        log: { info: () => undefined, warn: () => undefined }
    });
    const result = readManifest(await readPackageJson(folder), reservedNames, host.sdk);
    const loaded = await registry.load({ origin: 'folder', folder, lock: null, result });
    return 'failure' in loaded ? refusal('import', loaded.failure) : loaded.definition;
}

/** @throws Error when there is no package.json, or none that can be read */
export async function readPackageJson(folder: string): Promise<Readonly<Record<string, unknown>>> {
    return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Readonly<
        Record<string, unknown>
    >;
}

async function findHost(): Promise<{ readonly sdk: string; readonly node: string }> {
    const { version } = JSON.parse(
        await readFile(findPackageJSON('@portico/sdk', import.meta.url) ?? '', 'utf8')
    ) as { readonly version: string };
    return { sdk: version, node: process.versions.node };
}

function refusal(
    rule: Rule,
    { code, message }: { readonly code: string; readonly message: string }
): Finding {
    const mend = mends[code] ?? 'See what the message says; docs/plugins/reference.md lists the codes';
    return errorOf(rule, code, message, mend);
}
