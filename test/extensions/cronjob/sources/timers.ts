/** Timers of a real systemd. */
import { writeFileSync } from 'node:fs';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { noSystemd, SystemdMachine } from '../../../support/machine/systemd.ts';
import { itUnless } from '../../../support/skip.ts';
import { createCronjobRig, type CronjobRig } from '../rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
// The wrapper knows the plain form of `it` only.
const itWithSystemd = itUnless(noSystemd, it);

const units = {
    'report.service': '[Service]\nType=oneshot\nExecStart=/bin/sh -c "echo reported >/run/report"\n',
    'report.timer':
        '[Unit]\nDescription=Reports of the shop\n[Timer]\nOnCalendar=Mon..Fri *-*-01..15/2 06,18:00:30 Europe/Berlin\nOnCalendar=hourly\nRandomizedDelaySec=90min\nPersistent=true\n[Install]\nWantedBy=timers.target\n',
    'sweep.service': '[Service]\nType=oneshot\nExecStart=true\n',
    'sweep.timer':
        '[Timer]\nOnBootSec=15min\nOnUnitActiveSec=1d\nOnCalendar=2030-01-01 00:00:00\n[Install]\nWantedBy=timers.target\n',
    'off.service': '[Service]\nExecStart=true\n',
    'off.timer': '[Timer]\nOnCalendar=daily\n[Install]\nWantedBy=timers.target\n'
};

describe('Timers of a machine that systemd runs', { timeout: 60_000 }, () => {
    let cron: CronjobRig;
    let machine: SystemdMachine | null = null;
    before(async () => {
        cron = await createCronjobRig();
        if (noSystemd === undefined) {
            const booted = new SystemdMachine();
            machine = booted;
            await booted.boot();
            Object.entries(units).forEach(([name, text]) => writeFileSync(booted.unitPath(name), text));
            await booted.run('systemctl', ['daemon-reload']);
            await booted.run('systemctl', ['enable', '--now', 'report.timer', 'sweep.timer']);
            cron.host.programs.answer('systemctl', ({ args }) => booted.exec('systemctl', args));
        }
    });
    after(async () => {
        await cron.close();
        await machine?.close();
    });

    itWithSystemd('are sources, if they are enabled', async () => {
        const { data } = await cron.ask('GET', '/import/sources');
        const timers = data.filter(({ kind }: { kind: string }) => kind === 'timer');
        const ids = timers.map(({ id }: { id: string }) => id);
        expect(ids).to.include(['timer:report.timer', 'timer:sweep.timer']);
        expect(ids).to.not.include('timer:off.timer');
        expect(timers.find(({ id }: { id: string }) => id === 'timer:report.timer')).to.equal({
            id: 'timer:report.timer',
            kind: 'timer',
            path: '/etc/systemd/system/report.timer',
            user: null,
            entries: 2
        });
    });

    itWithSystemd('say in a dry run what changes meaning', async () => {
        const report = await cron.ask('POST', '/import', { source: 'timer:report.timer' });
        const tasks = report.data.map(({ task }: { task: object }) => task);
        const common = {
            name: 'Reports of the shop',
            command: ['systemctl', 'start', 'report.service'],
            missed: 'run-once',
            jitterSeconds: 3_600
        };
        expect(tasks.map(({ schedule }: { schedule: string }) => schedule).sort()).to.equal([
            '0 * * * *',
            '30 0 6,18 1-15/2 * +1-5'
        ]);
        tasks.forEach((task: object) => expect(task).to.include(common));
        expect(tasks.map(({ timezone }: { timezone?: string }) => timezone)).to.include('Europe/Berlin');
        expect(report.data[0].problem).to.contain('not by 5400 s');
        const sweep = await cron.ask('POST', '/import', { source: 'timer:sweep.timer' });
        expect(
            sweep.data.map(({ task, problem }: { task: null; problem: string }) => [task, problem])
        ).to.equal([
            [null, 'A schedule cannot say 2030-01-01 00:00:00'],
            [null, 'It counts from a boot, a start or an end, and a schedule follows the clock']
        ]);
    });

    itWithSystemd('become tasks that start the unit', async () => {
        const { data } = await cron.ask('POST', '/import', { source: 'timer:report.timer', dryRun: false });
        const run = await cron.finish(data[0].taskId);
        expect(run).to.include({ state: 'succeeded', exitCode: 0 });
        expect(await machine?.run('cat', ['/run/report'])).to.equal('reported\n');
        const shown = await machine?.run('systemctl', ['is-enabled', 'report.timer']);
        expect(shown).to.equal('enabled\n');
    });
});
