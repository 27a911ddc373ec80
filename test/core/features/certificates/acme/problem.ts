import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { readProblem, retryTime } from '../../../../../core/src/features/certificates/acme/problem.ts';

export const lab = Lab.script();
const { describe, it } = lab;

describe('what a CA says', () => {
    it('is taken as a problem and nothing more, however it looks', () => {
        expect(readProblem(null, 'nothing')).to.equal({ type: 'about:blank', detail: 'nothing' });
        expect(
            readProblem(
                { type: 1, detail: {}, status: 'x', identifier: [], subproblems: {}, more: 'x' },
                'odd'
            )
        ).to.equal({ type: 'about:blank', detail: 'odd' });
        const long = readProblem(
            {
                type: 'a\nb',
                detail: 'x'.repeat(10_000),
                subproblems: Array.from({ length: 100 }, () => ({ type: 't', detail: 'd' }))
            },
            ''
        );
        expect([long.type, long.detail.length, long.subproblems?.length]).to.equal(['a b', 2_000, 20]);
        expect([
            retryTime('120', 1_000),
            retryTime('Thu, 01 Jan 1970 00:02:00 GMT', 0),
            retryTime('soon', 0),
            retryTime(undefined, 0)
        ]).to.equal([121_000, 120_000, null, null]);
    });
});
