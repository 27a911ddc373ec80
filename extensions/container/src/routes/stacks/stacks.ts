/** Routes of stacks and of compose files. */
import { joi, reply, taskSchema } from '@portico/sdk';

import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { type StackAction, stackActions } from '../../stacks/changes.ts';
import { pageOf, paging, stackParams } from '../fields.ts';
import { autoUpdate, stackSchema } from '../schemas.ts';
import { compose, env, mostBytes, stackName } from './compose.ts';

const start = joi
    .boolean()
    .label('Start it')
    .meta({ ui: { advanced: true } });
const waitSeconds = joi
    .number()
    .integer()
    .min(1)
    .max(900)
    .label('Time to come up')
    .unit('second')
    .description('Default: 60')
    .meta({ ui: { advanced: true } });
const onFailure = joi
    .choice({ rollback: 'Go back to what ran before', keep: 'Leave it as it is' })
    .label('When it fails')
    .meta({ ui: { advanced: true } });
const consent = joi
    .string()
    .max(100)
    .label('Consent')
    .description('The `consent` of the plan')
    .meta({ ui: { widget: 'hidden' } });
const deployFields = {
    start: start.default(true),
    waitSeconds: waitSeconds.default(60),
    onFailure: onFailure.default('rollback'),
    consent
};
const description = joi.string().allow('').max(2_000).label('Description');
/** Registers the routes of stacks. */
export function registerStackRoutes(ctx: Ctx, services: Services): void {
    registerReads(ctx, services);
    registerHistory(ctx, services);
    registerDeploys(ctx, services);
    stackActions.forEach((action) => registerAction(ctx, services, action));
    registerRemoval(ctx, services);
}

function registerReads(ctx: Ctx, { stacks }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/stacks',
        id: 'stacks',
        access: 'read',
        summary: 'Stacks',
        description: '`managed` is false where only the labels of containers tell of a stack.',
        ui: { title: 'Stacks', primary: true, order: 2, label: 'name', empty: 'No stack yet' },
        returns: joi.array().items(stackSchema),
        validate: { query: joi.object(paging) },
        handler: async ({ query }) => pageOf(await stacks.list(), query, ({ name }) => name)
    });
    ctx.route({
        method: 'GET',
        path: '/stacks/{name}',
        id: 'stack',
        access: 'read',
        summary: 'One stack',
        returns: stackSchema,
        validate: { params: stackParams },
        handler: ({ params }) => stacks.get(params.name)
    });
}

function registerHistory(ctx: Ctx, { store }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/stacks/{name}/revisions',
        id: 'revisions',
        access: 'read',
        summary: 'Revisions of a stack, newest first',
        ui: { title: 'Revisions', empty: 'It has never run' },
        returns: joi.array().items(
            joi.object({
                revision: joi
                    .number()
                    .integer()
                    .required()
                    .label('Revision')
                    .meta({ ui: { column: 1 } }),
                at: joi
                    .string()
                    .isoDate()
                    .required()
                    .label('Time')
                    .meta({ ui: { column: 2 } }),
                by: joi
                    .string()
                    .allow(null)
                    .required()
                    .label('By')
                    .meta({ ui: { column: 3 } }),
                because: joi
                    .string()
                    .required()
                    .label('Because')
                    .meta({ ui: { column: 4 } }),
                digests: joi.record(joi.string().allow(null)).required().label('Digests')
            })
        ),
        validate: { params: stackParams },
        async handler({ params }) {
            await store.get(params.name);
            return (await store.revisions(params.name)).map(({ revision, at, by, because, images }) => ({
                revision,
                at: new Date(at).toISOString(),
                by,
                because,
                digests: Object.fromEntries(
                    Object.entries(images).map(([service, image]) => [service, image.digest ?? image.imageId])
                )
            }));
        }
    });
    ctx.route({
        method: 'GET',
        path: '/stacks/{name}/source',
        id: 'stackSource',
        access: 'content',
        summary: 'Compose text and variables of a revision',
        description: 'Default: those that run.',
        ui: { title: 'Source' },
        returns: joi.object({
            compose: compose.required(),
            env: env.required(),
            revision: joi.number().integer().required().label('Revision')
        }),
        validate: {
            params: stackParams,
            query: joi.object({ revision: joi.number().integer().min(1).label('Revision') })
        },
        async handler({ params, query }) {
            const row = await store.get(params.name);
            const found = await store.revision(params.name, query.revision ?? row.revision);
            return { compose: found.compose, env: found.env, revision: found.revision };
        }
    });
}

