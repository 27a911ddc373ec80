import { expect } from '@hapi/code';
import Lab from '@hapi/lab';
import { MinuteLimit } from '@portico/sdk';

export const lab = Lab.script();
const { describe, it } = lab;

const start = 1_700_000_000_000;

describe('MinuteLimit', () => {
    it('counts so many uses of a key within any minute, and says when the next one may come', () => {
        const limit = new MinuteLimit();
        expect(limit.take('a', 2, start)).to.equal(0);
        expect(limit.take('a', 2, start + 20_000)).to.equal(0);
        expect(limit.take('a', 2, start + 30_000)).to.equal(30);
        expect(limit.take('b', 2, start + 30_000)).to.equal(0);
        expect(limit.take('a', 2, start + 59_999)).to.equal(1);
        expect(limit.take('a', 2, start + 60_000)).to.equal(0);
        expect(limit.take('a', 2, start + 60_001)).to.equal(20);
    });

    it('does not count what it refused', () => {
        const limit = new MinuteLimit();
        expect(limit.take('a', 1, start)).to.equal(0);
        for (let n = 1; n < 60; n += 1) {
            expect(limit.take('a', 1, start + n * 1000)).to.equal(60 - n);
        }
        expect(limit.take('a', 1, start + 60_000)).to.equal(0);
    });

    it('takes a smaller limit at once, and a clock that was set back', () => {
        const limit = new MinuteLimit();
        for (let n = 0; n < 5; n += 1) {
            expect(limit.take('a', 5, start + n * 1000)).to.equal(0);
        }
        expect(limit.take('a', 2, start + 5000)).to.equal(58);
        expect(limit.take('a', 2, start - 3_600_000)).to.equal(0);
    });
});
