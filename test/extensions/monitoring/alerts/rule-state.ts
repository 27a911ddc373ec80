import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import {
    advance,
    type Condition,
    initialState,
    type RuleState,
    type Transition
} from '../../../../extensions/monitoring/src/alerts/rule-state.ts';
import { matchesAny } from '../../../../extensions/monitoring/src/sampling/glob.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const above: Condition = { operator: '>', threshold: 90, recoverThreshold: 80, forSeconds: 30 };

/** What happens along a series of values, ten seconds apart: `[index, transition]` for each transition. */
function turns(
    condition: Condition,
    values: readonly (number | null)[],
    elapsed = 10_000
): readonly (readonly [number, Transition])[] {
    let state: RuleState = initialState;
    return values.flatMap((value, index) => {
        const next = advance(state, condition, value, { elapsed, interval: 10_000 });
        state = next.state;
        return next.transition === null ? [] : [[index, next.transition] as const];
    });
}

describe('advance', () => {
    it('fires when the value has been beyond the threshold long enough, not before', () => {
        expect(turns(above, [50, 91, 92, 93, 94, 95])).to.equal([[4, 'fired']]);
        expect(turns(above, [91, 91, 91, 90, 91, 91, 91])).to.equal([]);
        expect(turns({ ...above, forSeconds: 0 }, [90, 90.1, 50])).to.equal([
            [1, 'fired'],
            [2, 'recovered']
        ]);
    });

    it('does not flap between the two thresholds', () => {
        const wobble = Array.from({ length: 200 }, (_none, index) => (index % 2 === 0 ? 95 : 82));
        expect(turns({ ...above, forSeconds: 0 }, wobble)).to.equal([[0, 'fired']]);
        expect(turns({ ...above, forSeconds: 0, recoverThreshold: 90 }, wobble)).to.have.length(200);
        expect(turns(above, wobble)).to.equal([]);
        expect(turns({ ...above, recoverThreshold: 90 }, [95, 95, 95, 95, ...wobble])).to.equal([
            [3, 'fired']
        ]);
    });

    it('recovers when the value has been on the good side as long, and starts anew when it comes back', () => {
        expect(turns(above, [95, 95, 95, 95, 80, 80, 80, 80])).to.equal([
            [3, 'fired'],
            [7, 'recovered']
        ]);
        expect(turns(above, [95, 95, 95, 95, 80, 80, 81, 80, 80, 80, 80, 95, 95, 95, 95])).to.equal([
            [3, 'fired'],
            [10, 'recovered'],
            [14, 'fired']
        ]);
    });

    it('watches both directions, with and without the threshold itself', () => {
        expect(
            turns(
                { operator: '<', threshold: 10, recoverThreshold: 20, forSeconds: 0 },
                [10, 9, 15, 19.9, 20]
            )
        ).to.equal([
            [1, 'fired'],
            [4, 'recovered']
        ]);
        expect(
            turns({ operator: '<=', threshold: 10, recoverThreshold: 10, forSeconds: 0 }, [10, 10, 10.1])
        ).to.equal([
            [0, 'fired'],
            [2, 'recovered']
        ]);
        expect(
            turns({ operator: '>=', threshold: 10, recoverThreshold: 10, forSeconds: 0 }, [9.9, 10, 9.9])
        ).to.equal([
            [1, 'fired'],
            [2, 'recovered']
        ]);
    });

    it('neither fires nor recovers on what is not known', () => {
        expect(turns(above, [95, 95, null, 95, 95])).to.equal([[3, 'fired']]);
        expect(turns(above, [95, 95, ...Array.from({ length: 8 }, () => null), 95, 95, 95, 95])).to.equal([
            [13, 'fired']
        ]);
        expect(turns(above, [95, 95, 95, 95, ...Array.from({ length: 300 }, () => null)])).to.equal([
            [3, 'fired']
        ]);
        expect(
            turns(
                above,
                Array.from({ length: 400 }, () => null)
            )
        ).to.equal([]);
    });

    it('ends an alert about what was not measured for an hour', () => {
        expect(turns(above, [95, 95, 95, 95, ...Array.from({ length: 400 }, () => null)])).to.equal([
            [3, 'fired'],
            [363, 'gone']
        ]);
    });

    it('counts nothing across a gap, in which nothing was measured', () => {
        expect(turns({ ...above, forSeconds: 600 }, [95, 95, 95], 1_000_000)).to.equal([]);
        expect(turns(above, [95, 95, 95, 95], 61_000)).to.equal([]);
    });
});

describe('matchesAny', () => {
    it('takes `*` for anything and `?` for one character', () => {
        expect(
            [
                ['eth0', 'eth*'],
                ['veth1', 'eth*'],
                ['loop12', 'loop?'],
                ['loop1', 'loop?'],
                ['/srv/a', '/srv/*'],
                ['lo', 'lo'],
                ['a.b', 'a?b'],
                ['', '*'],
                ['abc', 'a*c*'],
                ['abd', 'a*c']
            ].map(([name = '', pattern = '']) => matchesAny(name, [pattern]))
        ).to.equal([true, false, false, true, true, true, true, true, true, false]);
    });

    it('ends soon on patterns made to take long', () => {
        const before = process.cpuUsage();
        expect(matchesAny('a'.repeat(4_000), ['*a'.repeat(49) + 'b'])).to.be.false();
        expect(process.cpuUsage(before).user).to.be.below(1e6);
    });
});
