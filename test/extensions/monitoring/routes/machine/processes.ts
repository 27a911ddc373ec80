import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { snapshot } from '../../machine.ts';
import { createMonitoringRig, type MonitoringRig } from '../../rig.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

describe('/api/plugins/monitoring/processes', () => {
    let rig: MonitoringRig;
    before(async () => {
        rig = await createMonitoringRig();
        rig.machine.use(snapshot('second'));
        await rig.machine.tick();
    });
    after(() => rig.end());

    it('lists processes by what they use, and shows command lines only to users who may see them', async () => {
        const list = await rig.get('/processes?sort=memory');
        expect([
            list.status,
            list.headers.get('x-total-count'),
            list.data.map(({ pid }: { pid: number }) => pid)
        ]).to.equal([200, '3', [77, 1, 90]]);
        expect(list.text).not.to.contain('s3cret');
        expect(
            list.data.every(
                ({ command, cpu }: { command: null; cpu: null }) => command === null && cpu === null
            )
        ).to.be.true();
        expect((await rig.get('/processes', 'op')).text).not.to.contain('s3cret');
        rig.machine.pass(1_000);
        const full = await rig.get('/processes?sort=pid&limit=2', 'root');
        expect(
            full.data.map(({ command, cpu }: { command: string; cpu: number }) => [command, cpu])
        ).to.equal([
            ['/sbin/init', 0],
            ['/usr/bin/worker --token s3cret value', 0]
        ]);
        expect((await rig.get('/processes?q=new')).data).to.have.length(1);
        expect((await rig.get('/processes?limit=0')).code).to.equal(40001);
    });
});
