/** Routes of servers. */
import { errors, joi, pages, reply, taskSchema } from '@portico/sdk';

import type { ServerRow } from '../entities.ts';
import { kinds } from '../kinds/kinds.ts';
import { images } from '../managed/containers/images.ts';
import { presetWords } from '../managed/engine.ts';
import {
    type ChangedServer,
    changedServer,
    newServer,
    runtimeWords,
    serverSchema,
    type ServerView,
    serverView,
    strangeField
} from '../servers/input.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { serverParams } from './parameters.ts';

const testSchema = joi.object({
    ok: joi.boolean().required().label('Answers'),
    latencyMs: joi.number().required().label('Time').unit('millisecond'),
    serverVersion: joi.string().required().label('Server version')
});

const kindsSchema = joi.array().items(
    joi.object({
        kind: joi.string().required().label('Kind'),
        defaultPort: joi.number().integer().required().label('Usual port'),
        runtimes: joi
            .array()
            .items(
                joi.object({
                    runtime: joi.choice(runtimeWords).required().label('Runtime'),
                    releases: joi.array().items(joi.string()).required().label('Releases'),
                    available: joi.boolean().required().label('Available')
                })
            )
            .required()
            .label('Ways to run it'),
        presets: joi.array().items(joi.string()).required().label('Presets'),
        settings: joi
            .array()
            .items(
                joi.object({
                    name: joi.string().required().label('Name'),
                    type: joi.string().required().label('Type')
                })
            )
            .required()
            .label('Options')
    })
);

/** Registers `/kinds`, `/servers` and what is done with one server as a whole. */
export function registerServerRoutes(ctx: Ctx, services: Services): void {
    registerKinds(ctx, services);
    registerReads(ctx, services);
    registerCreation(ctx, services);
    registerChanges(ctx, services);
    registerActions(ctx, services);
}

type View = (row: ServerRow) => ServerView;

/** What shows servers as they are now. */
async function viewer({ connections, managed, managedRows }: Services): Promise<View> {
    const [rows, states] = await Promise.all([managedRows.all(), managed.states()]);
    return (row) =>
        serverView(row, states.get(row.id) ?? connections.reached(row.id), rows.get(row.id) ?? null);
}

function registerKinds(ctx: Ctx, { engines, containers }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/kinds',
        id: 'kinds',
        access: 'read',
        summary: 'Kinds of servers',
        ui: { title: 'Kinds', order: 9, label: 'kind' },
        returns: kindsSchema,
        handler: async () => {
            const hasContainers = await containers.check().then(
                () => true,
                () => false
            );
            return Promise.all(
                Object.values(kinds).map(async ({ name, defaultPort }) => {
                    const engine = engines[name];
                    const releases = [...(await engine.releases())];
                    return {
                        kind: name,
                        defaultPort,
                        runtimes: [
                            { runtime: 'native' as const, releases, available: releases.length > 0 },
                            {
                                runtime: 'container' as const,
                                releases: [...images[name].releases],
                                available: hasContainers
                            }
                        ],
                        presets: Object.keys(presetWords),
                        settings: engine.options.map((option) => ({ name: option.name, type: option.type }))
                    };
                })
            );
        }
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
        validate: { query: joi.object(pages.query()) },
        async handler({ query }) {
            const { rows, page } = pages.sorted(await servers.list(), query, ({ name }) => name);
            return reply.list(rows.map(await viewer(services)), page);
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
        handler: async ({ params }) => (await viewer(services))(await servers.get(params.id))
    });
}

function registerCreation(ctx: Ctx, services: Services): void {
    ctx.route({
        method: 'POST',
        path: '/servers',
        id: 'createServer',
        access: 'write',
        summary: 'Register a server, or make one',
        description:
            'One that runs already is stored after a login that succeeds; else the answer says why not. One that the panel is to run is made by a task: 202, `result.serverId`.',
        ui: { title: 'New server', primary: true },
        returns: joi.alternatives(serverSchema, taskSchema),
        audit: { action: 'create', resource: 'server' },
        validate: { payload: newServer },
        async handler({ payload, actor, audit }) {
            const strange = strangeField(payload.mode, payload);
            if (strange !== undefined) {
                throw errors.invalid([
                    { path: strange, message: `A server that is ${payload.mode} has no ${strange}` }
                ]);
            }
            await services.schedules.check(payload.dumpSchedule);
            if (payload.mode === 'managed') {
                const {
                    name,
                    kind,
                    runtime = 'native',
                    release,
                    port,
                    memoryBytes = null,
                    preset = 'web',
                    dumpSchedule = null,
                    pointInTime = false
                } = payload;
                if (pointInTime) {
                    await services.pointInTime.check(kind, { runtime, release });
                }
                const wanted = {
                    name,
                    kind,
                    runtime,
                    release,
                    port,
                    memoryBytes,
                    preset,
                    dumpSchedule,
                    pointInTime
                };
                audit({ after: { ...wanted, mode: 'managed' } });
                const task = await services.managed.create({ ...wanted, options: {} }, actor);
                await services.schedules.refresh();
                return reply.accepted(task);
            }
            const { username, mode } = payload;
            if (username === undefined) {
                throw errors.invalid([
                    { path: 'username', message: 'A server that runs already needs an account' }
                ]);
            }
            const row = await services.servers.register({ ...payload, mode, username });
            await services.schedules.refresh();
            const view = (await viewer(services))(row);
            audit({ resourceId: view.id, after: view });
            return reply.created(`/api/plugins/${ctx.name}/servers/${view.id}`, view);
        }
    });
}

