import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import {
    createRegistry,
    InstallFailure,
    type InstallSource,
    type Registry,
    type RegistryOptions
} from '../../../registry/src/index.ts';

/** The package.json of a plugin that works. */
export function pluginPackage(
    name: string,
    version: string,
    more: Readonly<Record<string, unknown>> = {}
): Readonly<Record<string, unknown>> & { readonly name: string; readonly version: string } {
    return {
        name: `@acme/portico-plugin-${name}`,
        version,
        description: `Says ${name}`,
        type: 'module',
        exports: './index.js',
        keywords: ['portico-plugin'],
        peerDependencies: { '@portico/sdk': '^1.0.0' },
        portico: { name, sdk: '^1.0.0' },
        ...more
    };
}

/** The code of its module: a definition whose `setup` returns `text`. */
export function pluginCode(text: string, head = ''): string {
    return `${head}import { definePlugin } from '@portico/sdk';\n\nexport default definePlugin({ setup: () => ({ say: async () => ${JSON.stringify(text)} }) });\n`;
}

/** Opens a registry with a data folder of its own. */
export async function tryRegistry(
    registryUrl: string,
    more: Partial<RegistryOptions> = {}
): Promise<{
    readonly registry: Registry;
    readonly dataDir: string;
    reopen(): Promise<Registry>;
    remove(): void;
}> {
    const dataDir = more.dataDir ?? mkdtempSync(join(tmpdir(), 'portico-install-'));
    const options: RegistryOptions = {
        dataDir,
        registryUrl,
        hmacKey: new Uint8Array(32).fill(7),
        reserved: new Set(['hosts']),
        host: { sdk: '1.0.0', node: process.versions.node },
        log: { info: () => undefined, warn: () => undefined },
        ...more
    };
    return {
        registry: await createRegistry(options),
        dataDir,
        reopen: () => createRegistry(options),
        remove: () => rmSync(dataDir, { recursive: true, force: true })
    };
}

/** The code and the message of an install that is refused; `installed` when it is not. */
export async function refusal(registry: Registry, source: InstallSource): Promise<readonly [string, string]> {
    try {
        await registry.install(source);
        return ['installed', ''];
    } catch (error) {
        if (error instanceof InstallFailure) {
            return [error.failure?.code ?? error.code, error.message];
        }
        throw error;
    }
}
