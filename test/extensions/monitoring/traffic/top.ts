import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { networkOf } from '../../../../extensions/monitoring/src/traffic/top.ts';
import { until } from '../../../support/until.ts';
import { createMonitoringRig, type MonitoringRig } from '../rig.ts';

export const lab = Lab.script();
const { afterEach, beforeEach, describe, it } = lab;

const dayMs = 86_400_000;

describe('/api/plugins/monitoring/traffic/top', () => {
    let rig: MonitoringRig;
    const visit = (more: Parameters<typeof rig.host.accessLog.add>[0] = {}, agoMs = 0): void =>
        rig.host.accessLog.add({
            at: new Date(rig.machine.time - agoMs),
            hostId: 1,
            bytes: 10,
            status: 200,
            ...more
        });
    const top = async (query: string): Promise<readonly unknown[]> =>
        (await rig.get(`/traffic/top${query}`, 'op')).data.map(
            ({ value, requests, bytes }: Record<string, unknown>) => [value, requests, bytes]
        );
    /** The answer when it counts so many requests. */
    const counted = (requests: number, query: string) =>
        until(async () => {
            const rows = await top(query);
            return (rows as [string, number][]).reduce((sum, row) => sum + row[1], 0) === requests
                ? rows
                : null;
        }, `${requests} requests to be counted`);

    beforeEach(async () => {
        rig = await createMonitoringRig();
    });
    afterEach(() => rig.end());

    it('lists the most frequent values by host and day, without query strings and whole addresses', async () => {
        visit({ path: '/old', ip: '198.51.100.1' }, dayMs);
        visit({ path: '/a', ip: '203.0.113.7', agent: 'curl/8', status: 404 });
        visit({ path: '/a', ip: '203.0.113.99', agent: null });
        visit({ path: '/b', ip: '2001:db8:1:2::5', hostId: 2 });
        expect(await counted(3, '')).to.equal([
            ['/a', 2, 20],
            ['/b', 1, 10]
        ]);
        expect(await top('?by=address')).to.equal([
            ['203.0.113.0/24', 2, 20],
            ['2001:db8:1::/48', 1, 10]
        ]);
        expect(await top('?by=status&hostId=1')).to.equal([
            ['404', 1, 10],
            ['200', 1, 10]
        ]);
        expect(await top('?by=agent&hostId=1')).to.equal([
            ['curl/8', 1, 10],
            ['', 1, 10]
        ]);
        expect((await rig.get('/traffic/top')).status).to.equal(403);
    });

    it('keeps days apart, also over a restart, for a week', async () => {
        visit({ path: '/old' }, dayMs);
        await counted(1, '?days=2');
        visit({ path: '/new' });
        await counted(1, '');
        await rig.host.schedules.run('traffic');
        await rig.host.restart();
        expect(await top('')).to.equal([['/new', 1, 10]]);
        expect(await top('?days=2')).to.equal([
            ['/old', 1, 10],
            ['/new', 1, 10]
        ]);
        rig.machine.pass(1_000);
        visit({ path: '/new' });
        await counted(2, '');
        rig.machine.pass(7 * dayMs);
        visit({ path: '/later' });
        await counted(1, '?days=7');
        await rig.host.schedules.run('traffic');
        const rows = await rig.host.db.read((em) =>
            em.execute<{ day: number }[]>('select day from traffic_top')
        );
        expect(rows).to.have.length(1);
    });

    it('keeps frequent values among more made up ones than there is room for', async () => {
        for (let n = 0; n < 24_000; n += 1) {
            visit({ path: n % 4 === 0 ? '/real' : `/made-up/${n}`, ip: '203.0.113.7', agent: 'x' });
        }
        const [first] = await until(
            async () => {
                const rows = (await top('')) as [string, number][];
                return rows[0]?.[1] === 6_000 ? rows : null;
            },
            'all to be counted',
            60_000
        );
        expect(first?.[0]).to.equal('/real');
        expect(await top('?by=address')).to.equal([['203.0.113.0/24', 24_000, 240_000]]);
        await rig.host.schedules.run('traffic');
        const [row] = await rig.host.db.read((em) =>
            em.execute<{ bytes: number }[]>('select length(data) as bytes from traffic_top')
        );
        expect(row?.bytes ?? Infinity).to.be.below(200_000);
    });

    it('keeps whole addresses, or none, where the setting says so', async () => {
        await rig.end();
        rig = await createMonitoringRig({ settings: { trafficAddresses: 'full' } });
        visit({ ip: '2001:db8::1' });
        expect(await counted(1, '?by=address')).to.equal([['2001:db8::1', 1, 10]]);
        await rig.end();
        rig = await createMonitoringRig({ settings: { trafficAddresses: 'none' } });
        visit({ ip: '2001:db8::1' });
        await counted(1, '');
        expect(await top('?by=address')).to.equal([]);
    });
});

describe('networkOf', () => {
    it('cuts addresses of both kinds', () => {
        for (const [ip, network] of [
            ['192.0.2.200', '192.0.2.0/24'],
            ['::ffff:192.0.2.200', '192.0.2.0/24'],
            ['2001:0db8:00ff:1::1', '2001:db8:ff::/48'],
            ['fe80::1%eth0', 'fe80:0:0::/48'],
            ['::1', '0:0:0::/48']
        ] as const) {
            expect(networkOf(ip)).to.equal(network);
        }
    });
});
