/** Routes of a site's directives and pool. */
import { joi, requireVersion } from '@portico/sdk';

import { autoSize } from '../config/auto-size.ts';
import { directives, type DirectiveValues, effective } from '../config/directives.ts';
import { poolChangeSchema, poolSchema } from '../config/pool.ts';
import { definedOf } from '../defined.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { siteParams, withSite } from './params.ts';

const given = joi
    .record(joi.alternatives(joi.string().max(200).allow(''), joi.number(), joi.boolean(), joi.valid(null)))
    .label('Directives')
    .description('Values by name; null takes one back to its default');

const settingSchema = joi.object({
    name: joi
        .string()
        .required()
        .label('Directive')
        .meta({ ui: { column: 1 } }),
    value: joi
        .string()
        .required()
        .label('Value')
        .meta({ ui: { column: 2 } }),
    default: joi
        .string()
        .required()
        .label('Default')
        .meta({ ui: { column: 3 } })
});

/** Registers the routes of directives and pools. */
export function registerSettingsRoutes(ctx: Ctx, services: Services): void {
    registerDirectives(ctx, services);
    registerPool(ctx, services);
    registerCheck(ctx, services);
}

function settingsOf(values: DirectiveValues) {
    const now = effective(values);
    return directives.map(({ name, default: usual }) => ({
        name,
        value: now[name] ?? usual,
        default: usual
    }));
}

function registerDirectives(ctx: Ctx, services: Services): void {
    const { changes, store } = services;
    ctx.route({
        method: 'GET',
        path: '/sites/{id}/settings',
        id: 'settings',
        access: 'read',
        summary: 'The directives of a site',
        ui: { title: 'Settings', label: 'name' },
        validate: { params: siteParams },
        returns: joi.array().items(settingSchema),
        handler: async ({ params }) => settingsOf((await store.get(params.id)).values)
    });
    ctx.route({
        method: 'PUT',
        path: '/sites/{id}/settings',
        id: 'updateSettings',
        access: 'write',
        summary: 'Set directives of a site',
        description:
            'PHP-FPM tries them first (42250); a reload then brings them into effect and cuts no request.',
        answers: 'done',
        ui: { title: 'Change settings' },
        audit: { action: 'update', resource: 'site-settings' },
        timeoutSeconds: 300,
        validate: { params: siteParams, payload: joi.object({ values: given.required() }) },
        returns: joi.array().items(settingSchema),
        handler: (request) =>
            withSite(services, request.params.id, 'a change', async (site) => {
                requireVersion(site, request.ifMatch);
                const changed = await changes.setDirectives(site, request.payload.values);
                request.audit({ resourceId: site.id, before: site.values, after: changed.values });
                return settingsOf(changed.values);
            })
    });
}

function registerPool(ctx: Ctx, services: Services): void {
    const { changes, machine, store } = services;
    ctx.route({
        method: 'GET',
        path: '/sites/{id}/pool',
        id: 'pool',
        access: 'read',
        summary: 'The workers of a site',
        ui: { title: 'Workers', role: 'card' },
        validate: { params: siteParams },
        returns: poolSchema,
        handler: async ({ params }) => (await store.get(params.id)).pool
    });
    ctx.route({
        method: 'PUT',
        path: '/sites/{id}/pool',
        id: 'updatePool',
        access: 'write',
        summary: 'Change the workers of a site',
        description: 'What is left out stays as it is. PHP-FPM tries it first (42250); no request is cut.',
        answers: 'done',
        ui: { title: 'Change the workers' },
        audit: { action: 'update', resource: 'site-pool' },
        timeoutSeconds: 300,
        validate: { params: siteParams, payload: poolChangeSchema },
        returns: poolSchema,
        handler: (request) =>
            withSite(services, request.params.id, 'a change', async (site) => {
                requireVersion(site, request.ifMatch);
                const changed = await changes.setPool(site, definedOf(request.payload));
                request.audit({ resourceId: site.id, before: site.pool, after: changed.pool });
                return changed.pool;
            })
    });
    ctx.route({
        method: 'POST',
        path: '/sites/{id}/pool/auto-size',
        id: 'autoSize',
        access: 'write',
        effect: 'read',
        summary: 'Propose workers for a site',
        description:
            'From the memory of the machine, the number of sites, and what the workers took so far. Nothing is changed.',
        answers: 'done',
        ui: { title: 'Propose a size', role: 'action' },
        validate: { params: siteParams },
        returns: joi.object({
            pool: poolSchema.required().label('Proposal'),
            reasons: joi.array().items(joi.string()).required().label('Reasons')
        }),
        handler: async ({ params }) =>
            autoSize(ctx, machine, await store.get(params.id), (await store.all()).length)
    });
}

function registerCheck(ctx: Ctx, services: Services): void {
    const { changes } = services;
    ctx.route({
        method: 'POST',
        path: '/sites/{id}/check',
        id: 'check',
        access: 'read',
        effect: 'read',
        summary: 'Try directives and workers without saving them',
        description: 'PHP-FPM itself reads what a save would make, as the account of the site.',
        answers: 'done',
        ui: { title: 'Try', role: 'action' },
        validate: {
            params: siteParams,
            payload: joi.object({ values: given, pool: poolChangeSchema.label('Workers') })
        },
        returns: joi.object({
            ok: joi.boolean().required().label('Accepted'),
            output: joi.string().allow('').required().label('What PHP-FPM says').meta({ media: 'text/plain' })
        }),
        handler: ({ params, payload }) =>
            withSite(services, params.id, 'a check', (site) =>
                changes.check(site, {
                    ...(payload.values === undefined ? {} : { values: payload.values }),
                    ...(payload.pool === undefined ? {} : { pool: definedOf(payload.pool) })
                })
            )
    });
}
