import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { until } from '../../../support/until.ts';
import { createCronjobRig, type CronjobRig } from '../rig.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

describe('the clock of cronjob', () => {
    let cron: CronjobRig;
    let scratch: string;

    beforeEach(() => {
        scratch = mkdtempSync(join(tmpdir(), 'portico-cronjob-'));
    });

    afterEach(async () => {
        await cron.close();
        rmSync(scratch, { recursive: true, force: true });
    });

    const move = (milliseconds: number): void => {
        cron.time.at = (cron.time.at ?? 0) + milliseconds;
    };
    const count = async (
        id: number,
        wanted: number
    ): Promise<{ trigger: string; state: string; dueAt: string }[]> =>
        until(async () => {
            const all = await cron.runs(id);
            return all.length === wanted && all.every(({ finishedAt }) => finishedAt !== null) && all;
        }, `${wanted} runs`);
    /** Time for a look or two at the clock, which is what must not start anything. */
    const looks = async (): Promise<void> => {
        const probe = await cron.task({ schedule: '* * * * * *', command: ['true'], overlap: 'allow' });
        move(1_000);
        await until(async () => (await cron.runs(probe)).length > 0, 'a look at the clock');
        await cron.ask('DELETE', `/tasks/${probe}`);
    };

    it('starts a task when it is due, once for each time, and says when it is next', async () => {
        cron = await createCronjobRig({ at: '2026-06-01T00:00:00Z' });
        const id = await cron.task({ schedule: '*/10 * * * *', command: ['true'] });
        await looks();
        expect(await cron.runs(id)).to.equal([]);
        cron.time.at = Date.parse('2026-06-01T00:10:00Z');
        const [run] = await count(id, 1);
        expect(run).to.include({
            trigger: 'schedule',
            state: 'succeeded',
            dueAt: '2026-06-01T00:10:00.000Z'
        });
        expect((await cron.ask('GET', `/tasks/${id}`)).data.nextRunAt).to.equal('2026-06-01T00:20:00.000Z');
        await looks();
        expect(await cron.runs(id)).to.have.length(1);
        cron.time.at = Date.parse('2026-06-01T00:20:30Z');
        expect((await count(id, 2))[1]?.dueAt).to.equal('2026-06-01T00:20:00.000Z');
    });

    it('follows the wall clock through the nights in which it is turned', async () => {
        cron = await createCronjobRig({ at: '2026-03-29T00:00:00Z' });
        const gap = await cron.task({ schedule: '30 2 * * *', timezone: 'Europe/Berlin', command: ['true'] });
        const overlap = await cron.task({
            schedule: '30 1 * * *',
            timezone: 'America/New_York',
            command: ['true']
        });
        cron.time.at = Date.parse('2026-03-29T01:00:00Z');
        expect((await count(gap, 1))[0]?.dueAt).to.equal('2026-03-29T01:00:00.000Z');
        expect((await cron.ask('GET', `/tasks/${gap}`)).data.nextRunAt).to.equal('2026-03-30T00:30:00.000Z');
        await cron.ask('PUT', `/tasks/${gap}`, { enabled: false });
        cron.time.at = Date.parse('2026-11-01T05:30:00Z');
        await count(overlap, 1);
        expect((await cron.ask('GET', `/tasks/${overlap}`)).data.nextRunAt).to.equal(
            '2026-11-02T06:30:00.000Z'
        );
    });

    it('leaves out what was missed by a jump forward, or runs it once', async () => {
        cron = await createCronjobRig({ at: '2026-06-01T00:00:30Z' });
        const skip = await cron.task({ schedule: '0 * * * *', command: ['true'], missed: 'skip' });
        const once = await cron.task({ schedule: '0 * * * *', command: ['true'], missed: 'run-once' });
        move(5 * hour + 10 * minute);
        const [run] = await count(once, 1);
        expect(run).to.include({ trigger: 'missed', dueAt: '2026-06-01T01:00:00.000Z' });
        await looks();
        expect(await cron.runs(skip)).to.equal([]);
        expect(await cron.runs(once)).to.have.length(1);
        expect((await cron.ask('GET', `/tasks/${skip}`)).data.nextRunAt).to.equal('2026-06-01T06:00:00.000Z');
        // What is due now makes up for what was missed before.
        cron.time.at = Date.parse('2026-06-02T00:00:10Z');
        expect((await count(once, 2))[1]).to.include({
            trigger: 'schedule',
            dueAt: '2026-06-02T00:00:00.000Z'
        });
        expect((await count(skip, 1))[0]).to.include({
            trigger: 'schedule',
            dueAt: '2026-06-02T00:00:00.000Z'
        });
    });

    it('runs nothing twice when the clock is set back a little, and plans anew when it was far off', async () => {
        cron = await createCronjobRig({ at: '2026-06-01T02:59:59Z' });
        const id = await cron.task({ schedule: '0 3 * * *', command: ['true'] });
        move(1_000);
        await count(id, 1);
        move(-30 * minute);
        await looks();
        move(30 * minute);
        await looks();
        expect(await cron.runs(id)).to.have.length(1);
        cron.time.at = Date.parse('2026-05-20T12:00:00Z');
        await until(
            async () => (await cron.ask('GET', `/tasks/${id}`)).data.nextRunAt === '2026-05-21T03:00:00.000Z',
            'a new plan'
        );
        expect(await cron.runs(id)).to.have.length(1);
    });

    it('plans anew after a restart into the past', async () => {
        cron = await createCronjobRig({ at: '2030-06-01T03:00:00Z' });
        const id = await cron.task({ schedule: '0 3 * * *', command: ['true'] });
        await cron.finish(id);
        await cron.host.stop();
        cron.time.at = Date.parse('2026-06-01T00:00:00Z');
        await cron.host.start();
        expect((await cron.ask('GET', `/tasks/${id}`)).data.nextRunAt).to.equal('2026-06-01T03:00:00.000Z');
    });

    it('makes up once for what was missed while the plugin did not run, and only where a task asks for it', async () => {
        cron = await createCronjobRig({ at: '2026-06-01T00:00:30Z' });
        const skip = await cron.task({ schedule: '0 * * * *', command: ['true'] });
        const once = await cron.task({ schedule: '0 * * * *', command: ['true'], missed: 'run-once' });
        const disabled = await cron.task({
            schedule: '0 * * * *',
            command: ['true'],
            missed: 'run-once',
            enabled: false
        });
        await cron.host.stop();
        move(3 * day + 10 * minute);
        await cron.host.start();
        expect((await count(once, 1))[0]).to.include({
            trigger: 'missed',
            dueAt: '2026-06-01T01:00:00.000Z'
        });
        await cron.host.stop();
        await cron.host.start();
        await looks();
        await cron.ask('PUT', `/tasks/${disabled}`, { enabled: true });
        await looks();
        expect([await cron.runs(skip), await cron.runs(disabled)]).to.equal([[], []]);
        expect(await cron.runs(once)).to.have.length(1);
    });

    it('does not take a restart over a due time for a miss', async () => {
        cron = await createCronjobRig({ at: '2026-06-01T00:59:50Z' });
        const id = await cron.task({ schedule: '0 * * * *', command: ['true'], missed: 'skip' });
        await cron.host.stop();
        move(40_000);
        await cron.host.start();
        expect((await count(id, 1))[0]).to.include({
            trigger: 'schedule',
            dueAt: '2026-06-01T01:00:00.000Z'
        });
    });

    it('runs @reboot after each boot of the machine, once', async () => {
        cron = await createCronjobRig({ at: '2026-06-01T00:00:00Z' });
        const id = await cron.task({ schedule: '@reboot', command: ['true'] });
        const restart = async (boot: string): Promise<void> => {
            await cron.host.stop();
            cron.time.boot = boot;
            await cron.host.start();
            await looks();
            await until(
                async () => (await cron.runs(id)).every(({ finishedAt }) => finishedAt !== null),
                'its runs to end'
            );
        };
        await restart('boot-1');
        expect(await cron.runs(id)).to.equal([]);
        await restart('boot-2');
        await restart('boot-2');
        expect((await count(id, 1))[0]).to.include({ trigger: 'schedule', state: 'succeeded' });
    });

    it('tells when nothing succeeded in time, once, and when it does again', async () => {
        cron = await createCronjobRig({ at: '2026-06-01T00:00:00Z' });
        const marker = join(scratch, 'ok');
        const id = await cron.task({
            name: 'vital',
            schedule: '0 0 1 1 *',
            command: ['test', '-e', marker],
            notifyOn: 'never',
            deadManSeconds: 3_600
        });
        const quiet = await cron.task({
            name: 'quiet',
            command: ['true'],
            deadManSeconds: 3_600,
            enabled: false
        });
        move(50 * minute);
        await cron.finish(id);
        move(5 * minute);
        await looks();
        expect(cron.notified).to.equal([]);
        move(10 * minute);
        await until(async () => cron.notified.length === 1, 'the alert');
        expect((await cron.ask('GET', `/tasks/${id}`)).data.overdueSince).to.equal(
            new Date(cron.time.at ?? 0).toISOString()
        );
        expect((await cron.host.health())[0]).to.include({ state: 'degraded' });
        move(2 * hour);
        await looks();
        writeFileSync(marker, '');
        const run = await cron.finish(id);
        await until(async () => cron.notified.length === 2, 'the news');
        expect(cron.notified).to.equal([
            {
                event: 'cronjob.task-overdue',
                title: 'The task vital has not succeeded in time',
                data: { taskId: id, runId: null }
            },
            {
                event: 'cronjob.task-recovered',
                title: 'The overdue task vital succeeded',
                data: { taskId: id, runId: run.id }
            }
        ]);
        expect((await cron.ask('GET', `/tasks/${id}`)).data.overdueSince).to.be.null();
        expect((await cron.ask('GET', `/tasks/${quiet}`)).data.overdueSince).to.be.null();
    });

    it('waits for a retry by the clock, also across a restart, and forgets it when the task is disabled', async () => {
        cron = await createCronjobRig({ at: '2026-06-01T00:00:00Z' });
        const id = await cron.task({ command: ['false'], retries: 5, backoffSeconds: 600 });
        await cron.finish(id);
        expect((await cron.ask('GET', `/tasks/${id}`)).data.retryAt).to.equal('2026-06-01T00:10:00.000Z');
        await cron.host.stop();
        move(10 * minute);
        await cron.host.start();
        expect((await count(id, 2))[1]).to.include({ trigger: 'retry', state: 'failed' });
        expect((await cron.ask('GET', `/tasks/${id}`)).data.retryAt).to.equal('2026-06-01T00:30:00.000Z');
        expect((await cron.ask('PUT', `/tasks/${id}`, { enabled: false })).data.retryAt).to.be.null();
        move(day);
        await looks();
        expect(await cron.runs(id)).to.have.length(2);
    });

    it('counts due times that a long run kept from starting in one line', async () => {
        cron = await createCronjobRig({ at: '2026-06-01T00:00:00Z' });
        const gate = join(scratch, 'gate');
        const id = await cron.task({
            schedule: '0 * * * *',
            command: ['sh', '-c', `while [ ! -e ${gate} ]; do sleep 0.05; done`]
        });
        for (let index = 1; index <= 4; index += 1) {
            cron.time.at = Date.parse('2026-06-01T00:00:00Z') + index * hour;
            await until(
                async () =>
                    (await cron.runs(id)).reduce((sum, { times }) => sum + (times as number), 0) === index,
                `hour ${index}`
            );
        }
        expect((await cron.runs(id)).map(({ state, times, reason }) => [state, times, reason])).to.equal([
            ['running', 1, null],
            ['skipped', 3, 'OVERLAP']
        ]);
    });

    it('keeps as many runs as the settings say, and for as long', async () => {
        cron = await createCronjobRig({
            at: '2026-06-01T00:00:00Z',
            settings: { runsKept: 2, daysKept: 30 }
        });
        const id = await cron.task({ command: ['true'] });
        await cron.finish(id);
        move(31 * day);
        const kept = [(await cron.finish(id)).id];
        expect((await cron.runs(id)).map((run) => run.id)).to.equal(kept);
        for (let index = 0; index < 3; index += 1) {
            kept.push((await cron.finish(id)).id);
        }
        expect((await cron.runs(id)).map((run) => run.id)).to.equal(kept.slice(-2));
    });
});
