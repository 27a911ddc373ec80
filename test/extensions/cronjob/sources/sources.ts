/** What is scheduled on the machine, as tasks. */
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { scheduleOfCalendar, secondsOfSpan } from '../../../../extensions/cronjob/src/sources/calendar.ts';
import { readTimers, tasksOfTimer } from '../../../../extensions/cronjob/src/sources/timers.ts';
import { itUnless } from '../../../support/skip.ts';
import { createCronjobRig, type CronjobRig, notRoot } from '../rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

/** As systemd 252 prints it. */
const shown = `Unit=apt-daily.service
TimersCalendar={ OnCalendar=*-*-* 06,18:00:00 ; next_elapse=Tue 2026-11-24 18:00:00 UTC }
RandomizedDelayUSec=12h
Persistent=yes
Id=apt-daily.timer
Description=Daily apt download activities
FragmentPath=/lib/systemd/system/apt-daily.timer

Unit=systemd-tmpfiles-clean.service
TimersMonotonic={ OnUnitActiveUSec=1d ; next_elapse=1d 15min }
TimersMonotonic={ OnBootUSec=15min ; next_elapse=15min }
RandomizedDelayUSec=0
Persistent=no
Id=systemd-tmpfiles-clean.timer
Description=Daily Cleanup of Temporary Directories
FragmentPath=/lib/systemd/system/systemd-tmpfiles-clean.timer

Unit=fstrim.service
TimersCalendar={ OnCalendar=Mon *-*-* 00:00:00 ; next_elapse=n/a }
TimersCalendar={ OnCalendar=*-*~01 03:00:00 ; next_elapse=n/a }
RandomizedDelayUSec=1h 40min
Persistent=no
Id=fstrim.timer
Description=Discard unused filesystem blocks once a week
FragmentPath=/lib/systemd/system/fstrim.timer
`;

describe('Timers of systemd', () => {
    it('become tasks that start their units', () => {
        const [apt, clean, trim, ...none] = readTimers(shown).map((timer) => tasksOfTimer(timer));
        expect(none).to.equal([]);
        expect(apt).to.equal([
            {
                line: 1,
                task: {
                    name: 'Daily apt download activities',
                    schedule: '0 6,18 * * *',
                    command: ['systemctl', 'start', 'apt-daily.service'],
                    missed: 'run-once',
                    jitterSeconds: 3_600
                },
                problem: 'It starts by 3600 s later at most, not by 43200 s'
            }
        ]);
        expect(clean?.map(({ task }) => task)).to.equal([null]);
        expect(trim?.map(({ task }) => task?.schedule ?? null)).to.equal(['0 0 * * 1', null]);
    });

    it('say their times as schedules, or that a schedule cannot say them', () => {
        const schedule = (expression: string): string | null =>
            scheduleOfCalendar(expression)?.schedule ?? null;
        expect(schedule('*-*-* *:00/15:00')).to.equal('0-59/15 * * * *');
        expect(schedule('Mon..Fri,Sun *-*-* 08..17:30:00')).to.equal('30 8-17 * * 1-5,7');
        expect(schedule('*-01,07-01 00:00:00')).to.equal('0 0 1 1,7 *');
        expect(schedule('Sat *-*-01..07 18:00:00')).to.equal('0 18 1-7 * +6');
        expect(schedule('*-*-* 00:00:30')).to.equal('30 0 0 * * *');
        expect(scheduleOfCalendar('*-*-* 02:00:00 Europe/Berlin')?.timezone).to.equal('Europe/Berlin');
        for (const not of ['2027-*-* 00:00:00', '*-*~01 03:00:00', '*-*-* 00:00:00.5', 'weekly', '']) {
            expect([not, schedule(not)]).to.equal([not, null]);
        }
        expect([secondsOfSpan('1h 30min'), secondsOfSpan('0'), secondsOfSpan('x')]).to.equal([
            5_400,
            0,
            null
        ]);
    });
});

describe('Sources of the machine', { timeout: 60_000 }, () => {
    const system = '/etc/cron.d/portico-cronjob-test';
    let cron: CronjobRig;

    before(async () => {
        cron = await createCronjobRig();
    });
    after(() => cron.close());

    itUnless(notRoot, it)('are found, looked at, and taken in', async () => {
        writeFileSync(system, 'MAILTO=root\n*/5 * * * * nobody echo "from cron.d"\n');
        writeFileSync(`${system}.off`, '* * * * * root true\n');
        execFileSync('crontab', ['-u', 'nobody', '-'], {
            input: 'CRON_TZ=Europe/Berlin\nGREETING="hello"\n30 2 * * 1-5 echo "$GREETING \\%"\n@daily rm x%input\nMAILTO=root\n'
        });
        try {
            const { data: sources } = await cron.ask('GET', '/import/sources');
            const found = (id: string): object | undefined =>
                sources.find((source: { id: string }) => source.id === id);
            expect(found('crontab:nobody')).to.include({ kind: 'crontab', user: 'nobody', entries: 2 });
            expect(found(`system:${system}`)).to.equal({
                id: `system:${system}`,
                kind: 'system',
                path: system,
                user: null,
                entries: 1
            });
            expect(found(`system:${system}.off`)).to.be.undefined();
            const { data: looked } = await cron.ask('POST', '/import', { source: 'crontab:nobody' });
            expect(
                looked.map(({ line, task }: { line: number; task: object }) => [line, task !== null])
            ).to.equal([
                [3, true],
                [4, true],
                [5, false]
            ]);
            expect(looked[1].problem).to.contain('standard input');
            expect((await cron.ask('GET', '/tasks')).data).to.equal([]);
            const { data: made } = await cron.ask('POST', '/import', {
                source: 'crontab:nobody',
                dryRun: false
            });
            const { data: task } = await cron.ask('GET', `/tasks/${made[0].taskId}`);
            expect(task).to.include({ schedule: '30 2 * * 1-5', timezone: 'Europe/Berlin', user: 'nobody' });
            expect((await cron.finish(task.id)).output).to.equal('hello %\n');
        } finally {
            execFileSync('crontab', ['-u', 'nobody', '-r']);
            rmSync(system);
            rmSync(`${system}.off`);
        }
    });

    it('are those that are listed, and no other file', async () => {
        for (const source of ['system:/etc/passwd', 'crontab:../../etc/passwd', 'timer:x']) {
            expect((await cron.ask('POST', '/import', { source })).code).to.equal(40400);
        }
        expect((await cron.ask('POST', '/import', { source: 'x', text: 'x' })).code).to.equal(40001);
        expect((await cron.ask('POST', '/import', {})).code).to.equal(40001);
        expect((await cron.ask('GET', '/import/sources', undefined, { as: 'operator' })).status).to.equal(
            403
        );
    });
});
