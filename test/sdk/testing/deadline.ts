import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { definePlugin } from '@portico/sdk';
import { createTestHost, TestTimeout } from '@portico/testing';

export const lab = Lab.script();
const { describe, it } = lab;

const never = new Promise<never>(() => undefined);

const awaited = async (work: Promise<unknown>): Promise<string> => {
    const error = await work.then(
        () => null,
        (thrown: unknown) => thrown
    );
    expect(error).to.be.instanceof(TestTimeout);
    return (error as TestTimeout).awaited;
};

describe('A wait of the test kit', () => {
    it('fails after the time that the test says, and names what did not come', async () => {
        const plugin = definePlugin({
            setup(ctx) {
                ctx.route({ method: 'GET', path: '/silent', access: 'read', handler: () => never });
                ctx.stream({
                    path: '/events',
                    access: 'read',
                    async *handler({ signal }) {
                        await new Promise((resolve) => signal.addEventListener('abort', resolve));
                        yield { data: null };
                    }
                });
                ctx.route({
                    method: 'POST',
                    path: '/work',
                    access: 'write',
                    handler: ({ actor }) =>
                        ctx.task(
                            { kind: 'endless', access: 'read', actor },
                            ({ signal }) =>
                                new Promise((_resolve, reject) =>
                                    signal.addEventListener('abort', () => reject(signal.reason as Error))
                                )
                        )
                });
            }
        });
        const host = await createTestHost(plugin, { quiet: true, timing: { patienceMs: 600, stopMs: 200 } });
        const { reached } = host.faults.hang('exec');
        expect(await awaited(reached)).to.equal('a use of exec');
        expect(await awaited(host.as('viewer').events('/events').next())).to.equal('an event of GET /events');
        expect(await awaited(host.as('viewer').get('/silent'))).to.equal('the answer of GET /silent');
        await host.as('admin').post('/work', {});
        expect(await awaited(host.tasks.wait())).to.equal('the end of task 1 (test.endless)');
        expect(await awaited(host.schedules.added('nightly'))).to.equal('a schedule nightly');
        await host.close();
    });
});
