import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { atLeast, parseEngineVersion } from '../../../../core/src/engine/render/version.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('parseEngineVersion', () => {
    it('reads what packages, releases and pre-releases print', () => {
        const cases: readonly (readonly [string, string, number, number, number])[] = [
            ['2.6.2\n', '2.6.2', 2, 6, 2],
            ['v2.11.4 h1:XKxkmPxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx=\n', '2.11.4', 2, 11, 4],
            ['v2.8.0-beta.2 h1:x=', '2.8.0-beta.2', 2, 8, 0],
            ['2.6.2-5~deb12u1', '2.6.2-5~deb12u1', 2, 6, 2],
            ['v2.7', '2.7', 2, 7, 0],
            ['v2.9.1+modified (30 Dec 24 00:00 UTC)', '2.9.1+modified', 2, 9, 1]
        ];
        for (const [output, text, major, minor, patch] of cases) {
            expect(parseEngineVersion(output), output).to.equal({ text, major, minor, patch });
        }
    });

    it('takes nothing else for a version', () => {
        for (const output of [
            '',
            '\n',
            '(devel)',
            'unknown',
            '2',
            'caddy 2.6.2',
            '2.6.2.1',
            '2.6beta',
            '99999.1.1',
            'nginx/1.22.1'
        ]) {
            expect(parseEngineVersion(output), output).to.be.null();
        }
    });
});

describe('atLeast', () => {
    it('compares by number, and takes an unknown version for the newest', () => {
        const version = parseEngineVersion('2.10.0');
        expect(
            [
                [2, 9],
                [2, 10],
                [1, 99]
            ].map(([major = 0, minor = 0]) => atLeast(version, major, minor))
        ).to.equal([true, true, true]);
        expect(
            [
                [2, 11],
                [3, 0]
            ].map(([major = 0, minor = 0]) => atLeast(version, major, minor))
        ).to.equal([false, false]);
        expect(atLeast(null, 9, 9)).to.be.true();
    });
});
