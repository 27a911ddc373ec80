/** Routes that start and stop sites, and that tell how they do. */
import { joi, messageOf } from '@portico/sdk';

import { fail } from '../errors.ts';
import { readOpcache, readStatus, resetOpcache } from '../fpm/status.ts';
import type { Services } from '../services.ts';
import type { Ctx } from '../settings.ts';
import { siteSchema } from '../sites/creation/input.ts';
import type { Site } from '../sites/site.ts';
import { siteView } from '../sites/views.ts';
import { nothing, siteParams, withSite } from './params.ts';

const count = (label: string) => joi.number().integer().required().label(label);

const statusSchema = joi.object({
    accepted: count('Requests').description('Since its PHP-FPM was started or reloaded'),
    active: count('Busy workers'),
    idle: count('Waiting workers'),
    total: count('Workers'),
    maxActive: count('Most busy workers'),
    maxChildrenReached: count('Times that all workers were busy'),
    queue: count('Waiting requests'),
    slow: count('Slow requests'),
    memoryBytes: count('Memory').unit('byte'),
    opcache: joi
        .object({
            enabled: joi.boolean().required().label('OPcache'),
            usedBytes: count('Used').unit('byte'),
            hitRate: joi.number().required().label('Hits').unit('percent'),
            scripts: count('Scripts')
        })
        .allow(null)
        .required()
        .label('OPcache')
        .description('Null while no worker is free to tell')
});

/** Registers the routes of states. */
export function registerStateRoutes(ctx: Ctx, services: Services): void {
    registerActions(ctx, services);
    registerStatus(ctx, services);
    registerOpcache(ctx, services);
}

function registerActions(ctx: Ctx, services: Services): void {
    const { changes, locks, masters, store } = services;
    const actions = {
        start: ['Start', 'Start a site', undefined, (site: Site) => changes.start(site)],
        stop: [
            'Stop',
            'Stop a site',
            'Stop this site? Its visitors get an error until it is started',
            (site: Site) => changes.stop(site)
        ],
        restart: ['Restart', 'Restart a site', undefined, (site: Site) => changes.restart(site)],
        reload: [
            'Reload',
            'Read the configuration again; no request is cut',
            undefined,
            (site: Site) => changes.reload(site)
        ]
    } as const;
    for (const [name, [title, summary, confirm, work]] of Object.entries(actions)) {
        ctx.route({
            method: 'POST',
            path: `/sites/{id}/${name}`,
            id: `${name}Site`,
            access: 'operate',
            summary,
            answers: 'done',
            ui: { title, role: 'action', ...(confirm === undefined ? {} : { confirm }) },
            audit: { action: name, resource: 'site' },
            timeoutSeconds: 300,
            validate: { params: siteParams },
            returns: siteSchema,
            handler: ({ params, audit }) =>
                withSite(services, params.id, `a ${name}`, async (site) => {
                    audit({ resourceId: site.id });
                    await work(site);
                    return siteView(await store.get(site.id), await masters.all(), locks);
                })
        });
    }
}

function registerStatus(ctx: Ctx, { machine, store }: Services): void {
    ctx.route({
        method: 'GET',
        path: '/sites/{id}/status',
        id: 'siteStatus',
        access: 'read',
        summary: 'How a site does',
        ui: { title: 'Status', role: 'card' },
        validate: { params: siteParams },
        returns: statusSchema,
        async handler({ params }) {
            const site = await store.get(params.id);
            const status = await readStatus(ctx, site, site.slot, site.revision).catch((error: unknown) => {
                throw fail.SITE_DOWN({ why: messageOf(error) });
            });
            const uid = (
                await ctx
                    .files(site.folder)
                    .stat('private')
                    .catch(() => null)
            )?.uid;
            return {
                ...status,
                memoryBytes: uid === undefined ? 0 : await machine.memoryOf(uid),
                opcache: await readOpcache(ctx, site, site.slot)
            };
        }
    });
}

function registerOpcache(ctx: Ctx, { store }: Services): void {
    ctx.route({
        method: 'POST',
        path: '/sites/{id}/opcache/reset',
        id: 'resetOpcache',
        access: 'operate',
        summary: 'Empty the OPcache of a site',
        answers: 'done',
        ui: { title: 'Empty the OPcache', role: 'action' },
        audit: { action: 'reset-opcache', resource: 'site' },
        validate: { params: siteParams },
        returns: nothing,
        async handler({ params, audit }) {
            const site = await store.get(params.id);
            audit({ resourceId: site.id });
            await resetOpcache(ctx, site, site.slot).catch((error: unknown) => {
                throw fail.SITE_DOWN({ why: messageOf(error) });
            });
            return null;
        }
    });
}
