/** Routes of single containers. */
import { joi, reply, taskSchema } from '@portico/sdk';

import { type ContainerAction, containerActions } from '../../containers/containers.ts';
import { containerStates } from '../../containers/view.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import {
    applyInput,
    changedSpec,
    changedSpecFields,
    newSpec,
    newSpecFields,
    specInputOf
} from '../../spec/input.ts';
import { containerName, containerParams, pageOf, paging } from '../fields.ts';
import { containerDetailSchema, containerSchema } from '../schemas.ts';

const consent = joi
    .string()
    .max(100)
    .label('Consent')
    .description('The `consent` of the plan that the refusal 40951 shows')
    .meta({ ui: { widget: 'hidden' } });

/** Registers the routes of containers. */
export function registerContainerRoutes(ctx: Ctx, services: Services): void {
    registerReads(ctx, services);
    registerCreation(ctx, services);
    registerRecreation(ctx, services);
    registerChanges(ctx, services);
    containerActions.forEach((action) => registerAction(ctx, services, action));
    registerContent(ctx, services);
}

function registerReads(ctx: Ctx, { containers }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/containers',
        id: 'containers',
        access: 'read',
        summary: 'Containers',
        ui: { title: 'Containers', primary: true, order: 1, label: 'name', empty: 'No container yet' },
        returns: joi.array().items(containerSchema),
        validate: {
            query: joi.object({
                ...paging,
                all: joi.boolean().default(true).label('Stopped ones, too'),
                state: joi.valid(...containerStates).label('State'),
                stack: joi.string().max(128).label('Stack')
            })
        },
        async handler({ query }) {
            const rows = (await containers.list()).filter(
                ({ state, stack }) =>
                    (query.all || state === 'running') &&
                    (query.state === undefined || state === query.state) &&
                    (query.stack === undefined || stack === query.stack)
            );
            return pageOf(rows, query, ({ name }) => name);
        }
    });
    ctx.route({
        method: 'GET',
        path: '/containers/{id}',
        id: 'container',
        access: 'read',
        summary: 'One container',
        returns: containerDetailSchema,
        validate: { params: containerParams },
        handler: ({ params }) => containers.detail(params.id)
    });
}

function registerCreation(ctx: Ctx, { containers }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/containers',
        id: 'createContainer',
        access: 'write',
        summary: 'Make a container',
        description:
            'The policy judges what the engine would be sent. What it refuses is 42253; what it wants consent for is 40951 with a plan, whose `consent` goes with the same request. A port without an address is published on 127.0.0.1.',
        answers: 'task',
        ui: { title: 'New container', primary: true },
        returns: taskSchema,
        audit: { action: 'create', resource: 'container' },
        validate: {
            payload: joi.object({
                ...newSpecFields,
                pull: joi
                    .choice({ missing: 'When it is missing', always: 'Always', never: 'Never' })
                    .default('missing')
                    .label('Pull the image')
                    .meta({ ui: { advanced: true } }),
                start: joi
                    .boolean()
                    .default(true)
                    .label('Start it')
                    .meta({ ui: { advanced: true } }),
                consent
            })
        },
        async handler({ payload, actor, audit }) {
            const spec = newSpec(specInputOf(payload));
            audit({ resourceId: spec.name, after: { name: spec.name, image: spec.image } });
            return reply.accepted(
                await containers.begin(
                    spec,
                    { pull: payload.pull, start: payload.start, consent: payload.consent ?? null },
                    actor
                )
            );
        }
    });
}

function registerRecreation(ctx: Ctx, { containers }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/containers/{id}/recreate',
        id: 'recreateContainer',
        access: 'write',
        summary: 'Make a container again, changed',
        description:
            'What is not sent stays as it is, and volumes stay. The old container is back if the new one does not run.',
        answers: 'task',
        ui: { title: 'Change' },
        returns: taskSchema,
        audit: { action: 'recreate', resource: 'container' },
        validate: { params: containerParams, payload: changedSpec.keys({ consent }) },
        async handler({ params, payload, actor, audit }) {
            audit({ resourceId: params.id });
            const input = specInputOf(payload);
            return reply.accepted(
                await containers.recreate(params.id, (spec) => applyInput(spec, input), {
                    consent: payload.consent ?? null,
                    actor
                })
            );
        }
    });
}

