import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { memoryOf } from '../machine.ts';
import { base, createMonitoringRig, type MonitoringRig } from '../rig.ts';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

describe('/api/plugins/monitoring/unhealthy', () => {
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
});
