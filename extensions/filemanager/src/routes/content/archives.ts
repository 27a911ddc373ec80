/** Routes that make and unpack archives. The work is always a task. */
import { joi, pages, reply, taskSchema, type Value } from '@portico/sdk';

import { extract } from '../../archives/extract.ts';
import { formatOf, type Limits, writtenFormatOf } from '../../archives/format.ts';
import { entriesOf } from '../../archives/read.ts';
import { measureAll, pack, streamFolder } from '../../archives/write.ts';
import { fail } from '../../errors.ts';
import { ownerOf } from '../../files/attributes/owner.ts';
import { openFile } from '../../files/content/content.ts';
import { filesystem } from '../../files/filesystem.ts';
import { location, nameOf, parentOf, parseInner, parsePath, pathSchema, rootName } from '../../roots/path.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { acceptTask, throttledProgress } from '../../task-replies.ts';
import { refuseTaken } from '../locations.ts';

/** Registers the routes that make and unpack archives. */
export function registerArchiveRoutes(ctx: Ctx, services: Services): void {
    registerPack(ctx, services);
    registerExtract(ctx, services);
    registerDownload(ctx, services);
    registerEntries(ctx, services);
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
            'The end of `to` says the format: `.tar`, `.tar.gz`, `.tar.xz`, `.tar.zst`, `.tar.bz2`, `.zip` or `.7z`. Links and special files are left out and counted in the result.',
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
            writtenFormatOf(to);
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
                to: pathSchema.required().label('Into').description('Folder below the root'),
                entries: joi
                    .array()
                    .items(joi.string().min(1).max(4096))
                    .max(1_000)
                    .default([])
                    .label('Only these')
                    .description('Names in the archive; of a folder with everything below it. Empty: all')
                    .meta({ ui: { widget: 'lines' } })
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
                        only: payload.entries.map((name) => parsePath(name, 'entries')),
                        signal: run.signal,
                        progress: throttledProgress(run)
                    })
            );
        }
    });
}

const mediaTypes = {
    zip: 'application/zip',
    'tar.gz': 'application/gzip',
    'tar.zst': 'application/zstd'
} as const;

function registerDownload(ctx: Ctx, { roots, converter }: Services): void {
    ctx.download({
        path: '/archive',
        id: 'downloadFolder',
        access: 'content',
        summary: 'Download a folder as an archive',
        ui: { title: 'Download as an archive' },
        description:
            'Made while it is read: nothing is put down on the machine, and there are no ranges. Links and special files are left out.',
        validate: {
            query: location.keys({
                format: joi
                    .choice({ zip: 'zip', 'tar.gz': 'tar.gz', 'tar.zst': 'tar.zst' })
                    .default('zip')
                    .label('Format')
            })
        },
        async handler({ query, actor, signal }) {
            const { root, path } = roots.at(actor, query);
            const { format } = query;
            const { type } = await filesystem(() => root.files.stat(path));
            if (type !== 'folder') {
                throw fail.WRONG_TYPE({ path, type, wanted: 'folder' });
            }
            await measureAll(root, [path], archiveLimits(ctx));
            return {
                size: null,
                type: mediaTypes[format],
                name: `${path === '' ? root.name : nameOf(path)}.${format}`,
                open: () => streamFolder(converter, root, path, { format, signal })
            };
        }
    });
}

const archiveEntrySchema = joi.object({
    name: joi
        .string()
        .allow('')
        .required()
        .label('Name')
        .meta({ ui: { column: 1 } }),
    type: joi
        .choice({ file: 'File', folder: 'Folder', other: 'Link or special file' })
        .required()
        .label('Type')
        .meta({ ui: { column: 2 } }),
    size: joi
        .number()
        .integer()
        .allow(null)
        .required()
        .label('Size')
        .unit('byte')
        .description('Null for one packed file, which does not say it')
        .meta({ ui: { column: 3 } }),
    modifiedAt: joi
        .string()
        .isoDate()
        .allow(null)
        .required()
        .label('Changed')
        .meta({ ui: { column: 4 } })
});

function registerEntries(ctx: Ctx, { roots, converter }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/archives/entries',
        id: 'archiveEntries',
        access: 'content',
        summary: 'What is in an archive',
        ui: { title: 'What is in an archive', order: 6, label: 'name', empty: 'The archive is empty' },
        returns: joi.array().items(archiveEntrySchema),
        timeoutSeconds: 120,
        description:
            'In the order of the archive; nothing is unpacked. Links and special files are shown, though an archive that has them is not unpacked.',
        validate: { query: location.keys(pages.query(1_000, 10_000)) },
        async handler({ query, actor, signal }) {
            const { root, path } = roots.at(actor, query);
            const format = formatOf(path);
            const { handle, entry } = await openFile(root.files, path);
            try {
                const limits = archiveLimits(ctx);
                const source = {
                    handle,
                    path,
                    size: entry.size,
                    signal,
                    read: () => undefined,
                    withOthers: true
                };
                const found: Value<typeof archiveEntrySchema>[] = [];
                for await (const one of entriesOf(converter, format, source, limits)) {
                    if (found.length === limits.entries) {
                        throw fail.ARCHIVE_TOO_LARGE({ limit: limits.entries, unit: 'entries' });
                    }
                    const { name, kind, size, modifiedAt } = one;
                    found.push({
                        name: name.slice(0, 4096),
                        type: kind,
                        size,
                        modifiedAt: modifiedAt?.toISOString() ?? null
                    });
                }
                const { rows, page } = pages.ordered(found, query);
                return reply.list(rows, page);
            } finally {
                await handle.close();
            }
        }
    });
}

/** The limits of archives, as the settings say. */
export function archiveLimits({ settings }: Ctx): Limits {
    return {
        entries: settings.archiveEntries,
        bytes: settings.archiveBytes,
        ratio: settings.archiveRatio
    };
}
