/** Routes of images and registries. */
import { joi, reply, taskSchema } from '@portico/sdk';

import { viewOf } from '../../images/registries.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { imageName } from '../../spec/input.ts';
import { imageParams, pageOf, paging } from '../fields.ts';

const imageSchema = joi.object({
    id: joi
        .string()
        .required()
        .label('Id')
        .meta({ ui: { column: 3 } }),
    tags: joi
        .array()
        .items(joi.string())
        .required()
        .label('Names')
        .meta({ ui: { column: 1 } }),
    digests: joi.array().items(joi.string()).required().label('Digests'),
    bytes: joi
        .number()
        .required()
        .label('Size')
        .unit('byte')
        .meta({ ui: { column: 2 } }),
    createdAt: joi.string().isoDate().required().label('Made'),
    usedBy: joi.array().items(joi.string()).required().label('Used by'),
    update: joi
        .object({
            state: joi
                .valid('current', 'outdated', 'unknown')
                .required()
                .label('State')
                .meta({ ui: { tones: { current: 'good', outdated: 'warning', unknown: 'neutral' } } }),
            digest: joi.string().allow(null).required().label('Digest of the registry'),
            checkedAt: joi.string().allow(null).required().label('Checked')
        })
        .required()
        .label('Update')
});
const registrySchema = joi.object({
    id: joi.number().integer().required().label('Number'),
    server: joi
        .string()
        .required()
        .label('Server')
        .meta({ ui: { column: 1 } }),
    username: joi
        .string()
        .required()
        .label('User')
        .meta({ ui: { column: 2 } }),
    passwordSet: joi.boolean().required().label('Has a password')
});
const registryParams = joi.object({
    id: joi
        .number()
        .integer()
        .min(1)
        .required()
        .label('Registry')
        .meta({ ui: { ref: 'container.registries' } })
});
const username = joi.string().min(1).max(255).label('User');
const password = joi.secret().min(1).max(10_000).label('Password');

/** Registers the routes of images and registries. */
export function registerImageRoutes(ctx: Ctx, services: Services): void {
    registerReads(ctx, services);
    registerChanges(ctx, services);
    registerTasks(ctx, services);
    registerRegistries(ctx, services);
    registerRegistryChanges(ctx, services);
}

function registerReads(ctx: Ctx, { images }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/images',
        id: 'images',
        access: 'read',
        summary: 'Images',
        ui: { title: 'Images', primary: true, order: 3, label: 'id', empty: 'No image yet' },
        returns: joi.array().items(imageSchema),
        validate: {
            query: joi.object({ ...paging, dangling: joi.boolean().label('Without a name') })
        },
        async handler({ query }) {
            const rows = (await images.list(query.dangling)).map((image) => plain(image));
            return pageOf(rows, query, ({ tags, id }) => `${tags[0] ?? ''} ${id}`);
        }
    });
    ctx.route({
        method: 'GET',
        path: '/images/{id}',
        id: 'image',
        access: 'read',
        summary: 'One image',
        returns: imageSchema,
        validate: { params: imageParams },
        handler: async ({ params }) => plain(await images.get(params.id))
    });
}

const plain = <
    T extends {
        readonly tags: readonly string[];
        readonly digests: readonly string[];
        readonly usedBy: readonly string[];
        readonly update: object;
    }
>(
    image: T
) => ({
    ...image,
    tags: [...image.tags],
    digests: [...image.digests],
    usedBy: [...image.usedBy],
    update: { ...image.update }
});

function registerChanges(ctx: Ctx, { images }: Services): void {
    ctx.route({
        method: 'DELETE',
        path: '/images/{id}',
        id: 'removeImage',
        access: 'write',
        summary: 'Remove an image',
        description:
            'One that a container is made of is never removed (40901). `force` removes one with several names.',
        answers: 'done',
        timeoutSeconds: 150,
        ui: { title: 'Remove', confirm: 'Remove this image?' },
        returns: joi.valid(null),
        audit: { action: 'delete', resource: 'image' },
        validate: {
            params: imageParams,
            query: joi.object({ force: joi.boolean().default(false).label('With all its names') })
        },
        async handler({ params, query, audit }) {
            audit({ resourceId: params.id });
            await images.remove(params.id, query.force);
            return null;
        }
    });
    ctx.route({
        method: 'POST',
        path: '/images/tag',
        id: 'tagImage',
        access: 'write',
        summary: 'Give an image a further name',
        answers: 'done',
        ui: { title: 'Name' },
        returns: imageSchema,
        audit: { action: 'tag', resource: 'image' },
        validate: {
            payload: joi.object({
                id: joi.string().max(300).required().label('Image'),
                tag: imageName().label('New name')
            })
        },
        async handler({ payload, audit }) {
            audit({ resourceId: payload.id, after: payload });
            return plain(await images.tag(payload.id, payload.tag));
        }
    });
}

