/** Inspections and policies: what the assistant does when no user asks. */
import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { until } from '../../support/until.ts';
import { type AiRig, type Any, createAiRig } from './rig.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const now = Date.UTC(2026, 2, 1, 12);

function mountState(rig: AiRig, state: { running: boolean }): void {
    const { api } = rig.host;
    api.route({
        id: 'proxyengine.status',
        permission: 'engine:read',
        handler: () => ({
            running: state.running,
            wanted: 'running',
            message: 'exit 1',
            drifted: false,
            lastApply: null
        })
    });
    api.route({
        id: 'hosts.list',
        permission: 'hosts:read',
        handler: () => [
            {
                id: 1,
                domain: 'shop.acme.com',
                enabled: true,
                state: 'error',
                stateMessage: 'unknown module',
                maintenance: false
            },
            { id: 2, domain: 'b', enabled: true, state: 'applied' }
        ]
    });
    api.route({
        id: 'certificates.list',
        permission: 'certificates:read',
        handler: () => [
            { name: 'old', notAfter: '2026-02-01T00:00:00Z' },
            { name: 'soon', notAfter: '2026-03-08T00:00:00Z', autoRenew: false },
            { name: 'fine', notAfter: '2027-01-01T00:00:00Z' }
        ]
    });
    api.route({
        id: 'plugins.list',
        permission: 'plugins:read',
        handler: () => [
            {
                name: 'php',
                state: 'running',
                health: {
                    checks: [
                        {
                            name: 'pools',
                            state: 'degraded',
                            evidence: 'One pool is full',
                            remedy: { text: 'Grow it' }
                        }
                    ]
                }
            }
        ]
    });
}

describe('inspections', { timeout: 60_000 }, () => {
    it('find what is wrong without a model, and say what could not be looked at', async () => {
        const rig = await createAiRig({ provider: null, now });
        mountState(rig, { running: false });
        const started = await rig.ask('POST', '/inspections', undefined, 'admin');
        expect(started.status).to.equal(202);
        await rig.host.tasks.wait();
        const [one] = (await rig.ask('GET', '/inspections')).data;
        expect(one.findings.map(({ severity, subject }: Any) => [severity, subject])).to.equal([
            ['critical', 'engine'],
            ['critical', 'shop.acme.com'],
            ['critical', 'old'],
            ['warning', 'soon'],
            ['warning', 'php: pools']
        ]);
        expect(one.score).to.equal(100 - 3 * 25 - 2 * 8);
        expect(one.skipped).to.include('monitoring.unhealthy');
        expect(one.summary).to.include('3 critical, 2 warnings');
        expect((await rig.ask('GET', `/inspections/${one.id}`)).data).to.equal(one);
        await rig.close();
    });

    it('see only what their user may see', async () => {
        const rig = await createAiRig({ provider: null, now });
        mountState(rig, { running: true });
        const few = rig.host.as({ username: 'few', permissions: ['inspect', 'hosts:read'] });
        await few.post('/inspections');
        await rig.host.tasks.wait();
        const [one] = (await few.get<Any>('/inspections')).data;
        expect(one.findings.map(({ subject }: Any) => subject)).to.equal(['shop.acme.com']);
        expect(one.skipped).to.include(['plugins.list', 'certificates.list', 'proxyengine.status']);
        await rig.close();
    });

    it('run daily under the mandate of the admin, with a summary of the model and a notification', async () => {
        const rig = await createAiRig({ now, settings: { redaction: 'strict' } });
        mountState(rig, { running: true });
        rig.model.say({ text: 'host-1.placeholder.invalid is refused.' });
        const tired = rig.host.as({ username: 'admin', role: 'admin', fresh: false });
        expect((await tired.put('/inspection', { enabled: true })).code).to.equal(40301);
        expect((await rig.ask('PUT', '/inspection', { enabled: true })).code).to.equal(40300);
        const set = await rig.ask(
            'PUT',
            '/inspection',
            { enabled: true, time: '06:30', timezone: 'Europe/Berlin' },
            'admin'
        );
        expect(set.data).to.include({ enabled: true, time: '06:30', username: 'admin', version: 2 });
        const next = await rig.host.schedules.next('inspection');
        expect(next?.toLocaleTimeString('de', { timeZone: 'Europe/Berlin' })).to.equal('06:30:00');
        await rig.host.schedules.run('inspection');
        const [one] = (await rig.ask('GET', '/inspections')).data;
        expect(one).to.include({ trigger: 'daily', username: 'admin', summary: 'shop.acme.com is refused.' });
        expect(JSON.stringify(rig.model.questions)).to.not.include('acme');
        expect(rig.host.notifications.at(-1)?.title).to.include('findings');
        const told = rig.host.notifications.length;
        for (const [notify, more] of [
            ['never', 0],
            ['findings', 1],
            ['always', 2]
        ] as const) {
            expect((await rig.ask('PUT', '/inspection', { notify }, 'admin')).data.notify).to.equal(notify);
            await rig.host.schedules.run('inspection');
            expect([notify, rig.host.notifications.length - told]).to.equal([notify, more]);
        }
        rig.host.mandates.list().forEach(({ id }) => rig.host.mandates.revoke(id));
        await rig.host.schedules.run('inspection');
        expect(rig.host.notifications.at(-1)?.title).to.equal('The daily inspection could not be made');
        expect((await rig.ask('GET', '/inspections')).data.length).to.equal(4);
        await rig.ask('PUT', '/inspection', { enabled: false }, 'admin');
        await rig.host.restart();
        await rig.close();
    });
});

