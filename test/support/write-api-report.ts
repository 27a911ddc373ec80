/** Writes the pages of the SDK's API that are stale: `npm run api`. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { apiPages } from './api-report.ts';

for (const { file, text } of apiPages()) {
    mkdirSync(dirname(file), { recursive: true });
    if (!existsSync(file) || readFileSync(file, 'utf8') !== text) {
        writeFileSync(file, text);
        process.stdout.write(`Wrote ${file}\n`);
    }
}
