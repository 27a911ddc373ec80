import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { contract, definePlugin, type PluginDefinition } from '@portico/sdk';

import type { Generation } from '../../../../core/src/plugins/runtime/generation/generation.ts';
import { exampleHost } from '../../../support/plugins/example-host.ts';
import { createPluginRig, type PluginRig, type RunOptions } from '../../../support/plugins/host.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

interface Math {
    add(input: {
        readonly one: number;
        readonly two: number;
    }): Promise<{ readonly sum: number; readonly by: string }>;
    count(input: null): AsyncIterable<number>;
}

let rig: PluginRig;
/** Held by tests that want a tap or a call to stay inside. */
let stay: Promise<void> = Promise.resolve();
const notices: string[] = [];
const asked: string[] = [];

/** A provider that also guards, changes, hears of and collects. */
function provider(word: string, { refuses = false, taps = true } = {}): PluginDefinition {
    return definePlugin({
        setup(ctx) {
            if (taps) {
                ctx.hooks.tap('host.guard', async () => {
                    asked.push(`${word} guards`);
                    await stay;
                    return refuses ? { refuse: `${word} refuses` } : undefined;
                });
                ctx.hooks.tap('host.beforeSave', ({ host, ...rest }) => ({
                    ...rest,
                    host: { ...host, notes: `${String((host as { notes?: string }).notes ?? '')}${word}` }
                }));
                ctx.hooks.tap('host.beforeSave', ({ host, ...rest }) => ({
                    ...rest,
                    host: { ...host, notes: `${String((host as { notes?: string }).notes ?? '')}!` }
                }));
                ctx.hooks.tap('host.afterChange', () => void asked.push(`${word} hears`));
            }
            return {
                add: async ({ one, two }: { one: number; two: number }) => {
                    await stay;
                    return { sum: one + two, by: word };
                },
                async *count() {
                    asked.push(`${word} counts`);
                    yield 1;
                    await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve));
                }
            };
        }
    });
}

const consumer = definePlugin({
    optional: { math: contract<Math>() },
    setup(ctx) {
        ctx.onPartner('math', (partner) => void notices.push(partner === undefined ? 'gone' : 'here'));
        ctx.route({
            method: 'GET',
            path: '/sum',
            access: 'read',
            handler: async () =>
                ctx.plugins.math === undefined ? { by: 'nobody' } : ctx.plugins.math.add({ one: 1, two: 2 })
        });
        ctx.route({
            method: 'GET',
            path: '/count',
            access: 'read',
            handler: async () => {
                const seen: number[] = [];
                try {
                    for await (const each of ctx.plugins.math?.count(null) ?? []) {
                        seen.push(each);
                    }
                } catch {
                    /* it ends with its generation */
                }
                return { seen };
            }
        });
    }
});

const taps: Pick<RunOptions, 'capabilities'> = { capabilities: { taps: ['host.guard', 'host.beforeSave'] } };
const saved = { before: null, host: { domain: 'a.example' } } as const;
const asks = { action: 'create', before: null, after: exampleHost('a.example') } as const;

/** Swaps by hand, as the swap does; `meanwhile` runs while there is neither the one nor the other. */
async function swap(
    old: Generation,
    definition: PluginDefinition,
    meanwhile: () => void | Promise<void> = () => undefined
): Promise<Generation> {
    const parking = rig.gateway.park('math');
    expect(await parking.drain(2_000)).to.equal(0);
    await old.close('it is swapped');
    await meanwhile();
    const next = await rig.prepare(definition, { name: 'math', version: '2.0.0', ...taps });
    await next.start();
    await next.mount();
    parking.open();
    return next;
}

