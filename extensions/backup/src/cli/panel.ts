/** Asks the command `portico` to make a data folder, and to check it. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

import { run } from './program.ts';

/** @throws Error with what the command said; the data folder is then as it was */
export async function restorePanel(from: string, dataDir: string, signal: AbortSignal): Promise<void> {
    await portico(['data', 'restore', from, '--data-dir', dataDir], signal);
}

/** @throws Error with what is not whole */
export async function checkPanel(dataDir: string, signal: AbortSignal): Promise<void> {
    await portico(['data', 'check', dataDir], signal);
}

async function portico(args: readonly string[], signal: AbortSignal): Promise<void> {
    const [file, ...first] = commandOf();
    const { code, stdout, stderr } = await run(file, [...first, ...args], { signal });
    if (code !== 0) {
        throw new Error(`portico ${args.slice(0, 2).join(' ')} failed: ${`${stdout}\n${stderr}`.trim()}`);
    }
}

/** The command that PORTICO names, the one that is installed beside this package, or the one in PATH. */
function commandOf(): readonly [string, ...string[]] {
    const { PORTICO: named } = process.env;
    if (named !== undefined && named !== '') {
        return [named];
    }
    try {
        const found = join(
            dirname(createRequire(import.meta.url).resolve('@portico/core/package.json')),
            'bin/portico.js'
        );
        return existsSync(found) ? [process.execPath, found] : ['portico'];
    } catch {
        return ['portico'];
    }
}
