/** Plugins in a process of their own, where nothing else uses memory. Measures how long a mount takes, and the memory that a plugin keeps and leaves. */
import { getHeapSpaceStatistics } from 'node:v8';

import { definePlugin, joi, type PluginDefinition } from '@portico/sdk';

import { json } from '../../../core/src/server/http/route.ts';
import { createPluginRig, type PluginRig } from '../../support/plugins/host.ts';
import { median } from '../report.ts';
import { asChild } from './child.ts';

export interface PluginCostsAsked {
    readonly mounts: readonly number[];
    readonly rounds: number;
    readonly cycles: number;
    readonly kept: number;
}

export interface PluginCosts {
    /** The folder that the bench must remove. */
    readonly folder: string;
    readonly mounting: readonly { readonly routes: number; readonly milliseconds: number }[];
    /** KiB of objects that each mount and close leaves behind. */
    readonly cycle: number;
    /** KiB of compiled code that V8 made meanwhile, for each of them. */
    readonly compiled: number;
    /** KiB of objects for each plugin that stays mounted. */
    readonly kept: number;
    /** Nanoseconds of a run of a hook, and of a loop, with twelve taps. */
    readonly hook: number;
    readonly loop: number;
    /** Nanoseconds of a plan, and of the call that it is about. */
    readonly plan: number;
    readonly call: number;
}

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
            ctx.hooks.tap('panel.stopping', async () => undefined);
        }
    });

const tapping = definePlugin({
    setup(ctx) {
        ctx.hooks.tap('panel.started', async () => undefined);
    }
});

/** What lives in the heap, KiB. V8 compiles what runs often, no matter which caller: its code is counted apart. */
function heap(): { readonly objects: number; readonly code: number } {
    for (let turn = 0; turn < 4; turn += 1) {
        globalThis.gc?.();
    }
    const used = { objects: 0, code: 0 };
    for (const { space_name: name, space_used_size: size } of getHeapSpaceStatistics()) {
        used[/code|trusted/.test(name) ? 'code' : 'objects'] += size / 1024;
    }
    return used;
}

async function took(work: () => Promise<unknown>, calls = 5_000): Promise<number> {
    const began = performance.now();
    for (let n = 0; n < calls; n += 1) {
        await work();
    }
    return ((performance.now() - began) * 1e6) / calls;
}

async function hooks(rig: PluginRig): Promise<{ readonly hook: number; readonly loop: number }> {
    for (let n = 0; n < 12; n += 1) {
        await rig.run(tapping, { name: `tap${n}` });
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

/** Compares a change of one row with its audit entry over HTTP with the plan of that change, which is rolled back. */
async function plans(): Promise<Pick<PluginCosts, 'plan' | 'call'>> {
    const id = joi.object({ id: joi.number().integer().required() });
    const about = { path: '/api/rows/{id}', validate: { params: id } };
    const rig = await createPluginRig({
        routes: [
            json({
                ...about,
                id: 'rows.get',
                method: 'GET',
                access: 'things:read',
                summary: 'Read',
                handler: ({ params }) => ({ ...params, text: 'old', version: 1 })
            }),
            json({
                ...about,
                id: 'rows.update',
                method: 'PUT',
                access: 'things:write',
                summary: 'Change',
                rehearses: true,
                validate: { params: id, payload: joi.object({ text: joi.string().max(100) }) },
                handler: (call) =>
                    rig.db.write((tx) =>
                        call.complete(tx, {
                            reply: { id: call.params.id, text: call.payload.text, version: 2 }
                        })
                    )
            })
        ]
    });
    Object.assign(rig.http, { checkReturns: false }); // as in production
    const change = { id: 'rows.update', params: { id: 1 }, payload: { text: 'new' } };
    const found: [number[], number[]] = [[], []];
    const run = definePlugin({
        setup(ctx) {
            ctx.route({
                method: 'GET',
                path: '/measure',
                access: 'read',
                timeoutSeconds: 600,
                async handler({ actor }) {
                    for (let round = -1; round < 5; round += 1) {
                        const each = [
                            await took(() => ctx.api.plan(actor, change), 300),
                            await took(() => ctx.api.call(actor, change), 300)
                        ];
                        if (round >= 0) {
                            found.forEach((list, index) => list.push(each[index] ?? 0));
                        }
                    }
                    return null;
                }
            });
        }
    });
    await rig.run(run, { capabilities: { api: { read: ['*'], write: ['*'] } } });
    await rig.ask('admin', 'GET', '/api/plugins/probe/measure');
    await rig.close();
    return { plan: median(found[0]), call: median(found[1]) };
}

asChild(async ({ mounts, rounds, cycles, kept }: PluginCostsAsked) => {
    const rig = await createPluginRig();
    Object.assign(rig.http, { checkReturns: false }); // as in production
    const planned = await plans();
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
    // The rig keeps a list of generations to end them; that memory is not the host's.
    const turn = async (count: number): Promise<void> => {
        for (let n = 0; n < count; n += 1) {
            const generation = await rig.host.prepare({
                plugin: {
                    package: '@acme/turn',
                    version: '1.0.0',
                    title: 'Turn',
                    node: null,
                    manifest: { name: 'turn', sdk: '^1.0.0' }
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
        cycle: (after.objects - before.objects) / cycles,
        compiled: (after.code - before.code) / cycles,
        kept: (full.objects - after.objects) / kept,
        ...(await hooks(rig)),
        ...planned
    } satisfies PluginCosts;
});