function registerChanges(ctx: Ctx, services: Services): void {
    registerUpdate(ctx, services);
    const { servers, managed } = services;
    ctx.route({
        method: 'DELETE',
        path: '/servers/{id}',
        id: 'removeServer',
        access: 'write',
        summary: 'Forget or remove a server',
        description:
            'What is on a registered server stays as it is. One that the panel runs is stopped and removed by a task: 202. `data` says what becomes of its data: `keep` leaves them in the folder of the settings, or in the volume of its container.',
        ui: {
            title: 'Remove',
            confirm: 'Remove this server from the panel? One that the panel runs is stopped.'
        },
        returns: joi.alternatives(taskSchema, joi.valid(null)),
        audit: { action: 'delete', resource: 'server' },
        validate: {
            params: serverParams,
            query: joi.object({
                data: joi.choice({ keep: 'Keep them', delete: 'Delete them' }).default('keep').label('Data')
            })
        },
        async handler({ params, query, ifMatch, actor, audit }) {
            const row = await servers.get(params.id);
            audit({ resourceId: params.id, before: (await viewer(services))(row) });
            if (row.mode === 'managed') {
                return reply.accepted(await managed.remove(params.id, query.data, actor));
            }
            await servers.remove(params.id, ifMatch);
            await services.schedules.refresh();
            return null;
        }
    });
}

function registerUpdate(ctx: Ctx, services: Services): void {
    const { servers } = services;
    ctx.route({
        method: 'PUT',
        path: '/servers/{id}',
        id: 'updateServer',
        access: 'write',
        summary: 'Change a server',
        description:
            'What is not sent stays. A server that runs already is stored after a login that succeeds; what changes in one that the panel runs counts from its next start.',
        answers: 'done',
        ui: { title: 'Change' },
        returns: serverSchema,
        audit: { action: 'update', resource: 'server' },
        validate: { params: serverParams, payload: changedServer },
        async handler({ params, payload, ifMatch, audit }) {
            audit({ resourceId: params.id });
            await services.schedules.check(payload.dumpSchedule);
            const before = await servers.get(params.id);
            const seen = (await viewer(services))(before);
            const after =
                before.mode === 'managed'
                    ? await changeManaged(services, { before, seen, payload, ifMatch })
                    : (await servers.update(params.id, payload, ifMatch)).after;
            await services.schedules.refresh();
            const view = (await viewer(services))(after);
            audit({ before: seen, after: view });
            return view;
        }
    });
}

/** @throws VALIDATION_FAILED 40001 for a field that only a server has which runs already */
async function changeManaged(
    { servers, managed, pointInTime: past }: Services,
    {
        before,
        seen,
        payload: { name, dumpSchedule, memoryBytes, preset, pointInTime, version, ...rest },
        ifMatch
    }: {
        readonly before: ServerRow;
        readonly seen: ServerView;
        readonly payload: ChangedServer;
        readonly ifMatch: string | null;
    }
): Promise<ServerRow> {
    const now: Readonly<Record<string, unknown>> = seen;
    const strange = Object.entries(rest).find(
        ([field, value]) => value !== undefined && value !== now[field]
    );
    if (strange !== undefined) {
        throw errors.invalid([
            { path: strange[0], message: `The panel sets ${strange[0]} of a server that it runs` }
        ]);
    }
    if (pointInTime === true) {
        await past.check(before.kind, {
            runtime: seen.runtime ?? 'native',
            release: seen.release ?? undefined
        });
    }
    const row = await servers.describe(before, { name, dumpSchedule }, { ifMatch, version });
    if (memoryBytes !== undefined || preset !== undefined) {
        await managed.set(before.id, {
            ...(memoryBytes === undefined ? {} : { memoryBytes }),
            ...(preset === undefined ? {} : { preset })
        });
    }
    if (pointInTime !== undefined) {
        await past.turn(before.id, pointInTime);
    }
    return row;
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
            return (await viewer(services))(await servers.rotate(params.id));
        }
    });
}