function registerDeploys(ctx: Ctx, { changes, runner }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/stacks',
        id: 'createStack',
        access: 'write',
        summary: 'Deploy a new stack',
        description:
            'It succeeds when all services run, and are healthy where they have a check. When it fails, nothing of it stays. What the policy says is answered at once, as for containers.',
        answers: 'task',
        maxBytes: mostBytes,
        ui: { title: 'New stack', primary: true },
        returns: taskSchema,
        audit: { action: 'create', resource: 'stack' },
        validate: {
            payload: joi.object({
                name: stackName,
                compose: compose.required(),
                env: env.default(''),
                description: description.default(''),
                autoUpdate,
                ...deployFields
            })
        },
        async handler({ payload, actor, audit }) {
            audit({ resourceId: payload.name });
            const input = { ...payload, consent: payload.consent ?? null };
            const work = await changes.create(input, { actor, plugin: null });
            return reply.accepted(await runner.begin(work, actor));
        }
    });
    ctx.route({
        method: 'PUT',
        path: '/stacks/{name}',
        id: 'updateStack',
        access: 'write',
        summary: 'Deploy a stack with another source',
        description:
            'What is not sent stays. Only services whose spec or image differs are made again. When it fails, the revision before is back, whole.',
        answers: 'task',
        maxBytes: mostBytes,
        ui: { title: 'Change' },
        returns: taskSchema,
        audit: { action: 'update', resource: 'stack' },
        validate: {
            params: stackParams,
            // A change has no defaults of its own: the panel takes them for what was not sent.
            payload: joi.object({
                compose,
                env,
                description,
                autoUpdate,
                start,
                waitSeconds,
                onFailure,
                consent
            })
        },
        async handler({ params, payload, actor, ifMatch, audit }) {
            audit({ resourceId: params.name });
            const { compose: text, env: variables } = payload;
            const input = {
                description: payload.description,
                autoUpdate: payload.autoUpdate,
                start: payload.start ?? true,
                waitSeconds: payload.waitSeconds ?? 60,
                onFailure: payload.onFailure ?? ('rollback' as const),
                ...(text === undefined ? {} : { compose: text }),
                ...(variables === undefined ? {} : { env: variables }),
                consent: payload.consent ?? null
            };
            const work = await changes.update(params.name, input, { actor, plugin: null, ifMatch });
            return reply.accepted(await runner.begin(work, actor));
        }
    });
}

const words: Readonly<Record<StackAction, readonly [title: string, description: string]>> = {
    up: [
        'Up',
        'Makes and starts what is missing of the revision; with `pull`, newer images of the same names are taken.'
    ],
    down: ['Down', 'Removes containers and networks; volumes stay.'],
    start: ['Start', 'Starts its containers.'],
    stop: ['Stop', 'Stops its containers.'],
    restart: ['Restart', 'Restarts its containers.'],
    redeploy: [
        'Redeploy',
        'Makes what runs be what the revision says; with `pull`, newer images of the same names are taken.'
    ]
};

function registerAction(ctx: Ctx, { changes, runner }: Services, action: StackAction): void {
    const [title, text] = words[action];
    ctx.route({
        method: 'POST',
        path: `/stacks/{name}/${action}`,
        id: `${action}Stack`,
        access: 'control',
        summary: `${title} a stack`,
        description: text,
        answers: 'task',
        ui: {
            title,
            role: 'action',
            ...(action === 'down' ? { confirm: 'Remove its containers? Volumes stay.' } : {})
        },
        returns: taskSchema,
        audit: { action, resource: 'stack' },
        validate: {
            params: stackParams,
            payload: joi
                .object({
                    services: joi
                        .array()
                        .items(joi.string().max(63).label('Service'))
                        .max(100)
                        .default([])
                        .label('Services')
                        .description('Default: all'),
                    // The others bring no image, and a field that does nothing would lie.
                    ...(action === 'up' || action === 'redeploy'
                        ? { pull: joi.boolean().default(false).label('Take newer images') }
                        : {})
                })
                .default({})
        },
        async handler({ params, payload, actor, audit }) {
            audit({ resourceId: params.name });
            const { services = [], pull = false } = payload as { services?: string[]; pull?: boolean };
            const asker = { actor, plugin: null };
            const work = await changes.act(params.name, action, { services, pull }, asker);
            return reply.accepted(await runner.begin(work, actor));
        }
    });
}

function registerRemoval(ctx: Ctx, { changes, runner }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/stacks/{name}/rollback',
        id: 'rollbackStack',
        access: 'write',
        summary: 'Go back to a revision',
        description: 'Compose text, variables and images go back together, as a new revision.',
        answers: 'task',
        ui: { title: 'Roll back' },
        returns: taskSchema,
        audit: { action: 'rollback', resource: 'stack' },
        validate: {
            params: stackParams,
            payload: joi.object({
                revision: joi.number().integer().min(1).required().label('Revision'),
                ...deployFields
            })
        },
        async handler({ params, payload, actor, audit }) {
            audit({ resourceId: params.name, after: { revision: payload.revision } });
            const input = { ...payload, consent: payload.consent ?? null };
            const work = await changes.rollback(params.name, input, { actor, plugin: null });
            return reply.accepted(await runner.begin(work, actor));
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/stacks/{name}',
        id: 'removeStack',
        access: 'write',
        summary: 'Remove a stack',
        description: 'With its containers and networks, and with `volumes` its volumes.',
        answers: 'task',
        ui: { title: 'Remove', confirm: 'Remove this stack with its containers and networks?' },
        returns: taskSchema,
        audit: { action: 'delete', resource: 'stack' },
        validate: {
            params: stackParams,
            query: joi.object({ volumes: joi.boolean().default(false).label('With its volumes') })
        },
        async handler({ params, query, actor, audit }) {
            audit({ resourceId: params.name });
            const work = await changes.remove(params.name, query.volumes, { actor, plugin: null });
            return reply.accepted(await runner.begin(work, actor));
        }
    });
}
