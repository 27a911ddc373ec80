/** The panel's gateway with a route of the core and the same route in a plugin behind its boundary, at paths of as many parts. Only the difference is measured. */
import { definePlugin, joi } from '@portico/sdk';

import { ErrorOwner } from '../../../core/src/plugins/runtime/isolation/error-owner.ts';
import { json } from '../../../core/src/server/http/route.ts';
import { createPluginRig } from '../../support/plugins/host.ts';
import { asChild } from './child.ts';

export interface PluginGateway {
    readonly port: number;
    readonly folder: string;
}

const things = Array.from({ length: 20 }, (_, id) => ({
    id,
    name: `thing ${id}`,
    note: 'as long as the row of a list often is'
}));
const query = joi.object({ limit: joi.number().integer().min(1).max(500).default(20) });

const plugin = definePlugin({
    setup(ctx) {
        ctx.route({
            method: 'GET',
            path: '/things',
            access: 'read',
            validate: { query },
            handler: () => things
        });
        ctx.route({ method: 'GET', path: '/plain', access: 'read', handler: () => ({ text: 'Hello' }) });
    }
});

asChild(async () => {
    const rig = await createPluginRig({
        routes: [
            json({
                method: 'GET',
                path: '/api/bench/probe/things',
                id: 'bench.core',
                access: 'things:read',
                summary: 'List things',
                validate: { query },
                handler: () => things
            }),
            json({
                method: 'GET',
                path: '/api/bench/probe/plain',
                id: 'bench.plain',
                access: 'things:read',
                summary: 'Say hello',
                handler: () => ({ text: 'Hello' })
            })
        ]
    });
    // As in production. In tests, every timer that a plugin makes is tracked, which costs time in each request.
    Object.assign(rig.http, { checkReturns: false });
    const generation = await rig.host.prepare({
        plugin: {
            package: '@acme/bench',
            version: '1.0.0',
            title: 'Bench',
            node: null,
            manifest: { name: 'probe', sdk: '^1.0.0' }
        },
        folder: rig.root,
        definition: plugin,
        dataDir: `${rig.root}/data/probe`,
        settings: {},
        grants: () => ({}),
        confine: new ErrorOwner().confine('probe', rig.root)
    });
    await generation.start();
    await generation.mount();
    return { port: Number(new URL(rig.url).port), folder: rig.root } satisfies PluginGateway;
});
