import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import type { OpenApiDocument } from '../../core/src/server/http/openapi/document.ts';
import { referencePages } from '../support/docs/reference.ts';
import { startPanel, type TestPanel } from '../support/panel/panel.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

let panel: TestPanel;

describe('npm run docs', () => {
    before({ timeout: 120_000 }, async () => {
        panel = await startPanel();
    });

    after({ timeout: 120_000 }, () => panel?.close());

    it('has nothing to write: the reference pages are those of this code', async () => {
        const pages = await referencePages(
            JSON.parse((await panel.client.get('/api/openapi.json')).text) as OpenApiDocument
        );
        expect(pages.length).to.equal(3);
        for (const { file, now, fresh } of pages) {
            expect(now, `${file} is stale: npm run docs`).to.equal(fresh);
        }
    });
});
