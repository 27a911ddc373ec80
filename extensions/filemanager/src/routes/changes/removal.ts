/** The route that removes entries. */
import { type Actor, joi, type Reply, reply, type Task, taskSchema } from '@portico/sdk';

import { filesystem } from '../../files/filesystem.ts';
import { measure } from '../../files/tree.ts';
import { checkVersion } from '../../files/writer.ts';
import { location, parseInner } from '../../roots/path.ts';
import type { Place } from '../../roots/roots.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { acceptTask, throttledProgress } from '../../task-replies.ts';
import type { Removal } from '../../trash/removal.ts';

/** Registers the route that moves entries to the trash or removes them for good. */
export function registerRemovalRoutes(ctx: Ctx, { roots, trash, removal }: Services): void {
    ctx.route({
        method: 'DELETE',
        path: '/files',
        id: 'remove',
        access: 'write',
        summary: 'Move to the trash, or remove for good',
        ui: { title: 'Remove', role: 'action', confirm: 'Remove this?' },
        returns: joi.alternatives(taskSchema, joi.valid(null)),
        audit: { action: 'delete', resource: 'file' },
        timeoutSeconds: 120,
        description: 'With `permanent=true` nothing is kept; a large folder then becomes a task (202).',
        validate: {
            query: location.keys({
                permanent: joi
                    .boolean()
                    .default(false)
                    .label('For good')
                    .description('Nothing is kept in the trash')
            })
        },
        async handler({ query, actor, audit, ifMatch, signal }) {
            const root = roots.forChange(actor, query.root);
            const path = parseInner(query.path);
            audit({ resourceId: `${root.name}:${path}` });
            checkVersion(await filesystem(() => root.files.stat(path)), ifMatch);
            if (!query.permanent) {
                await trash.put(root, path, actor);
                return reply.with(null, {});
            }
            if ((await measure(root.files, path, { entries: 500, bytes: Infinity })).more) {
                return removeAsTask(ctx, removal, actor, { root, path });
            }
            await removal.forGood(root, path, { signal, step: () => undefined });
            return reply.with(null, {});
        }
    });
}

async function removeAsTask(
    ctx: Ctx,
    removal: Removal,
    actor: Actor,
    { root, path }: Place
): Promise<Reply<Task>> {
    const description = { kind: 'remove', title: `Remove ${path}`, actor, resource: `${root.name}:${path}` };
    return acceptTask(ctx, description, async (run) => {
        const progress = throttledProgress(run);
        await removal.forGood(root, path, { signal: run.signal, step: (done, of) => progress(done / of) });
        return { root: root.name, path };
    });
}
