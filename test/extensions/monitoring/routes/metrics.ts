import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { metrics } from '../../../../extensions/monitoring/src/sampling/metrics.ts';
import { snapshot } from '../machine.ts';
import { createMonitoringRig, type MonitoringRig } from '../rig.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

describe('/api/plugins/monitoring/metrics', () => {
    let rig: MonitoringRig;
    before(async () => {
        rig = await createMonitoringRig();
    });
    after(() => rig.end());

    it('shows the newest sample: nulls for rates at first, and what they are after the next', async () => {
        const first = await rig.get('/metrics');
        expect([
            first.status,
            first.data.cpu.usage,
            first.data.interfaces[0].rxBytesPerSecond,
            first.data.memory.usedPercent,
            first.data.intervalSeconds
        ]).to.equal([200, null, null, 75, null]);
        rig.machine.use(snapshot('second'));
        expect(await rig.machine.tick()).to.equal(10_000);
        const { data } = await rig.get('/metrics');
        expect([
            data.cpu.usage,
            data.interfaces[0].rxBytesPerSecond,
            data.interfaces[0].txBytesPerSecond,
            data.at
        ]).to.equal([25, 10_000, null, '2026-03-01T12:00:10.100Z']);
        expect(data.containers.map(({ name }: { name: string }) => name)).to.equal(['bbbbbbbbbbbb', 'web']);
        expect(JSON.stringify(data)).not.to.contain('do-not-show');
    });

    it('names every metric with its instances', async () => {
        const { data } = await rig.get('/metrics/catalogue');
        expect(data.map(({ name }: { name: string }) => name)).to.equal(metrics.map(({ name }) => name));
        const of = (name: string): unknown =>
            data.find((each: { name: string }) => each.name === name).instances;
        expect([
            of('cpu.usage'),
            of('disk.usedPercent'),
            of('device.read'),
            of('container.cpu'),
            of('network.tx')
        ]).to.equal([
            [],
            ['/', '/srv/my files', '/tank'],
            ['cciss/c0d0', 'sda'],
            ['bbbbbbbbbbbb', 'web'],
            []
        ]);
    });
});
