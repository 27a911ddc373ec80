/** Routes that read and write one file. */
import { joi, reply } from '@portico/sdk';

import { download } from '../../files/content/content.ts';
import { entrySchema } from '../../files/entries.ts';
import { location, parseInner } from '../../roots/path.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { urlOf } from '../locations.ts';

/** Registers the routes that read and write one file. */
export function registerContentRoutes(ctx: Ctx, services: Services): void {
    registerRead(ctx, services);
    registerWrite(ctx, services);
}

function registerRead(ctx: Ctx, { roots }: Services): void {
    ctx.download({
        path: '/content',
        id: 'read',
        access: 'content',
        summary: 'One file, whole or in ranges',
        ui: { title: 'Download' },
        validate: {
            query: location.keys({
                inline: joi
                    .boolean()
                    .default(false)
                    .label('Show in the browser')
                    .description('Images, PDF, audio and video only')
            })
        },
        async handler({ query, actor }) {
            const { root, path } = roots.at(actor, query);
            return download(root.files, path, query.inline);
        }
    });
}

function registerWrite(ctx: Ctx, { roots, entries, writer }: Services): void {
    ctx.upload({
        method: 'PUT',
        path: '/content',
        id: 'write',
        access: 'write',
        summary: 'Write one file',
        ui: { title: 'Upload' },
        accepts: ['*/*'],
        maxBytes: 2 ** 40,
        timeoutSeconds: 86_400,
        returns: entrySchema,
        description:
            'The body is the file, byte for byte. Readers see the old content or the new one. `If-Match` guards an edit; `If-None-Match: *` makes a new file only. Owner and permission bits stay.',
        audit: { action: 'update', resource: 'file' },
        validate: { query: location },
        async handler({ query, actor, body, length, ifMatch, headers, signal, audit }) {
            const root = roots.forChange(actor, query.root);
            const path = parseInner(query.path);
            audit({ resourceId: `${root.name}:${path}` });
            const { made } = await writer.replace(root, path, actor, {
                body,
                length,
                ifMatch,
                onlyNew: headers['if-none-match'] === '*',
                signal
            });
            const entry = await entries.one(root.files, path);
            return made
                ? reply.created(urlOf(ctx, 'content', root, path), entry, { version: entry.version })
                : reply.with(entry, { version: entry.version });
        }
    });
}
