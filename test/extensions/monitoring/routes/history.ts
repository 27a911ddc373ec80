import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { snapshot } from '../machine.ts';
import { createMonitoringRig, type MonitoringRig } from '../rig.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

describe('/api/plugins/monitoring/metrics/history', () => {
    let rig: MonitoringRig;
    before(async () => {
        rig = await createMonitoringRig();
        rig.machine.use(snapshot('second'));
        await rig.machine.tick();
    });
    after(() => rig.end());

    it('answers history step by step, with null where nothing was measured', async () => {
        await rig.machine.tick();
        const now = rig.machine.time;
        const from = new Date(now - 60_000).toISOString();
        const { status, data } = await rig.get(
            `/metrics/history?metric=cpu.usage&from=${from}&to=${new Date(now).toISOString()}&step=10`
        );
        expect([status, data.metric, data.unit, data.step, data.points.length]).to.equal([
            200,
            'cpu.usage',
            'percent',
            10,
            7
        ]);
        expect(data.points.map(({ avg }: { avg: number | null }) => avg)).to.equal([
            null,
            null,
            null,
            null,
            null,
            25,
            null
        ]);
        const disk = await rig.get('/metrics/history?metric=disk.usedPercent%3A%2Fsrv%2Fmy%20files&step=60');
        expect(disk.data.points.at(-1)).to.equal({
            at: '2026-03-01T12:00:00.000Z',
            ...Object.fromEntries(['min', 'avg', 'max'].map((name) => [name, (600_000 / 900_000) * 100]))
        });
        expect(
            (await rig.get('/metrics/history?metric=network.rx:eth7')).data.points.every(
                ({ avg }: { avg: null }) => avg === null
            )
        ).to.be.true();
    });

    it('refuses history that it cannot give, and says why', async () => {
        const faults = await Promise.all(
            [
                'metric=cpu.usages',
                'metric=disk.used',
                'metric=cpu.usage:0',
                'metric=cpu.usage&from=2026-03-02T00:00:00Z&to=2026-03-01T00:00:00Z',
                'metric=cpu.usage&step=0',
                'from=2026-03-01T00:00:00Z',
                'metric=cpu.usage&until=1',
                'metric=cpu.usage&from=yesterday'
            ].map((query) => rig.get(`/metrics/history?${query}`))
        );
        expect(faults.map(({ code }) => code)).to.equal(faults.map(() => 40001));
        expect(faults[1]?.data.errors).to.equal([
            { path: 'metric', message: 'metric needs an instance: disk.used:<disk>, such as disk.used:/' }
        ]);
        const much = await rig.get('/metrics/history?metric=cpu.usage&from=1990-01-01T00:00:00Z&step=7200');
        expect([much.code, much.data.reason, much.data.limit]).to.equal([40050, 'TOO_MANY_POINTS', 5_000]);
    });
});
