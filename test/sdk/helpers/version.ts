import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { isFailure, requireVersion } from '@portico/sdk';

export const lab = Lab.script();
const { describe, it } = lab;

/** What a change is refused with; null when it is let through. */
function refusalOf(...known: Parameters<typeof requireVersion>[1][]): unknown {
    try {
        requireVersion({ version: 7 }, ...known);
        return null;
    } catch (error) {
        return isFailure(error) ? [error.code, error.data] : error;
    }
}

describe('requireVersion', () => {
    it('lets a change through that names no version, any version, or the very version', () => {
        for (const known of [[], [null, undefined], ['*'], ['7', 7]]) {
            expect(refusalOf(...known)).to.be.null();
        }
    });

    it('refuses a change of which one named version is another', () => {
        for (const known of [['6'], ['7', 6], ['*', 8], ['07'], ['']]) {
            expect(refusalOf(...known)).to.equal([41200, { version: 7 }]);
        }
    });
});
