import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { memoryOf } from '../../machine.ts';
import { base, createMonitoringRig, type MonitoringRig } from '../../rig.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

const rule = {
    name: 'Memory',
    metric: 'memory.usedPercent',
    threshold: 90,
    recoverThreshold: 80,
    forSeconds: 0
};

describe('/api/plugins/monitoring/alerts', () => {
    let rig: MonitoringRig;
    before(async () => {
        rig = await createMonitoringRig();
    });
    after(() => rig.end());
    const memory = async (percent: number): Promise<void> => {
        rig.machine.files.set('/proc/meminfo', memoryOf(percent));
        await rig.machine.tick();
    };

    it('fires, tells people once, and ends with the value', async () => {
        const made = await rig.ask('op', 'POST', `${base}/rules`, { ...rule, channels: [3, 5] });
        expect([made.status, made.data.channels]).to.equal([201, [3, 5]]);
        expect((await rig.get('/rules/8')).data).to.include({ channels: [3, 5] });
        await memory(85);
        expect((await rig.get('/alerts')).data).to.equal([]);
        await memory(95);
        await memory(99);
        await memory(85);
        const firing = (await rig.get('/alerts?state=firing')).data;
        expect(firing).to.have.length(1);
        expect(firing[0]).to.include({
            name: 'Memory',
            metric: 'memory.usedPercent',
            instance: null,
            state: 'firing',
            value: 95,
            worst: 99,
            last: 85,
            threshold: 90,
            endedAt: null
        });
        expect((await rig.get('/rules/8')).data.firing).to.equal(1);
        expect(rig.host.notifications.map(({ title }) => title)).to.equal(['Memory']);
        await memory(79);
        const { data } = await rig.get('/alerts');
        expect(data[0]).to.include({ state: 'ended', endedBy: 'recovered', worst: 99, last: 79 });
        expect(
            rig.host.notifications.map(({ event, title }) => [event.replace(/^monitoring\./, ''), title])
        ).to.equal([
            ['alert-fired', 'Memory'],
            ['alert-ended', 'Over: Memory']
        ]);
        const ids = {
            alertId: data[0].id,
            ruleId: data[0].ruleId,
            metric: 'memory.usedPercent',
            instance: null
        };
        expect(rig.host.notifications.map((notification) => notification.data)).to.equal([ids, ids]);
        expect(rig.host.notifications.map(({ channels }) => channels)).to.equal([
            [3, 5],
            [3, 5]
        ]);
        expect((await rig.get('/alerts?state=firing')).data).to.equal([]);
    });

    it('watches every disk by itself, and ends alerts with their rule', async () => {
        const made = await rig.ask('op', 'POST', `${base}/rules`, {
            name: 'Disks',
            metric: 'disk.usedPercent',
            threshold: 50,
            forSeconds: 0,
            severity: 'critical'
        });
        await memory(10);
        const firing = (await rig.get('/alerts?state=firing')).data;
        expect(
            firing.map(({ instance, ruleId }: { instance: string; ruleId: number }) => [instance, ruleId])
        ).to.equal(['/tank', '/srv/my files', '/'].map((mount) => [mount, made.data.id]));
        rig.machine.spaces.set('/', { total: 100, free: 90, available: 90, inodes: 1, inodesFree: 1 });
        await memory(10);
        expect(
            (await rig.get('/alerts?state=firing')).data.map(({ instance }: { instance: string }) => instance)
        ).to.equal(['/tank', '/srv/my files']);
        const told = rig.host.notifications.length;
        await rig.ask('op', 'PUT', `${base}/rules/${made.data.id as number}`, {
            metric: 'disk.usedPercent:/tank'
        });
        expect((await rig.get('/alerts?state=firing')).data).to.equal([]);
        await memory(10);
        expect(
            (await rig.get('/alerts?state=firing')).data.map(({ instance }: { instance: string }) => instance)
        ).to.equal(['/tank']);
        await rig.ask('op', 'PUT', `${base}/rules/${made.data.id as number}`, { enabled: false });
        await rig.ask('op', 'PUT', `${base}/rules/${made.data.id as number}`, { enabled: true });
        await memory(10);
        await rig.ask('op', 'DELETE', `${base}/rules/${made.data.id as number}`);
        const ends = (await rig.get(`/alerts?ruleId=${made.data.id as number}&limit=20`)).data.map(
            ({ endedBy }: { endedBy: string }) => endedBy
        );
        expect(ends).to.equal(['rule-deleted', 'rule-disabled', 'rule-changed', 'rule-changed', 'recovered']);
        // The person who changed the rule knows: no notification is sent.
        expect(rig.host.notifications.slice(told).map(({ title }) => title)).to.equal([
            'Disks: /tank',
            'Disks: /tank'
        ]);
    });

    it('pages the alerts, newest first', async () => {
        const whole = await rig.get('/alerts?limit=500');
        const seen: number[] = [];
        let path = '/alerts?limit=2';
        for (let page = 0; page < 10 && path !== ''; page += 1) {
            const answer = await rig.get(path);
            seen.push(...answer.data.map(({ id }: { id: number }) => id));
            expect(answer.headers.get('x-total-count')).to.equal(String(whole.data.length));
            path = /<[^>]*\/monitoring([^>]+)>; rel="next"/.exec(answer.headers.get('link') ?? '')?.[1] ?? '';
        }
        expect(seen).to.equal(whole.data.map(({ id }: { id: number }) => id));
        expect((await rig.get('/alerts?cursor=%00')).code).to.equal(40001);
        expect(
            (await rig.get(`/alerts?state=ended&severity=warning`)).data.map(
                ({ name }: { name: string }) => name
            )
        ).to.equal(['Memory']);
    });
});