function registerTasks(ctx: Ctx, { images, updates }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/images/pull',
        id: 'pullImage',
        access: 'write',
        summary: 'Pull an image',
        answers: 'task',
        ui: { title: 'Pull', primary: true },
        returns: taskSchema,
        audit: { action: 'pull', resource: 'image' },
        validate: {
            payload: joi.object({
                image: imageName(),
                platform: joi
                    .string()
                    .pattern(/^[a-z0-9]+(\/[a-z0-9]+){0,2}$/, 'a platform such as linux/arm64')
                    .label('Platform')
                    .meta({ ui: { advanced: true } })
            })
        },
        async handler({ payload, actor, audit }) {
            audit({ resourceId: payload.image });
            return reply.accepted(await images.begin(payload.image, payload.platform, actor));
        }
    });
    ctx.route({
        method: 'POST',
        path: '/images/push',
        id: 'pushImage',
        access: 'write',
        summary: 'Push an image to its registry',
        answers: 'task',
        ui: { title: 'Push' },
        returns: taskSchema,
        audit: { action: 'push', resource: 'image' },
        validate: { payload: joi.object({ image: imageName() }) },
        async handler({ payload, actor, audit }) {
            audit({ resourceId: payload.image });
            return reply.accepted(await images.beginPush(payload.image, actor));
        }
    });
    ctx.route({
        method: 'POST',
        path: '/images/check',
        id: 'checkImages',
        access: 'control',
        summary: 'Ask registries for newer images',
        description: 'Default: all images that containers are made of.',
        answers: 'task',
        ui: { title: 'Check for updates' },
        returns: taskSchema,
        audit: { action: 'check', resource: 'image' },
        validate: {
            payload: joi
                .object({ images: joi.array().items(imageName()).max(500).label('Images') })
                .default({})
        },
        handler: async ({ payload, actor }) =>
            reply.accepted(await updates.begin(payload.images ?? (await updates.namesInUse()), actor))
    });
}

function registerRegistries(ctx: Ctx, { registries }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/registries',
        id: 'registries',
        access: 'read',
        summary: 'Logins of registries',
        ui: { title: 'Registries', order: 6, label: 'server', empty: 'No login yet' },
        returns: joi.array().items(registrySchema),
        validate: { query: joi.object(paging) },
        async handler({ query }) {
            return pageOf((await registries.list()).map(viewOf), query, ({ server }) => server);
        }
    });
    ctx.route({
        method: 'GET',
        path: '/registries/{id}',
        id: 'registry',
        access: 'read',
        summary: 'One login',
        returns: registrySchema,
        validate: { params: registryParams },
        handler: async ({ params }) => viewOf(await registries.get(params.id))
    });
    ctx.route({
        method: 'POST',
        path: '/registries/{id}/test',
        id: 'testRegistry',
        access: 'write',
        summary: 'Log in to a registry',
        answers: 'done',
        timeoutSeconds: 40,
        ui: { title: 'Test', role: 'action' },
        returns: joi.object({ ok: joi.boolean().required().label('It works') }),
        audit: { action: 'test', resource: 'registry' },
        validate: { params: registryParams },
        async handler({ params, audit }) {
            audit({ resourceId: params.id });
            return registries.test(params.id);
        }
    });
}

function registerRegistryChanges(ctx: Ctx, { registries }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/registries',
        id: 'createRegistry',
        access: 'write',
        summary: 'Add a login',
        answers: 'made',
        ui: { title: 'New login', primary: true },
        returns: registrySchema,
        audit: { action: 'create', resource: 'registry' },
        validate: {
            payload: joi.object({
                server: joi
                    .string()
                    .max(255)
                    .pattern(/^[A-Za-z0-9.:[\]-]+$/, 'host, or host:port')
                    .required()
                    .label('Server'),
                username: username.required(),
                password: password.required()
            })
        },
        async handler({ payload, audit }) {
            const view = await registries.create(payload);
            audit({ resourceId: view.id, after: view });
            return reply.created(`/api/plugins/${ctx.name}/registries/${view.id}`, view);
        }
    });
    ctx.route({
        method: 'PUT',
        path: '/registries/{id}',
        id: 'updateRegistry',
        access: 'write',
        summary: 'Change a login',
        answers: 'done',
        ui: { title: 'Change' },
        returns: registrySchema,
        audit: { action: 'update', resource: 'registry' },
        validate: { params: registryParams, payload: joi.object({ username, password }) },
        async handler({ params, payload, audit }) {
            const view = await registries.update(params.id, payload);
            audit({ resourceId: params.id, after: view });
            return view;
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/registries/{id}',
        id: 'removeRegistry',
        access: 'write',
        summary: 'Forget a login',
        answers: 'done',
        ui: { title: 'Forget', confirm: 'Forget this login?' },
        returns: joi.valid(null),
        audit: { action: 'delete', resource: 'registry' },
        validate: { params: registryParams },
        async handler({ params, audit }) {
            audit({ resourceId: params.id, before: await registries.remove(params.id) });
            return null;
        }
    });
}
