/** Routes that make folders, move entries, and set permission bits. */
import { joi, reply } from '@portico/sdk';

import { pluginErrors } from '../errors.ts';
import { entrySchema } from '../files/entries.ts';
import { filesystem } from '../files/filesystem.ts';
import { move } from '../files/move.ts';
import { changeFolderOwner, ownerOf } from '../files/owner.ts';
import { location, parentOf, parseInner } from '../roots/path.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { fromToSchema, parseFromTo, refuseTaken, urlOf } from './locations.ts';

const bits = joi
    .alternatives(joi.number().integer().min(0).max(0o1777), joi.string().pattern(/^0?[01]?[0-7]{3}$/))
    .label('Permissions')
    .description('A number, or an octal text')
    .example('0640');

/** Registers the routes that make folders, move entries and set permission bits. */
export function registerChangeRoutes(ctx: Ctx, services: Services): void {
    registerFolder(ctx, services);
    registerMove(ctx, services);
    registerMode(ctx, services);
}

function registerFolder(ctx: Ctx, { roots, entries }: Services): void {
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
            const root = roots.of(actor, payload.root);
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

function registerMove(ctx: Ctx, { roots, entries }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/move',
        id: 'move',
        access: 'write',
        summary: 'Move or rename',
        answers: 'done',
        ui: { title: 'Move', role: 'action' },
        returns: entrySchema,
        audit: { action: 'update', resource: 'file' },
        validate: { payload: fromToSchema },
        description: 'In one step, and only to a free name. Links are moved as links.',
        async handler({ payload, actor, audit }) {
            const { root, from, to } = parseFromTo(roots, actor, payload);
            audit({ resourceId: `${root.name}:${from}`, before: { path: from }, after: { path: to } });
            await filesystem(() => root.files.stat(from));
            await refuseTaken(root, to);
            await move(root.files, from, to);
            const entry = await entries.one(root.files, to);
            return reply.with(entry, { version: entry.version });
        }
    });
}

function registerMode(ctx: Ctx, { roots, entries }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/mode',
        id: 'mode',
        access: 'write',
        summary: 'Set permission bits',
        answers: 'done',
        ui: { title: 'Permissions', role: 'action' },
        returns: entrySchema,
        audit: { action: 'update', resource: 'file' },
        description:
            "A number, or an octal text such as `0640`. Bits that lend an account's rights (set-user-id, set-group-id) cannot be given; a folder keeps its set-group-id.",
        validate: { payload: location.keys({ mode: bits.required() }) },
        async handler({ payload, actor, audit }) {
            const { root, path } = roots.at(actor, payload);
            const mode = typeof payload.mode === 'number' ? payload.mode : Number.parseInt(payload.mode, 8);
            const before = await filesystem(() => root.files.stat(path));
            audit({ resourceId: `${root.name}:${path}`, before: { mode: before.mode }, after: { mode } });
            if (before.type !== 'file' && before.type !== 'folder') {
                throw pluginErrors.WRONG_TYPE({ path, type: before.type, wanted: 'file or folder' });
            }
            await filesystem(() =>
                root.files.chmod(path, mode | (before.type === 'folder' ? before.mode & 0o2000 : 0))
            );
            const entry = await entries.one(root.files, path);
            return reply.with(entry, { version: entry.version });
        }
    });
}
