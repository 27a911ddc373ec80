/** The routes of tools. */
import { joi, pages, reply } from '@portico/sdk';

import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { toolView } from '../tools/catalogue.ts';

/** Declares the routes below `/tools`. */
export function registerToolRoutes(ctx: Ctx, { catalogue }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/tools',
        id: 'tools',
        access: 'read',
        summary: 'Tools of the assistant: the routes of the panel',
        ui: { title: 'Tools', order: 6, label: 'route' },
        validate: {
            query: joi.object({
                q: joi
                    .string()
                    .max(200)
                    .label('Search')
                    .description('A part of the route or of what it does'),
                effect: joi
                    .choice({ read: 'Reads', write: 'Changes', destructive: 'Removes' })
                    .label('Effect'),
                ...pages.query(200, 1_000)
            })
        },
        returns: joi.array().items(toolView),
        async handler({ actor, query }) {
            const part = query.q?.toLowerCase() ?? '';
            const all = (await catalogue.list(actor)).filter(
                ({ route, title, effect }) =>
                    (query.effect === undefined || query.effect === effect) &&
                    `${route} ${title}`.toLowerCase().includes(part)
            );
            const { rows, page } = pages.sorted(all, query, ({ route }) => route);
            return reply.list(rows, page);
        }
    });
    ctx.route({
        method: 'PUT',
        path: '/tools/{id}',
        id: 'changeTool',
        access: 'manage',
        summary: 'Switch a tool on or off, or let it run at once',
        description: 'What removes something or is dangerous always asks first.',
        answers: 'done',
        ui: { title: 'Change' },
        audit: { action: 'update', resource: 'tool' },
        validate: {
            params: joi.object({
                id: joi
                    .string()
                    .pattern(/^[A-Za-z0-9_-]{1,64}$/)
                    .required()
                    .label('Tool')
                    .meta({ ui: { ref: 'ai.tools' } })
            }),
            payload: joi.object({
                enabled: joi.boolean().label('Enabled'),
                approval: joi.choice({ ask: 'Asks first', auto: 'Runs at once' }).label('Before it runs')
            })
        },
        returns: toolView,
        async handler({ actor, params: { id }, payload, audit }) {
            const { before, after } = await catalogue.change(actor, id, payload);
            audit({ resourceId: id, before, after });
            return after;
        }
    });
}
