/** Routes that make and unpack archives. The work is always a task. */
import { joi, taskSchema } from '@portico/sdk';

import { extract } from '../archives/extract.ts';
import { formatOf, type Limits } from '../archives/format.ts';
import { pack } from '../archives/write.ts';
import { filesystem } from '../files/filesystem.ts';
import { ownerOf } from '../files/owner.ts';
import { location, parentOf, parseInner, parsePath, pathSchema, rootName } from '../roots/path.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { acceptTask, throttledProgress } from '../task-replies.ts';
import { refuseTaken } from './locations.ts';

/** Registers the routes that make and unpack archives. */
export function registerArchiveRoutes(ctx: Ctx, services: Services): void {
    registerPack(ctx, services);
    registerExtract(ctx, services);
}

function registerPack(ctx: Ctx, services: Services): void {
    const { roots } = services;
    ctx.route({
        method: 'POST',
        path: '/archives',
        id: 'pack',
        access: 'write',
        summary: 'Make an archive',
        answers: 'task',
        ui: { title: 'Make an archive', role: 'action' },
        returns: taskSchema,
        audit: { action: 'create', resource: 'archive' },
        description:
            'The end of `to` says the format: `.tar`, `.tar.gz`, `.tgz` or `.zip`. Links and special files are left out and counted in the result.',
        validate: {
            payload: joi.object({
                root: rootName.required(),
                paths: joi
                    .array()
                    .items(pathSchema)
                    .min(1)
                    .max(1_000)
                    .required()
                    .label('What goes in')
                    .description('Paths below the root')
                    .meta({ ui: { widget: 'lines' } }),
                to: pathSchema
                    .required()
                    .label('Archive')
                    .description('Path of the new archive, below the root')
            })
        },
        async handler({ payload, actor, audit }) {
            const root = roots.forChange(actor, payload.root);
            const to = parseInner(payload.to, 'to');
            const paths = payload.paths.map((path, index) => parsePath(path, `paths.${index}`));
            audit({ resourceId: `${root.name}:${to}` });
            formatOf(to);
            await ownerOf(root.files, parentOf(to));
            for (const path of paths) {
                await filesystem(() => root.files.stat(path));
            }
            await refuseTaken(root, to);
            return acceptTask(
                ctx,
                { kind: 'pack', title: `Make ${to}`, actor, resource: `${root.name}:${to}` },
                (run) =>
                    pack(services, root, paths, to, {
                        limits: archiveLimits(ctx),
                        signal: run.signal,
                        progress: throttledProgress(run)
                    })
            );
        }
    });
}

function registerExtract(ctx: Ctx, services: Services): void {
    const { roots } = services;
    ctx.route({
        method: 'POST',
        path: '/archives/extract',
        id: 'extract',
        access: 'write',
        summary: 'Unpack an archive',
        answers: 'task',
        ui: { title: 'Unpack', role: 'action' },
        returns: taskSchema,
        audit: { action: 'create', resource: 'file' },
        description:
            "Into `to`: a new folder, or one that is there and has none of the archive's top names. All or nothing: names that leave the archive, links, special files, duplicates and more than the limits refuse the whole archive.",
        validate: {
            payload: location.keys({
                to: pathSchema.required().label('Into').description('Folder below the root')
            })
        },
        async handler({ payload, actor, audit }) {
            const root = roots.forChange(actor, payload.root);
            const path = parseInner(payload.path);
            const to = parsePath(payload.to, 'to');
            audit({ resourceId: `${root.name}:${to}` });
            formatOf(path);
            await filesystem(() => root.files.stat(path));
            await ownerOf(root.files, parentOf(to));
            return acceptTask(
                ctx,
                { kind: 'extract', title: `Unpack ${path}`, actor, resource: `${root.name}:${to}` },
                (run) =>
                    extract(services, root, path, to, {
                        limits: archiveLimits(ctx),
                        signal: run.signal,
                        progress: throttledProgress(run)
                    })
            );
        }
    });
}

function archiveLimits({ settings }: Ctx): Limits {
    return {
        entries: settings.archiveEntries,
        bytes: settings.archiveBytes,
        ratio: settings.archiveRatio
    };
}
