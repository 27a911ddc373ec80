/** A few rounds of the crash harness; `npm run crash` does as many as one likes. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createHarness, type Harness } from '../crash/harness.ts';
import type { NemesisName } from '../crash/nemesis.ts';
import { createRandom } from '../crash/random.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

const rounds: readonly NemesisName[] = [
    'kill at any moment',
    'kill when the table changes',
    'kill when the audit head is written',
    'kill the engine, then the panel',
    'end politely'
];

describe('the panel, killed', () => {
    let harness: Harness;

    before({ timeout: 60_000 }, async () => {
        harness = await createHarness(createRandom(Date.now()), 3);
    });

    after(async () => {
        await harness?.close();
    });

    for (const name of rounds) {
        it(
            `keeps what it acknowledged, and sites are answered throughout: ${name}`,
            { timeout: 60_000 },
            async () => {
                const { violations, names, visits } = await harness.round(name);
                expect(violations).to.equal([]);
                expect(names + visits).to.be.above(0);
            }
        );
    }
});
