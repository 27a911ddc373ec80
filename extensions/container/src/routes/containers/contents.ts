/** Routes of what is in volumes and containers. */
import { joi } from '@portico/sdk';

import { wholly } from '../../engine/engine.ts';
import { archiveBytes } from '../../images/archives.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { labelOf } from '../../spec/spec.ts';
import { nameOf } from '../../stacks/planner.ts';
import { volumeInUse } from '../../volumes/archives.ts';
import { containerParams, volumeParams } from '../fields.ts';

const path = joi
    .string()
    .max(4_096)
    .label('Path')
    .meta({ ui: { widget: 'path' } });
const tar = 'application/x-tar';

/** Registers the routes of files and archives. */
export function registerContentRoutes(ctx: Ctx, services: Services): void {
    registerFiles(ctx, services);
    registerVolumeArchive(ctx, services);
    registerContainerArchive(ctx, services);
}

function registerFiles(ctx: Ctx, { contents }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/volumes/{name}/files',
        id: 'volumeFiles',
        access: 'content',
        summary: 'Files in a folder of a volume',
        ui: { title: 'Files', empty: 'The folder is empty' },
        returns: joi.array().items(
            joi.object({
                name: joi
                    .string()
                    .required()
                    .label('Name')
                    .meta({ ui: { column: 1 } }),
                type: joi
                    .choice({ file: 'File', folder: 'Folder', link: 'Link', other: 'Other' })
                    .required()
                    .label('Type')
                    .meta({ ui: { column: 2 } }),
                size: joi
                    .number()
                    .required()
                    .label('Size')
                    .unit('byte')
                    .meta({ ui: { column: 3 } }),
                mode: joi.string().required().label('Bits').description('Octal'),
                modifiedAt: joi
                    .string()
                    .isoDate()
                    .required()
                    .label('Changed')
                    .meta({ ui: { column: 4 } })
            })
        ),
        validate: { params: volumeParams, query: joi.object({ path: path.default('/') }) },
        handler: async ({ params, query }) =>
            (await contents.list(params.name, query.path)).map(({ name, type, size, mode, modifiedAt }) => ({
                name,
                type,
                size,
                mode: mode.toString(8).padStart(4, '0'),
                modifiedAt: modifiedAt.toISOString()
            }))
    });
    ctx.download({
        path: '/volumes/{name}/content',
        id: 'volumeContent',
        access: 'content',
        summary: 'A file in a volume',
        ui: { title: 'Download' },
        validate: { params: volumeParams, query: joi.object({ path: path.required() }) },
        handler: ({ params, query }) => contents.download(params.name, query.path)
    });
}

function registerVolumeArchive(ctx: Ctx, { archives, storage, inventory, store }: Services): void {
    ctx.download({
        path: '/volumes/{name}/archive',
        id: 'volumeArchive',
        access: 'content',
        summary: 'All that is in a volume, as a tar archive',
        ui: { title: 'Download all' },
        validate: { params: volumeParams },
        async handler({ params, signal }) {
            await archives.plain(params.name);
            return {
                size: null,
                type: tar,
                name: `${params.name}.tar`,
                open: () => archives.read(params.name, signal)
            };
        }
    });
    ctx.upload({
        method: 'PUT',
        path: '/volumes/{name}/archive',
        id: 'replaceVolume',
        access: 'write',
        summary: 'Put an archive in the place of all that is in a volume',
        description:
            'Only while no container has the volume (40901). What was in it is gone, once the whole archive was unpacked. One of a stack that a plugin made is 40950.',
        answers: 'done',
        ui: { title: 'Upload', confirm: 'Replace all that is in this volume?' },
        accepts: [tar, 'application/gzip', 'application/x-gzip', 'application/octet-stream'],
        maxBytes: archiveBytes,
        returns: joi.valid(null),
        audit: { action: 'replace', resource: 'volume' },
        validate: { params: volumeParams },
        async handler({ params: { name }, body, signal, audit }) {
            audit({ resourceId: name });
            const { Labels: labels } = await archives.plain(name);
            await store.mustBeFree(labels?.[labelOf.project] ?? null);
            const mustBeUnused = async (): Promise<void> => {
                const users = (await inventory.list()).filter(({ Mounts: mounts }) =>
                    (mounts ?? []).some(({ Type, Name }) => Type === 'volume' && Name === name)
                );
                if (users.length > 0) {
                    throw volumeInUse(users.map(nameOf));
                }
            };
            await mustBeUnused();
            const upload = storage.newPath('.uploads');
            try {
                await storage.append(upload, body, archiveBytes);
                await mustBeUnused();
                await archives.replace(name, storage.read(upload), signal);
            } finally {
                await storage.remove(upload);
            }
            return null;
        }
    });
}

function registerContainerArchive(ctx: Ctx, { engine, inventory }: Services): void {
    ctx.download({
        path: '/containers/{id}/archive',
        id: 'containerArchive',
        access: 'content',
        summary: 'A file or folder in a container, as a tar archive',
        ui: { title: 'Download' },
        validate: { params: containerParams, query: joi.object({ path: path.required() }) },
        async handler({ params, query, signal }) {
            const { Id: id, Name: name } = await inventory.container(params.id);
            const response = await engine.open('GET', `/containers/${id}/archive`, {
                query: { path: query.path },
                signal,
                patienceMs: 60_000
            });
            return {
                size: null,
                type: tar,
                name: `${name.slice(1)}.tar`,
                open: () => wholly(response),
                close: () => void response.destroy()
            };
        }
    });
}
