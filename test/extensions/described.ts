import { fileURLToPath } from 'node:url';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { runConformance } from '@portico/testing';

import { everyPlugin } from './webui/furnish.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('The extensions', { timeout: 120_000 }, () => {
    for (const name of everyPlugin) {
        it(`say what each field and each route is for, and have a place for each: ${name}`, async () => {
            const folder = fileURLToPath(new URL(`../../extensions/${name}`, import.meta.url));
            const { checked, findings } = await runConformance(folder, { cycles: 1, requests: [] });
            expect(checked).to.include(['routes', 'labels', 'places', 'readme']);
            // No route is asked here, and the suite warns that it could not compare threads.
            expect(findings.filter(({ rule }) => rule !== 'threads')).to.equal([]);
        });
    }
});
