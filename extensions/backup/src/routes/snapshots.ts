/** Routes of snapshots: what is in them, and getting it back. */
import { errors, joi, reply } from '@portico/sdk';

import type { RepositoryRow } from '../entities.ts';
import { pluginErrors } from '../errors.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import type { Snapshot } from '../snapshots/snapshots.ts';
import { idSchema } from './common.ts';

const base = '/repositories/{id}/snapshots';
const params = joi.object({
    id: idSchema,
    sid: joi
        .string()
        .pattern(/^[0-9a-f]{8,64}$/)
        .required()
        .label('Snapshot')
});
const inside = joi
    .string()
    .pattern(/^\/[^\0]*$/)
    .max(4_000)
    .label('Path');
const snapshotView = joi.object({
    id: joi.string().required().label('Snapshot'),
    time: joi
        .string()
        .required()
        .label('Made')
        .meta({ ui: { column: 1 } }),
    planId: joi.number().integer().allow(null).required().label('Plan'),
    tags: joi.array().items(joi.string()).required().label('Tags'),
    hostname: joi.string().allow('').required().label('Machine'),
    pinned: joi.boolean().required().label('Pinned')
});
const entryView = joi.object({
    name: joi
        .string()
        .required()
        .label('Name')
        .meta({ ui: { column: 1 } }),
    path: joi.string().required().label('Path'),
    type: joi.string().required().label('Type'),
    size: joi.number().required().label('Size').unit('byte'),
    mode: joi.number().integer().required().label('Mode'),
    modifiedAt: joi.string().required().label('Changed')
});

/** Registers the routes of snapshots. */
export function registerSnapshotRoutes(ctx: Ctx, services: Services): void {
    registerSnapshots(ctx, services);
    registerChanges(ctx, services);
    registerBrowsing(ctx, services);
    registerContent(ctx, services);
    registerRestore(ctx, services);
}

interface Place {
    readonly id: number;
    readonly sid: string;
}

async function find(
    { repositories, snapshots }: Services,
    { id, sid }: Place
): Promise<{ readonly row: RepositoryRow; readonly snapshot: Snapshot }> {
    const row = await repositories.get(id);
    return { row, snapshot: await snapshots.get(row, sid) };
}

function viewOf({ paths: _paths, ...rest }: Snapshot): Omit<Snapshot, 'paths'> {
    return rest;
}

function registerSnapshots(ctx: Ctx, services: Services): void {
    const { repositories, snapshots } = services;
    ctx.route({
        method: 'GET',
        path: base,
        id: 'snapshots',
        access: 'read',
        summary: 'List the snapshots of a repository, newest first',
        ui: { title: 'Snapshots', empty: 'No snapshot yet' },
        returns: joi.array().items(snapshotView),
        validate: {
            params: joi.object({ id: idSchema }),
            query: joi.object({
                planId: joi.number().integer().min(1).label('Plan'),
                tag: joi.string().max(60).label('Tag')
            })
        },
        async handler({ params: { id }, query: { planId, tag } }) {
            return (await snapshots.list(await repositories.get(id)))
                .filter(
                    (each) =>
                        (planId === undefined || each.planId === planId) &&
                        (tag === undefined || each.tags.includes(tag))
                )
                .map(viewOf);
        }
    });
    ctx.route({
        method: 'GET',
        path: `${base}/{sid}`,
        id: 'snapshot',
        access: 'read',
        summary: 'One snapshot',
        returns: snapshotView,
        validate: { params },
        handler: async ({ params: place }) => viewOf((await find(services, place)).snapshot)
    });
}

function registerChanges(ctx: Ctx, services: Services): void {
    const { repositories, snapshots } = services;
    ctx.route({
        method: 'PUT',
        path: `${base}/{sid}`,
        id: 'changeSnapshot',
        access: 'write',
        summary: 'Tag or pin a snapshot',
        description: 'A pinned one is never removed by keep rules. restic writes it anew, so its id changes.',
        returns: snapshotView,
        audit: { action: 'update', resource: 'snapshot' },
        validate: {
            params,
            payload: joi.object({
                tags: joi
                    .array()
                    .items(joi.string().pattern(/^[\w.-]{1,60}$/))
                    .max(20)
                    .label('Tags'),
                pinned: joi.boolean().label('Pinned')
            })
        },
        async handler({ params: place, payload }) {
            const { row, snapshot } = await find(services, place);
            const { tags = snapshot.tags, pinned = snapshot.pinned } = payload;
            services.repositories.requireRemovable(row);
            return viewOf(
                await repositories.writing(row.id, () => snapshots.tag(row, snapshot, tags, pinned))
            );
        }
    });
    ctx.route({
        method: 'DELETE',
        path: `${base}/{sid}`,
        id: 'removeSnapshot',
        access: 'write',
        summary: 'Remove a snapshot',
        answers: 'task',
        returns: joi.any(),
        audit: { action: 'delete', resource: 'snapshot' },
        validate: { params },
        async handler({ params: place, actor }) {
            const { row, snapshot } = await find(services, place);
            repositories.requireRemovable(row);
            const options = { kind: 'snapshot', title: 'Remove a snapshot', access: 'write', actor };
            return reply.accepted(
                await ctx.task(options, async ({ signal }) => {
                    await repositories.writing(row.id, () => snapshots.remove(row, snapshot, signal));
                    return { removed: snapshot.id };
                })
            );
        }
    });
}

