#!/usr/bin/env node

// The `portico` command. In the repository it runs the sources on the repository's own Node 24; installed from npm it
// runs what was built, on the Node that is there. Plain JavaScript, because it must still speak on a Node that is too old.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PACKAGE = dirname(dirname(fileURLToPath(import.meta.url)));
const SOURCE = join(PACKAGE, 'src', 'cli', 'portico.ts');
const BUILT = join(PACKAGE, 'dist', 'cli', 'portico.js');

const isSource = existsSync(SOURCE);
const isRecent = Number(process.versions.node.split('.')[0]) >= 24;

const flags = [
    ...(isSource ? ['--conditions=portico-source', '--disable-warning=ExperimentalWarning'] : []),
    // Half of what Node gives young objects by default: the panel takes 45 MB less, and no more processor time.
    ...(process.argv[2] === 'start' ? ['--max-semi-space-size=8'] : [])
];

if (flags.length === 0 && isRecent) {
    process.argv[1] = BUILT;
    await import(BUILT);
} else {
    const node = isRecent ? process.execPath : findNode(PACKAGE);
    if (node === undefined) {
        process.stderr.write(
            `portico needs Node 24 or newer, this is ${process.version}${isSource ? '; run `npm start` or `npm run setup` first' : ''}\n`
        );
        process.exit(1);
    }
    if (isSource) {
        // Beside the sources, so that only their owner can put code there. Without it, each start would strip the types again.
        process.env.NODE_COMPILE_CACHE ??= join(dirname(PACKAGE), 'node_modules', '.cache', 'compiled');
    }
    replace(node, [...flags, isSource ? SOURCE : BUILT, ...process.argv.slice(2)]);
}

// The Node that the dependency `node` brought, from the nearest folder upwards.
function findNode(folder) {
    const binary = join(folder, 'node_modules', '.bin', 'node');
    if (existsSync(binary)) {
        return binary;
    }
    return dirname(folder) === folder ? undefined : findNode(dirname(folder));
}

// Becomes the other process where Node can do that, so that signals and the exit code are its own; else stands in for it.
function replace(node, args) {
    if (typeof process.execve === 'function') {
        process.removeAllListeners('warning'); // execve is announced as experimental, on every call
        process.execve(node, [node, ...args], process.env);
    }
    const child = spawn(node, args, { stdio: 'inherit' });
    for (const signal of ['SIGTERM', 'SIGHUP']) {
        process.on(signal, () => child.kill(signal));
    }
    process.on('SIGINT', () => {}); // the terminal sends it to the child as well
    child.on('error', (error) => {
        process.stderr.write(`${error.message}\n`);
        process.exit(1);
    });
    child.on('exit', (code, signal) => {
        if (signal === null) {
            process.exit(code);
        }
        process.removeAllListeners(signal);
        process.kill(process.pid, signal);
    });
}
