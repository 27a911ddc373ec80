// Builds what the tests of a plugin run on: the SDK, the registry, the core's plugin runtime and the test kit, each into its `dist`.
//
// `portico plugin create` runs this in a checkout, where the author waits for it. So it reads the sources once, for all four packages
// together, and does not check types: `npm run types` does. `npm run build` builds everything, with checks and source maps.

import { existsSync, globSync, mkdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import ts from 'typescript';

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const ENTRIES = [
    'sdk/src/index.ts',
    'sdk/src/db.ts',
    'sdk/src/host.ts',
    'sdk/src/page/page.ts',
    'sdk/src/page/model.ts',
    'registry/src/npm/libraries.d.ts',
    'registry/src/index.ts',
    'core/src/plugin-runtime.ts',
    'sdk/testing/src/panel/worker.ts',
    'sdk/testing/src/index.ts'
];
// Written when a build is complete, and as old as its beginning.
const STAMP = join(ROOT, 'node_modules', '.portico-kit');

if (!isBuilt()) {
    const started = new Date();
    const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.base.json'), ts.sys.readFile);
    const { options } = ts.convertCompilerOptionsFromJson(
        {
            ...config.compilerOptions,
            noCheck: true,
            stripInternal: true,
            sourceMap: false,
            inlineSources: false
        },
        ROOT
    );
    const program = ts.createProgram(
        ENTRIES.map((path) => join(ROOT, path)),
        options
    );
    program.emit(undefined, (path, text) => {
        const built = join(ROOT, path.slice(ROOT.length).replace('/src/', '/dist/'));
        mkdirSync(dirname(built), { recursive: true });
        writeFileSync(built, text);
    });
    writeFileSync(STAMP, '');
    utimesSync(STAMP, started, started);
}

function isBuilt() {
    const results = ENTRIES.filter((path) => !path.endsWith('.d.ts')).map((path) =>
        path.replace('/src/', '/dist/').replace(/ts$/, 'js')
    );
    if (!existsSync(STAMP) || !results.every((path) => existsSync(join(ROOT, path)))) {
        return false;
    }
    const { mtimeMs } = statSync(STAMP);
    return ['sdk/src', 'registry/src', 'core/src', 'sdk/testing/src'].every((folder) =>
        globSync('**/*.ts', { cwd: join(ROOT, folder) }).every(
            (path) => statSync(join(ROOT, folder, path)).mtimeMs < mtimeMs
        )
    );
}
