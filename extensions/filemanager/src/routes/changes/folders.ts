/** The route that makes folders. */
import { reply } from '@portico/sdk';

import { changeFolderOwner, ownerOf } from '../../files/attributes/owner.ts';
import { entrySchema } from '../../files/entries.ts';
import { filesystem } from '../../files/filesystem.ts';
import { location, parentOf, parseInner } from '../../roots/path.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { urlOf } from '../locations.ts';

/** Registers the route that makes folders. */
export function registerFolderRoutes(ctx: Ctx, { roots, entries }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/folders',
        id: 'makeFolder',
        access: 'write',
        summary: 'Make a folder',
        answers: 'made',
        ui: { title: 'New folder' },
        returns: entrySchema,
        audit: { action: 'create', resource: 'folder' },
        validate: { payload: location },
        async handler({ payload, actor, audit }) {
            const root = roots.forChange(actor, payload.root);
            const path = parseInner(payload.path);
            audit({ resourceId: `${root.name}:${path}` });
            const owner = await ownerOf(root.files, parentOf(path));
            await filesystem(async () => {
                await root.files.createFolder(path, { mode: 0o750 });
                await changeFolderOwner(root.files, path, owner);
            });
            const entry = await entries.one(root.files, path);
            return reply.created(urlOf(ctx, 'files', root, path), entry, { version: entry.version });
        }
    });
}
