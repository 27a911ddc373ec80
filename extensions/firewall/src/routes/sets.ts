/** Routes of the elements of sets. */
import { joi, pages, reply } from '@portico/sdk';

import { formatInterval } from '../address/interval.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { idParams } from './id-params.ts';

const texts = joi.array().items(joi.string().min(2).max(64)).max(100_000);

/** Registers `/sets/{id}/elements` and `/sets/{id}/refresh`. */
export function registerSetRoutes(ctx: Ctx, services: Services): void {
    registerList(ctx, services);
    registerChanges(ctx, services);
}

function registerList(ctx: Ctx, { objects, contents }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/sets/{id}/elements',
        id: 'elements',
        access: 'read',
        summary: 'Elements of a set',
        ui: { title: 'Elements', label: 'element', empty: 'No element yet' },
        returns: joi.array().items(
            joi.object({
                element: joi
                    .string()
                    .required()
                    .label('Element')
                    .meta({ ui: { column: 1 } }),
                until: joi
                    .string()
                    .isoDate()
                    .allow(null)
                    .required()
                    .label('Until')
                    .meta({ ui: { column: 2 } })
            })
        ),
        validate: {
            params: idParams,
            query: joi.object({ ...pages.query(200, 10_000), q: joi.string().max(64).label('Text') })
        },
        async handler({ params, query }) {
            const { id } = await objects.get('sets', params.id);
            const all = (await contents.entries(id)).map(({ interval, until }) => ({
                element: formatInterval(interval),
                until: until === null ? null : new Date(until).toISOString()
            }));
            const { rows, page } = pages.ordered(
                all.filter(({ element }) => element.includes(query.q ?? '')),
                query
            );
            return reply.list(rows, page);
        }
    });
}

function registerChanges(ctx: Ctx, { lists }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/sets/{id}/elements',
        id: 'changeElements',
        access: 'write',
        summary: 'Add and remove elements of a set, in the kernel at once',
        answers: 'done',
        maxBytes: 8 * 2 ** 20,
        ui: { title: 'Add or remove', role: 'action' },
        returns: joi.object({ elements: joi.number().integer().required().label('Elements') }),
        audit: { action: 'update', resource: 'elements' },
        validate: {
            params: idParams,
            payload: joi.object({
                add: texts
                    .default([])
                    .label('Add')
                    .meta({ ui: { widget: 'lines' } }),
                remove: texts
                    .default([])
                    .label('Remove')
                    .meta({ ui: { widget: 'lines' } }),
                timeoutSeconds: joi
                    .number()
                    .integer()
                    .min(1)
                    .max(366 * 86_400)
                    .allow(null)
                    .default(null)
                    .label('Added for')
                    .unit('second')
                    .description('Empty: until they are removed')
            })
        },
        async handler({ params, payload, audit }) {
            const { add, remove, timeoutSeconds } = payload;
            audit({
                resourceId: params.id,
                after: { add: add.slice(0, 100), remove: remove.slice(0, 100), timeoutSeconds }
            });
            return { elements: await lists.change(params.id, { add, remove, seconds: timeoutSeconds }) };
        }
    });
    ctx.route({
        method: 'POST',
        path: '/sets/{id}/refresh',
        id: 'refreshSet',
        access: 'write',
        summary: 'Fetch the list of a set now',
        answers: 'task',
        ui: { title: 'Fetch now', role: 'action' },
        returns: joi.any(),
        audit: { action: 'refresh', resource: 'set' },
        validate: { params: idParams },
        async handler({ params, actor, audit }) {
            audit({ resourceId: params.id });
            return reply.accepted(await lists.refresh(params.id, actor));
        }
    });
}
