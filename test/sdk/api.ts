import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { apiPages } from '../support/docs/api-report.ts';
import { root } from '../support/docs/markdown.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('apiPages', { timeout: 120_000 }, () => {
    it('shows what the SDK and the test kit export now: after a change, run npm run api', () => {
        const pages = apiPages();
        expect(pages.map(({ file }) => relative(root, file)).sort()).to.equal(
            ['sdk/api', 'sdk/testing/api', 'sdk/agents/api']
                .flatMap((folder) => readdirSync(join(root, folder)).map((name) => join(folder, name)))
                .sort()
        );
        for (const { file, text } of pages) {
            expect(readFileSync(file, 'utf8'), file).to.equal(text);
        }
    });
});
