// Puts the panel and the libraries that it loads into a few files: `core/.bundle`. Node needs twice the processor time to load 1,400 modules.
// `tools/setup.mjs` calls it when the sources have changed. What is not in the bundle runs from the sources: child processes and threads,
// the command line, tests that call the core's modules.

import {
    existsSync,
    readdirSync,
    readFileSync,
    renameSync,
    rmSync,
    statSync,
    utimesSync,
    writeFileSync
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

import { rolldown } from 'rolldown';

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const BUNDLES = join(ROOT, 'core', '.bundle');
// It imports the newest bundle, each of which has a folder of its own.
const MAIN = join(BUNDLES, 'main.js');
const ENTRY = join(ROOT, 'core/src/bundled.ts');
const KEPT_MS = 24 * 3_600_000;

// They bring binaries, or start a thread by a path beside them.
const PACKAGES_WITH_FILES = [/^better-sqlite3$/, /^@node-rs\//, /^@lydell\/node-pty$/, /^pino$/];

const name = Date.now().toString(36);
await build(join(BUNDLES, name));
const [, former] = /'\.\/(\w+)\//.exec(existsSync(MAIN) ? readFileSync(MAIN, 'utf8') : '') ?? [];
writeFileSync(`${MAIN}.next`, `import './${name}/main.js';\n`);
renameSync(`${MAIN}.next`, MAIN);
removeOld(former);

async function build(target) {
    // A module finds other files by its own address: it keeps the one of its source.
    const sourceAddresses = {
        name: 'source-addresses',
        transform: {
            filter: { code: /import\.meta\.url/ },
            handler: (code, id) =>
                id === ENTRY
                    ? undefined
                    : code.replaceAll(
                          'import.meta.url',
                          `new URL(${JSON.stringify(relative(target, id))}, import.meta.url).href`
                      )
        }
    };
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
    await bundle.write({ dir: target, format: 'esm' });
    await bundle.close();
}

// A panel that still runs may load a part of its own bundle later: a bundle stays for a day after the next one took its place.
function removeOld(replaced) {
    const now = Date.now();
    if (replaced !== undefined && existsSync(join(BUNDLES, replaced))) {
        utimesSync(join(BUNDLES, replaced), now / 1000, now / 1000);
    }
    for (const folder of readdirSync(BUNDLES, { withFileTypes: true }).filter((entry) =>
        entry.isDirectory()
    )) {
        const path = join(BUNDLES, folder.name);
        if (folder.name !== name && now - statSync(path).mtimeMs > KEPT_MS) {
            rmSync(path, { recursive: true });
        }
    }
}
