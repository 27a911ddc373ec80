#!/usr/bin/env node

// The `portico-backup` command: what was built, or in the repository the sources. It needs no panel that runs.

import { existsSync } from 'node:fs';

const source = new URL('../src/cli/main.ts', import.meta.url);
const built = new URL('../dist/cli/main.js', import.meta.url);

if (Number(process.versions.node.split('.')[0]) < 24) {
    process.stderr.write(`portico-backup needs Node 24 or newer, this is ${process.version}\n`);
    process.exit(1);
}
const { main } = await import((existsSync(source) ? source : built).href);
process.exitCode = await main(process.argv.slice(2));
