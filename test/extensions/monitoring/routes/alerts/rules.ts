import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

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

describe('/api/plugins/monitoring/rules', () => {
    let rig: MonitoringRig;
    before(async () => {
        rig = await createMonitoringRig();
    });
    after(() => rig.end());

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
                'Load high',
                'A check is down',
                'The certificate of a check ends soon'
            ].map((name) => [name, true, 1])
        );
        expect(
            (
                await rig.ask('viewer', 'GET', `${base}/rules`, undefined, {
                    'if-none-match': defaults.headers.get('etag') ?? ''
                })
            ).status
        ).to.equal(304);
        const made = await rig.ask('op', 'POST', `${base}/rules`, rule);
        expect([made.status, made.headers.get('location'), made.headers.get('etag')]).to.equal([
            201,
            `${base}/rules/8`,
            '"1"'
        ]);
        expect(made.data).to.include({
            id: 8,
            operator: '>',
            severity: 'warning',
            enabled: true,
            firing: 0,
            version: 1,
            recoverThreshold: 80
        });
        expect((await rig.get('/rules/8')).data).to.equal(made.data);
        const changed = await rig.ask('op', 'PUT', `${base}/rules/8`, {
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
        expect((await rig.get('/rules/8')).data).to.equal(changed.data);
        expect((await rig.ask('op', 'PUT', `${base}/rules/8`, { threshold: 95 })).data).to.equal(
            changed.data
        );
        const stale = await Promise.all([
            rig.ask('op', 'PUT', `${base}/rules/8`, { threshold: 1 }, { 'if-match': '"1"' }),
            rig.ask('op', 'PUT', `${base}/rules/8`, { threshold: 1, version: 1 }),
            rig.ask('op', 'DELETE', `${base}/rules/8`, undefined, { 'if-match': '"1"' })
        ]);
        expect(stale.map(({ code, data }) => [code, data.version])).to.equal([
            [41200, 2],
            [41200, 2],
            [41200, 2]
        ]);
        const racing = await Promise.all(
            [1, 2, 3, 4].map((index) =>
                rig.ask('op', 'PUT', `${base}/rules/8`, { threshold: 90 + index }, { 'if-match': '"2"' })
            )
        );
        expect(racing.map(({ status }) => status).sort()).to.equal([200, 412, 412, 412]);
        const winner = racing.find(({ status }) => status === 200);
        expect((await rig.get('/rules/8')).data).to.equal(winner?.data);
        const removed = await rig.ask('op', 'DELETE', `${base}/rules/8`, undefined, {
            'if-match': '"3"'
        });
        expect([removed.status, removed.data]).to.equal([200, null]);
        expect((await rig.get('/rules/8')).code).to.equal(40400);
        const entries = rig.host.audit
            .filter(({ outcome }) => outcome === 'success')
            .map(({ action, resource, resourceId }) => [action, resource, resourceId]);
        expect(entries).to.equal([
            ['create', 'rule', 8],
            ['update', 'rule', 8],
            ['update', 'rule', 8],
            ['update', 'rule', 8],
            ['delete', 'rule', 8]
        ]);
        expect(rig.host.audit.findLast(({ action }) => action === 'delete')?.before).to.include({
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
            ].map((body) => rig.ask('op', 'POST', `${base}/rules`, body))
        );
        expect(wrong.map(({ code }) => code)).to.equal(wrong.map(() => 40001));
        expect(wrong[1]?.data.errors[0].path).to.equal('recoverThreshold');
        expect([
            (await rig.ask('op', 'POST', `${base}/rules`, { ...rule, name: 'disk FULL' })).code,
            (await rig.ask('op', 'PUT', `${base}/rules/1`, { name: 'Disk full' })).data.field
        ]).to.equal([40900, 'name']);
        expect([
            (await rig.ask('op', 'PUT', `${base}/rules/1`, { threshold: 50 })).data.errors[0].path,
            (await rig.ask('op', 'PUT', `${base}/rules/999`, { threshold: 50 })).code,
            (await rig.ask('op', 'DELETE', `${base}/rules/999`)).code
        ]).to.equal(['recoverThreshold', 40400, 40400]);
        const refused = await Promise.all([
            rig.ask('viewer', 'POST', `${base}/rules`, rule),
            rig.ask('viewer', 'PUT', `${base}/rules/1`, {}),
            rig.ask('viewer', 'DELETE', `${base}/rules/1`)
        ]);
        expect(refused.map(({ code, data }) => [code, data.permission])).to.equal(
            refused.map(() => [40300, 'monitoring:write'])
        );
        expect((await rig.get('/rules')).data).to.equal(before);
    });

    it('has no more than 200 rules', async () => {
        for (let index = 0; index < 193; index += 1) {
            expect(
                (await rig.ask('op', 'POST', `${base}/rules`, { ...rule, name: `r${index}` })).status
            ).to.equal(201);
        }
        expect((await rig.ask('op', 'POST', `${base}/rules`, rule)).data.reason).to.equal('TOO_MANY_RULES');
    });
});
