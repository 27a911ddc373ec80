import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import {
    accepts,
    isInWindow,
    isNewer,
    isWithin
} from '../../../../extensions/appstore/src/updates/versions.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('Versions of apps', () => {
    it('are compared as semver where they are, else as different ones', () => {
        for (const [from, to, newer] of [
            ['1.0.0', '1.0.1', true],
            ['1.10.0', '1.9.0', false],
            ['1.0.0', '1.0.0', false],
            ['2.0.0-rc.1', '2.0.0', true],
            ['2.0.0', '2.0.0-rc.1', false],
            ['v1', 'v2', true],
            ['latest', 'stable', true],
            ['latest', 'latest', false]
        ] as const) {
            expect([from, to, isNewer(from, to)]).to.equal([from, to, newer]);
        }
    });

    it('are steps of a size', () => {
        expect(
            ['off', 'patch', 'minor', 'all'].map((level) => isWithin(level as 'off', '1.2.3', '1.2.4'))
        ).to.equal([false, true, true, true]);
        expect(['patch', 'minor', 'all'].map((level) => isWithin(level as 'off', '1.2.3', '1.3.0'))).to.equal(
            [false, true, true]
        );
        expect(['patch', 'minor', 'all'].map((level) => isWithin(level as 'off', '1.2.3', '2.0.0'))).to.equal(
            [false, false, true]
        );
        expect(isWithin('minor', 'latest', 'stable')).to.equal(false);
        expect([
            accepts('>=1.2', '1.3.0'),
            accepts('>=1.2', '1.1.0'),
            accepts(undefined, 'x'),
            accepts('*', 'x')
        ]).to.equal([true, false, true, false]);
    });

    it('are taken in a window, also over midnight', () => {
        expect([179, 180, 299, 300].map((minute) => isInWindow('03:00-05:00', minute))).to.equal([
            false,
            true,
            true,
            false
        ]);
        expect([1_379, 1_380, 0, 119, 120].map((minute) => isInWindow('23:00-02:00', minute))).to.equal([
            false,
            true,
            true,
            true,
            false
        ]);
        expect(isInWindow(null, 0)).to.equal(true);
    });
});
