/** What was removed, and the way back. */
import { joi, reply } from '@portico/sdk';

import { entrySchema } from '../files/entries.ts';
import { measure } from '../files/tree.ts';
import { parseInner, pathSchema } from '../roots/path.ts';
import { privatePath } from '../roots/private-folder.ts';
import type { Parts } from '../services.ts';
import { asTask, paced, taskSchema } from '../task-replies.ts';
import { trashSchema } from '../trash.ts';

const rootName = joi.string().max(64);

export function trashRoutes({ ctx, roots, entries, trash }: Parts): void {
    ctx.route({
        method: 'GET',
        path: '/trash',
        id: 'trash',
        access: 'read',
        summary: 'What lies in the trash',
        returns: joi.array().items(trashSchema),
        description: 'Newest first; of one root, or of all that you may reach.',
        validate: { query: joi.object({ root: rootName }) },
        async handler({ query, actor }) {
            const held = await trash.list(
                query.root === undefined ? roots.visible(actor) : [roots.of(actor, query.root)]
            );
            return reply.list(
                held.map((one) => trash.view(one)),
                { total: held.length }
            );
        }
    });
    ctx.route({
        method: 'POST',
        path: '/trash',
        id: 'restore',
        access: 'write',
        summary: 'Put something back',
        returns: entrySchema,
        audit: { action: 'update', resource: 'trash' },
        description:
            'To where it was, or to `to`; folders that are gone are made again. A name that is taken is 40900.',
        validate: { payload: joi.object({ id: joi.number().integer().min(1).required(), to: pathSchema }) },
        async handler({ payload, actor, audit }) {
            const held = await trash.one(roots.visible(actor), payload.id);
            const to = payload.to === undefined ? held.row.path : parseInner(payload.to, 'to');
            audit({ resourceId: payload.id, after: { root: held.root.name, path: to } });
            await trash.restore(held, to);
            const entry = await entries.one(held.root.files, to);
            return reply.with(entry, { version: entry.version });
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/trash',
        id: 'emptyTrash',
        access: 'write',
        summary: 'Empty the trash',
        returns: joi.alternatives(taskSchema, joi.valid(null)),
        audit: { action: 'delete', resource: 'trash' },
        timeoutSeconds: 120,
        description:
            'Of one root, of all that you may reach, or one item by its `id`. A large one becomes a task (202).',
        validate: { query: joi.object({ root: rootName, id: joi.number().integer().min(1) }) },
        async handler({ query, actor, audit, signal }) {
            const reached = query.root === undefined ? roots.visible(actor) : [roots.of(actor, query.root)];
            const held =
                query.id === undefined ? await trash.list(reached) : [await trash.one(reached, query.id)];
            audit({ resourceId: query.id ?? query.root ?? null });
            let entriesLeft = 500;
            for (const { root, row } of held) {
                const { entries: count } = await measure(root.files, privatePath('trash', row.key), {
                    entries: entriesLeft,
                    bytes: Infinity
                }).catch(() => ({ entries: 1 }));
                entriesLeft -= count;
                if (entriesLeft < 0) {
                    return asTask(
                        ctx,
                        {
                            kind: 'empty-trash',
                            title: 'Empty the trash',
                            actor,
                            resource: query.root ?? 'trash'
                        },
                        async (run) => {
                            const progress = paced(run);
                            for (const [index, item] of held.entries()) {
                                await trash.remove(item, run.signal);
                                progress((index + 1) / held.length);
                            }
                            return { items: held.length };
                        }
                    );
                }
            }
            for (const item of held) {
                await trash.remove(item, signal);
            }
            return reply.with(null, {});
        }
    });
}