describe('Contracts and taps of a plugin that is being swapped', { timeout: 60_000 }, () => {
    let running: Generation;

    before(async () => {
        rig = await createPluginRig();
        running = await rig.run(provider('old'), { name: 'math', ...taps });
        await rig.run(consumer, { name: 'other' });
    });
    after(() => rig.close());

    it('lets calls of its contract wait, and its partners see it all the time', async () => {
        notices.length = 0;
        const counting = rig.ask('admin', 'GET', '/api/plugins/other/count');
        while (asked.length === 0) {
            await new Promise((resolve) => setTimeout(resolve, 5));
        }
        let waiting: Promise<unknown>[] = [];
        running = await swap(running, provider('second'), () => {
            waiting = Array.from({ length: 5 }, () =>
                rig.ask('admin', 'GET', '/api/plugins/other/sum').then(({ data }) => data)
            );
            return new Promise((resolve) => setTimeout(resolve, 60));
        });
        expect(await Promise.all(waiting)).to.equal(
            Array.from({ length: 5 }, () => ({ sum: 3, by: 'second' }))
        );
        expect((await counting).data).to.equal({ seen: [1] });
        expect(notices).to.equal(['here']);
    });

    it('waits for calls that are inside', async () => {
        const held = Promise.withResolvers<void>();
        stay = held.promise;
        const inside = rig.ask('admin', 'GET', '/api/plugins/other/sum');
        await new Promise((resolve) => setTimeout(resolve, 50));
        const parking = rig.gateway.park('math');
        expect(await parking.drain(50)).to.equal(1);
        held.resolve();
        expect(await parking.drain(1_000)).to.equal(0);
        parking.open();
        expect((await inside).data).to.equal({ sum: 3, by: 'second' });
    });

    it('never leaves a guard out: runs that come meanwhile wait, and ask the new one', async () => {
        asked.length = 0;
        let runs: Promise<unknown>[] = [];
        running = await swap(running, provider('third', { refuses: true }), () => {
            expect([
                rig.hooks.hostGuard.used,
                rig.hooks.host.taps().some(({ plugin }) => plugin === 'math')
            ]).to.equal([true, false]);
            runs = [
                rig.hooks.hostGuard.run(asks).catch((error: Error) => error.message),
                rig.hooks.hostBeforeSave.run(saved),
                rig.hooks.hostAfterChange.run({ action: 'create', host: { domain: 'a' } } as never) // its tap reads nothing
            ];
        });
        expect(await Promise.all(runs)).to.equal([
            'third refuses',
            { before: null, host: { domain: 'a.example', notes: 'third!' } },
            undefined
        ]);
        expect(asked.toSorted()).to.equal(['third guards', 'third hears']);
    });

    it('asks the new one also in a run that began before the swap, and each of its taps once', async () => {
        const held = Promise.withResolvers<void>();
        rig.hooks.host.tap({ plugin: 'early', version: '1.0.0' }, 'host.beforeSave', () => held.promise, {
            stage: -10
        });
        const run = rig.hooks.hostBeforeSave.run(saved);
        running = await swap(running, provider('fourth'));
        held.resolve();
        expect(await run).to.equal({ before: null, host: { domain: 'a.example', notes: 'fourth!' } });
        rig.hooks.host.release('early');
    });

    it('asks again when a guard was taken away while it was asked', async () => {
        const held = Promise.withResolvers<void>();
        stay = held.promise;
        asked.length = 0;
        const run = rig.hooks.hostGuard.run(asks).catch((error: Error) => error.message);
        await new Promise((resolve) => setTimeout(resolve, 20));
        const parking = rig.gateway.park('math');
        expect(await parking.drain(20)).to.equal(1);
        await running.close('it is cut');
        stay = Promise.resolve();
        running = await rig.run(provider('fifth', { refuses: true }), { name: 'math', ...taps });
        held.resolve();
        await new Promise((resolve) => setTimeout(resolve, 20));
        parking.open();
        expect(await run).to.equal('fifth refuses');
        expect(asked).to.equal(['fourth guards', 'fifth guards']);
    });

    it('asks the old one when the swap is called off', async () => {
        const parking = rig.gateway.park('math');
        const run = rig.hooks.hostGuard.run(asks).catch((error: Error) => error.message);
        await new Promise((resolve) => setTimeout(resolve, 20));
        parking.open();
        expect(await run).to.equal('fifth refuses');
    });

    it('refuses when the swap takes too long, and goes on without the taps that the new one does not have', async () => {
        const parking = rig.gateway.park('math');
        const gate = rig.gateway.gate('math');
        const wait = gate.wait.bind(gate);
        Object.assign(gate, { wait: () => wait({ patienceMs: 30 }) });
        const refused = await rig.hooks.hostGuard
            .run(asks)
            .catch((error: Error & { code?: number }) => error);
        Object.assign(gate, { wait });
        expect([(refused as { code?: number }).code, (refused as { data?: unknown }).data]).to.equal([
            40920,
            { plugin: 'math', hook: 'host.guard' }
        ]);
        parking.open();
        running = await swap(running, provider('sixth', { taps: false }));
        await rig.hooks.hostGuard.run(asks);
        expect(rig.hooks.host.taps()).to.equal([]);
    });

    it('says that it is gone when nothing follows', async () => {
        notices.length = 0;
        const parking = rig.gateway.park('math');
        await running.close('it is swapped');
        const waiting = rig.ask('admin', 'GET', '/api/plugins/other/sum');
        await new Promise((resolve) => setTimeout(resolve, 30));
        expect(notices).to.equal([]);
        parking.open();
        expect((await waiting).code).to.equal(50307);
        expect((await rig.ask('admin', 'GET', '/api/plugins/other/sum')).data).to.equal({ by: 'nobody' });
        expect(notices).to.equal(['gone']);
    });
});

