/** Routes that list, restore and empty the trash. */
import { joi, reply, taskSchema } from '@portico/sdk';

import { entrySchema } from '../../files/entries.ts';
import { measure } from '../../files/tree.ts';
import { parseInner, pathSchema, rootName } from '../../roots/path.ts';
import { privatePath } from '../../roots/private-folder.ts';
import { refuseReadOnly } from '../../roots/roots.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { acceptTask, throttledProgress } from '../../task-replies.ts';
import { trashSchema } from '../../trash/trash.ts';

const itemId = joi
    .number()
    .integer()
    .min(1)
    .label('Item')
    .meta({ ui: { ref: 'filemanager.trash' } });

/** Registers the routes that list, restore and empty the trash. */
export function registerTrashRoutes(ctx: Ctx, services: Services): void {
    registerList(ctx, services);
    registerRestore(ctx, services);
    registerEmpty(ctx, services);
}

function registerList(ctx: Ctx, { roots, trash }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/trash',
        id: 'trash',
        access: 'read',
        summary: 'What lies in the trash',
        ui: { title: 'Trash', order: 4, label: 'name', empty: 'The trash is empty' },
        returns: joi.array().items(trashSchema),
        description: 'Newest first; of one root, or of all that you may reach.',
        validate: { query: joi.object({ root: rootName }) },
        async handler({ query, actor }) {
            const items = await trash.list(
                query.root === undefined ? roots.visible(actor) : [roots.of(actor, query.root)]
            );
            return reply.list(
                items.map((one) => trash.view(one)),
                { total: items.length }
            );
        }
    });
}

function registerRestore(ctx: Ctx, { roots, entries, trash }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/trash',
        id: 'restore',
        access: 'write',
        summary: 'Put something back',
        answers: 'done',
        ui: { title: 'Put back', role: 'action' },
        returns: entrySchema,
        audit: { action: 'update', resource: 'trash' },
        description:
            'To where it was, or to `to`; folders that are gone are made again. A name that is taken is 40900.',
        validate: {
            payload: joi.object({
                id: itemId.required(),
                to: pathSchema.label('To').description('Default: where it was')
            })
        },
        async handler({ payload, actor, audit }) {
            const items = await trash.one(roots.visible(actor), payload.id);
            refuseReadOnly(items.root);
            const to = payload.to === undefined ? items.row.path : parseInner(payload.to, 'to');
            audit({ resourceId: payload.id, after: { root: items.root.name, path: to } });
            await trash.restore(items, to);
            const entry = await entries.one(items.root.files, to);
            return reply.with(entry, { version: entry.version });
        }
    });
}

function registerEmpty(ctx: Ctx, { roots, trash }: Services): void {
    ctx.route({
        method: 'DELETE',
        path: '/trash',
        id: 'emptyTrash',
        access: 'write',
        summary: 'Empty the trash',
        ui: { title: 'Empty the trash', role: 'action', confirm: 'Remove what is in the trash for good?' },
        returns: joi.alternatives(taskSchema, joi.valid(null)),
        audit: { action: 'delete', resource: 'trash' },
        timeoutSeconds: 120,
        description:
            'Of one root, of all that you may reach, or one item by its `id`. A large one becomes a task (202).',
        validate: { query: joi.object({ root: rootName, id: itemId }) },
        async handler({ query, actor, audit, signal }) {
            // The trash of a read-only root stays as it is: without its name it is passed over, by its name it is refused.
            const reached =
                query.root === undefined
                    ? roots.visible(actor).filter(({ readOnly }) => query.id !== undefined || !readOnly)
                    : [roots.forChange(actor, query.root)];
            const items =
                query.id === undefined ? await trash.list(reached) : [await trash.one(reached, query.id)];
            items.forEach(({ root }) => refuseReadOnly(root));
            audit({ resourceId: query.id ?? query.root ?? null });
            let entriesLeft = 500;
            for (const { root, row } of items) {
                const { entries: count } = await measure(root.files, privatePath('trash', row.key), {
                    entries: entriesLeft,
                    bytes: Infinity
                }).catch(() => ({ entries: 1 }));
                entriesLeft -= count;
                if (entriesLeft < 0) {
                    return acceptTask(
                        ctx,
                        {
                            kind: 'empty-trash',
                            title: 'Empty the trash',
                            actor,
                            resource: query.root ?? 'trash'
                        },
                        async (run) => {
                            const progress = throttledProgress(run);
                            for (const [index, item] of items.entries()) {
                                await trash.remove(item, run.signal);
                                progress((index + 1) / items.length);
                            }
                            return { items: items.length };
                        }
                    );
                }
            }
            for (const item of items) {
                await trash.remove(item, signal);
            }
            return reply.with(null, {});
        }
    });
}
