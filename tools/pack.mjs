// Builds the packages and packs each as it is published: `npm run release [-- <folder for the tarballs> [workspace …]]`.
//
// The workspaces run unbuilt through the export condition `portico-source`, which points into `src`. That folder is not
// published, so the condition must not be either: a process that sets it would look for files that are not there.
// The workspaces are `private`, so that none is published with the condition in it; the packed ones are not.

import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { ensurePages } from './setup.mjs';

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const BIN = join(ROOT, 'node_modules', '.bin');
const CONDITION = 'portico-source';

const target = resolve(process.argv[2] ?? join(ROOT, 'dist'));
mkdirSync(target, { recursive: true });
const only = process.argv.slice(3).map((name) => join(ROOT, name));
ensurePages();
const folders = publishable().filter((folder) => only.length === 0 || only.includes(folder));
build(folders.map((folder) => join(folder, 'tsconfig.build.json')));
pack(folders).forEach((tarball) => process.stdout.write(`${tarball}\n`));

// The check of all tests checks the types; here it would take three quarters of the time.
function build(projects) {
    const { status } = spawnSync(join(BIN, 'tsc'), ['-b', '--noCheck', ...projects], {
        cwd: ROOT,
        stdio: 'inherit'
    });
    if (status !== 0) {
        process.exit(1);
    }
}

// Every workspace that has code and says which of its files are published.
function publishable() {
    const { workspaces } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    return workspaces
        .flatMap((pattern) => globSync(`${pattern}/package.json`, { cwd: ROOT }))
        .filter((path) => JSON.parse(readFileSync(join(ROOT, path), 'utf8')).files !== undefined)
        .map((path) => join(ROOT, dirname(path)))
        .filter((folder) => globSync('src/*.ts', { cwd: folder }).length > 0);
}

// npm decides what belongs into a package; its package.json is rewritten in a copy, never in the working tree.
function pack(packages) {
    const scratch = mkdtempSync(join(tmpdir(), 'portico-pack-'));
    try {
        const copies = npmPack(packages, scratch).map((tarball, index) => {
            const copy = join(scratch, String(index));
            mkdirSync(copy);
            execFileSync('tar', ['-xzf', tarball, '-C', copy, '--strip-components=1']);
            const manifest = published(JSON.parse(readFileSync(join(copy, 'package.json'), 'utf8')));
            writeFileSync(join(copy, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
            copyFileSync(join(ROOT, 'LICENSE'), join(copy, 'LICENSE'));
            return copy;
        });
        return npmPack(copies, target);
    } finally {
        rmSync(scratch, { recursive: true, force: true });
    }
}

// One npm for all: to start it takes longer than to pack.
function npmPack(packages, destination) {
    const output = execFileSync(
        'npm',
        [
            'pack',
            '--json',
            '--ignore-scripts',
            '--loglevel=error',
            '--pack-destination',
            destination,
            ...packages
        ],
        { cwd: destination, encoding: 'utf8', maxBuffer: 1 << 26 }
    );
    return JSON.parse(output).map(({ filename }) => join(destination, filename));
}

function published({ private: _private, devDependencies: _development, scripts: _scripts, ...manifest }) {
    return manifest.exports === undefined
        ? manifest
        : { ...manifest, exports: withoutCondition(manifest.exports) };
}

function withoutCondition(value) {
    if (value === null || typeof value !== 'object') {
        return value;
    }
    return Object.fromEntries(
        Object.entries(value)
            .filter(([name]) => name !== CONDITION)
            .map(([name, entry]) => [name, withoutCondition(entry)])
    );
}
