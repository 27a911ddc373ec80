import { fork } from 'node:child_process';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createMachine } from '../../../../extensions/monitoring/src/machine.ts';
import { ProcessHistory } from '../../../../extensions/monitoring/src/processes/history.ts';
import type { Ctx } from '../../../../extensions/monitoring/src/settings.ts';
import { snapshot, worked } from '../machine.ts';
import { createMonitoringRig, type MonitoringRig } from '../rig.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

interface Row {
    readonly pid: number;
    readonly name: string;
    readonly cpu: number | null;
    readonly memory: number;
}

describe('/api/plugins/monitoring/processes/history', () => {
    let rig: MonitoringRig;
    const history = async (query = ''): Promise<readonly Row[]> =>
        (await rig.get(`/processes/history${query}`)).data;
    const at = (agoMs: number): string =>
        `?at=${encodeURIComponent(new Date(rig.machine.time - agoMs).toISOString())}`;

    beforeEach(async () => {
        rig = await createMonitoringRig();
    });
    afterEach(() => rig.end());

    it('says who used most in a past minute, also after a restart, and forgets after its days', async () => {
        rig.machine.use(snapshot('second'));
        await rig.machine.tick();
        const now = await history(at(0));
        const busiest = now[0];
        expect(busiest?.cpu ?? 0).to.be.above(0);
        for (let n = 0; n < 6; n += 1) {
            await rig.machine.tick();
        }
        const minuteBefore = await history();
        expect(minuteBefore.map(({ pid }) => pid).sort()).to.equal(now.map(({ pid }) => pid).sort());
        // It worked for ten of the fifty seconds that were measured.
        expect(minuteBefore[0]?.cpu ?? 0).to.be.about((busiest?.cpu ?? 0) / 5, 0.01);
        await rig.host.restart();
        expect(await history(at(60_000))).to.equal(minuteBefore);
        expect(await history(`${at(60_000)}&sort=memory&limit=1`)).to.have.length(1);
        expect(await history(at(3_600_000))).to.equal([]);
        const stored = at(60_000);
        rig.machine.pass(8 * 86_400_000);
        await rig.host.schedules.run('prune');
        expect(await history(stored)).to.equal([]);
    });

    it('keeps nothing where it is switched off', async () => {
        await rig.end();
        rig = await createMonitoringRig({ settings: { processHistoryDays: 0 } });
        await rig.machine.tick();
        expect(await history(at(0))).to.equal([]);
    });
});

describe('ProcessHistory on this machine', () => {
    it('sees a process that is busy', { timeout: 60_000 }, async () => {
        const rig = await createMonitoringRig();
        const real = createMachine();
        let steady = 0;
        const ctx = {
            db: rig.host.db,
            settings: { processHistoryDays: 1 },
            log: { warn: () => undefined }
        } as unknown as Ctx; // It needs these three of the context.
        const history = new ProcessHistory(ctx, { ...real, monotonic: () => steady });
        const burner = fork(new URL('../sampling/burner.mjs', import.meta.url), {
            stdio: 'ignore',
            execArgv: []
        });
        try {
            history.offer();
            await history.find(real.now());
            const began = performance.now();
            await worked(burner.pid, 0.3);
            steady += 10_000;
            history.offer();
            const found = await history.find(real.now());
            const seconds = (performance.now() - began) / 1000;
            const busy = found.find(({ pid }) => pid === burner.pid);
            // The clock says ten seconds.
            expect(((busy?.cpu ?? 0) / 100) * 10).to.be.within(0.29, seconds + 0.5);
            expect(busy?.memory ?? 0).to.be.above(10_000_000);
            await history.stop();
        } finally {
            const gone = new Promise((resolve) => {
                burner.once('exit', resolve);
            });
            burner.kill('SIGKILL');
            await gone;
            await rig.end();
        }
    });
});
