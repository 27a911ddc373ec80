/** `npm run api`: writes the stale files that are made from the SDK: the pages of its API, the manifest's JSON Schema, and the tables for authors. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

import { apiPages } from './api-report.ts';
import { pluginPages } from './plugin-reference.ts';

for (const { file, text } of [...apiPages(), ...pluginPages()]) {
    mkdirSync(dirname(file), { recursive: true });
    if (!existsSync(file) || readFileSync(file, 'utf8') !== text) {
        writeFileSync(file, text);
        process.stdout.write(`Wrote ${file}\n`);
    }
}
