import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { apiPages } from '../support/api-report.ts';
import { root } from '../support/markdown.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('sdk/api', { timeout: 120_000 }, () => {
    it('shows what the SDK exports now: after a change, run npm run api', () => {
        const pages = apiPages();
        expect(readdirSync(join(root, 'sdk/api')).sort()).to.equal(
            pages.map(({ file }) => basename(file)).sort()
        );
        for (const { file, text } of pages) {
            expect(readFileSync(file, 'utf8'), file).to.equal(text);
        }
    });
});
