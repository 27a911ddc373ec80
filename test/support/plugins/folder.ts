/** A folder with plugins that a test writes, for PORTICO_PLUGIN_DIRS. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { pluginPackage } from '../registry/packages.ts';

export interface PluginFolder {
    readonly path: string;
    /** Writes a package. @param code - code of its module. `manifest` and `more` replace fields of its package.json */
    write(
        name: string,
        code: string,
        options?: {
            readonly version?: string;
            readonly manifest?: Readonly<Record<string, unknown>>;
            readonly package?: string;
            readonly folder?: string;
        }
    ): string;
    /** Removes a package. */
    drop(name: string): void;
    remove(): void;
}

export function createPluginFolder(): PluginFolder {
    const path = mkdtempSync(join(tmpdir(), 'portico-extensions-'));
    return {
        path,
        write(
            name,
            code,
            {
                version = '1.0.0',
                manifest = {},
                package: packageName = `@acme/portico-plugin-${name}`,
                folder = name
            } = {}
        ) {
            const place = join(path, folder);
            mkdirSync(place, { recursive: true });
            writeFileSync(
                join(place, 'package.json'),
                JSON.stringify(
                    pluginPackage(name, version, {
                        name: packageName,
                        portico: { name, sdk: '^1.0.0', ...manifest }
                    })
                )
            );
            writeFileSync(join(place, 'index.js'), code);
            return place;
        },
        drop: (name) => rmSync(join(path, name), { recursive: true, force: true }),
        remove: () => rmSync(path, { recursive: true, force: true })
    };
}

/** The code of a module that defines a plugin. @param setup - body of `setup(ctx)` @param head - code before the definition @param more - other members of the definition */
export function pluginModule(
    setup: string,
    { head = '', more = '' }: { readonly head?: string; readonly more?: string } = {}
): string {
    return `import { contract, definePlugin, joi } from '@portico/sdk';\n${head}\nexport default definePlugin({ ${more}\nsetup(ctx) {\n${setup}\n} });\n`;
}

/** The code of a route that answers 200. */
export const helloRoute =
    "ctx.route({ method: 'GET', path: '/hello', access: 'read', handler: () => ({ text: 'Hello' }) });";
