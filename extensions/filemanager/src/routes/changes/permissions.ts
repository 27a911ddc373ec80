/** Routes that set bits and owners. */
import { errors, joi, type Reply, reply, type Task, taskSchema } from '@portico/sdk';

import type { Accounts } from '../../files/attributes/accounts.ts';
import { changePermissions, changeTree, type PermissionChange } from '../../files/attributes/permissions.ts';
import { entrySchema, type EntryView } from '../../files/entries.ts';
import { filesystem } from '../../files/filesystem.ts';
import { measure } from '../../files/tree.ts';
import { location, parsePath } from '../../roots/path.ts';
import type { Place } from '../../roots/roots.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { acceptTask, type TaskDescription, throttledProgress } from '../../task-replies.ts';
import { nameOfPlace } from '../locations.ts';

/** The schema of permission bits: a number, or an octal text. Set-user-id and set-group-id are no part of it. */
export const bitsSchema = joi
    .alternatives(joi.number().integer().min(0).max(0o1777), joi.string().pattern(/^0?[01]?[0-7]{3}$/))
    .label('Permissions')
    .description('A number, or an octal text')
    .example('0640');

const maxId = 2 ** 32 - 2;
/** The schema of an account or a group. */
export const accountSchema = joi
    .alternatives(
        joi.number().integer().min(0).max(maxId),
        joi
            .string()
            .pattern(/^([a-z_][a-z0-9_.-]{0,63}\$?|\d{1,9})$/i)
            .max(64)
    )
    .description('A name that the machine has, or a number')
    .example('www-data');

const recursiveSchema = joi.boolean().default(false).label('With everything below');

/** The number of bits that {@link bitsSchema} let through. */
export function parseBits(bits: number | string | undefined): number | undefined {
    return typeof bits === 'string' ? Number.parseInt(bits, 8) : bits;
}

/** The ids of an owner and a group, of which one is given at least. @throws VALIDATION_FAILED 40001 */
export async function parseOwner(
    accounts: Accounts,
    {
        owner,
        group
    }: { readonly owner?: string | number | undefined; readonly group?: string | number | undefined }
): Promise<PermissionChange> {
    if (owner === undefined && group === undefined) {
        throw errors.invalid([{ path: 'owner', message: 'owner or group is needed' }]);
    }
    return {
        uid: owner === undefined ? undefined : await accounts.id('passwd', owner),
        gid: group === undefined ? undefined : await accounts.id('group', group)
    };
}

/** Registers the routes that set bits and owners. */
export function registerPermissionRoutes(ctx: Ctx, services: Services): void {
    registerMode(ctx, services);
    registerOwner(ctx, services);
}

function registerMode(ctx: Ctx, services: Services): void {
    const { roots } = services;
    ctx.route({
        method: 'POST',
        path: '/mode',
        id: 'mode',
        access: 'write',
        summary: 'Set permission bits',
        ui: { title: 'Permissions', role: 'action' },
        returns: joi.alternatives(entrySchema, taskSchema),
        audit: { action: 'update', resource: 'file' },
        timeoutSeconds: 120,
        description:
            "A number, or an octal text such as `0640`. Bits that lend an account's rights (set-user-id, set-group-id) cannot be given; a folder keeps its set-group-id. With `recursive`, more than 500 entries become a task (202).",
        validate: {
            payload: location.keys({
                mode: bitsSchema.required(),
                recursive: recursiveSchema,
                folderMode: bitsSchema
                    .label('Permissions of folders')
                    .description('With everything below; default: `mode`, where who may read may also enter')
            })
        },
        async handler({ payload, actor, audit, signal }) {
            const place = { root: roots.forChange(actor, payload.root), path: parsePath(payload.path) };
            const change = { mode: parseBits(payload.mode), folderMode: parseBits(payload.folderMode) };
            const before = await filesystem(() => place.root.files.stat(place.path));
            audit({
                resourceId: nameOfPlace(place),
                before: { mode: before.mode },
                after: { ...change, recursive: payload.recursive }
            });
            if (!payload.recursive) {
                await changePermissions(place.root.files, place.path, before, { mode: change.mode });
                return one(services, place);
            }
            return below(
                ctx,
                services,
                { place, change, signal },
                {
                    kind: 'mode',
                    title: `Set permissions below ${place.path}`,
                    actor,
                    resource: nameOfPlace(place)
                }
            );
        }
    });
}

function registerOwner(ctx: Ctx, services: Services): void {
    const { roots, accounts } = services;
    ctx.route({
        method: 'POST',
        path: '/owner',
        id: 'owner',
        access: 'write',
        summary: 'Set owner and group',
        ui: { title: 'Owner', role: 'action' },
        returns: joi.alternatives(entrySchema, taskSchema),
        audit: { action: 'update', resource: 'file' },
        timeoutSeconds: 120,
        description:
            'Of a link the link itself. Needs a panel that runs as root. With `recursive`, more than 500 entries become a task (202).',
        validate: {
            payload: location.keys({
                owner: accountSchema.label('Owner').meta({ ui: { widget: 'account' } }),
                group: accountSchema.label('Group'),
                recursive: recursiveSchema
            })
        },
        async handler({ payload, actor, audit, signal }) {
            const place = { root: roots.forChange(actor, payload.root), path: parsePath(payload.path) };
            const change = await parseOwner(accounts, payload);
            const before = await filesystem(() => place.root.files.stat(place.path));
            audit({
                resourceId: nameOfPlace(place),
                before: { owner: before.uid, group: before.gid },
                after: { owner: payload.owner, group: payload.group, recursive: payload.recursive }
            });
            if (!payload.recursive) {
                await changePermissions(place.root.files, place.path, before, change);
                return one(services, place);
            }
            return below(
                ctx,
                services,
                { place, change, signal },
                {
                    kind: 'owner',
                    title: `Set the owner below ${place.path}`,
                    actor,
                    resource: nameOfPlace(place)
                }
            );
        }
    });
}

async function one({ entries }: Services, { root, path }: Place): Promise<Reply<EntryView>> {
    const entry = await entries.one(root.files, path);
    return reply.with(entry, { version: entry.version });
}

/** Changes a tree at once where it is small, else as a task. */
async function below(
    ctx: Ctx,
    services: Services,
    given: { readonly place: Place; readonly change: PermissionChange; readonly signal: AbortSignal },
    description: TaskDescription
): Promise<Reply<EntryView | Task>> {
    const { place, change, signal } = given;
    const { files } = place.root;
    const { more } = await measure(files, place.path, { entries: 500, bytes: Infinity });
    if (!more) {
        await changeTree(files, place.path, change, { signal, step: () => undefined });
        return one(services, place);
    }
    return acceptTask(ctx, description, async (run) => {
        const { entries } = await measure(files, place.path, { entries: Infinity, bytes: Infinity });
        const progress = throttledProgress(run);
        const changed = await changeTree(files, place.path, change, {
            signal: run.signal,
            step: (done) => progress(Math.min(1, done / entries))
        });
        return { root: place.root.name, path: place.path, entries: changed };
    });
}
