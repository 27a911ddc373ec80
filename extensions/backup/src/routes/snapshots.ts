/** Routes of snapshots: what is in them, and getting it back. */
import { errors, joi, reply } from '@portico/sdk';

import type { RepositoryRow } from '../entities.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import type { Snapshot, SnapshotRecord } from '../snapshots/documents.ts';
import { idParams, idSchema, period } from './common.ts';

/** The path of the snapshots of one repository. */
export const base = '/repositories/{id}/snapshots';
/** Path parameters of a snapshot. */
export const params = joi.object({
    id: idSchema,
    sid: joi
        .string()
        .pattern(/^[0-9a-f]{8,64}$/)
        .required()
        .label('Snapshot')
});
/** A path in a snapshot. */
export const inside = joi
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
    sources: joi.array().items(joi.any()).required().label('Sources'),
    bytes: joi.number().integer().allow(null).required().label('Size').unit('byte'),
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
    registerDiff(ctx, services);
    registerContent(ctx, services);
}

/** A snapshot in a path. */
export interface Place {
    readonly id: number;
    readonly sid: string;
}

/** Finds a snapshot by the parameters of its path. @throws NOT_FOUND 40400 */
export async function findSnapshot(
    { repositories, snapshots }: Services,
    { id, sid }: Place
): Promise<{ readonly row: RepositoryRow; readonly snapshot: Snapshot }> {
    const row = await repositories.get(id);
    return { row, snapshot: await snapshots.get(row, sid) };
}

/** @param records - what the runs of this panel say; a snapshot of another panel shows its paths */
function viewOf({ paths, ...rest }: Snapshot, records: ReadonlyMap<string, SnapshotRecord>) {
    const record = records.get(rest.id);
    return {
        ...rest,
        sources: [...(record?.sources ?? paths.map((path) => ({ type: 'folder', path })))],
        bytes: record?.bytes ?? null
    };
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
                tag: joi.string().max(60).label('Tag'),
                ...period
            })
        },
        async handler({ params: { id }, query: { planId, tag, from, to } }) {
            const records = await snapshots.records();
            return (await snapshots.list(await repositories.get(id)))
                .filter(
                    (each) =>
                        (planId === undefined || each.planId === planId) &&
                        (tag === undefined || each.tags.includes(tag)) &&
                        (from === undefined || Date.parse(each.time) >= Date.parse(from)) &&
                        (to === undefined || Date.parse(each.time) <= Date.parse(to))
                )
                .map((each) => viewOf(each, records));
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
        handler: async ({ params: place }) =>
            viewOf((await findSnapshot(services, place)).snapshot, await snapshots.records())
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
            const { row, snapshot } = await findSnapshot(services, place);
            const { tags = snapshot.tags, pinned = snapshot.pinned } = payload;
            services.repositories.requireRemovable(row);
            const changed = await repositories.writing(row.id, () =>
                snapshots.tag(row, snapshot, tags, pinned)
            );
            return viewOf(changed, await snapshots.records());
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
            const { row, snapshot } = await findSnapshot(services, place);
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
            const { row, snapshot } = await findSnapshot(services, place);
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
            const { row, snapshot } = await findSnapshot(services, place);
            return [...(await services.snapshots.search(row, snapshot, q))];
        }
    });
}

function registerDiff(ctx: Ctx, services: Services): void {
    const { repositories, snapshots } = services;
    const snapshot = joi
        .string()
        .pattern(/^[0-9a-f]{8,64}$/)
        .required();
    ctx.route({
        method: 'GET',
        path: '/repositories/{id}/diff',
        id: 'diff',
        access: 'browse',
        summary: 'What differs between two snapshots',
        description: 'At most 10,000 paths.',
        ui: { title: 'Differences', empty: 'Nothing differs' },
        returns: joi.array().items(
            joi.object({
                path: joi.string().required().label('Path'),
                change: joi
                    .choice({ added: 'Added', removed: 'Removed', changed: 'Changed' })
                    .required()
                    .label('Change')
            })
        ),
        validate: {
            params: idParams,
            query: joi.object({
                from: snapshot.label('Snapshot before'),
                to: snapshot.label('Snapshot after')
            })
        },
        async handler({ params: { id }, query: { from, to }, signal }) {
            const row = await repositories.get(id);
            const [before, after] = [await snapshots.get(row, from), await snapshots.get(row, to)];
            return [...(await snapshots.diff(row, before, after, signal))];
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
            const { row, snapshot } = await findSnapshot(services, place);
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
