/** Keep rules, as Proxmox Backup Server counts: each rule counts only what the rules before it did not keep. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { selectOld } from '../../../../extensions/backup/src/runs/keep.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const none = { last: 0, hourly: 0, daily: 0, weekly: 0, monthly: 0, yearly: 0 };
/** Newest first, as `MM-DDTHH:MM`, of 2026. */
const at = (...times: string[]) =>
    times.map((time) => ({ id: time, time: `2026-${time}:00.000Z`, pinned: false }));

describe('keep rules', () => {
    it('keep everything when all are 0, and the newest in any case', () => {
        const all = at('03-02T10:00', '03-01T10:00');
        expect(selectOld(all, none, 'UTC')).to.equal([]);
        expect(selectOld(all, { ...none, last: 1 }, 'UTC')).to.equal(['03-01T10:00']);
        expect(selectOld(at('03-02T10:00'), { ...none, yearly: 1 }, 'UTC')).to.equal([]);
    });

    it('do not count for a day what the newest rule keeps of it', () => {
        const all = at(
            '03-04T12:00',
            '03-04T08:00',
            '03-03T12:00',
            '03-03T08:00',
            '03-02T12:00',
            '03-01T12:00'
        );
        // `last` keeps two of the 4th; `daily` goes on with the 3rd and the 2nd.
        expect(selectOld(all, { ...none, last: 2, daily: 2 }, 'UTC')).to.equal([
            '03-03T08:00',
            '03-01T12:00'
        ]);
    });

    it('know weeks by ISO 8601, days by the time zone, and leave pinned ones alone', () => {
        const weeks = at('01-05T00:30', '01-04T23:30', '01-01T12:00');
        expect(selectOld(weeks, { ...none, weekly: 2 }, 'UTC')).to.equal(['01-01T12:00']);
        // In Tokyo the first two are of the same Monday, so the older of them goes and the week before is kept.
        expect(selectOld(weeks, { ...none, weekly: 2 }, 'Asia/Tokyo')).to.equal(['01-04T23:30']);
        const pinned = weeks.map((each) => ({ ...each, pinned: each.id === '01-01T12:00' }));
        expect(selectOld(pinned, { ...none, last: 1 }, 'UTC')).to.equal(['01-04T23:30']);
    });
});
