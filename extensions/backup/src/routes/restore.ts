/** The route that restores. */
import { errors, joi, reply } from '@portico/sdk';

import { fail } from '../errors.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import type { RestoreInput } from '../snapshots/restore.ts';
import { base, findSnapshot, inside, params } from './snapshots.ts';

const description = [
    'To a `folder`, `/a/b` comes as `folder/a/b`. With `inPlace`, files go where they came from, each beside its place and then renamed, and items of plugins go back to their plugin.',
    'The panel’s own state goes to a folder alone; `portico data restore` makes a data folder of it.',
    'A task; its result is `items` with `ok`, `files`, `path` and `message`.'
].join(' ');

const restoreSchema = joi.object({
    items: joi
        .array()
        .items(
            joi.object({
                path: inside,
                plugin: joi.string().max(40).label('Plugin'),
                item: joi.string().max(200).label('Item'),
                panel: joi.boolean().valid(true).label('The panel')
            })
        )
        .min(1)
        .max(100)
        .required()
        .label('What')
        .description('Each with a path, a plugin (and one item of it), or panel'),
    folder: joi
        .string()
        .pattern(/^\/[^\0]*$/)
        .max(4_000)
        .label('Folder')
        .description('New or empty; or `inPlace`'),
    inPlace: joi.boolean().default(false).label('In place'),
    conflict: joi
        .choice({
            refuse: 'Restore nothing of the item',
            skip: 'Keep what is there',
            overwrite: 'Replace what is there'
        })
        .default('refuse')
        .label('When a file is there')
        .description('In place'),
    dryRun: joi.boolean().default(false).label('Only try')
});

/** Declares the route that restores a snapshot. */
export function registerRestoreRoute(ctx: Ctx, services: Services): void {
    const { restores } = services;
    ctx.route({
        method: 'POST',
        path: `${base}/{sid}/restore`,
        id: 'restore',
        access: 'restore',
        stepUp: true,
        summary: 'Restore parts of a snapshot to a folder, or in place',
        description,
        answers: 'task',
        returns: joi.any(),
        audit: { action: 'restore', resource: 'snapshot' },
        validate: { params, payload: restoreSchema },
        async handler({ params: place, payload: { folder, inPlace, ...rest }, actor }) {
            const input: RestoreInput = { ...rest, folder: wantedFolder(folder, inPlace) };
            const { row, snapshot } = await findSnapshot(services, place);
            await restores.check(input, row);
            const title = input.folder === null ? 'Restore in place' : `Restore to ${input.folder}`;
            const options = { kind: 'restore', title, access: 'restore', actor };
            return reply.accepted(
                await ctx.task(options, async ({ signal }) => {
                    const restored = await restores.run(row, snapshot, input, signal);
                    const bad = restored.filter(({ ok }) => !ok);
                    if (bad.length > 0) {
                        const message = bad
                            .map((part) => `${part.path ?? part.item.plugin ?? 'panel'}: ${part.message}`)
                            .join('; ');
                        throw fail.RESTORE_INCOMPLETE({ message, items: restored });
                    }
                    return { items: restored };
                })
            );
        }
    });
}

/** @throws VALIDATION_FAILED 40001 unless it is either a folder or in place */
function wantedFolder(folder: string | undefined, inPlace: boolean): string | null {
    if ((folder === undefined) !== inPlace) {
        throw errors.invalid([{ path: 'folder', message: 'Either folder or inPlace is needed' }]);
    }
    return folder ?? null;
}
