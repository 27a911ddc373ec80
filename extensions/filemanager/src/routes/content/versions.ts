/** Routes that list, download and restore versions of files. */
import { joi, pages, reply } from '@portico/sdk';

import { bytesOf } from '../../files/content/bytes.ts';
import { openFile } from '../../files/content/content.ts';
import { entrySchema } from '../../files/entries.ts';
import { location, parseInner } from '../../roots/path.ts';
import { privatePath } from '../../roots/private-folder.ts';
import { refuseReadOnly } from '../../roots/roots.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { versionSchema } from '../../versions/versions.ts';

const params = joi.object({
    id: joi.number().integer().min(1).required().label('Version')
});

/** Registers the routes of versions. */
export function registerVersionRoutes(ctx: Ctx, services: Services): void {
    registerList(ctx, services);
    registerDownload(ctx, services);
    registerRestore(ctx, services);
}

function registerList(ctx: Ctx, { roots, versions }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/versions',
        id: 'versions',
        access: 'content',
        summary: 'Earlier contents of a file',
        ui: { title: 'Versions', order: 5, empty: 'No earlier content of this file is kept' },
        returns: joi.array().items(versionSchema),
        description:
            'Newest first. They are kept where the root says how many, each time that the panel replaces the file: by an edit, an upload, a copy or a restore.',
        validate: { query: location.keys(pages.query()) },
        async handler({ query, actor }) {
            const { root, path } = roots.at(actor, query);
            const found = await versions.list(root, path, query.limit, pages.afterNumber(query));
            const { rows, page } = pages.read(found, query.limit, ({ id }) => id);
            return reply.list(
                rows.map((row) => versions.view(row)),
                page
            );
        }
    });
}

function registerDownload(ctx: Ctx, { versions }: Services): void {
    ctx.download({
        path: '/versions/{id}',
        id: 'version',
        access: 'content',
        summary: 'Download an earlier content',
        ui: { title: 'Download' },
        validate: { params },
        handler: async ({ params: { id }, actor }) => versions.open(await versions.one(actor, id))
    });
}

function registerRestore(ctx: Ctx, { entries, versions, writer }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/versions/{id}/restore',
        id: 'restoreVersion',
        access: 'write',
        summary: 'Restore an earlier content',
        answers: 'done',
        ui: { title: 'Restore', role: 'action' },
        returns: entrySchema,
        audit: { action: 'update', resource: 'file' },
        timeoutSeconds: 600,
        description:
            'What the file contains now is kept as a version in turn. A file that is gone is made again.',
        validate: { params },
        async handler({ params: { id }, actor, audit, ifMatch, signal }) {
            const { root, row } = await versions.one(actor, id);
            refuseReadOnly(root);
            const path = parseInner(row.path);
            audit({ resourceId: `${root.name}:${path}`, after: { version: id, checksum: row.checksum } });
            const { handle, entry } = await openFile(root.files, privatePath('versions', row.checksum));
            try {
                const body = bytesOf(handle, 0, entry.size);
                await writer.replace(root, path, actor, {
                    body,
                    length: entry.size,
                    ifMatch,
                    onlyNew: false,
                    signal
                });
            } finally {
                await handle.close();
            }
            const restored = await entries.one(root.files, path);
            return reply.with(restored, { version: restored.version });
        }
    });
}
