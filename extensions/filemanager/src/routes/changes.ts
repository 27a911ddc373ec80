/** Folders made, entries moved, copied, removed, and their permission bits. */
import { errors, joi, reply } from '@portico/sdk';

import { failures, filesystem, isMissing } from '../errors.ts';
import { checkVersion } from '../files/content.ts';
import { entrySchema } from '../files/entries.ts';
import { move } from '../files/move.ts';
import { giveFolder, ownerOf } from '../files/owner.ts';
import { copyTree, measure, removeTree } from '../files/tree.ts';
import { isWithin, parentOf, parseInner, pathSchema, where } from '../roots/path.ts';
import type { Root } from '../roots/roots.ts';
import type { Parts } from '../services.ts';
import { asTask, paced, taskSchema } from '../task-replies.ts';

const fromTo = joi.object({
    root: joi.string().max(64).required(),
    from: pathSchema.required(),
    to: pathSchema.required()
});
const bits = joi.alternatives(
    joi.number().integer().min(0).max(0o1777),
    joi.string().pattern(/^0?[01]?[0-7]{3}$/)
);

export function changeRoutes(parts: Parts): void {
    const { ctx, roots, entries } = parts;
    ctx.route({
        method: 'POST',
        path: '/folders',
        id: 'makeFolder',
        access: 'write',
        summary: 'Make a folder',
        returns: entrySchema,
        audit: { action: 'create', resource: 'folder' },
        validate: { payload: where },
        async handler({ payload, actor, audit }) {
            const root = roots.of(actor, payload.root);
            const path = parseInner(payload.path);
            audit({ resourceId: `${root.name}:${path}` });
            const owner = await ownerOf(root.files, parentOf(path));
            await filesystem(async () => {
                await root.files.createFolder(path, { mode: 0o750 });
                await giveFolder(root.files, path, owner);
            });
            const entry = await entries.one(root.files, path);
            return reply.created(locationOf(parts, root, path), entry, { version: entry.version });
        }
    });
    ctx.route({
        method: 'POST',
        path: '/move',
        id: 'move',
        access: 'write',
        summary: 'Move or rename',
        returns: entrySchema,
        audit: { action: 'update', resource: 'file' },
        validate: { payload: fromTo },
        description: 'In one step, and only to a free name. Links are moved as links.',
        async handler({ payload, actor, audit }) {
            const { root, from, to } = ends(parts, actor, payload);
            audit({ resourceId: `${root.name}:${from}`, before: { path: from }, after: { path: to } });
            await filesystem(() => root.files.stat(from));
            await refuseTaken(root, to);
            await move(root.files, from, to);
            const entry = await entries.one(root.files, to);
            return reply.with(entry, { version: entry.version });
        }
    });
    ctx.route({
        method: 'POST',
        path: '/copy',
        id: 'copy',
        access: 'write',
        summary: 'Copy a file or a folder',
        returns: joi.alternatives(entrySchema, taskSchema),
        audit: { action: 'create', resource: 'file' },
        timeoutSeconds: 120,
        description:
            'To a free name, which appears once the copy is whole. Up to 500 entries and 32 MiB are copied at once (201); more becomes a task (202). Links and special files are left out.',
        validate: { payload: fromTo },
        async handler({ payload, actor, audit, signal }) {
            const { root, from, to } = ends(parts, actor, payload);
            audit({ resourceId: `${root.name}:${to}` });
            const top = await filesystem(() => root.files.stat(from));
            if (top.type !== 'file' && top.type !== 'folder') {
                throw failures.WRONG_TYPE({ path: from, type: top.type, wanted: 'file or folder' });
            }
            await refuseTaken(root, to);
            await ownerOf(root.files, parentOf(to));
            const { more } = await measure(root.files, from);
            if (more) {
                return asTask(
                    ctx,
                    { kind: 'copy', title: `Copy ${from} to ${to}`, actor, resource: `${root.name}:${to}` },
                    async (run) => {
                        const all = await measure(root.files, from, { entries: Infinity, bytes: Infinity });
                        const progress = paced(run);
                        let bytes = 0;
                        const { skipped } = await copyWhole(parts, root, from, to, run.signal, (size) => {
                            bytes += size;
                            progress(all.bytes === 0 ? null : Math.min(1, bytes / all.bytes));
                        });
                        return { root: root.name, path: to, entries: all.entries, bytes: all.bytes, skipped };
                    }
                );
            }
            await copyWhole(parts, root, from, to, signal, () => undefined);
            const entry = await entries.one(root.files, to);
            return reply.created(locationOf(parts, root, to), entry, { version: entry.version });
        }
    });
    ctx.route({
        method: 'POST',
        path: '/mode',
        id: 'mode',
        access: 'write',
        summary: 'Set permission bits',
        returns: entrySchema,
        audit: { action: 'update', resource: 'file' },
        description:
            "A number, or an octal text such as `0640`. Bits that lend an account's rights (set-user-id, set-group-id) cannot be given; a folder keeps its set-group-id.",
        validate: { payload: where.keys({ mode: bits.required() }) },
        async handler({ payload, actor, audit }) {
            const { root, path } = roots.at(actor, payload);
            const mode = typeof payload.mode === 'number' ? payload.mode : Number.parseInt(payload.mode, 8);
            const before = await filesystem(() => root.files.stat(path));
            audit({ resourceId: `${root.name}:${path}`, before: { mode: before.mode }, after: { mode } });
            if (before.type !== 'file' && before.type !== 'folder') {
                throw failures.WRONG_TYPE({ path, type: before.type, wanted: 'file or folder' });
            }
            await filesystem(() =>
                root.files.chmod(path, mode | (before.type === 'folder' ? before.mode & 0o2000 : 0))
            );
            const entry = await entries.one(root.files, path);
            return reply.with(entry, { version: entry.version });
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/files',
        id: 'remove',
        access: 'write',
        summary: 'Move to the trash, or remove for good',
        returns: joi.alternatives(taskSchema, joi.valid(null)),
        audit: { action: 'delete', resource: 'file' },
        timeoutSeconds: 120,
        description: 'With `permanent=true` nothing is kept; a large folder then becomes a task (202).',
        validate: { query: where.keys({ permanent: joi.boolean().default(false) }) },
        async handler({ query, actor, audit, ifMatch, signal }) {
            const root = roots.of(actor, query.root);
            const path = parseInner(query.path);
            audit({ resourceId: `${root.name}:${path}` });
            checkVersion(await filesystem(() => root.files.stat(path)), ifMatch);
            if (!query.permanent) {
                await parts.trash.put(root, path, actor);
                return reply.with(null, {});
            }
            if ((await measure(root.files, path, { entries: 500, bytes: Infinity })).more) {
                return asTask(
                    ctx,
                    { kind: 'remove', title: `Remove ${path}`, actor, resource: `${root.name}:${path}` },
                    async (run) => {
                        const progress = paced(run);
                        await removeTree(root.files, path, {
                            signal: run.signal,
                            step: (done, of) => progress(done / of)
                        });
                        return { root: root.name, path };
                    }
                );
            }
            await removeTree(root.files, path, { signal, step: () => undefined });
            return reply.with(null, {});
        }
    });
}

function ends(
    { roots }: Parts,
    actor: Parameters<Parts['roots']['of']>[0],
    payload: { readonly root: string; readonly from: string; readonly to: string }
): { readonly root: Root; readonly from: string; readonly to: string } {
    const root = roots.of(actor, payload.root);
    const [from, to] = [parseInner(payload.from, 'from'), parseInner(payload.to, 'to')];
    if (from !== to && isWithin(to, from)) {
        throw failures.INSIDE_ITSELF({ path: to });
    }
    return { root, from, to };
}

async function refuseTaken({ files }: Root, to: string): Promise<void> {
    const there = await files.stat(to).catch((error: unknown) => {
        if (!isMissing(error)) {
            throw error;
        }
        return null;
    });
    if (there !== null) {
        throw errors.conflict('to');
    }
}

/** Copies beside the target, so that the target's name appears with everything in it. */
async function copyWhole(
    { scratch }: Parts,
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

function locationOf({ ctx }: Parts, root: Root, path: string): string {
    return `/api/plugins/${ctx.name}/files?root=${encodeURIComponent(root.name)}&path=${encodeURIComponent(path)}`;
}
