/** Routes that list roots and folders, and search for names. They show names, sizes, times and owners, never content. */
import { joi, pages, reply } from '@portico/sdk';

import { fail } from '../errors.ts';
import { entrySchema } from '../files/entries.ts';
import { filesystem } from '../files/filesystem.ts';
import { search } from '../files/search.ts';
import { isReserved, join, location, pathSchema } from '../roots/path.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

const rootSchema = joi.object({
    name: joi
        .string()
        .required()
        .label('Name')
        .meta({ ui: { column: 1 } }),
    path: joi
        .string()
        .required()
        .label('Folder')
        .description('Absolute path on the machine')
        .meta({ ui: { column: 2 } }),
    available: joi
        .boolean()
        .required()
        .label('Available')
        .description('False where the folder is missing or not granted to the plugin')
        .meta({ ui: { column: 3 } }),
    readOnly: joi
        .boolean()
        .required()
        .label('Read only')
        .meta({ ui: { column: 4 } }),
    quotaBytes: joi
        .number()
        .integer()
        .allow(null)
        .required()
        .label('Quota')
        .description('Null without a limit')
        .unit('byte'),
    usedBytes: joi
        .number()
        .integer()
        .allow(null)
        .required()
        .label('Used')
        .description('What counts for the quota; null without one, and while a large folder is counted')
        .unit('byte'),
    space: joi
        .object({
            total: joi.number().integer().required().label('In all').unit('byte'),
            available: joi.number().integer().required().label('Free').unit('byte')
        })
        .allow(null)
        .required()
        .label('Space')
        .description('Of the file system that it lies on; null where the folder is not available')
});

/** Registers the routes that list roots, list folders and search for names. */
export function registerBrowseRoutes(ctx: Ctx, services: Services): void {
    registerRoots(ctx, services);
    registerList(ctx, services);
    registerSearch(ctx, services);
}

function registerRoots(ctx: Ctx, { roots, quotas }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/roots',
        id: 'roots',
        access: 'read',
        summary: 'Folders that you may reach',
        ui: {
            title: 'Folders',
            primary: true,
            order: 1,
            label: 'name',
            empty: 'No folder is open to you yet'
        },
        returns: joi.array().items(rootSchema),
        async handler({ actor }) {
            const rows = roots.visible(actor).map(async (root) => {
                const { name, folder, files, readOnly, quotaBytes } = root;
                const space = await files.space().catch(() => null);
                const usedBytes = space === null ? null : await quotas.used(root);
                return {
                    name,
                    path: folder,
                    available: space !== null,
                    readOnly,
                    quotaBytes,
                    usedBytes,
                    space
                };
            });
            return reply.list(await Promise.all(rows));
        }
    });
}

function registerList(ctx: Ctx, { roots, entries }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/files',
        id: 'list',
        access: 'read',
        summary: 'What is in a folder',
        ui: { title: 'Files', order: 2, label: 'name', empty: 'This folder is empty' },
        returns: joi.array().items(entrySchema),
        description:
            'In the order of names. `Link` leads to the next page, `X-Total-Count` says how many entries there are.',
        validate: {
            query: location.keys({
                path: pathSchema.default(''),
                ...pages.query(1_000, 10_000)
            })
        },
        async handler({ query, actor }) {
            const { root, path } = roots.at(actor, query);
            const folder = await filesystem(() => root.files.stat(path));
            if (folder.type !== 'folder') {
                throw fail.WRONG_TYPE({ path, type: folder.type, wanted: 'folder' });
            }
            const all = (await filesystem(() => root.files.list(path))).filter(
                ({ name }) => !isReserved(name)
            );
            const { rows, page } = pages.sorted(all, query, ({ name }) => name);
            return reply.list(
                await entries.all(rows.map((entry) => ({ entry, path: join(path, entry.name) }))),
                page
            );
        }
    });
}

function registerSearch(ctx: Ctx, { roots, entries }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/search',
        id: 'search',
        access: 'read',
        summary: 'Find names below a folder',
        ui: { title: 'Search', order: 3, label: 'path', empty: 'Nothing was found' },
        returns: joi.array().items(entrySchema),
        timeoutSeconds: 30,
        description:
            'Names that contain `q`, whatever the case; with `*` or `?` in it, whole names of that pattern. Ends after 5 seconds or 200,000 entries; `X-Truncated` then says why: `results`, `time` or `entries`.',
        validate: {
            query: location.keys({
                path: pathSchema.default(''),
                q: joi
                    .string()
                    .min(1)
                    .max(255)
                    .required()
                    .label('Name')
                    .description('A part of the name, or a pattern with `*` and `?`')
                    .example('*.conf'),
                limit: joi
                    .number()
                    .integer()
                    .min(1)
                    .max(1_000)
                    .default(200)
                    .label('Results')
                    .description('The search ends after so many')
            })
        },
        async handler({ query, actor, signal }) {
            const { root, path } = roots.at(actor, query);
            const { found, truncated } = await search(root.files, path, query.q, query.limit, signal);
            return reply.with(await entries.all(found), {
                headers: truncated === null ? {} : { 'x-truncated': truncated }
            });
        }
    });
}
