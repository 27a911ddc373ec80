// Puts the panel and the libraries that it loads into a few files: `core/.bundle`. Node needs twice the processor time to load 1,400 modules.
// `tools/setup.mjs` calls it when the sources have changed. What is not in the bundle runs from the sources: child processes and threads,
// the command line, tests that call the core's modules.

import { readdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

import { rolldown } from 'rolldown';

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const TARGET = join(ROOT, 'core', '.bundle');
const ENTRY = 'core/src/bundled.ts';
const KEPT_MS = 24 * 3_600_000;

// They bring binaries, or start a thread by a path beside them.
const PACKAGES_WITH_FILES = [/^better-sqlite3$/, /^@node-rs\//, /^@lydell\/node-pty$/, /^pino$/];

// A module finds other files by its own address: it keeps the one of its source.
const sourceAddresses = {
    name: 'source-addresses',
    transform: {
        filter: { code: /import\.meta\.url/ },
        handler: (code, id) =>
            id === join(ROOT, ENTRY)
                ? undefined
                : code.replaceAll(
                      'import.meta.url',
                      `new URL(${JSON.stringify(relative(TARGET, id))}, import.meta.url).href`
                  )
    }
};

const began = Date.now();
const bundle = await rolldown({
    cwd: ROOT,
    input: { main: ENTRY, sdk: 'sdk/src/index.ts', 'sdk-db': 'sdk/src/db.ts' },
    platform: 'node',
    // A module may be imported for what it does; an export that is left out saves nothing.
    treeshake: false,
    resolve: { conditionNames: ['portico-source', 'node', 'import'] },
    external: PACKAGES_WITH_FILES,
    plugins: [sourceAddresses]
});
const { output } = await bundle.write({ dir: TARGET, format: 'esm' });
await bundle.close();

// A panel that still runs may load a part of its own bundle later.
const written = new Set(output.map(({ fileName }) => fileName));
for (const name of readdirSync(TARGET).filter((each) => each.endsWith('.js') && !written.has(each))) {
    const path = join(TARGET, name);
    if (began - statSync(path).mtimeMs > KEPT_MS) {
        rmSync(path);
    }
}
