/** The route that copies a file or a folder. */
import { type Actor, joi, type Reply, reply, type Task, taskSchema } from '@portico/sdk';

import { pluginErrors } from '../errors.ts';
import { entrySchema } from '../files/entries.ts';
import { filesystem } from '../files/filesystem.ts';
import { ownerOf } from '../files/owner.ts';
import { copyTree, measure } from '../files/tree.ts';
import { parentOf } from '../roots/path.ts';
import type { Root } from '../roots/roots.ts';
import type { Scratch } from '../roots/scratch.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { acceptTask, throttledProgress } from '../task-replies.ts';
import { fromToSchema, parseFromTo, refuseTaken, urlOf } from './locations.ts';

/** Registers the route that copies a file or a folder. */
export function registerCopyRoutes(ctx: Ctx, { roots, entries, scratch }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/copy',
        id: 'copy',
        access: 'write',
        summary: 'Copy a file or a folder',
        ui: { title: 'Copy', role: 'action' },
        returns: joi.alternatives(entrySchema, taskSchema),
        audit: { action: 'create', resource: 'file' },
        timeoutSeconds: 120,
        description:
            'To a free name, which appears once the copy is whole. Up to 500 entries and 32 MiB are copied at once (201); more becomes a task (202). Links and special files are left out.',
        validate: { payload: fromToSchema },
        async handler({ payload, actor, audit, signal }) {
            const { root, from, to } = parseFromTo(roots, actor, payload);
            audit({ resourceId: `${root.name}:${to}` });
            const top = await filesystem(() => root.files.stat(from));
            if (top.type !== 'file' && top.type !== 'folder') {
                throw pluginErrors.WRONG_TYPE({ path: from, type: top.type, wanted: 'file or folder' });
            }
            await refuseTaken(root, to);
            await ownerOf(root.files, parentOf(to));
            const { more } = await measure(root.files, from);
            if (more) {
                return copyAsTask(ctx, scratch, actor, { root, from, to });
            }
            await copyWhole(scratch, root, from, to, signal, () => undefined);
            const entry = await entries.one(root.files, to);
            return reply.created(urlOf(ctx, 'files', root, to), entry, { version: entry.version });
        }
    });
}

async function copyAsTask(
    ctx: Ctx,
    scratch: Scratch,
    actor: Actor,
    { root, from, to }: { readonly root: Root; readonly from: string; readonly to: string }
): Promise<Reply<Task>> {
    const description = {
        kind: 'copy',
        title: `Copy ${from} to ${to}`,
        actor,
        resource: `${root.name}:${to}`
    };
    return acceptTask(ctx, description, async (run) => {
        const all = await measure(root.files, from, { entries: Infinity, bytes: Infinity });
        const progress = throttledProgress(run);
        let bytes = 0;
        const { skipped } = await copyWhole(scratch, root, from, to, run.signal, (size) => {
            bytes += size;
            progress(all.bytes === 0 ? null : Math.min(1, bytes / all.bytes));
        });
        return { root: root.name, path: to, entries: all.entries, bytes: all.bytes, skipped };
    });
}

/** Copies to a temporary name beside the target, so that the target appears with everything in it. */
async function copyWhole(
    scratch: Scratch,
    root: Root,
    from: string,
    to: string,
    signal: AbortSignal,
    step: (bytes: number) => void
): Promise<{ readonly skipped: number }> {
    return scratch.beside(root, to, async (temporary) => {
        const owner = await ownerOf(root.files, parentOf(to));
        const result = await copyTree(root.files, from, temporary, owner, {
            signal,
            step: ({ entry }) => step(entry.type === 'file' ? entry.size : 0)
        });
        await filesystem(() => root.files.move(temporary, to));
        return result;
    });
}
