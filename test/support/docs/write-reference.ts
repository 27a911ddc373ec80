/** `npm run docs`: writes the stale reference pages. The tables are made from a running panel, so they list only what it serves. */
import { writeFile } from 'node:fs/promises';

import type { OpenApiDocument } from '../../../core/src/server/http/openapi/document.ts';
import { startPanel } from '../panel/panel.ts';
import { referencePages } from './reference.ts';

const panel = await startPanel();
try {
    for (const { file, now, fresh } of await referencePages(
        JSON.parse((await panel.client.get('/api/openapi.json')).text) as OpenApiDocument
    )) {
        if (now !== fresh) {
            await writeFile(file, fresh);
            process.stdout.write(`Wrote ${file}\n`);
        }
    }
} finally {
    await panel.close();
}
