/** Chains: tasks that run when a run of another task has ended. */
import { cpSync, rmSync } from 'node:fs';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { until } from '../../../support/until.ts';
import { createCronjobRig, type CronjobRig } from '../rig.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

describe('a chain of tasks', { timeout: 60_000 }, () => {
    let cron: CronjobRig;

    before(async () => {
        cron = await createCronjobRig();
    });
    after(() => cron.close());

    const over = (id: number, count = 1) =>
        until(async () => {
            const runs = await cron.runs(id);
            return runs.length === count && runs.every(({ finishedAt }) => finishedAt !== null) ? runs : null;
        }, `${count} runs of ${id}`);

    it('goes on by how a run ended, and each step knows the run before', async () => {
        const step = () => cron.task({ command: ['true'], enabled: false });
        const [success, failure, always] = [await step(), await step(), await step()];
        const then = [
            { taskId: success, on: 'success' },
            { taskId: failure, on: 'failure' },
            { taskId: always, on: 'always' }
        ];
        const good = await cron.task({ command: ['true'], then });
        const bad = await cron.task({ command: ['false'], then });
        const first = await cron.finish(good);
        expect((await over(success))[0]).to.include({
            trigger: 'chain',
            parentRunId: first.id,
            by: null,
            state: 'succeeded'
        });
        await over(always);
        expect(await cron.runs(failure)).to.equal([]);
        await cron.finish(bad);
        await over(failure);
        await over(always, 2);
        expect(await cron.runs(success)).to.have.length(1);
    });

    it('waits until the retries are used up, and a stop goes on with what is always done', async () => {
        const failure = await cron.task({ command: ['true'] });
        const always = await cron.task({ command: ['true'] });
        const then = [
            { taskId: failure, on: 'failure' },
            { taskId: always, on: 'always' }
        ];
        const flaky = await cron.task({ command: ['false'], retries: 1, backoffSeconds: 1, then });
        await cron.finish(flaky);
        expect(await cron.runs(failure)).to.equal([]);
        const [, retry] = await over(flaky, 2);
        expect((await over(failure))[0].parentRunId).to.equal(retry.id);
        await over(always);
        const slow = await cron.task({ command: ['sleep', '600'], then });
        const { data } = await cron.ask('POST', `/tasks/${slow}/run`);
        await cron.ask('DELETE', `/runs/${data.id}`);
        await over(always, 2);
        expect(await cron.runs(failure)).to.have.length(1);
    });

    it('comes back to no task, follows tasks that are there, and forgets those that are removed', async () => {
        const third = await cron.task({ name: 'third', command: ['true'] });
        const second = await cron.task({ command: ['true'], then: [{ taskId: third, on: 'always' }] });
        const first = await cron.task({ command: ['true'], then: [{ taskId: second, on: 'success' }] });
        const cycle = await cron.ask('PUT', `/tasks/${third}`, { then: [{ taskId: first, on: 'failure' }] });
        expect([cycle.status, cycle.code, cycle.reason]).to.equal([409, 40950, 'CHAIN_CYCLE']);
        expect(
            (await cron.ask('PUT', `/tasks/${third}`, { then: [{ taskId: third, on: 'always' }] })).code
        ).to.equal(40950);
        const missing = await cron.ask('PUT', `/tasks/${third}`, { then: [{ taskId: 999, on: 'always' }] });
        expect([missing.code, missing.data.errors[0].path]).to.equal([40001, 'then.0.taskId']);
        expect((await cron.ask('GET', `/tasks/${third}`)).data).to.include({ then: [], version: 1 });
        await cron.ask('DELETE', `/tasks/${second}`);
        expect((await cron.ask('GET', `/tasks/${first}`)).data).to.include({ then: [], version: 2 });
    });

    it('ends after twenty steps', async () => {
        let next = await cron.task({ command: ['true'] });
        const ids = [next];
        for (let count = 0; count < 22; count += 1) {
            next = await cron.task({ command: ['true'], then: [{ taskId: next, on: 'success' }] });
            ids.unshift(next);
        }
        await cron.ask('POST', `/tasks/${next}/run`);
        await over(ids[20] as number);
        await until(
            async () => cron.host.log.some(({ message }) => message.includes('too long')),
            'the end of the chain'
        );
        expect(await cron.runs(ids[21] as number)).to.equal([]);
    });

    it('is as long as an export says, with the ids of the other panel', async () => {
        const other = await createCronjobRig();
        try {
            await other.task({ name: 'filler', command: ['true'] });
            const last = await cron.task({ name: 'last link', command: ['true'] });
            await cron.task({
                name: 'first link',
                command: ['true'],
                then: [{ taskId: last, on: 'always' }],
                parameters: [{ name: 'KEY', secret: true, default: 'swordfish' }]
            });
            const [outcome] = await cron.host.hooks.run('export.collect', { maxBytes: 2 ** 23 });
            const items = JSON.parse(JSON.stringify(outcome?.ok === true ? outcome.result : null));
            const [restored] = await other.host.hooks.run('import.restore', {
                version: '1.0.0',
                mode: 'replace',
                items
            });
            expect(restored).to.include({ ok: true, result: [{ item: 'tasks', ok: true }] });
            const { data } = await other.ask('GET', '/tasks?q=link');
            const [one, two] = [
                data.find(({ name }: { name: string }) => name === 'first link'),
                data.find(({ name }: { name: string }) => name === 'last link')
            ];
            expect(one.then).to.equal([{ taskId: two.id, on: 'always' }]);
            expect(one.parameters[0].default).to.equal({ set: true });
        } finally {
            await other.close();
        }
    });

    it('is neither lost nor doubled where the plugin ends between two runs', async () => {
        const step = await cron.task({ command: ['true'] });
        const slow = await cron.task({ command: ['sleep', '600'], then: [{ taskId: step, on: 'failure' }] });
        await cron.ask('POST', `/tasks/${slow}/run`);
        await cron.host.stop();
        await cron.host.start();
        expect((await over(step))[0]).to.include({ trigger: 'chain', state: 'succeeded' });
        await cron.host.stop();
        await cron.host.start();
        expect(await cron.runs(step)).to.have.length(1);
    });

    it('goes on after a kill', async () => {
        const step = await cron.task({ command: ['true'] });
        const slow = await cron.task({ command: ['sleep', '600'], then: [{ taskId: step, on: 'always' }] });
        const { data: run } = await cron.ask('POST', `/tasks/${slow}/run`);
        const other = await createCronjobRig();
        try {
            // What a killed panel leaves: its database, in the middle of the run.
            await other.host.stop();
            rmSync(other.folder, { recursive: true });
            cpSync(cron.folder, other.folder, { recursive: true });
            await cron.ask('DELETE', `/runs/${run.id}`);
            await other.host.start();
            const steps = await until(async () => {
                const runs = await other.runs(step);
                return runs.length > 0 && runs.every(({ finishedAt }) => finishedAt !== null) ? runs : null;
            }, 'the step');
            expect(steps).to.have.length(1);
            expect(steps[0]).to.include({ trigger: 'chain', parentRunId: run.id, state: 'succeeded' });
            expect((await other.ask('GET', `/runs/${run.id}`)).data.reason).to.equal('PANEL_DIED');
        } finally {
            await other.close();
        }
    });
});
