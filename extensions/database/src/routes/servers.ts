/** Routes of servers. */
import { joi, reply } from '@portico/sdk';

import type { ServerRow } from '../entities.ts';
import { kinds } from '../kinds.ts';
import { changedServer, newServer, serverSchema, type ServerView, serverView } from '../servers/input.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { pageOf, paging, serverParams } from './paging.ts';

const testSchema = joi.object({
    ok: joi.boolean().required().label('Answers'),
    latencyMs: joi.number().required().label('Time').unit('millisecond'),
    serverVersion: joi.string().required().label('Server version')
});

/** Registers `/kinds`, `/servers` and what is done with one server as a whole. */
export function registerServerRoutes(ctx: Ctx, services: Services): void {
    registerKinds(ctx);
    registerReads(ctx, services);
    registerCreation(ctx, services);
    registerChanges(ctx, services);
    registerActions(ctx, services);
}

function viewOf({ connections }: Services, row: ServerRow): ServerView {
    return serverView(row, connections.reached(row.id));
}

function registerKinds(ctx: Ctx): void {
    ctx.route({
        method: 'GET',
        path: '/kinds',
        id: 'kinds',
        access: 'read',
        summary: 'Kinds of servers',
        ui: { title: 'Kinds', order: 9, label: 'kind' },
        returns: joi.array().items(
            joi.object({
                kind: joi.string().required().label('Kind'),
                defaultPort: joi.number().integer().required().label('Usual port')
            })
        ),
        handler: () => Object.values(kinds).map(({ name, defaultPort }) => ({ kind: name, defaultPort }))
    });
}

function registerReads(ctx: Ctx, services: Services): void {
    const { servers } = services;
    ctx.route({
        method: 'GET',
        path: '/servers',
        id: 'servers',
        access: 'read',
        summary: 'Servers',
        ui: { title: 'Servers', primary: true, order: 1, label: 'name', empty: 'No server yet' },
        returns: joi.array().items(serverSchema),
        validate: { query: joi.object(paging) },
        async handler({ query }) {
            const rows = (await servers.list()).map((row) => viewOf(services, row));
            return pageOf(rows, query, ({ name }) => name);
        }
    });
    ctx.route({
        method: 'GET',
        path: '/servers/{id}',
        id: 'server',
        access: 'read',
        summary: 'One server',
        returns: serverSchema,
        validate: { params: serverParams },
        handler: async ({ params }) => viewOf(services, await servers.get(params.id))
    });
}

function registerCreation(ctx: Ctx, services: Services): void {
    ctx.route({
        method: 'POST',
        path: '/servers',
        id: 'createServer',
        access: 'write',
        summary: 'Register a server',
        description: 'It is stored after a login that succeeds; else the answer says why not.',
        answers: 'made',
        ui: { title: 'New server', primary: true },
        returns: serverSchema,
        audit: { action: 'create', resource: 'server' },
        validate: { payload: newServer },
        async handler({ payload, audit }) {
            const view = viewOf(services, await services.servers.register(payload));
            audit({ resourceId: view.id, after: view });
            return reply.created(`/api/plugins/${ctx.name}/servers/${view.id}`, view);
        }
    });
}

function registerChanges(ctx: Ctx, services: Services): void {
    const { servers } = services;
    ctx.route({
        method: 'PUT',
        path: '/servers/{id}',
        id: 'updateServer',
        access: 'write',
        summary: 'Change a server',
        description: 'What is not sent stays. It is stored after a login that succeeds.',
        answers: 'done',
        ui: { title: 'Change' },
        returns: serverSchema,
        audit: { action: 'update', resource: 'server' },
        validate: { params: serverParams, payload: changedServer },
        async handler({ params, payload, ifMatch, audit }) {
            audit({ resourceId: params.id });
            const { before, after } = await servers.update(params.id, payload, ifMatch);
            audit({ before: viewOf(services, before), after: viewOf(services, after) });
            return viewOf(services, after);
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/servers/{id}',
        id: 'removeServer',
        access: 'write',
        summary: 'Forget a server',
        description: 'What is on the server stays as it is.',
        answers: 'done',
        ui: { title: 'Forget', confirm: 'Forget this server? Its databases stay as they are.' },
        returns: joi.valid(null),
        audit: { action: 'delete', resource: 'server' },
        validate: { params: serverParams },
        async handler({ params, ifMatch, audit }) {
            const row = await servers.remove(params.id, ifMatch);
            audit({ resourceId: params.id, before: viewOf(services, row) });
            return null;
        }
    });
}

function registerActions(ctx: Ctx, services: Services): void {
    const { servers } = services;
    ctx.route({
        method: 'POST',
        path: '/servers/{id}/test',
        id: 'testServer',
        access: 'operate',
        summary: 'Log in to a server',
        answers: 'done',
        ui: { title: 'Test', role: 'action', primary: true },
        returns: testSchema,
        audit: { action: 'test', resource: 'server' },
        validate: { params: serverParams },
        async handler({ params, audit }) {
            audit({ resourceId: params.id });
            return { ...(await servers.test(params.id)) };
        }
    });
    ctx.route({
        method: 'POST',
        path: '/servers/{id}/rotate',
        id: 'rotateServer',
        access: 'secrets',
        stepUp: true,
        summary: "Renew the password of the panel's own account",
        answers: 'done',
        ui: {
            title: 'Renew password',
            role: 'action',
            confirm:
                'Renew the password of the account that the panel uses? Other programs that use it lose their login.'
        },
        returns: serverSchema,
        audit: { action: 'rotate', resource: 'server' },
        validate: { params: serverParams },
        async handler({ params, audit }) {
            audit({ resourceId: params.id });
            return viewOf(services, await servers.rotate(params.id));
        }
    });
}
