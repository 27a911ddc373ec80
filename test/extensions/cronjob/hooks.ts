import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { createCronjobRig, type CronjobRig } from './rig.ts';

export const lab = Lab.script();
const { describe, it, beforeEach, afterEach } = lab;

const maxBytes = 8 * 2 ** 20;

describe('cronjob in exports and imports', () => {
    let cron: CronjobRig;
    let other: CronjobRig;

    beforeEach(async () => {
        cron = await createCronjobRig();
        other = await createCronjobRig();
    });

    afterEach(async () => {
        await cron.close();
        await other.close();
    });

    const exported = async (): Promise<{ readonly name: string; readonly data: unknown }[]> => {
        const [outcome] = await cron.host.hooks.run('export.collect', { maxBytes });
        expect(outcome?.ok).to.be.true();
        return JSON.parse(JSON.stringify(outcome?.ok === true ? outcome.result : null));
    };
    const restore = async (items: { name: string; data: unknown }[], mode: 'merge' | 'replace') => {
        const [outcome] = await other.host.hooks.run('import.restore', { version: '1.0.0', mode, items });
        return outcome?.ok === true ? outcome.result : outcome;
    };
    const all = async (harness: CronjobRig) =>
        (await harness.ask('GET', '/tasks')).data.map((task: Record<string, unknown>) => ({
            ...task,
            id: 0,
            version: 0,
            lastRun: null,
            createdAt: '',
            updatedAt: ''
        }));

    it('gives all tasks with the values of their environments, and says that runs are left out', async () => {
        const id = await cron.task({
            name: 'dump',
            command: ['sh', '-c', 'echo $PASSWORD'],
            env: { PASSWORD: 'swordfish' },
            retries: 3,
            deadManSeconds: 90_000
        });
        await cron.task({ name: 'script', script: '#!/bin/sh\ntrue\n', enabled: false });
        await cron.finish(id);
        const items = await exported();
        expect(items.map(({ name }) => name)).to.equal(['tasks']);
        expect(JSON.stringify(items)).to.include('swordfish').and.to.include('history of runs');
        expect(await restore(items, 'merge')).to.equal([{ item: 'tasks', ok: true }]);
        expect(await all(other)).to.equal(await all(cron));
        expect((await other.finish(1)).output).to.equal('swordfish\n');
    });

    it('takes the place of tasks of the same name, and twice is as once', async () => {
        await cron.task({ name: 'one', command: ['true'] });
        await cron.task({ name: 'twin', command: ['echo', '1'] });
        await cron.task({ name: 'twin', command: ['echo', '2'] });
        const items = await exported();
        const own = await other.task({ name: 'own', command: ['true'] });
        const one = await other.task({ name: 'one', command: ['false'], env: { GONE: 'x' } });
        await restore(items, 'merge');
        await restore(items, 'merge');
        const { data } = await other.ask('GET', '/tasks');
        expect(
            data.map(({ name, command }: { name: string; command: string[] }) => [name, command])
        ).to.equal([
            ['own', ['true']],
            ['one', ['true']],
            ['twin', ['echo', '1']],
            ['twin', ['echo', '2']]
        ]);
        expect(data[1]).to.include({ id: one, env: {} });
        await restore(items, 'replace');
        expect((await other.ask('GET', `/tasks/${own}`)).status).to.equal(404);
        expect(await all(other)).to.equal(await all(cron));
    });

    it('restores what it can, and names what it cannot', async () => {
        await cron.task({ name: 'good', command: ['true'] });
        const items = await exported();
        const { tasks } = items[0]?.data as { tasks: object[] };
        tasks.push({ ...tasks[0], name: 'stranger', user: 'nobody-of-that-name' });
        tasks.push({ ...tasks[0], name: 'bad', timezone: 'Mars/Base' });
        expect(await restore(items, 'merge')).to.equal([
            {
                item: 'tasks',
                ok: false,
                message:
                    'Not restored: bad: timezone is not a time zone that this machine knows, such as Europe/Berlin'
            }
        ]);
        const { data } = await other.ask('GET', '/tasks');
        expect(data.map(({ name }: { name: string }) => name)).to.equal(['good', 'stranger']);
        expect(await restore([{ name: 'tasks', data: { tasks: [{ name: 7 }] } }], 'replace')).to.include({
            ok: false
        });
        expect((await other.ask('GET', '/tasks')).data).to.have.length(2);
    });
});