describe('Generation: accepted', { timeout: 30_000 }, () => {
    it('is told before the first change, and not of what reads or of what its start writes', async () => {
        const own = await createPluginRig();
        try {
            let accepted = 0;
            const right = definePlugin({
                setup(ctx) {
                    const write = (): Promise<unknown> =>
                        ctx.db.write((em) => em.execute('create table if not exists t (x int)'));
                    ctx.onStart(async () => void (await write()));
                    ctx.route({
                        method: 'GET',
                        path: '/read',
                        access: 'read',
                        handler: () => ({ accepted })
                    });
                    ctx.route({
                        method: 'POST',
                        path: '/write',
                        access: 'write',
                        handler: () => ({ accepted })
                    });
                    ctx.route({
                        method: 'GET',
                        path: '/late',
                        access: 'read',
                        handler: async () => {
                            await write();
                            return { accepted };
                        }
                    });
                }
            });
            for (const [method, path] of [
                ['POST', 'write'],
                ['GET', 'late']
            ] as const) {
                accepted = 0;
                const generation = await own.run(right, { accepted: async () => void (accepted += 1) });
                expect((await own.ask('admin', 'GET', '/api/plugins/probe/read')).data).to.equal({
                    accepted: 0
                });
                expect(
                    (
                        await own.ask(
                            'admin',
                            method,
                            `/api/plugins/probe/${path}`,
                            method === 'POST' ? {} : undefined
                        )
                    ).data
                ).to.equal({ accepted: 1 });
                expect((await own.ask('admin', 'POST', '/api/plugins/probe/write', {})).data).to.equal({
                    accepted: 1
                });
                await generation.close('the round ends');
            }
            const failing = await own.run(right, {
                accepted: () =>
                    (accepted += 1) < 9 ? Promise.reject(new Error('the disk is full')) : Promise.resolve()
            });
            accepted = 7;
            expect((await own.ask('admin', 'POST', '/api/plugins/probe/write', {})).code).to.equal(50000);
            expect((await own.ask('admin', 'POST', '/api/plugins/probe/write', {})).data).to.equal({
                accepted: 9
            });
            await failing.close('the test ends');
        } finally {
            await own.close();
        }
    });
});
