/** Routes that show one entry, make links, and count what a folder holds. */
import { errors, joi, reply, taskSchema } from '@portico/sdk';

import { fail } from '../../errors.ts';
import { entrySchema } from '../../files/entries.ts';
import { filesystem } from '../../files/filesystem.ts';
import { sizeOf, sizeSchema } from '../../files/size.ts';
import { isReserved, join, location, parentOf, parseInner, parsePath } from '../../roots/path.ts';
import type { Root } from '../../roots/roots.ts';
import type { Services } from '../../services.ts';
import type { Ctx } from '../../settings.ts';
import { acceptTask } from '../../task-replies.ts';
import { urlOf } from '../locations.ts';

/** Entries that one request counts. More becomes a task. */
const mostCounted = 20_000;

const wholeEntrySchema = entrySchema.keys({
    target: joi
        .string()
        .allow(null)
        .required()
        .label('Leads to')
        .description('Of a link, as it is written; null of all else'),
    writable: joi
        .boolean()
        .required()
        .label('Writable')
        .description('The root is not read-only, and you may change files'),
    links: joi.number().integer().required().label('Names').description('Number of names of the same file'),
    allocated: joi
        .number()
        .integer()
        .required()
        .label('On the disk')
        .description('Less than the size where a file has holes')
        .unit('byte')
});

/** Registers the routes that show one entry, make links and count. */
export function registerLinkRoutes(ctx: Ctx, services: Services): void {
    registerEntry(ctx, services);
    registerLink(ctx, services);
    registerSize(ctx, services);
}

function registerEntry(ctx: Ctx, { roots, entries }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/entry',
        id: 'entry',
        access: 'read',
        summary: 'One file, folder or link itself',
        ui: { title: 'Entry', role: 'hidden' },
        returns: wholeEntrySchema,
        validate: { query: location },
        async handler({ query, actor }) {
            const { root, path } = roots.at(actor, query);
            const entry = await filesystem(() => root.files.stat(path));
            const target = entry.type === 'link' ? await filesystem(() => root.files.readLink(path)) : null;
            const { links, allocated, version } = entry;
            const writable = !root.readOnly && actor.can(`${ctx.name}:write`);
            const view = await entries.of(entry, path);
            return reply.with({ ...view, target, writable, links, allocated }, { version });
        }
    });
}

function registerLink(ctx: Ctx, { roots, entries }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/links',
        id: 'makeLink',
        access: 'write',
        summary: 'Make a link',
        answers: 'made',
        ui: { title: 'New link' },
        returns: entrySchema,
        audit: { action: 'create', resource: 'link' },
        description:
            'A symbolic link leads to something below the same root, without other links on the way. A hard link is a second name of a file.',
        validate: {
            payload: location.keys({
                target: joi
                    .string()
                    .min(1)
                    .max(4096)
                    .required()
                    .label('Leads to')
                    .description(
                        'Of a symbolic link, from the folder that it lies in, such as `../shared`; of a hard link, the path of a file below the root'
                    ),
                kind: joi
                    .choice({ symbolic: 'Symbolic link', hard: 'Second name of a file' })
                    .required()
                    .label('Kind')
            })
        },
        async handler({ payload, actor, audit }) {
            const { target, kind } = payload;
            const root = roots.forChange(actor, payload.root);
            const path = parseInner(payload.path);
            audit({ resourceId: `${root.name}:${path}`, after: { target, kind } });
            if (kind === 'symbolic') {
                await requireInside(root, parentOf(path), target);
                await filesystem(() => root.files.link(path, target, kind));
            } else {
                const file = parseInner(target, 'target');
                const { type } = await filesystem(() => root.files.stat(file));
                if (type !== 'file') {
                    throw fail.WRONG_TYPE({ path: file, type, wanted: 'file' });
                }
                await filesystem(() => root.files.link(path, file, kind));
            }
            const entry = await entries.one(root.files, path);
            return reply.created(urlOf(ctx, 'files', root, path), entry, { version: entry.version });
        }
    });
}

/**
 * Follows the target of a link step by step, as the system would.
 *
 * @throws LINK_OUTSIDE 40956 when it leaves the root or comes to another link; NOT_FOUND 40400 when nothing is there
 */
async function requireInside({ files }: Root, folder: string, target: string): Promise<void> {
    if (target.includes('\0')) {
        throw errors.invalid([{ path: 'target', message: 'target has a NUL character' }]);
    }
    if (target.startsWith('/')) {
        throw fail.LINK_OUTSIDE({ target });
    }
    let at = parsePath(folder);
    for (const segment of target.split('/').filter((each) => each !== '' && each !== '.')) {
        if (segment === '..') {
            if (at === '') {
                throw fail.LINK_OUTSIDE({ target });
            }
            at = parentOf(at);
            continue;
        }
        if (isReserved(segment)) {
            throw errors.notFound();
        }
        at = join(at, segment);
        if ((await filesystem(() => files.stat(at))).type === 'link') {
            throw fail.LINK_OUTSIDE({ target });
        }
    }
}

function registerSize(ctx: Ctx, { roots }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/size',
        id: 'size',
        access: 'read',
        effect: 'read',
        summary: 'Count what a folder holds',
        ui: { title: 'Size', role: 'action' },
        returns: joi.alternatives(sizeSchema, taskSchema),
        audit: false,
        timeoutSeconds: 60,
        description: `Up to ${mostCounted.toLocaleString('en')} entries are counted at once (200); more becomes a task with the same result (202).`,
        validate: { payload: location },
        async handler({ payload, actor, signal }) {
            const { root, path } = roots.at(actor, payload);
            const size = await sizeOf(root.files, path, { signal, most: mostCounted });
            if (size !== null) {
                return size;
            }
            const description = {
                kind: 'size',
                title: `Count ${path === '' ? root.folder : path}`,
                actor,
                resource: `${root.name}:${path}`,
                access: 'read'
            };
            return acceptTask(ctx, description, (run) =>
                sizeOf(root.files, path, { signal: run.signal, most: Infinity })
            );
        }
    });
}
