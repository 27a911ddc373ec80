import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { faultyRegistry, registryAddress } from '../engines.ts';
import { FaultyRegistry } from './faulty-registry.ts';
import { describeOnEngines } from './on-engines.ts';

export const lab = Lab.script();

describeOnEngines(lab, 'A registry that answers wrong', (real) => {
    real('brings nothing, is told as what it is, and the pull can be repeated', async (rig) => {
        const good = `${registryAddress}/fault/app:1`;
        await rig.engine.importImage(good, 'kept');
        await rig.make('/images/push', { image: good });
        const { data: known } = await rig.get(`/images/${encodeURIComponent(good)}`);
        const [digest = ''] = (known.digests as string[]).map((each) => each.split('@')[1] ?? '');
        expect((await rig.ask('DELETE', `/images/${encodeURIComponent(good)}?force=true`)).status).to.equal(
            200
        );
        const images = async (): Promise<readonly string[]> =>
            ((await rig.get('/images')).data as { id: string }[]).map(({ id }) => id).sort();
        const before = await images();
        {
            await using _faulty = await FaultyRegistry.start(rig.engine);
            // A manifest by its tag has no digest that it could fail to have.
            const faults = ['html/app:1', `manifest/app@${digest}`, 'layer/app:1', 'cut/app:1', 'fail/app:1'];
            for (const fault of faults) {
                const image = `${faultyRegistry}/${fault}`;
                const { state, error } = await rig.run('/images/pull', { image });
                expect([fault, state, error?.code]).to.equal([fault, 'failed', 50250]);
                expect(await images(), fault).to.equal(before);
            }
            // One that stops in the middle of a layer holds its own pull alone, which can be cancelled.
            const { data: task } = await rig.post('/images/pull', { image: `${faultyRegistry}/stall/app:1` });
            expect((await rig.get('/containers')).status).to.equal(200);
            await rig.host.tasks.cancel(task.id as number);
            expect((await rig.host.tasks.wait(task.id as number)).state).to.equal('cancelled');
            // A stack keeps what runs.
            const compose = (image: string): string =>
                `services: { one: { image: "${image}", command: [sleep, "1000"], stop_grace_period: 0s } }`;
            const there = `${faultyRegistry}/whole/app:1`;
            await rig.make('/images/pull', { image: there });
            await rig.make('/stacks', { name: 'wrong', compose: compose(there) });
            const { data: running } = await rig.get('/containers/wrong-one-1');
            const failed = await rig.run(
                '/stacks/wrong',
                { compose: compose(`${faultyRegistry}/html/app:1`) },
                'PUT'
            );
            expect(failed.error?.code).to.equal(50250);
            const { data: still } = await rig.get('/containers/wrong-one-1');
            expect([still.id, still.state]).to.equal([running.id, 'running']);
            expect((await rig.get('/stacks/wrong')).data).to.include({ state: 'running', revision: 1 });
            await rig.make('/stacks/wrong', {}, 'DELETE');
        }
        // One that is gone.
        const gone = await rig.run('/images/pull', { image: `${faultyRegistry}/html/app:1` });
        expect([gone.state, gone.error?.code]).to.equal(['failed', 50250]);
        await rig.make('/images/pull', { image: good });
    });
});
