/** Routes of links for people without an account. */
import { type Download, joi, reply } from '@portico/sdk';

import { measureAll, streamFolder } from '../archives/write.ts';
import { fail } from '../errors.ts';
import { download } from '../files/content/content.ts';
import { filesystem } from '../files/filesystem.ts';
import { location, nameOf } from '../roots/path.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { shareFields, shareSchema, type TakenShare } from '../shares.ts';
import { archiveLimits } from './content/archives.ts';

/** Registers the routes of links. */
export function registerShareRoutes(ctx: Ctx, services: Services): void {
    registerList(ctx, services);
    registerCreation(ctx, services);
    registerRemoval(ctx, services);
    registerDownload(ctx, services);
}

function registerList(ctx: Ctx, { shares }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/shares',
        id: 'shares',
        access: 'share',
        summary: 'Public links',
        ui: { title: 'Links', order: 8, label: 'path', empty: 'Nothing is shared' },
        returns: joi.array().items(shareSchema),
        description: 'Those that are good, of all users, newest first.',
        handler: async ({ actor }) => reply.list(await shares.list(actor))
    });
}

function registerCreation(ctx: Ctx, { roots, shares }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/shares',
        id: 'share',
        access: 'share',
        summary: 'Make a public link',
        answers: 'made',
        ui: { title: 'New link' },
        returns: joi.object({
            ...shareFields,
            url: joi
                .string()
                .required()
                .label('Address')
                .description('Below the address of the panel, where the settings name one')
        }),
        stepUp: true,
        secret: true,
        audit: { action: 'create', resource: 'share' },
        description:
            'Who has the address can download the file, or the folder as a zip. It is shown once. It ends with the account of its maker, and holds what the maker may read at the time.',
        validate: {
            payload: location.keys({
                expiresAt: joi
                    .string()
                    .isoDate()
                    .label('Good until')
                    .description('Default, and at most: as many days as the settings say'),
                maxDownloads: joi
                    .number()
                    .integer()
                    .min(1)
                    .max(1_000_000)
                    .label('Most downloads')
                    .description('Default: no limit')
            })
        },
        async handler({ payload, actor, audit }) {
            const place = roots.at(actor, payload);
            audit({ resourceId: `${place.root.name}:${place.path}` });
            const { share, token } = await shares.create(actor, place, {
                expiresAt: payload.expiresAt === undefined ? null : new Date(payload.expiresAt),
                most: payload.maxDownloads ?? null
            });
            audit({ after: { id: share.id, expiresAt: share.expiresAt, maxDownloads: share.maxDownloads } });
            const path = `/api/plugins/${ctx.name}/s/${token}`;
            const base = await ctx.panel.url();
            return reply.created(`/api/plugins/${ctx.name}/shares`, {
                ...share,
                url: base === null ? path : new URL(path, base).href
            });
        }
    });
}

function registerRemoval(ctx: Ctx, { shares }: Services): void {
    ctx.route({
        method: 'DELETE',
        path: '/shares/{id}',
        id: 'removeShare',
        access: 'share',
        summary: 'Revoke a public link',
        answers: 'done',
        ui: { title: 'Revoke', confirm: 'Let this link lead to nothing?' },
        returns: joi.valid(null),
        audit: { action: 'delete', resource: 'share' },
        validate: {
            params: joi.object({
                id: joi
                    .number()
                    .integer()
                    .min(1)
                    .required()
                    .label('Link')
                    .meta({ ui: { ref: 'filemanager.shares' } })
            })
        },
        async handler({ params, actor, audit }) {
            const { root, path } = await shares.remove(actor, params.id);
            audit({ resourceId: `${root}:${path}`, before: { id: params.id } });
            return null;
        }
    });
}

function registerDownload(ctx: Ctx, { shares, converter }: Services): void {
    ctx.download({
        path: '/s/{token}',
        id: 'shared',
        access: { public: 'a shared file, by its link' },
        summary: 'Download by a public link',
        ui: { role: 'hidden' },
        description:
            'Always an attachment; a folder is a zip. A link that is unknown, expired, used up or revoked has one answer.',
        validate: {
            params: joi.object({
                token: joi
                    .secret()
                    .pattern(/^[A-Za-z0-9_-]{1,64}$/)
                    .required()
                    .label('Token')
            })
        },
        async handler({ params, ip, signal }) {
            const taken = await shares.take(params.token);
            let isSent = false;
            try {
                const file = await openShared(taken, signal);
                return {
                    ...file,
                    open(range) {
                        isSent = true;
                        return recorded(taken, ip, () => file.open(range));
                    },
                    async close() {
                        await file.close?.();
                        if (!isSent) {
                            // A question for the headers alone is no download.
                            await taken.giveBack();
                        }
                    }
                };
            } catch (error) {
                await taken.giveBack();
                throw error;
            }
        }
    });

    /** Yields the bytes of a download, once the audit has it. */
    async function* recorded(
        { row: { id, root, path } }: TakenShare,
        ip: string,
        open: () => AsyncIterable<Uint8Array>
    ): AsyncGenerator<Uint8Array> {
        await ctx.audit({
            action: 'download',
            resource: 'share',
            resourceId: `${root}:${path}`,
            after: { share: id, ip }
        });
        yield* open();
    }

    /** @throws SHARE_GONE 40450 */
    const openShared = async (
        { place: { root, path } }: TakenShare,
        signal: AbortSignal
    ): Promise<Download> => {
        try {
            const { type } = await filesystem(() => root.files.stat(path));
            if (type !== 'folder') {
                return await download(root.files, path, false);
            }
            await measureAll(root, [path], archiveLimits(ctx));
            return {
                size: null,
                type: 'application/zip',
                name: `${path === '' ? root.name : nameOf(path)}.zip`,
                open: () => streamFolder(converter, root, path, { format: 'zip', signal })
            };
        } catch (error) {
            ctx.log.debug('A public link could not be followed', { error: String(error) });
            throw fail.SHARE_GONE();
        }
    };
}