describe('policies', { timeout: 60_000 }, () => {
    const restarts: string[] = [];
    const raise = (
        rig: AiRig,
        type = 'monitoring.alert-firing',
        title = 'Memory of web is full'
    ): Promise<unknown> =>
        rig.host.hooks.run('notification.raised', {
            type,
            timestamp: new Date(now).toISOString(),
            data: { severity: 'warning', title, text: null, details: null }
        });
    const mount = (rig: AiRig): void => {
        restarts.length = 0;
        rig.host.api.route({
            id: 'container.restart',
            plugin: 'container',
            path: '/api/plugins/container/containers/{id}/restart',
            method: 'POST',
            permission: 'container:run',
            summary: 'Restart',
            handler: ({ params, actor }) =>
                void restarts.push(`${(params as { id: string }).id} by ${actor.kind} ${actor.username}`)
        });
        rig.host.api.route({
            id: 'container.remove',
            plugin: 'container',
            path: '/api/plugins/container/containers/{id}',
            method: 'DELETE',
            permission: 'container:run',
            summary: 'Remove'
        });
    };
    const policy = async (rig: AiRig, given: object = {}): Promise<Any> =>
        (
            await rig.ask(
                'POST',
                '/policies',
                {
                    name: 'Restart web',
                    event: 'monitoring.alert-*',
                    text: 'web',
                    action: { route: 'container.restart', params: { id: 'web' } },
                    ...given
                },
                'admin'
            )
        ).data;
    const runs = async (rig: AiRig, id: number): Promise<Any[]> =>
        (await rig.ask('GET', `/policies/${id}/runs`)).data;

    it('suggest, once in a while, for what fits alone', async () => {
        const rig = await createAiRig({ provider: null, now });
        mount(rig);
        const { id } = await policy(rig, { severity: 'warning', perDay: 2, cooldownSeconds: 300 });
        const others = [
            await policy(rig, { name: 'Errors', severity: 'error' }),
            await policy(rig, { name: 'Off', enabled: false })
        ];
        await raise(rig, 'backup.failed');
        await raise(rig, 'monitoring.alert-firing', 'Something else');
        expect(await runs(rig, id)).to.equal([]);
        await raise(rig);
        await raise(rig);
        rig.time.at = now + 301_000;
        await raise(rig);
        rig.time.at = now + 602_000;
        await raise(rig);
        expect((await runs(rig, id)).map(({ state }) => state)).to.equal([
            'limited',
            'suggested',
            'limited',
            'suggested'
        ]);
        expect(rig.host.notifications.map(({ title }) => title)).to.equal(
            Array(2).fill('Policy Restart web suggests: container.restart')
        );
        expect(restarts).to.equal([]);
        for (const other of others) {
            expect(await runs(rig, other.id)).to.equal([]);
        }
        await raise(rig, 'ai.policy-suggests');
        await rig.close();
    });

    it('ask their owner, with a plan of the moment in which the owner looks', async () => {
        const rig = await createAiRig({ provider: null, now });
        mount(rig);
        const { id } = await policy(rig, { mode: 'ask' });
        await raise(rig);
        expect(restarts).to.equal([]);
        expect((await rig.ask('GET', '/approvals')).data).to.equal([]);
        const [approval] = (await rig.ask('GET', '/approvals', undefined, 'admin')).data;
        expect(approval).to.include({
            state: 'pending',
            route: 'container.restart',
            arguments: { params: { id: 'web' } },
            conversationId: null
        });
        expect((await runs(rig, id))[0]).to.include({ state: 'asked', approvalId: approval.id });
        await rig.ask('POST', `/approvals/${approval.id}/approve`, { hash: approval.hash }, 'admin');
        expect(restarts).to.equal(['web by user admin']);
        expect((await runs(rig, id))[0]).to.include({ state: 'done', code: 0 });
        await rig.close();
    });

    it('act under a mandate that a fresh session gave, until it is revoked', async () => {
        const rig = await createAiRig({ provider: null, now });
        mount(rig);
        const { id } = await policy(rig, { mode: 'ask' });
        expect(
            (
                await rig.ask(
                    'POST',
                    '/policies',
                    { name: 'x', event: 'a.*', action: { route: 'container.restart' }, mode: 'auto' },
                    'admin'
                )
            ).code
        ).to.equal(40001);
        const tired = rig.host.as({ username: 'admin', role: 'admin', fresh: false });
        expect((await tired.post(`/policies/${id}/authorize`)).code).to.equal(40301);
        const given = await rig.ask('POST', `/policies/${id}/authorize`, undefined, 'admin');
        expect([given.code, given.data?.mode]).to.equal([0, 'auto']);
        await raise(rig);
        await until(() => restarts.length === 1);
        expect(restarts).to.equal(['web by mandate admin']);
        expect((await runs(rig, id))[0]).to.include({ state: 'done', code: 0 });
        const [mandate] = rig.host.mandates.list();
        rig.host.mandates.revoke((mandate as { id: number }).id);
        rig.time.at = now + 3_700_000;
        await raise(rig);
        expect((await runs(rig, id))[0]).to.include({ state: 'failed', code: 40103 });
        expect(restarts.length).to.equal(1);
        expect((await rig.ask('GET', `/policies/${id}`)).data.mode).to.equal('ask');
        await rig.close();
    });

    it('lose the right to act when they change, and never act where something is removed', async () => {
        const rig = await createAiRig({ provider: null, now });
        mount(rig);
        const { id } = await policy(rig);
        await rig.ask('POST', `/policies/${id}/authorize`, undefined, 'admin');
        const renamed = await rig.ask('PUT', `/policies/${id}`, { name: 'Other name' }, 'admin');
        expect(renamed.data.mode).to.equal('auto');
        const changed = await rig.ask(
            'PUT',
            `/policies/${id}`,
            { action: { route: 'container.restart', params: { id: 'db' } } },
            'admin'
        );
        expect(changed.data).to.include({
            mode: 'ask',
            action: { route: 'container.restart', params: { id: 'db' } }
        });
        await raise(rig);
        expect(restarts).to.equal([]);
        const removing = await policy(rig, { action: { route: 'container.remove', params: { id: 'web' } } });
        expect(
            (await rig.ask('POST', `/policies/${removing.id}/authorize`, undefined, 'admin')).code
        ).to.equal(40001);
        expect(
            (
                await rig.ask(
                    'POST',
                    '/policies',
                    { name: 'x', event: 'a.*', action: { route: 'users.create' } },
                    'admin'
                )
            ).code
        ).to.equal(40001);
        await rig.ask('POST', `/policies/${id}/authorize`, undefined, 'admin');
        const valid = () => rig.host.mandates.list().filter(({ ended }) => !ended);
        expect(valid()).to.have.length(1);
        expect((await rig.ask('DELETE', `/policies/${id}`, undefined, 'admin')).code).to.equal(0);
        expect(valid()).to.equal([]);
        await rig.close();
    });
});
