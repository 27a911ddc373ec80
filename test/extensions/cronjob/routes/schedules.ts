import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createCronjobRig, type CronjobRig } from '../rig.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

describe('when schedules of cronjob are due', () => {
    let cron: CronjobRig;

    before(async () => {
        cron = await createCronjobRig();
    });

    after(() => cron.close());

    it('previews a schedule in a time zone, also through the night in which clocks are turned', async () => {
        const asked = {
            schedule: '30 2 * * *',
            timezone: 'Europe/Berlin',
            count: 3,
            from: '2026-03-27T12:00:00Z'
        };
        const { status, data } = await cron.ask('POST', '/schedule/preview', asked, { as: 'viewer' });
        expect([status, data.times]).to.equal([
            200,
            ['2026-03-28T01:30:00.000Z', '2026-03-29T01:00:00.000Z', '2026-03-30T00:30:00.000Z']
        ]);
        const preview = async (more: object) =>
            (await cron.ask('POST', '/schedule/preview', more)).data.times;
        expect(await preview({ schedule: '* * * * * *' })).to.have.length(10);
        expect(await preview({ schedule: '* * * * *', count: 100 })).to.have.length(100);
        expect(await preview({ schedule: '@reboot' })).to.equal([]);
        expect(await preview({ schedule: '0 0 30 2 *' })).to.equal([]);
    });

    it('refuses what it cannot understand', async () => {
        for (const [body, path] of [
            [{ schedule: 'whenever' }, 'schedule'],
            [{ schedule: '0 0 * * *', timezone: '+02:00' }, 'timezone'],
            [{ schedule: '0 0 * * *', count: 101 }, 'count']
        ] as const) {
            const { code, data } = await cron.ask('POST', '/schedule/preview', body);
            expect([code, data.errors[0].path]).to.equal([40001, path]);
        }
    });

    it('says when a task is due next, also a disabled one', async () => {
        const id = await cron.task({ command: ['true'], schedule: '0 0 1 1 *', enabled: false });
        const { data } = await cron.ask('GET', `/tasks/${id}/next?count=2`, undefined, { as: 'viewer' });
        const year = new Date().getUTCFullYear() + 1;
        expect(data.times).to.equal([`${year}-01-01T00:00:00.000Z`, `${year + 1}-01-01T00:00:00.000Z`]);
        expect((await cron.ask('GET', '/tasks/999/next')).code).to.equal(40400);
    });
});
