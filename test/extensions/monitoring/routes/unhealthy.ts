import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { until } from '../../../support/until.ts';
import { memoryOf } from '../machine.ts';
import { base, createMonitoringRig, type MonitoringRig } from '../rig.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

describe('/api/plugins/monitoring/unhealthy', () => {
    let rig: MonitoringRig;
    const tries: number[] = [];
    let hold: Promise<void> = Promise.resolve();
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
                        {
                            name: 'disk',
                            state: 'degraded',
                            evidence: 'slow',
                            remedy: { text: 'Wait', command: 'sleep 1' }
                        },
                        { name: 'net', state: 'ok', evidence: null, remedy: null }
                    ]
                }
            },
            { name: 'monitoring', state: 'failed', failure: null, health: null }
        ];
        rig = await createMonitoringRig();
        rig.host.api.route({
            id: 'plugins.list',
            path: '/api/plugin-list',
            permission: 'plugins:read',
            handler: () => records
        });
        rig.host.api.route({
            id: 'proxyengine.status',
            path: '/api/proxyengine/status',
            permission: 'engine:read',
            handler: () => ({ running: false, wanted: 'running' })
        });
        rig.host.api.route({
            id: 'hosts.list',
            path: '/api/host-list',
            permission: 'plugins:read',
            handler: () => [
                { id: 1, domain: 'good.test', state: 'applied', stateMessage: null, enabled: true },
                { id: 2, domain: 'bad.test', state: 'error', stateMessage: 'unknown handler', enabled: true },
                { id: 3, domain: 'off.test', state: 'applied', stateMessage: null, enabled: false }
            ]
        });
        rig.host.api.route({
            id: 'hosts.check',
            path: '/api/host-list/{id}/check',
            permission: 'plugins:read',
            handler: async ({ params }) => {
                const { id } = params as { readonly id: number | string };
                tries.push(Number(id));
                await hold;
                const ok = Number(id) !== 1;
                return [
                    { id: 'dns', ok: false, evidence: 'no name', remedy: null },
                    {
                        id: 'upstream',
                        ok,
                        evidence: ok ? 'Connected' : '127.0.0.1:3000: connection refused',
                        remedy: ok ? null : 'Start the upstream, or correct its address'
                    }
                ];
            }
        });
        rig.host.api.route({
            id: 'certificates.list',
            path: '/api/certificate-list',
            permission: 'plugins:read',
            handler: () => [
                { name: 'long', notAfter: '2026-09-01T00:00:00Z', lastError: null },
                { name: 'short', notAfter: '2026-03-07T12:00:00Z', lastError: null },
                { name: 'never', notAfter: null, lastError: { detail: 'no such name' } }
            ]
        });
        rig.host.api.route({
            id: 'tasks.list',
            path: '/api/task-list',
            permission: 'plugins:read',
            handler: () => [
                {
                    id: 9,
                    kind: 'x.y',
                    title: 'Copy',
                    finishedAt: '2026-03-01T11:00:00Z',
                    error: { message: 'full' }
                },
                { id: 8, kind: 'x.y', title: '', finishedAt: '2026-02-27T11:00:00Z', error: null }
            ]
        });
    });
    after(() => rig.end());

    it('says in one answer what is unhealthy, as far as the caller may see it', async () => {
        const rule = { name: 'Memory', metric: 'memory.usedPercent', threshold: 90, forSeconds: 0 };
        expect((await rig.ask('op', 'POST', `${base}/rules`, rule)).status).to.equal(201);
        rig.machine.spaces.set('/tank', { total: 100, free: 1, available: 1, inodes: 100, inodesFree: 3 });
        rig.machine.spaces.set('/srv/my files', Promise.reject(new Error('gone')));
        rig.machine.files.set('/proc/meminfo', memoryOf(95));
        await rig.machine.tick();
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
                'critical host bad.test',
                'critical upstream good.test',
                'critical certificate never',
                'warning alert memory.usedPercent',
                'warning plugin half',
                'warning certificate short',
                'warning task Copy (9)'
            ]
        ]);
        expect(data.findings.find(({ subject }: { subject: string }) => subject === 'half')).to.include({
            message: 'disk: slow',
            remedy: 'Wait: sleep 1'
        });
        const seen = (await rig.get('/unhealthy')).data;
        expect([
            seen.unseen,
            seen.findings.some(({ kind }: { kind: string }) => kind === 'plugin' || kind === 'engine')
        ]).to.equal([['plugins', 'engine', 'hosts', 'upstreams', 'certificates', 'tasks'], false]);
    });

    it('tries upstreams at most once in 30 seconds, and waits for none that hangs', async () => {
        const upstreams = async (): Promise<readonly [object[], boolean]> => {
            const { findings, unseen } = (await rig.get('/unhealthy', 'root')).data;
            return [
                findings.filter(({ kind }: { kind: string }) => kind === 'upstream'),
                unseen.includes('upstreams')
            ];
        };
        rig.machine.pass(30_000);
        tries.length = 0;
        const expected = {
            kind: 'upstream',
            severity: 'critical',
            subject: 'good.test',
            message: '127.0.0.1:3000: connection refused',
            since: null,
            remedy: 'Start the upstream, or correct its address'
        };
        expect(await upstreams()).to.equal([[expected], false]);
        expect(await upstreams()).to.equal([[expected], false]);
        expect(tries).to.equal([1, 2]);
        rig.machine.pass(30_000);
        const { promise, resolve } = Promise.withResolvers<void>();
        hold = promise;
        expect(await upstreams()).to.equal([[], true]);
        resolve();
        await until(async () => (await upstreams())[1] === false, 'the tries to end');
        expect(tries).to.equal([1, 2, 1, 2]);
    });
});
