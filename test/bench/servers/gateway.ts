/** The panel's gateway and server factory alone, with the given number of routes, and the same route in a mounted server. */
import { joi } from '@portico/sdk';

import { createLog } from '../../../core/src/platform/log/log.ts';
import { createGateway } from '../../../core/src/server/gateway/gateway.ts';
import { json, type Route } from '../../../core/src/server/http/route.ts';
import { createHttpServer } from '../../../core/src/server/http/server.ts';
import { createTestPorts } from '../../support/core/http-ports.ts';
import { asChild } from './child.ts';

export interface GatewayPorts {
    readonly port: number;
}

const things = Array.from({ length: 20 }, (_, id) => ({
    id,
    name: `thing ${id}`,
    note: 'as long as the row of a list often is'
}));

const route = (path: string, id: string): Route =>
    json({
        method: 'GET',
        path,
        id,
        access: 'things:read',
        summary: 'List things',
        validate: { query: joi.object({ limit: joi.number().integer().min(1).max(500).default(20) }) },
        handler: () => things
    });

asChild(async ({ routes }: { readonly routes: number }) => {
    const ports = { ...createTestPorts(), checkReturns: false };
    const others = Array.from({ length: routes - 1 }, (_, n) =>
        route(`/api/others${n}/things`, `other${n}.list`)
    );
    const core = createHttpServer({
        name: 'core',
        prefix: '',
        ports,
        routes: [...others, route('/api/things', 'things.list')]
    });
    const gateway = await createGateway({ core, log: createLog({ level: 'error' }) });
    await gateway.mount(
        'bench',
        createHttpServer({
            name: 'bench',
            prefix: '/api/plugins/bench',
            ports,
            routes: [route('/things', 'bench.list')]
        })
    );
    const { port } = await gateway.listen('127.0.0.1', 0);
    return { port } satisfies GatewayPorts;
});
