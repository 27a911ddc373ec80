import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { memoryOf } from '../machine.ts';
import { base, createMonitoringRig, type MonitoringRig } from '../rig.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

const memoryRule = { name: 'M', metric: 'memory.usedPercent', threshold: 90, forSeconds: 0 };

describe('monitoring: how alerts are handled', () => {
    let rig: MonitoringRig;
    beforeEach(async () => {
        rig = await createMonitoringRig();
        rig.machine.files.set('/proc/meminfo', memoryOf(10));
    });
    afterEach(() => rig.end());

    const memory = async (percent: number | null): Promise<void> => {
        rig.machine.files.set('/proc/meminfo', percent === null ? '' : memoryOf(percent));
        await rig.machine.tick();
    };
    const make = async (rule: object): Promise<number> => {
        const { status, data } = await rig.ask('op', 'POST', `${base}/rules`, { ...memoryRule, ...rule });
        expect(status).to.equal(201);
        return data.id;
    };
    const titles = (): string[] => rig.host.notifications.map(({ title }) => title);
    const alerts = async () => (await rig.get('/alerts')).data;
    const silence = (body: object) =>
        rig.ask('op', 'POST', `${base}/silences`, { until: '2026-03-01T12:05:00Z', ...body });

    it('fires when a value is absent, and recovers with the first one', async () => {
        await make({ name: 'Gone', operator: 'absent', threshold: undefined, forSeconds: 20 });
        await make({ name: 'Disks', operator: 'absent', metric: 'disk.used', forSeconds: 0 });
        expect(
            (await rig.ask('op', 'POST', `${base}/rules`, { name: 'x', metric: 'cpu.usage' })).code
        ).to.equal(40001);
        for (let turn = 0; turn < 3; turn += 1) {
            await memory(null);
        }
        expect(titles()).to.equal(['Gone']);
        expect((await alerts())[0]).to.include({ value: null, worst: null, last: null, state: 'firing' });
        await rig.host.restart();
        await memory(null);
        await memory(50);
        expect(titles()).to.equal(['Gone', 'Over: Gone']);
    });

    it('tells again until it is acknowledged, and then only the end', async () => {
        await make({ repeatSeconds: 60 });
        for (let turn = 0; turn < 8; turn += 1) {
            await memory(95);
        }
        expect(titles()).to.equal(['M', 'M']);
        const [{ id }] = await alerts();
        const path = `${base}/alerts/${id}/acknowledgement`;
        expect((await rig.ask('viewer', 'POST', path, {})).status).to.equal(403);
        const taken = await rig.ask('op', 'POST', path, { note: 'On it' });
        expect(taken.data).to.include({
            acknowledgedBy: 'op',
            note: 'On it',
            acknowledgedAt: '2026-03-01T12:01:20.100Z'
        });
        await rig.host.restart();
        for (let turn = 0; turn < 8; turn += 1) {
            await memory(95);
        }
        expect([titles().length, (await alerts())[0].acknowledgedBy]).to.equal([2, 'op']);
        expect((await rig.ask('op', 'DELETE', path)).data.acknowledgedBy).to.be.null();
        await memory(95);
        expect(titles()).to.have.length(3);
        await rig.ask('op', 'POST', path, {});
        await memory(10);
        expect(titles().at(-1)).to.equal('Over: M');
        expect((await rig.ask('op', 'POST', path, {})).code).to.equal(40400);
    });

    it('is quiet about an alert that comes soon after another', async () => {
        await make({ cooldownSeconds: 120 });
        for (const percent of [95, 10, 95, 10]) {
            await memory(percent);
        }
        expect(titles()).to.equal(['M', 'Over: M']);
        expect(await alerts()).to.have.length(2);
        await rig.host.restart();
        await memory(95);
        await memory(10);
        expect(titles()).to.have.length(2);
        rig.machine.pass(120_000);
        await memory(95);
        expect(titles()).to.equal(['M', 'Over: M', 'M']);
    });

    it('records what is silenced and does not tell it; what still fires afterwards is told', async () => {
        const rule = await make({});
        expect((await silence({ until: '2026-03-01T11:00:00Z' })).code).to.equal(40001);
        const made = await silence({ metric: 'memory.usedPercent', reason: 'Backup' });
        expect([made.status, made.data.active]).to.equal([201, true]);
        await silence({ ruleId: await make({ name: 'Other', threshold: 99 }) });
        for (const [field, value] of [
            ['ruleId', rule + 100],
            ['metric', 'no.such']
        ] as const) {
            const refused = await silence({ [field]: value });
            expect([refused.code, refused.data.errors[0].path]).to.equal([40001, field]);
            const change = await rig.ask('op', 'PUT', `${base}/silences/${made.data.id}`, { [field]: value });
            expect([change.code, change.data.errors[0].path]).to.equal([40001, field]);
        }
        await memory(95);
        expect([titles(), (await alerts())[0].silencedBy]).to.equal([[], made.data.id]);
        await memory(10);
        await memory(95);
        await rig.host.restart();
        await memory(95);
        expect(titles()).to.equal([]);
        const path = `${base}/silences/${made.data.id}`;
        expect(
            (await rig.ask('op', 'PUT', path, { until: '2026-03-01T12:01:00Z', version: 2 })).code
        ).to.equal(41200);
        expect((await rig.ask('op', 'PUT', path, { until: '2026-03-01T12:01:00Z' })).data.version).to.equal(
            2
        );
        await memory(95);
        await memory(95);
        expect([titles(), (await alerts())[0].silencedBy]).to.equal([['M'], null]);
        expect((await rig.ask('op', 'DELETE', path)).status).to.equal(200);
        expect((await rig.get('/silences')).data).to.have.length(1);
    });

    it('calls the action of a rule once for an alert, within its limits, as the person who authorized it', async () => {
        const called: unknown[] = [];
        let fails = false;
        rig.host.api.route({
            id: 'cronjob.runTask',
            method: 'POST',
            path: '/api/run/{id}',
            permission: 'cronjob:run',
            handler: ({ actor, params, payload }) => {
                if (fails) {
                    throw new Error('broken');
                }
                called.push([actor.username, params, payload]);
                return {};
            }
        });
        const action = {
            route: 'cronjob.runTask',
            params: { id: '7' },
            payload: { secret: 'sesame' },
            cooldownSeconds: 60,
            perDay: 2
        };
        const id = await make({ action });
        const actions = async (): Promise<[string, number | null][]> =>
            (await rig.get(`/rules/${id}/actions`)).data.map(
                (row: { state: string; code: number | null }) => [row.state, row.code]
            );
        const fire = async (): Promise<void> => {
            await memory(10);
            await memory(95);
            for (let turn = 0; turn < 20; turn += 1) {
                await new Promise((resolve) => {
                    setTimeout(resolve, 5);
                });
            }
        };
        await fire();
        expect([called, await actions()]).to.equal([[], [['failed', 40103]]]);
        expect((await rig.ask('op', 'POST', `${base}/rules/${id}/authorize`)).status).to.equal(403);
        const given = await rig.ask('root', 'POST', `${base}/rules/${id}/authorize`);
        expect([given.status, given.data.authorized]).to.equal([200, true]);
        expect(JSON.stringify((await rig.get(`/rules/${id}`)).data)).to.not.contain('sesame');
        await fire();
        expect((await actions())[0]).to.equal(['limited', null]);
        rig.machine.pass(60_000);
        await fire();
        expect([called, (await actions())[0]]).to.equal([
            [['root', { id: '7' }, { secret: 'sesame' }]],
            ['done', 0]
        ]);
        rig.machine.pass(60_000);
        await fire();
        expect((await actions())[0]).to.equal(['limited', null]);
        rig.machine.pass(86_400_000);
        await silence({ until: '2026-04-01T00:00:00Z' });
        await fire();
        expect(called).to.have.length(1);
        await rig.ask('op', 'DELETE', `${base}/silences/1`);
        fails = true;
        await fire();
        expect((await actions())[0]).to.equal(['failed', 50000]);
        const changed = await rig.ask('op', 'PUT', `${base}/rules/${id}`, { threshold: 80 });
        expect([changed.data.authorized, rig.host.mandates.list().map(({ ended }) => ended)]).to.equal([
            false,
            [true]
        ]);
    });

    it('sends a test notification by the channels of a rule', async () => {
        rig.host.api.route({
            id: 'channels.list',
            path: '/api/channels',
            permission: 'settings:read',
            handler: () => [
                { id: 1, enabled: true, events: ['monitoring.*'] },
                { id: 2, enabled: false, events: ['*'] },
                { id: 3, enabled: true, events: ['deploy.*'] }
            ]
        });
        const all = await make({ name: 'All' });
        const some = await make({ name: 'Some', channels: [2, 3] });
        const test = async (as: 'op' | 'root', id: number) =>
            (await rig.ask(as, 'POST', `${base}/rules/${id}/test`)).data.delivered;
        expect([await test('op', all), await test('op', some)]).to.equal([[], [2, 3]]);
        expect(rig.host.notifications.at(-1)).to.include({ title: 'Test: Some', channels: [2, 3] });
    });
});
