import { readFileSync } from 'node:fs';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { json } from '../../../../core/src/server/http/route.ts';
import { metrics } from '../../../../extensions/monitoring/src/metrics.ts';
import { entriesOf } from '../../../support/plugin-host.ts';
import { memoryOf, snapshot } from '../machine.ts';
import { base, createMonitoringRig, type MonitoringRig } from '../rig.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

const rule = {
    name: 'Memory',
    metric: 'memory.usedPercent',
    threshold: 90,
    recoverThreshold: 80,
    forSeconds: 0
};

describe('monitoring over HTTP', () => {
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

    it('lists processes by what they use, and shows command lines to whoever may see them only', async () => {
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

    it('has rules from the beginning, and makes, changes and removes them by version', async () => {
        const defaults = await rig.get('/rules');
        expect(
            defaults.data.map(
                ({ name, enabled, version }: { name: string; enabled: boolean; version: number }) => [
                    name,
                    enabled,
                    version
                ]
            )
        ).to.equal(
            [
                'Disk nearly full',
                'Disk full',
                'Inodes nearly used up',
                'Memory nearly used up',
                'Load high'
            ].map((name) => [name, true, 1])
        );
        expect(
            (
                await rig.rig.ask('viewer', 'GET', `${base}/rules`, undefined, {
                    'if-none-match': defaults.headers.get('etag') ?? ''
                })
            ).status
        ).to.equal(304);
        const made = await rig.rig.ask('op', 'POST', `${base}/rules`, rule);
        expect([made.status, made.headers.get('location'), made.headers.get('etag')]).to.equal([
            201,
            `${base}/rules/6`,
            '"1"'
        ]);
        expect(made.data).to.include({
            id: 6,
            operator: '>',
            severity: 'warning',
            enabled: true,
            firing: 0,
            version: 1,
            recoverThreshold: 80
        });
        expect((await rig.get('/rules/6')).data).to.equal(made.data);
        const changed = await rig.rig.ask('op', 'PUT', `${base}/rules/6`, {
            ...made.data,
            threshold: 95,
            recoverThreshold: null
        });
        expect([
            changed.status,
            changed.data.threshold,
            changed.data.recoverThreshold,
            changed.data.version,
            changed.data.name
        ]).to.equal([200, 95, null, 2, 'Memory']);
        expect((await rig.get('/rules/6')).data).to.equal(changed.data);
        expect((await rig.rig.ask('op', 'PUT', `${base}/rules/6`, { threshold: 95 })).data).to.equal(
            changed.data
        );
        const stale = await Promise.all([
            rig.rig.ask('op', 'PUT', `${base}/rules/6`, { threshold: 1 }, { 'if-match': '"1"' }),
            rig.rig.ask('op', 'PUT', `${base}/rules/6`, { threshold: 1, version: 1 }),
            rig.rig.ask('op', 'DELETE', `${base}/rules/6`, undefined, { 'if-match': '"1"' })
        ]);
        expect(stale.map(({ code, data }) => [code, data.version])).to.equal([
            [41200, 2],
            [41200, 2],
            [41200, 2]
        ]);
        const racing = await Promise.all(
            [1, 2, 3, 4].map((index) =>
                rig.rig.ask('op', 'PUT', `${base}/rules/6`, { threshold: 90 + index }, { 'if-match': '"2"' })
            )
        );
        expect(racing.map(({ status }) => status).sort()).to.equal([200, 412, 412, 412]);
        const winner = racing.find(({ status }) => status === 200);
        expect((await rig.get('/rules/6')).data).to.equal(winner?.data);
        const removed = await rig.rig.ask('op', 'DELETE', `${base}/rules/6`, undefined, {
            'if-match': '"3"'
        });
        expect([removed.status, removed.data]).to.equal([200, null]);
        expect((await rig.get('/rules/6')).code).to.equal(40400);
        const entries = entriesOf(rig.rig)
            .filter(({ outcome }) => outcome === 'success')
            .map(({ action, resource, resourceId }) => [action, resource, resourceId]);
        expect(entries).to.equal([
            ['create', 'rule', 6],
            ['update', 'rule', 6],
            ['update', 'rule', 6],
            ['update', 'rule', 6],
            ['delete', 'rule', 6]
        ]);
        expect(entriesOf(rig.rig).findLast(({ action }) => action === 'delete')?.before).to.include({
            name: 'Memory'
        });
    });

    it('refuses rules that make no sense, and changes nothing', async () => {
        const before = (await rig.get('/rules')).data;
        const wrong = await Promise.all(
            [
                { ...rule, metric: 'nothing' },
                { ...rule, recoverThreshold: 91 },
                { ...rule, operator: '<', recoverThreshold: 89 },
                { ...rule, operator: '==' },
                { ...rule, threshold: '90' },
                { ...rule, forSeconds: -1 },
                { ...rule, severity: 'loud' },
                { ...rule, more: 1 },
                { name: 'x' },
                { ...rule, name: ' x' },
                { ...rule, metric: 'cpu.usage:3' },
                { ...rule, threshold: null },
                { ...rule, name: 'a\r\nb' }
            ].map((body) => rig.rig.ask('op', 'POST', `${base}/rules`, body))
        );
        expect(wrong.map(({ code }) => code)).to.equal(wrong.map(() => 40001));
        expect(wrong[1]?.data.errors[0].path).to.equal('recoverThreshold');
        expect([
            (await rig.rig.ask('op', 'POST', `${base}/rules`, { ...rule, name: 'disk FULL' })).code,
            (await rig.rig.ask('op', 'PUT', `${base}/rules/1`, { name: 'Disk full' })).data.field
        ]).to.equal([40900, 'name']);
        expect([
            (await rig.rig.ask('op', 'PUT', `${base}/rules/1`, { threshold: 50 })).data.errors[0].path,
            (await rig.rig.ask('op', 'PUT', `${base}/rules/999`, { threshold: 50 })).code,
            (await rig.rig.ask('op', 'DELETE', `${base}/rules/999`)).code
        ]).to.equal(['recoverThreshold', 40400, 40400]);
        const refused = await Promise.all([
            rig.rig.ask('viewer', 'POST', `${base}/rules`, rule),
            rig.rig.ask('viewer', 'PUT', `${base}/rules/1`, {}),
            rig.rig.ask('viewer', 'DELETE', `${base}/rules/1`)
        ]);
        expect(refused.map(({ code, data }) => [code, data.permission])).to.equal(
            refused.map(() => [40300, 'monitoring:write'])
        );
        expect((await rig.get('/rules')).data).to.equal(before);
    });

    it('has no more than 200 rules', async () => {
        for (let index = 0; index < 195; index += 1) {
            expect(
                (await rig.rig.ask('op', 'POST', `${base}/rules`, { ...rule, name: `r${index}` })).status
            ).to.equal(201);
        }
        expect((await rig.rig.ask('op', 'POST', `${base}/rules`, rule)).data.reason).to.equal(
            'TOO_MANY_RULES'
        );
    });
});

describe('alerts over HTTP', () => {
    let rig: MonitoringRig;
    before(async () => {
        const records = [
            {
                name: 'broken',
                state: 'failed',
                failure: { stage: 'running', code: 'START_FAILED', message: 'It cannot start' },
                health: null
            },
            {
                name: 'half',
                state: 'running',
                failure: null,
                health: {
                    state: 'degraded',
                    at: '2026-03-01T12:00:00.000Z',
                    checks: [
                        { name: 'disk', state: 'degraded', evidence: 'slow', remedy: { text: 'Wait' } },
                        { name: 'net', state: 'ok', evidence: null, remedy: null }
                    ]
                }
            },
            { name: 'monitoring', state: 'failed', failure: null, health: null }
        ];
        rig = await createMonitoringRig({
            rigOptions: {
                routes: [
                    json({
                        id: 'plugins.list',
                        method: 'GET',
                        path: '/api/plugin-list',
                        access: 'plugins:read',
                        summary: 'Plugins',
                        handler: () => records
                    }),
                    json({
                        id: 'proxyengine.status',
                        method: 'GET',
                        path: '/api/proxyengine/status',
                        access: 'engine:read',
                        summary: 'Engine',
                        handler: () => ({ running: false, wanted: 'running' })
                    })
                ]
            }
        });
    });
    after(() => rig.end());
    const memory = async (percent: number): Promise<void> => {
        rig.machine.files.set('/proc/meminfo', memoryOf(percent));
        await rig.machine.tick();
    };

    it('fires, tells people once, and ends with the value', async () => {
        expect((await rig.rig.ask('op', 'POST', `${base}/rules`, rule)).status).to.equal(201);
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
        expect((await rig.get('/rules/6')).data.firing).to.equal(1);
        expect(rig.rig.notified.map(({ title }) => title)).to.equal(['Memory']);
        await memory(79);
        const { data } = await rig.get('/alerts');
        expect(data[0]).to.include({ state: 'ended', endedBy: 'recovered', worst: 99, last: 79 });
        expect(
            rig.rig.notified.map(({ event, title }) => [event.replace(/^monitoring\./, ''), title])
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
        expect(rig.rig.notified.map((notification) => notification.data)).to.equal([ids, ids]);
        expect((await rig.get('/alerts?state=firing')).data).to.equal([]);
    });

    it('watches every disk by itself, and ends alerts with their rule', async () => {
        const made = await rig.rig.ask('op', 'POST', `${base}/rules`, {
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
        const told = rig.rig.notified.length;
        await rig.rig.ask('op', 'PUT', `${base}/rules/${made.data.id as number}`, {
            metric: 'disk.usedPercent:/tank'
        });
        expect((await rig.get('/alerts?state=firing')).data).to.equal([]);
        await memory(10);
        expect(
            (await rig.get('/alerts?state=firing')).data.map(({ instance }: { instance: string }) => instance)
        ).to.equal(['/tank']);
        await rig.rig.ask('op', 'PUT', `${base}/rules/${made.data.id as number}`, { enabled: false });
        await rig.rig.ask('op', 'PUT', `${base}/rules/${made.data.id as number}`, { enabled: true });
        await memory(10);
        await rig.rig.ask('op', 'DELETE', `${base}/rules/${made.data.id as number}`);
        const ends = (await rig.get(`/alerts?ruleId=${made.data.id as number}&limit=20`)).data.map(
            ({ endedBy }: { endedBy: string }) => endedBy
        );
        expect(ends).to.equal(['rule-deleted', 'rule-disabled', 'rule-changed', 'rule-changed', 'recovered']);
        // The person who changed the rule knows: no notification is sent.
        expect(rig.rig.notified.slice(told).map(({ title }) => title)).to.equal([
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

    it('says in one answer what is unhealthy, as far as the caller may see it', async () => {
        rig.machine.spaces.set('/tank', { total: 100, free: 1, available: 1, inodes: 100, inodesFree: 3 });
        rig.machine.spaces.set('/srv/my files', Promise.reject(new Error('gone')));
        await memory(95);
        const { data } = await rig.get('/unhealthy', 'root');
        const rows = data.findings.map(
            ({ kind, severity, subject }: { kind: string; severity: string; subject: string }) =>
                `${severity} ${kind} ${subject}`
        );
        expect([data.healthy, data.unseen, rows]).to.equal([
            false,
            [],
            [
                'critical disk /srv/my files',
                'critical disk /tank',
                'critical disk /tank',
                'critical plugin broken',
                'critical engine engine',
                'warning alert memory.usedPercent',
                'warning plugin half'
            ]
        ]);
        expect(data.findings.find(({ subject }: { subject: string }) => subject === 'half')).to.include({
            message: 'disk: slow',
            remedy: 'Wait'
        });
        const seen = (await rig.get('/unhealthy')).data;
        expect([
            seen.unseen,
            seen.findings.some(({ kind }: { kind: string }) => kind === 'plugin' || kind === 'engine')
        ]).to.equal([['plugins', 'engine'], false]);
    });

    it('documents its routes as they are', () => {
        const readme = readFileSync(
            new URL('../../../../extensions/monitoring/README.md', import.meta.url),
            'utf8'
        );
        for (const { path, methods } of rig.generation.document.routes) {
            expect(readme, `${methods.join()} ${path}`).to.match(
                new RegExp(`\\| (?:${methods.join('|')})[^|]*\`${path.replace(/[{}/]/g, '\\$&')}`)
            );
        }
        for (const name of [
            ...metrics.map((metric) => metric.name),
            ...Object.keys((rig.generation.definition.settings as { keys: object }).keys).map(
                (key) => `${key}\` |`
            )
        ]) {
            expect(readme).to.contain(`\`${name.replace(/` \|$/, '')}\``);
        }
    });
});
