/** Routes of builds, and of images as archives. */
import { errors, joi, reply, taskSchema } from '@portico/sdk';

import { contextBytes } from '../../builds/builds.ts';
import { archiveBytes } from '../../images/archives.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { imageName } from '../../spec/input.ts';
import { imageParams } from '../fields.ts';

const archives = [
    'application/x-tar',
    'application/gzip',
    'application/x-gzip',
    'application/octet-stream'
] as const;

/** Registers the routes of builds and archives. */
export function registerBuildRoutes(ctx: Ctx, services: Services): void {
    registerBuilds(ctx, services);
    registerArchives(ctx, services);
    registerSearch(ctx, services);
}

function registerBuilds(ctx: Ctx, { builds }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/builds',
        id: 'beginBuild',
        access: 'write',
        summary: 'Begin a build of an image',
        description:
            'The build runs when its context was sent to `/builds/{id}/context`. Values of `args` are in no log: they are masked in what the build prints. They stay in the history of the image, as builders do it.',
        answers: 'made',
        ui: { title: 'Build', role: 'hidden' },
        returns: joi.object({ id: joi.string().required().label('Build') }),
        audit: { action: 'create', resource: 'build' },
        validate: {
            payload: joi.object({
                tag: imageName().label('Name of the image'),
                dockerfile: joi
                    .string()
                    .max(1_000)
                    .default('Dockerfile')
                    .label('File')
                    .description('Path in the context'),
                target: joi.string().max(200).label('Stage').description('Default: the last'),
                args: joi.record(joi.string().allow('').max(131_072)).default({}).label('Arguments'),
                noCache: joi.boolean().default(false).label('Without the cache')
            })
        },
        handler({ payload: { tag, dockerfile, target = null, args, noCache }, audit }) {
            const { id } = builds.begin(
                { tag, dockerfile, target, args, noCache, network: true, memoryBytes: null, cpus: null },
                null
            );
            audit({ resourceId: id, after: { tag, dockerfile, target, noCache } });
            return reply.created(`/api/plugins/${ctx.name}/builds/${id}`, { id });
        }
    });
    ctx.upload({
        method: 'PUT',
        path: '/builds/{id}/context',
        id: 'sendBuildContext',
        access: 'write',
        summary: 'Send the context of a build, and build',
        description:
            'A tar archive, which may be compressed by gzip. The result of the task has the id of the image.',
        answers: 'task',
        ui: { title: 'Context', role: 'hidden' },
        accepts: archives,
        maxBytes: contextBytes,
        returns: taskSchema,
        audit: { action: 'run', resource: 'build' },
        validate: { params: joi.object({ id: joi.string().max(50).required().label('Build') }) },
        async handler({ params, body, actor, audit }) {
            audit({ resourceId: params.id });
            await builds.write(params.id, null, body);
            return reply.accepted(await builds.beginTask(params.id, actor));
        }
    });
}

function registerArchives(ctx: Ctx, { imageArchives, inventory }: Services): void {
    ctx.upload({
        method: 'POST',
        path: '/images/load',
        id: 'loadImages',
        access: 'write',
        summary: 'Load images from an archive',
        description: 'As `docker save` makes it. Names in it are taken over from images that have them.',
        answers: 'task',
        ui: { title: 'Load' },
        accepts: archives,
        maxBytes: archiveBytes,
        returns: taskSchema,
        audit: { action: 'load', resource: 'image' },
        handler: async ({ body, actor }) => reply.accepted(await imageArchives.load(body, actor))
    });
    ctx.download({
        path: '/images/{id}/save',
        id: 'saveImage',
        access: 'content',
        summary: 'An image with its layers, as a tar archive',
        ui: { title: 'Save' },
        validate: { params: imageParams },
        async handler({ params, signal }) {
            const image = await inventory.image(params.id);
            if (image === null) {
                throw errors.notFound('There is no image of that name');
            }
            return {
                size: null,
                type: 'application/x-tar',
                name: `${params.id.replace(/[^A-Za-z0-9_.-]+/g, '-')}.tar`,
                version: image.Id,
                open: () => imageArchives.save(params.id, signal)
            };
        }
    });
}

function registerSearch(ctx: Ctx, { imageArchives }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/images/search',
        id: 'searchImages',
        access: 'read',
        tool: false, // the words leave this machine
        summary: 'Images of the public registry, by a word',
        ui: { title: 'Search', empty: 'Nothing found' },
        returns: joi.array().items(
            joi.object({
                name: joi
                    .string()
                    .required()
                    .label('Name')
                    .meta({ ui: { column: 1 } }),
                description: joi
                    .string()
                    .allow('')
                    .required()
                    .label('Description')
                    .meta({ ui: { column: 2 } }),
                stars: joi
                    .number()
                    .integer()
                    .required()
                    .label('Stars')
                    .meta({ ui: { column: 3 } }),
                official: joi
                    .boolean()
                    .required()
                    .label('Official')
                    .meta({ ui: { column: 4 } })
            })
        ),
        validate: { query: joi.object({ q: joi.string().min(2).max(100).required().label('Word') }) },
        handler: async ({ query }) => (await imageArchives.search(query.q)).map((each) => ({ ...each }))
    });
}
