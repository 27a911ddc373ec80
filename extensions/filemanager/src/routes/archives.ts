/** Archives made and unpacked; always tasks. */
import { errors, joi } from '@portico/sdk';

import { extract } from '../archives/extract.ts';
import { formatOf, type Limits } from '../archives/format.ts';
import { pack } from '../archives/write.ts';
import { filesystem, isMissing } from '../errors.ts';
import { ownerOf } from '../files/owner.ts';
import { parentOf, parseInner, parsePath, pathSchema, where } from '../roots/path.ts';
import type { Parts } from '../services.ts';
import { asTask, paced, taskSchema } from '../task-replies.ts';

export function archiveRoutes({ ctx, roots, scratch }: Parts): void {
    const limits = (): Limits => ({
        entries: ctx.settings.archiveEntries,
        bytes: ctx.settings.archiveBytes,
        ratio: ctx.settings.archiveRatio
    });
    ctx.route({
        method: 'POST',
        path: '/archives',
        id: 'pack',
        access: 'write',
        summary: 'Make an archive',
        returns: taskSchema,
        audit: { action: 'create', resource: 'archive' },
        description:
            'The end of `to` says the format: `.tar`, `.tar.gz`, `.tgz` or `.zip`. Links and special files are left out and counted in the result.',
        validate: {
            payload: joi.object({
                root: joi.string().max(64).required(),
                paths: joi.array().items(pathSchema).min(1).max(1_000).required(),
                to: pathSchema.required()
            })
        },
        async handler({ payload, actor, audit }) {
            const root = roots.of(actor, payload.root);
            const to = parseInner(payload.to, 'to');
            const paths = payload.paths.map((path, index) => parsePath(path, `paths.${index}`));
            audit({ resourceId: `${root.name}:${to}` });
            formatOf(to);
            await ownerOf(root.files, parentOf(to));
            for (const path of paths) {
                await filesystem(() => root.files.stat(path));
            }
            if (
                await root.files.stat(to).then(
                    () => true,
                    (error: unknown) => !isMissing(error)
                )
            ) {
                throw errors.conflict('to');
            }
            return asTask(
                ctx,
                { kind: 'pack', title: `Make ${to}`, actor, resource: `${root.name}:${to}` },
                (run) =>
                    pack(scratch, root, paths, to, {
                        limits: limits(),
                        signal: run.signal,
                        progress: paced(run)
                    })
            );
        }
    });
    ctx.route({
        method: 'POST',
        path: '/archives/extract',
        id: 'extract',
        access: 'write',
        summary: 'Unpack an archive',
        returns: taskSchema,
        audit: { action: 'create', resource: 'file' },
        description:
            "Into `to`: a new folder, or one that is there and has none of the archive's top names. All or nothing: names that leave the archive, links, special files, duplicates and more than the limits refuse the whole archive.",
        validate: { payload: where.keys({ to: pathSchema.required() }) },
        async handler({ payload, actor, audit }) {
            const root = roots.of(actor, payload.root);
            const path = parseInner(payload.path);
            const to = parsePath(payload.to, 'to');
            audit({ resourceId: `${root.name}:${to}` });
            formatOf(path);
            await filesystem(() => root.files.stat(path));
            await ownerOf(root.files, parentOf(to));
            return asTask(
                ctx,
                { kind: 'extract', title: `Unpack ${path}`, actor, resource: `${root.name}:${to}` },
                (run) =>
                    extract(scratch, root, path, to, {
                        limits: limits(),
                        signal: run.signal,
                        progress: paced(run)
                    })
            );
        }
    });
}
