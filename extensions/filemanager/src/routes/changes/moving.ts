/** Routes that move and copy one entry. */
import { joi, type Reply, reply, type Task, taskSchema } from '@portico/sdk';

import { ownerOf } from '../../files/attributes/owner.ts';
import { entrySchema, type EntryView } from '../../files/entries.ts';
import { filesystem } from '../../files/filesystem.ts';
import { measure } from '../../files/tree.ts';
import type { Moved, MoveOptions, Mover } from '../../moving/mover.ts';
import { parentOf } from '../../roots/path.ts';
import type { Place } from '../../roots/roots.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { acceptTask, type TaskDescription, throttledProgress } from '../../task-replies.ts';
import { fromToSchema, nameOfPlace, parseFromTo, refuseTaken, urlOf } from '../locations.ts';

/** Registers the routes that move and copy. */
export function registerMovingRoutes(ctx: Ctx, services: Services): void {
    registerMove(ctx, services);
    registerCopy(ctx, services);
}

function registerMove(ctx: Ctx, services: Services): void {
    const { roots, mover } = services;
    ctx.route({
        method: 'POST',
        path: '/move',
        id: 'move',
        access: 'write',
        summary: 'Move or rename',
        ui: { title: 'Move', role: 'action' },
        returns: joi.alternatives(entrySchema, taskSchema),
        audit: { action: 'update', resource: 'file' },
        timeoutSeconds: 120,
        validate: { payload: fromToSchema },
        description:
            'Within a root in one step; links are moved as links. To another root: the entry is copied, the copy is verified, and then the source is removed; more than 500 entries or 32 MiB become a task (202).',
        async handler({ payload, actor, audit, signal }) {
            const { from, to } = parseFromTo(roots, actor, payload);
            audit({
                resourceId: nameOfPlace(from),
                before: { path: from.path },
                after: { ...(from.root.name === to.root.name ? {} : { root: to.root.name }), path: to.path }
            });
            const options = { actor, onConflict: payload.onConflict };
            const isOneStep = from.root.folder === to.root.folder;
            if (!isOneStep && (await measure(from.root.files, from.path)).more) {
                return moveAsTask(ctx, { from, to }, mover.move.bind(mover), {
                    ...options,
                    description: describe('move', 'Move', { from, to }, actor)
                });
            }
            const moved = await mover.move(from, to, { ...options, signal }, { acrossDevices: false });
            return answer(services, to, moved);
        }
    });
}

function registerCopy(ctx: Ctx, services: Services): void {
    const { roots, entries, mover } = services;
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
            'The copy appears once it is whole. Up to 500 entries and 32 MiB are copied at once (201; 200 when the name is taken and `skip` was asked for); more becomes a task (202). Links and special files are left out.',
        validate: { payload: fromToSchema },
        async handler({ payload, actor, audit, signal }) {
            const { from, to } = parseFromTo(roots, actor, payload);
            audit({ resourceId: nameOfPlace(to) });
            const options = { actor, onConflict: payload.onConflict };
            await filesystem(() => from.root.files.stat(from.path));
            await ownerOf(to.root.files, parentOf(to.path));
            if ((await measure(from.root.files, from.path)).more) {
                if (payload.onConflict === 'fail') {
                    await refuseTaken(to.root, to.path);
                }
                return moveAsTask(ctx, { from, to }, mover.copy.bind(mover), {
                    ...options,
                    description: describe('copy', 'Copy', { from, to }, actor)
                });
            }
            const copied = await mover.copy(from, to, { ...options, signal });
            if (copied.path === null) {
                return answer(services, to, copied);
            }
            const entry = await entries.one(to.root.files, copied.path);
            const url = urlOf(ctx, 'files', to.root, copied.path);
            return reply.created(url, entry, { version: entry.version });
        }
    });
}

interface Ends {
    readonly from: Place;
    readonly to: Place;
}

function describe(kind: string, verb: string, { from, to }: Ends, actor: TaskDescription['actor']) {
    const target = from.root.name === to.root.name ? to.path : nameOfPlace(to);
    return { kind, title: `${verb} ${from.path} to ${target}`, actor, resource: nameOfPlace(to) };
}

/** The entry as it is now; of a skipped one, what has the name. */
async function answer({ entries }: Services, to: Place, { path }: Moved): Promise<Reply<EntryView>> {
    const entry = await entries.one(to.root.files, path ?? to.path);
    return reply.with(entry, {
        version: entry.version,
        ...(path === null ? { message: 'The name is taken, and nothing was done' } : {})
    });
}

async function moveAsTask(
    ctx: Ctx,
    { from, to }: Ends,
    work: Mover['copy'],
    { description, ...options }: Omit<MoveOptions, 'signal'> & { readonly description: TaskDescription }
): Promise<Reply<Task>> {
    return acceptTask(ctx, description, async (run) => {
        const all = await measure(from.root.files, from.path, { entries: Infinity, bytes: Infinity });
        const progress = throttledProgress(run);
        let bytes = 0;
        const { path, skipped } = await work(from, to, {
            ...options,
            signal: run.signal,
            step: ({ entry }) => {
                bytes += entry.type === 'file' ? entry.size : 0;
                progress(all.bytes === 0 ? null : Math.min(1, bytes / all.bytes));
            }
        });
        return { root: to.root.name, path, entries: all.entries, bytes: all.bytes, skipped };
    });
}