function registerBrowsing(ctx: Ctx, services: Services): void {
    ctx.route({
        method: 'GET',
        path: `${base}/{sid}/files`,
        id: 'files',
        access: 'browse',
        summary: 'What a folder of a snapshot holds',
        ui: { title: 'Files', empty: 'Nothing' },
        returns: joi.array().items(entryView),
        validate: { params, query: joi.object({ path: inside.default('/') }) },
        async handler({ params: place, query: { path } }) {
            const { row, snapshot } = await find(services, place);
            const folder = path === '/' ? path : path.replace(/\/+$/, '');
            return [...(await services.snapshots.files(row, snapshot, folder))];
        }
    });
    ctx.route({
        method: 'GET',
        path: `${base}/{sid}/search`,
        id: 'search',
        access: 'browse',
        summary: 'Find files in a snapshot by a pattern of their name',
        ui: { title: 'Search', empty: 'Nothing found' },
        returns: joi.array().items(entryView),
        validate: {
            params,
            query: joi.object({
                q: joi.string().min(1).max(200).required().label('Pattern').description('As `*.conf`')
            })
        },
        async handler({ params: place, query: { q } }) {
            const { row, snapshot } = await find(services, place);
            return [...(await services.snapshots.search(row, snapshot, q))];
        }
    });
}

function registerContent(ctx: Ctx, services: Services): void {
    ctx.download({
        path: `${base}/{sid}/content`,
        id: 'content',
        access: 'content',
        summary: 'Download a file of a snapshot, or a folder as an archive',
        validate: {
            params,
            query: joi.object({
                path: inside.required(),
                archive: joi.choice({ tar: 'tar', zip: 'zip' }).default('tar').label('Archive of a folder')
            })
        },
        async handler({ params: place, query: { path, archive } }) {
            const { row, snapshot } = await find(services, place);
            const parent = path.slice(0, path.lastIndexOf('/')) || '/';
            const entry = (await services.snapshots.files(row, snapshot, parent)).find(
                (each) => each.path === path
            );
            if (entry === undefined || !['file', 'folder'].includes(entry.type)) {
                throw errors.notFound('There is no file or folder at that path in the snapshot');
            }
            const target = await services.repositories.target(row);
            const ended = new AbortController();
            const isFile = entry.type === 'file';
            const args = ['--no-lock', ...(isFile ? [] : [`--archive=${archive}`]), snapshot.id, path];
            return {
                size: isFile ? entry.size : null,
                type: isFile
                    ? 'application/octet-stream'
                    : `application/${archive === 'tar' ? 'x-tar' : 'zip'}`,
                name: isFile ? entry.name : `${entry.name}.${archive}`,
                version: snapshot.id.slice(0, 16),
                async *open({ start, end }) {
                    let at = 0;
                    for await (const chunk of await services.restic.dump(target, args, ended.signal)) {
                        const last = end === null ? Infinity : end + 1;
                        const part = chunk.subarray(Math.max(0, start - at), Math.max(0, last - at));
                        at += chunk.length;
                        if (part.length > 0) {
                            yield part;
                        }
                        if (at >= last) {
                            return;
                        }
                    }
                },
                close: () => ended.abort()
            };
        }
    });
}

function registerRestore(ctx: Ctx, services: Services): void {
    const { restores } = services;
    ctx.route({
        method: 'POST',
        path: `${base}/{sid}/restore`,
        id: 'restore',
        access: 'restore',
        stepUp: true,
        summary: 'Restore parts of a snapshot to a new or empty folder',
        description:
            '`/a/b` comes as `folder/a/b`. The panel’s own state becomes a data folder by `portico data restore`, with the path that the result names. A task; its result is `items` with `ok`, `path` and `message`.',
        answers: 'task',
        returns: joi.any(),
        audit: { action: 'restore', resource: 'snapshot' },
        validate: {
            params,
            payload: joi.object({
                items: joi
                    .array()
                    .items(
                        joi.object({
                            path: inside,
                            plugin: joi.string().max(40).label('Plugin'),
                            item: joi.string().max(200).label('Item'),
                            panel: joi.boolean().valid(true).label('The panel')
                        })
                    )
                    .min(1)
                    .max(100)
                    .required()
                    .label('What')
                    .description('Each with a path, a plugin (and one item of it), or panel'),
                folder: joi
                    .string()
                    .pattern(/^\/[^\0]*$/)
                    .max(4_000)
                    .required()
                    .label('Folder')
                    .description('New or empty')
            })
        },
        async handler({ params: place, payload: { items, folder }, actor }) {
            const isPlain = items.every(
                ({ path, plugin, item, panel }) =>
                    [path, plugin, panel].filter((each) => each !== undefined).length === 1 &&
                    (item === undefined || plugin !== undefined)
            );
            if (!isPlain) {
                throw errors.invalid([
                    {
                        path: 'items',
                        message: 'items have each a path, a plugin (and one item of it), or panel'
                    }
                ]);
            }
            const { row, snapshot } = await find(services, place);
            await restores.check(folder, row);
            const options = { kind: 'restore', title: `Restore to ${folder}`, access: 'restore', actor };
            return reply.accepted(
                await ctx.task(options, async ({ signal }) => {
                    const restored = await restores.run(row, snapshot, items, folder, signal);
                    const bad = restored.filter(({ ok }) => !ok);
                    if (bad.length > 0) {
                        const message = bad.map((part) => `${part.path}: ${part.message}`).join('; ');
                        throw pluginErrors.RESTORE_INCOMPLETE({ message });
                    }
                    return { items: restored };
                })
            );
        }
    });
}