function registerChanges(ctx: Ctx, { containers }: Services): void {
    const { restart, limits } = changedSpecFields;
    ctx.route({
        method: 'PUT',
        path: '/containers/{id}',
        id: 'updateContainer',
        access: 'write',
        summary: 'Change a container in place',
        description: 'It goes on running. Podman changes names only (50150).',
        answers: 'done',
        timeoutSeconds: 60,
        ui: { title: 'Change in place' },
        returns: containerDetailSchema,
        audit: { action: 'update', resource: 'container' },
        validate: { params: containerParams, payload: joi.object({ name: containerName, restart, limits }) },
        async handler({ params, payload, audit }) {
            audit({ resourceId: params.id });
            return containers.update(params.id, payload);
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/containers/{id}',
        id: 'removeContainer',
        access: 'write',
        summary: 'Remove a container',
        description: 'One that runs is removed only with `force`.',
        answers: 'done',
        timeoutSeconds: 120,
        ui: { title: 'Remove', confirm: 'Remove this container? What is not in a volume is lost.' },
        returns: joi.valid(null),
        audit: { action: 'delete', resource: 'container' },
        validate: {
            params: containerParams,
            query: joi.object({
                force: joi.boolean().default(false).label('Also when it runs'),
                volumes: joi.boolean().default(false).label('With its volumes without a name')
            })
        },
        async handler({ params, query, audit }) {
            audit({ resourceId: params.id });
            await containers.remove(params.id, query);
            return null;
        }
    });
}

const titles: Readonly<Record<ContainerAction, string>> = {
    start: 'Start',
    stop: 'Stop',
    restart: 'Restart',
    pause: 'Pause',
    unpause: 'Unpause',
    kill: 'Kill'
};

const signal = joi
    .string()
    .pattern(/^(SIG)?[A-Z0-9+]{2,12}$/, 'name of a signal')
    .label('Signal')
    .meta({ ui: { advanced: true } });

function registerAction(ctx: Ctx, { containers }: Services, action: ContainerAction): void {
    const title = titles[action];
    ctx.route({
        method: 'POST',
        path: `/containers/{id}/${action}`,
        id: `${action}Container`,
        access: 'control',
        summary: `${title} a container`,
        description: 'What is so already succeeds.',
        answers: 'done',
        timeoutSeconds: 700,
        ui: { title, role: 'action', primary: action === 'start' || action === 'stop' },
        returns: containerDetailSchema,
        audit: { action, resource: 'container' },
        validate: {
            params: containerParams,
            payload: joi
                .object({
                    timeoutSeconds: joi
                        .number()
                        .integer()
                        .min(0)
                        .max(600)
                        .default(10)
                        .label('Time to stop')
                        .unit('second')
                        .meta({ ui: { advanced: true } }),
                    // The engine takes it for nothing else, and a field that does nothing would lie.
                    ...(action === 'kill' ? { signal } : {})
                })
                .default({ timeoutSeconds: 10 })
        },
        async handler({ params, payload, audit }) {
            audit({ resourceId: params.id });
            return containers.act(params.id, action, payload);
        }
    });
}

function registerContent(ctx: Ctx, { engine, inventory }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/containers/{id}/inspect',
        id: 'inspectContainer',
        access: 'content',
        summary: "The engine's own document of a container",
        ui: { title: 'Inspect' },
        returns: joi.any(),
        validate: { params: containerParams },
        handler: ({ params }) => inventory.container(params.id)
    });
    ctx.route({
        method: 'GET',
        path: '/containers/{id}/top',
        id: 'processes',
        access: 'content',
        summary: 'Processes of a container',
        ui: { title: 'Processes', empty: 'It does not run' },
        returns: joi.array().items(
            joi.object({
                pid: joi.number().integer().required().label('Number'),
                user: joi.string().allow('').required().label('User'),
                command: joi.string().allow('').required().label('Command')
            })
        ),
        validate: { params: containerParams },
        async handler({ params }) {
            const container = await inventory.container(params.id);
            if (!container.State.Running) {
                return [];
            }
            const { kind } = await engine.info();
            const top = await engine.call<{ Titles: string[]; Processes: string[][] }>(
                'GET',
                `/containers/${container.Id}/top`,
                // Without these Podman gives a row as one text; Docker has its own form for them.
                { query: kind === 'podman' ? { ps_args: 'pid,user,args' } : {} }
            );
            const column = (...names: string[]): number =>
                top.Titles.findIndex((title) => names.includes(title));
            const [pid, user, command] = [column('PID'), column('UID', 'USER'), column('CMD', 'COMMAND')];
            return top.Processes.map((row) => ({
                pid: Number(row[pid]),
                user: row[user] ?? '',
                command: row[command] ?? ''
            }));
        }
    });
}
