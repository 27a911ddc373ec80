import { writeFileSync } from 'node:fs';
import process from 'node:process';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { noSystemd, SystemdMachine } from '../../../support/machine/systemd.ts';
import { itUnless } from '../../../support/skip.ts';
import { until } from '../../../support/until.ts';
import { base, createMonitoringRig, type MonitoringRig } from '../rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;
// The wrapper knows the plain form of `it` only.
const itWithSystemd = itUnless(noSystemd, it);

let rig: MonitoringRig;
let machine: SystemdMachine | null = null;

const act = (name: string, action: string, as: 'root' | 'op' = 'root') =>
    rig.ask(as, 'POST', `${base}/units/${name}/${action}`);
const stateOf = async (name: string): Promise<string | undefined> =>
    (await rig.get(`/units?q=${name}`)).data.find((unit: { name: string }) => unit.name === name)?.state;

/** Acts, and resolves with how the task ended. */
async function finish(
    name: string,
    action: string
): Promise<{ state: string; result: unknown; error: unknown }> {
    const { status, data } = await act(name, action);
    expect(status).to.equal(202);
    return rig.host.tasks.wait(data.id);
}

describe('/api/plugins/monitoring/units', { timeout: 60_000 }, () => {
    before(async () => {
        rig = await createMonitoringRig();
        await rig.machine.tick();
        if (noSystemd === undefined) {
            const booted = new SystemdMachine();
            machine = booted;
            await booted.boot();
            writeFileSync(
                booted.unitPath('good.service'),
                '[Unit]\nDescription=A good one\n[Service]\nExecStart=sleep 1000\n'
            );
            writeFileSync(
                booted.unitPath('bad.service'),
                '[Unit]\nDescription=A bad one\n[Service]\nExecStart=false\n'
            );
            // What begins with a number in brackets has that priority for systemd.
            writeFileSync(
                booted.unitPath('talks.service'),
                '[Service]\nType=oneshot\nExecStart=sh -c \'echo "<2>on fire"; echo "<3>broken"; echo "<4>odd"; echo plain; echo "<7>detail"\'\n'
            );
            await booted.run('systemctl', ['daemon-reload']);
            rig.host.programs.answer('systemctl', async ({ args }) => booted.exec('systemctl', args));
            rig.host.programs.answer('journalctl', async ({ args }) => booted.exec('journalctl', args));
        }
    });
    after(async () => {
        await rig.end();
        await machine?.close();
    });

    itWithSystemd('starts, restarts and stops a unit, and lists how it is', async () => {
        const started = await finish('good.service', 'start');
        expect(started).to.include({ state: 'succeeded' });
        expect(started.result).to.equal({ name: 'good.service', state: 'active', sub: 'running' });
        expect(await stateOf('good.service')).to.equal('active');
        expect((await finish('good.service', 'restart')).state).to.equal('succeeded');
        expect((await finish('good.service', 'stop')).result).to.include({ state: 'inactive' });
        expect((await rig.get('/units?state=inactive&q=GOOD')).data).to.have.length(0);
    });

    itWithSystemd('says why an action failed, and finds the unit that failed', async () => {
        await finish('bad.service', 'start');
        // For systemd it has started once its process exists: that the process failed comes a moment later.
        await until(async () => (await stateOf('bad.service')) === 'failed');
        const { findings } = (await rig.get('/unhealthy')).data;
        const found = findings.find(({ kind }: { kind: string }) => kind === 'unit');
        expect(found).to.include({
            subject: 'bad.service',
            message: 'A bad one failed',
            severity: 'warning'
        });
        expect(Date.now() - Date.parse(found.since)).to.be.within(0, 60_000);
        const reload = await finish('bad.service', 'reload');
        expect(reload.state).to.equal('failed');
        expect(JSON.stringify(reload.error)).to.contain('40971');
    });

    itWithSystemd('shows what a unit says, by level and what is more severe', async () => {
        expect((await finish('talks.service', 'start')).state).to.equal('succeeded');
        const said = async (query = ''): Promise<string[]> =>
            (await rig.get(`/logs/lines?source=unit:talks.service${query}`, 'op')).data.map(
                ({ level, text }: { level: string; text: string }) => `${level} ${text}`
            );
        // The journal hears of a line a moment after it was written.
        const all = await until(
            async () => {
                const lines = await said();
                return lines.some((line) => line.endsWith('detail')) && lines;
            },
            'the journal to have the lines',
            60_000
        );
        expect(all.toReversed()).to.equal([
            'critical on fire',
            'error broken',
            'warning odd',
            'info plain',
            'debug detail'
        ]);
        for (const [level, count] of [
            ['critical', 1],
            ['error', 2],
            ['warning', 3],
            ['info', 4],
            ['debug', 5]
        ] as const) {
            expect([level, await said(`&level=${level}`)]).to.equal([level, all.slice(-count)]);
        }
        expect(await said('&level=warning&q=BROKEN')).to.equal(['error broken']);
        const { data: sources } = await rig.get('/logs/sources', 'op');
        expect(sources.map(({ id }: { id: string }) => id)).to.include('unit:talks.service');
    });

    itWithSystemd('refuses what ends the machine, what is not there, and names that are none', async () => {
        expect((await act('systemd-poweroff.service', 'start')).code).to.equal(40352);
        expect((await act('none.service', 'start')).code).to.equal(40400);
        for (const name of ['--help.service/x', '-.slice', 'multi-user.target', 'a%20b.service', 'a']) {
            expect([40001, 40400], name).to.include((await act(name, 'stop')).code ?? 0);
        }
        expect((await act('good.service', 'kill')).code).to.equal(40400);
        expect((await act('good.service', 'stop', 'op')).code).to.equal(40300);
    });

    it('protects the unit that the panel runs in', async () => {
        const own = '0::/system.slice/portico.service\n';
        rig.machine.files.set(`/proc/${process.pid}/cgroup`, own);
        rig.host.programs.answer('systemctl', 'Id=portico.service\nLoadState=loaded\n');
        const { calls } = rig.host.programs;
        const before = calls.length;
        for (const action of ['stop', 'restart']) {
            expect((await act('alias.service', action)).code).to.equal(40352);
        }
        expect(calls.slice(before).every(({ args }) => args[0] === 'show')).to.be.true();
    });

    it('says where there is no systemd', async () => {
        rig.host.programs.answer('systemctl', {
            code: 1,
            stderr: "System has not been booted with systemd as init system (PID 1). Can't operate.\n"
        });
        expect((await rig.get('/units')).code).to.equal(50302);
        expect((await rig.get('/unhealthy')).data.unseen).not.to.include('units');
        rig.host.programs.answer('systemctl', { code: 1, stderr: 'garbage' });
        expect((await rig.get('/units')).code).to.equal(50371);
        expect((await rig.get('/unhealthy')).data.unseen).to.include('units');
    });
});
