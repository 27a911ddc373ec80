/** Plugins in a process of their own, where nothing else uses memory: how long one takes to be mounted, and what it leaves and keeps. */
import { definePlugin, joi, type PluginDefinition } from '@portico/sdk';

import { createPluginRig, type PluginRig } from '../support/plugin-host.ts';
import { asChild } from './child.ts';
import { median } from './report.ts';

export interface PluginCostsAsked {
    readonly mounts: readonly number[];
    readonly rounds: number;
    readonly cycles: number;
    readonly kept: number;
}

export interface PluginCosts {
    /** To be removed. */
    readonly folder: string;
    readonly mounting: readonly { readonly routes: number; readonly milliseconds: number }[];
    /** KiB of heap for each mount and close. */
    readonly cycle: number;
    /** KiB of heap for each plugin that stays mounted. */
    readonly kept: number;
    /** Nanoseconds of a run of a hook, and of a loop, with twelve taps. */
    readonly hook: number;
    readonly loop: number;
}

const calls = 5_000;

const withRoutes = (count: number): PluginDefinition =>
    definePlugin({
        migrations: [{ name: '1', up: ['create table item (id integer primary key)'] }],
        setup(ctx) {
            for (let n = 0; n < count; n += 1) {
                ctx.route({
                    method: 'GET',
                    path: `/route${n}/{id}`,
                    access: 'read',
                    validate: { params: joi.object({ id: joi.number().integer().required() }) },
                    handler: () => ({ n })
                });
            }
            ctx.hooks.tap('panel.started', async () => undefined);
        }
    });

function heap(): number {
    for (let turn = 0; turn < 4; turn += 1) {
        globalThis.gc?.();
    }
    return process.memoryUsage().heapUsed / 1024;
}

async function took(work: () => Promise<unknown>): Promise<number> {
    const began = performance.now();
    for (let n = 0; n < calls; n += 1) {
        await work();
    }
    return ((performance.now() - began) * 1e6) / calls;
}

async function hooks(rig: PluginRig): Promise<{ readonly hook: number; readonly loop: number }> {
    for (let n = 0; n < 12; n += 1) {
        await rig.run(withRoutes(1), { name: `tap${n}` });
    }
    const taps = Array.from({ length: 12 }, () => async () => undefined);
    const loop = async (): Promise<void> => {
        for (const tap of taps) {
            await tap();
        }
    };
    const found: [number[], number[]] = [[], []];
    for (let round = -2; round < 7; round += 1) {
        const [hooked, looped] = [await took(() => rig.hooks.panelStarted.run({})), await took(loop)];
        if (round >= 0) {
            found[0].push(hooked);
            found[1].push(looped);
        }
    }
    return { hook: median(found[0]), loop: median(found[1]) };
}

asChild(async ({ mounts, rounds, cycles, kept }: PluginCostsAsked) => {
    const rig = await createPluginRig();
    Object.assign(rig.http, { checkReturns: false }); // as in production
    const mounting: { routes: number; milliseconds: number }[] = [];
    for (const routes of mounts) {
        const definition = withRoutes(routes);
        const taken: number[] = [];
        for (let round = 0; round < rounds; round += 1) {
            const began = performance.now();
            const generation = await rig.run(definition, { name: 'mounted' });
            taken.push(performance.now() - began);
            await generation.close('the round ends');
        }
        mounting.push({ routes, milliseconds: median(taken) });
    }
    const definition = withRoutes(10);
    // The rig remembers what it made, to end it: that is not the host's.
    const turn = async (count: number): Promise<void> => {
        for (let n = 0; n < count; n += 1) {
            const generation = await rig.host.prepare({
                plugin: {
                    package: '@acme/turn',
                    version: '1.0.0',
                    title: 'Turn',
                    node: null,
                    manifest: { name: 'turn', sdk: '^1.0.0' } as never
                },
                folder: rig.root,
                definition,
                dataDir: `${rig.root}/data/turn`,
                settings: {},
                grants: () => ({})
            });
            await generation.start();
            await generation.mount();
            await generation.close('the round ends');
        }
    };
    await turn(20);
    const before = heap();
    await turn(cycles);
    const after = heap();
    for (let n = 0; n < kept; n += 1) {
        await rig.run(definition, { name: `kept${n}` });
    }
    const full = heap();
    return {
        folder: rig.root,
        mounting,
        cycle: (after - before) / cycles,
        kept: (full - after) / kept,
        ...(await hooks(rig))
    } satisfies PluginCosts;
});
