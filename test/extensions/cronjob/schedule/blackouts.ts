/** Blackouts and jitter: what becomes of due times in them. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { type Blackout, Blackouts, weekdays } from '../../../../extensions/cronjob/src/schedule/blackouts.ts';
import { until } from '../../../support/until.ts';
import { createCronjobRig, type CronjobRig } from '../rig.ts';

export const lab = Lab.script();
const { afterEach, describe, it } = lab;

const free = (blackouts: readonly Blackout[], zone: string, at: string): string | null => {
    const found = new Blackouts(blackouts, zone).firstFree(Date.parse(at));
    return found === null ? null : new Date(found).toISOString();
};
const daily = (from: string, to: string): Blackout => ({ days: [...weekdays], from, to });

describe('Blackouts', () => {
    it('end at their end, which is no part of them, and belong to the day on which they begin', () => {
        const friday: Blackout[] = [{ days: ['fri'], from: '22:00', to: '06:00' }];
        // 2026-06-05 is a Friday.
        expect(free(friday, 'UTC', '2026-06-05T21:59:59Z')).to.equal('2026-06-05T21:59:59.000Z');
        expect(free(friday, 'UTC', '2026-06-05T22:00:00Z')).to.equal('2026-06-06T06:00:00.000Z');
        expect(free(friday, 'UTC', '2026-06-06T05:59:59Z')).to.equal('2026-06-06T06:00:00.000Z');
        expect(free(friday, 'UTC', '2026-06-06T06:00:00Z')).to.equal('2026-06-06T06:00:00.000Z');
        expect(free(friday, 'UTC', '2026-06-05T02:00:00Z')).to.equal('2026-06-05T02:00:00.000Z');
        // Past the end of the week, too.
        const sunday: Blackout[] = [{ days: ['sun'], from: '23:00', to: '01:00' }];
        expect(free(sunday, 'UTC', '2026-06-08T00:30:00Z')).to.equal('2026-06-08T01:00:00.000Z');
        expect(free(sunday, 'UTC', '2026-06-07T23:00:00Z')).to.equal('2026-06-08T01:00:00.000Z');
    });

    it('follow the wall clock, and each other', () => {
        const night = [daily('01:00', '04:00')];
        // Clocks in Berlin skip 02:00 to 03:00 on 2026-03-29, and repeat it on 2026-10-25.
        expect(free(night, 'Europe/Berlin', '2026-03-29T00:00:00Z')).to.equal('2026-03-29T02:00:00.000Z');
        expect(free(night, 'Europe/Berlin', '2026-10-24T23:30:00Z')).to.equal('2026-10-25T03:00:00.000Z');
        const two = [daily('10:00', '12:00'), daily('11:30', '14:00'), daily('14:00', '15:00')];
        expect(free(two, 'UTC', '2026-06-01T10:20:30Z')).to.equal('2026-06-01T15:00:00.000Z');
        expect(free([daily('00:00', '00:00')], 'UTC', '2026-06-01T10:00:00Z')).to.be.null();
        expect(free([], 'UTC', '2026-06-01T10:00:00Z')).to.equal('2026-06-01T10:00:00.000Z');
    });
});

describe('tasks with blackouts', { timeout: 60_000 }, () => {
    let cron: CronjobRig;
    afterEach(() => cron.close());

    const start = async (at: string, settings: object = {}): Promise<void> => {
        cron = await createCronjobRig({ at, settings: { ...settings } });
    };
    const set = (at: string): void => void (cron.time.at = Date.parse(at));
    const over = (id: number, count: number) =>
        until(async () => {
            const runs = await cron.runs(id);
            return runs.length === count && runs.every(({ finishedAt }) => finishedAt !== null) ? runs : null;
        }, `${count} runs`);
    const blackouts = [{ from: '22:00', to: '06:00' }];

    it('are left out, and one entry of the history says how often', async () => {
        await start('2026-06-01T22:00:00Z');
        const id = await cron.task({ schedule: '0 * * * *', command: ['true'], blackouts });
        set('2026-06-01T23:00:10Z');
        await over(id, 1);
        set('2026-06-02T00:00:10Z');
        const [skipped] = await until(async () => {
            const runs = await cron.runs(id);
            return runs[0]?.times === 2 ? runs : null;
        }, 'the second time');
        expect(skipped).to.include({ state: 'skipped', reason: 'BLACKOUT' });
        set('2026-06-02T06:00:01Z');
        expect((await over(id, 2))[1]).to.include({
            state: 'succeeded',
            dueAt: '2026-06-02T06:00:00.000Z'
        });
        // By hand it runs at any time.
        set('2026-06-02T23:30:00Z');
        await cron.finish(id);
    });

    it('start once when the blackout ends, and keep when they were due, also over a restart', async () => {
        await start('2026-06-01T21:30:00Z', { blackouts: [{ ...daily('22:00', '06:00') }] });
        const id = await cron.task({ schedule: '0 * * * *', command: ['true'], blackoutPolicy: 'delay' });
        for (const at of ['2026-06-01T22:00:10Z', '2026-06-01T23:00:10Z']) {
            set(at);
            await until(
                async () =>
                    (await cron.ask('GET', `/tasks/${id}`)).data.nextRunAt === '2026-06-02T06:00:00.000Z',
                'the delay'
            );
        }
        await cron.host.stop();
        await cron.host.start();
        expect(await cron.runs(id)).to.equal([]);
        set('2026-06-02T05:59:59Z');
        await cron.task({ command: ['true'] }); // a look at the clock
        expect(await cron.runs(id)).to.equal([]);
        set('2026-06-02T06:00:00Z');
        const runs = await over(id, 2);
        expect(runs.map(({ dueAt }: { dueAt: string }) => dueAt).sort()).to.equal([
            '2026-06-01T22:00:00.000Z',
            '2026-06-02T06:00:00.000Z'
        ]);
    });

    it('start later by chance, at most by their jitter, and keep when they were due', async () => {
        await start('2026-06-01T00:30:00Z');
        const ids: number[] = [];
        for (let count = 0; count < 12; count += 1) {
            ids.push(await cron.task({ schedule: '0 * * * *', command: ['true'], jitterSeconds: 50 }));
        }
        set('2026-06-01T01:00:00Z');
        const starts = await until(async () => {
            const { data } = await cron.ask('GET', '/tasks');
            const all = data.map(({ nextRunAt }: { nextRunAt: string }) => Date.parse(nextRunAt));
            return all.every(
                (at: number) =>
                    at > Date.parse('2026-06-01T00:59:59Z') && at !== Date.parse('2026-06-01T01:00:00Z')
            )
                ? (all as number[])
                : null;
        }, 'the jitter');
        const waiting = starts.filter((at) => at <= Date.parse('2026-06-01T01:00:50Z'));
        expect(waiting.length).to.be.above(9);
        expect(new Set(waiting).size).to.be.above(5);
        set('2026-06-01T01:00:50Z');
        for (const id of ids) {
            expect((await over(id, 1))[0]).to.include({ dueAt: '2026-06-01T01:00:00.000Z' });
        }
    });

    it('are seen ahead: in previews, next times, the calendar and warnings', async () => {
        await start('2026-06-01T00:00:00Z', { blackouts: [{ ...daily('12:00', '13:00') }] });
        const schedule = '0 */4 * * *';
        const preview = await cron.ask('POST', '/schedule/preview', {
            schedule,
            timezone: 'UTC',
            count: 4,
            blackouts
        });
        const hours = (times: readonly string[]): number[] => times.map((at) => new Date(at).getUTCHours());
        expect(hours(preview.data.times)).to.equal([8, 16, 20, 8]);
        const skipping = await cron.task({ schedule, command: ['true'], blackouts });
        const delaying = await cron.task({ schedule, command: ['true'], blackouts, blackoutPolicy: 'delay' });
        const next = async (id: number) =>
            hours((await cron.ask('GET', `/tasks/${id}/next?count=5`)).data.times);
        expect(await next(skipping)).to.equal([8, 16, 20, 8, 16]);
        expect(await next(delaying)).to.equal([6, 8, 13, 16, 20]);
        const { data } = await cron.ask('GET', '/calendar?from=2026-06-01T00:00:00Z&to=2026-06-01T23:59:59Z');
        expect(
            data.map(({ at, taskId }: { at: string; taskId: number }) => [new Date(at).getUTCHours(), taskId])
        ).to.equal([
            [6, delaying],
            [8, skipping],
            [8, delaying],
            [13, delaying],
            [16, skipping],
            [16, delaying],
            [20, skipping],
            [20, delaying]
        ]);
        const warned = async (body: object): Promise<string[]> =>
            (
                await cron.ask('POST', '/tasks/validate', {
                    name: 'x',
                    timezone: 'UTC',
                    command: ['true'],
                    ...body
                })
            ).data.warnings.map(({ message }: { message: string }) => message);
        expect((await warned({ schedule: '30 12 * * *' })).join()).to.match(/^All due times .* left out/);
        expect((await warned({ schedule, blackouts })).join()).to.contain('lie in a blackout');
        expect(await warned({ schedule: '0 8 * * *', blackouts })).to.equal([]);
        const never = await cron.ask('POST', '/schedule/preview', {
            schedule,
            blackouts: [{ from: '00:00', to: '00:00' }]
        });
        expect(never.data.times).to.equal([]);
    });
});
