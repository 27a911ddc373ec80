/** Routes of favourites. They are a user's own notes and change no file, so viewers have them too. */
import { joi, reply } from '@portico/sdk';

import { favouriteSchema } from '../favourites.ts';
import { location, pathSchema } from '../roots/path.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';

/** Registers the routes of favourites. */
export function registerFavouriteRoutes(ctx: Ctx, { roots, favourites }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/favourites',
        id: 'favourites',
        access: 'read',
        summary: 'Your favourites',
        ui: { title: 'Favourites', order: 7, label: 'title', empty: 'You have marked nothing yet' },
        returns: joi.array().items(favouriteSchema),
        handler: async ({ actor }) => reply.list(await favourites.list(actor))
    });
    ctx.route({
        method: 'POST',
        path: '/favourites',
        id: 'addFavourite',
        access: 'read',
        effect: 'read',
        audit: false,
        summary: 'Mark a file or folder',
        answers: 'made',
        ui: { title: 'Mark' },
        returns: favouriteSchema,
        validate: {
            payload: location.keys({
                path: pathSchema.default(''),
                title: joi
                    .string()
                    .pattern(/^[^\p{C}]*\S[^\p{C}]*$/u, 'title')
                    .max(200)
                    .label('Title')
                    .description('Default: its name')
            })
        },
        async handler({ payload, actor }) {
            const made = await favourites.add(actor, roots.at(actor, payload), payload.title);
            return reply.created(`/api/plugins/${ctx.name}/favourites`, made);
        }
    });
    ctx.route({
        method: 'DELETE',
        path: '/favourites/{id}',
        id: 'removeFavourite',
        access: 'read',
        effect: 'read',
        audit: false,
        summary: 'Take a mark away',
        answers: 'done',
        ui: { title: 'Remove' },
        returns: joi.valid(null),
        validate: {
            params: joi.object({
                id: joi
                    .number()
                    .integer()
                    .min(1)
                    .required()
                    .label('Favourite')
                    .meta({ ui: { ref: 'filemanager.favourites' } })
            })
        },
        async handler({ params, actor }) {
            await favourites.remove(actor, params.id);
            return null;
        }
    });
}
