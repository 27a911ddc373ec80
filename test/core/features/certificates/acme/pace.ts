import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import {
    renewalTime,
    retryAfter,
    warningDue
} from '../../../../../core/src/features/certificates/acme/pace.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const day = 86_400_000;

describe('pace', () => {
    it('renews after two thirds of a life, and never one right after the other', () => {
        const [from, to] = ['2026-01-01T00:00:00.000Z', '2026-04-01T00:00:00.000Z'];
        expect(renewalTime(from, to, Date.parse(from), 0)).to.equal(Date.parse('2026-03-02T00:00:00.000Z'));
        expect(renewalTime(from, to, Date.parse(from), 1)).to.be.below(
            Date.parse('2026-03-02T00:00:00.000Z')
        );
        expect(renewalTime(from, to, Date.parse(to) - day)).to.equal(Date.parse(to) - day / 2);
        expect(renewalTime(from, to, Date.parse(to) + day)).to.equal(Date.parse(to) + day + 300_000);
    });

    it('waits twice as long after each failure, at most a day, and as long as the CA says', () => {
        const pauses = Array.from({ length: 12 }, (_, at) => retryAfter(at + 1, 0, null, 0.5));
        expect(pauses.slice(0, 4)).to.equal([300_000, 600_000, 1_200_000, 2_400_000]);
        expect(pauses.at(-1)).to.equal(day);
        expect(retryAfter(1, 0, null, 0)).to.equal(240_000);
        expect(retryAfter(1, 0, null, 1)).to.equal(360_000);
        expect(retryAfter(1, 0, 10 * day, 0)).to.equal(10 * day);
    });

    it('warns 14, 7, 3 and 1 days before the end and at it, each time once', () => {
        const end = '2026-04-01T00:00:00.000Z';
        const told: (number | null)[] = [];
        let warned: number | null = null;
        for (let left = 20; left >= -2; left -= 1) {
            const due = warningDue(end, warned, Date.parse(end) - left * day);
            warned = due ?? warned;
            told.push(...(due === null ? [] : [left]));
        }
        expect(told).to.equal([14, 7, 3, 1, 0]);
    });
});
