import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { percentile } from '../../../../extensions/monitoring/src/traffic/latency.ts';
import { until } from '../../../support/until.ts';
import { createMonitoringRig, type MonitoringRig } from '../rig.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

const dayMs = 86_400_000;
let rig: MonitoringRig;

/** A visit so many milliseconds before now, as the machine of the test has it. */
const visit = (agoMs: number, more: Parameters<typeof rig.host.accessLog.add>[0] = {}): void =>
    rig.host.accessLog.add({ at: new Date(rig.machine.time - agoMs), hostId: 1, ...more });
interface Row {
    readonly at: string;
    readonly requests: number;
    readonly statuses: object;
    readonly latencyMs: Readonly<Record<'p50' | 'p95' | 'p99', number>>;
}

/** The answer when it counts so many requests. */
const traffic = (requests: number, query = ''): Promise<readonly Row[]> =>
    until(async () => {
        const { data } = (await rig.get(`/traffic${query}`)) as { readonly data: readonly Row[] };
        return data.reduce((sum, row) => sum + row.requests, 0) === requests ? data : null;
    }, `${requests} requests to be counted`);

describe('/api/plugins/monitoring/traffic', () => {
    beforeEach(async () => {
        rig = await createMonitoringRig();
    });
    afterEach(() => rig.end());

    it('counts requests, bytes, statuses and latencies by minute and host', async () => {
        const minute = new Date(Math.floor(rig.machine.time / 60_000) * 60_000).toISOString();
        for (let n = 1; n <= 100; n += 1) {
            visit(0, { status: n > 98 ? 502 : 200, bytes: 10, ms: n > 98 ? 4_000 : 4 });
        }
        visit(0, { status: 0, ms: 1, dropped: 3 });
        visit(0, { hostId: null, status: 308, path: '/secret?no' });
        const [none, one] = await traffic(102);
        expect(none).to.include({ at: minute, hostId: null, requests: 1 });
        expect(one).to.include({ at: minute, hostId: 1, requests: 101, bytes: 1_000, missed: 3 });
        expect(one?.statuses).to.equal({ none: 1, '1xx': 0, '2xx': 98, '3xx': 0, '4xx': 0, '5xx': 2 });
        expect(one?.latencyMs.p50 ?? NaN).to.be.within(2, 5);
        expect(one?.latencyMs.p99 ?? NaN).to.be.within(2_500, 5_000);
        expect(await traffic(101, '?hostId=1')).to.equal([one]);
    });

    it('adds steps up, and minutes that are older than two days to hours', async () => {
        for (const ago of [0, 60_000, 3 * dayMs, 3 * dayMs + 60_000, 40 * dayMs]) {
            visit(ago);
        }
        const month = `?from=${new Date(rig.machine.time - 50 * dayMs).toISOString()}`;
        const before = await traffic(5, `${month}&step=86400`);
        expect(before.map(({ requests }) => requests)).to.equal([1, 2, 2]);
        await rig.host.schedules.run('prune');
        expect((await traffic(4, `${month}&step=86400`)).map(({ requests }) => requests)).to.equal([2, 2]);
        expect((await traffic(4, month)).every(({ at }) => at.endsWith(':00:00.000Z'))).to.be.true();
        expect((await traffic(2)).map(({ requests }) => requests)).to.equal([1, 1]);
    });

    it('goes on after a restart where it ended, and counts nothing twice', async () => {
        visit(2_000);
        visit(1_000);
        await traffic(2);
        await rig.host.restart();
        visit(0);
        await traffic(3);
    });

    it('refuses spans that it cannot answer, and counts nothing where it is switched off', async () => {
        for (const query of ['?step=90', '?step=30', '?from=2026-03-02T00:00:00Z&to=2026-03-01T00:00:00Z']) {
            expect((await rig.get(`/traffic${query}`)).code, query).to.equal(40001);
        }
        await rig.end();
        rig = await createMonitoringRig({ settings: { trafficDays: 0 } });
        visit(0);
        expect(await traffic(0)).to.equal([]);
    });
});

describe('percentile', () => {
    it('is estimated from classes, and unknown without requests', () => {
        expect(percentile([], 0.5)).to.equal(null);
        expect(percentile([0, 10], 0.5)).to.equal(1.5);
        expect(percentile([...Array.from({ length: 14 }, () => 0), 3], 0.99)).to.equal(30_000);
    });
});
